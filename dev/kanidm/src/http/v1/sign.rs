//! What lets others verify signatures: public keys and OpenID discovery. Tokens are in `http::oauth2`.

use axum::extract::{Path, State};
use axum::routing::get;
use axum::{Json, Router};
use compact_jwt::Jwk;
use kanidm_proto::oauth2::OidcDiscoveryResponse;
use kanidmd_lib::prelude::*;

use crate::http::error::Answer;
use crate::http::{Routes, Shared};

/// The routes.
pub fn routes() -> Routes {
    Router::new()
        .route("/v1/jwk/{kid}", get(own_key))
        .route("/oauth2/openid/{client}/.well-known/openid-configuration", get(discovery))
        .route("/oauth2/openid/{client}/public_key.jwk", get(client_keys))
}

async fn own_key(State(running): Shared, Path(kid): Path<String>) -> Answer<Jwk> {
    let key: Result<_, OperationError> = running.engine.read(|r, _| r.jws_public_jwk(&kid)).await;
    Ok(Json(key?))
}

async fn discovery(State(running): Shared, Path(client): Path<String>) -> Answer<OidcDiscoveryResponse> {
    let found: Result<_, OperationError> = running.engine.read(|r, _| r.oauth2_openid_discovery(&client)).await;
    Ok(Json(found?))
}

async fn client_keys(State(running): Shared, Path(client): Path<String>) -> Answer<serde_json::Value> {
    let keys: Result<_, OperationError> = running
        .engine
        .read(|r, _| {
            let keys = r.oauth2_openid_publickey(&client)?;
            serde_json::to_value(&keys).map_err(|_| OperationError::SerdeJsonError)
        })
        .await;
    Ok(Json(keys?))
}
