//! The HTTPS API: routes, and what is the same for all of them.
//!
//! Translates between requests and the engine; decides nothing about identities itself.

mod auth;
mod caller;
mod conflict;
mod count;
mod error;
mod image;
mod login_session;
mod oauth2;
mod scim;
mod v1;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use openssl::error::ErrorStack;
use uuid::Uuid;

use crate::release;
use crate::server::Running;
use count::Counts;
use login_session::LoginSessions;

/// The longest a request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(300);

/// What handlers share.
type Shared = State<Arc<Running>>;
type Routes = Router<Arc<Running>>;

/// All routes of a running server.
///
/// # Errors
/// When there is no randomness for the key of logins in progress.
pub fn router(running: Arc<Running>) -> Result<Router, ErrorStack> {
    let sessions = Arc::new(LoginSessions::new()?);
    let counts = Arc::new(Counts::default());
    let reader = Arc::clone(&counts);
    Ok(Router::new()
        .route("/status", get(|| async { Json(true) }))
        .merge(auth::routes(sessions))
        .merge(v1::routes())
        .merge(scim::routes())
        .merge(oauth2::routes())
        .merge(image::routes(running.config.role))
        .route_layer(middleware::from_fn_with_state(counts, count::count))
        // Not counted, so that looking changes nothing.
        .route("/dev/requests", get(move || async move { Json(reader.snapshot()) }))
        .fallback(|| async { (StatusCode::NOT_FOUND, "Route not found") })
        .layer(middleware::from_fn(headers))
        .layer(middleware::from_fn(limit_time))
        .with_state(running))
}

/// The headers of every answer; `/status` does not tell the version.
async fn headers(request: Request, next: Next) -> Response {
    let is_status = request.uri().path() == "/status";
    let mut response = next.run(request).await;
    if let Ok(id) = HeaderValue::from_str(&Uuid::new_v4().to_string()) {
        response.headers_mut().insert("x-kanidm-opid", id);
    }
    if !is_status {
        response.headers_mut().insert("x-kanidm-version", HeaderValue::from_static(&release::played().version));
    }
    response
}

async fn limit_time(request: Request, next: Next) -> Response {
    match tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => StatusCode::REQUEST_TIMEOUT.into_response(),
    }
}
