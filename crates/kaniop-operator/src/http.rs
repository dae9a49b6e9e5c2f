//! `/livez`, `/readyz` and `/metrics`. A standby serves them too: it is ready to take over.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::metrics::Metrics;

#[derive(Clone)]
struct Shown {
    metrics: Metrics,
    ready: watch::Receiver<bool>,
}

/// Serves until the process ends.
///
/// # Errors
/// When the address cannot be listened on.
pub async fn serve(address: SocketAddr, metrics: Metrics, ready: watch::Receiver<bool>) -> std::io::Result<()> {
    let routes = Router::new()
        .route("/livez", get(|| async { "ok" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(shown))
        .with_state(Shown { metrics, ready });
    axum::serve(TcpListener::bind(address).await?, routes).await
}

async fn readyz(State(shown): State<Shown>) -> Response {
    if *shown.ready.borrow() {
        "ok".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the API server has not been reached yet").into_response()
    }
}

async fn shown(State(shown): State<Shown>) -> Response {
    match shown.metrics.encode() {
        Ok(text) => ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)
            .into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
