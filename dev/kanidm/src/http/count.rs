//! How often each route was used since the start, at `/dev/requests`.
//!
//! Not part of the contract: it lets a test prove that a client at rest writes nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;

/// "METHOD route" to how often.
#[derive(Default)]
pub struct Counts(Mutex<BTreeMap<String, u64>>);

impl Counts {
    /// The counts so far.
    pub fn snapshot(&self) -> BTreeMap<String, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, route: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(route).or_default() += 1;
    }
}

/// Counts a request that has a route.
pub async fn count(State(counts): State<Arc<Counts>>, path: MatchedPath, request: Request, next: Next) -> Response {
    counts.add(format!("{} {}", request.method(), path.as_str()));
    next.run(request).await
}
