//! What OAuth2 clients ask for themselves: tokens, what a token is worth, and its end. The engine checks the client's own name and secret, by HTTP
//! Basic or in the form.
//!
//! Nobody can authorise anything here, so there are no codes to exchange: of the grants only `client_credentials` leads to a token.

use axum::extract::State;
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Form, Json, Router};
use kanidm_proto::oauth2::{
    AccessTokenIntrospectRequest, AccessTokenIntrospectResponse, AccessTokenRequest, AccessTokenResponse,
    TokenRevokeRequest,
};
use kanidmd_lib::idm::oauth2::Oauth2Error;
use kanidmd_lib::prelude::*;
use serde_json::json;

use super::caller::Caller;
use super::{Routes, Shared};

/// The routes.
pub fn routes() -> Routes {
    Router::new()
        .route("/oauth2/token", post(token))
        .route("/oauth2/token/introspect", post(introspect))
        .route("/oauth2/token/revoke", post(revoke))
}

/// Why a client does not get what it asks for, in the words of OAuth2.
struct Refusal(Oauth2Error);

impl From<OperationError> for Refusal {
    fn from(error: OperationError) -> Self {
        Self(Oauth2Error::ServerError(error))
    }
}

impl From<Oauth2Error> for Refusal {
    fn from(error: Oauth2Error) -> Self {
        Self(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        if self.0 == Oauth2Error::AuthenticationRequired {
            return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))])
                .into_response();
        }
        if let Oauth2Error::ServerError(error) = &self.0 {
            tracing::error!(?error, "an OAuth2 request failed");
        }
        (StatusCode::BAD_REQUEST, Json(json!({ "error": self.0.to_string() }))).into_response()
    }
}

type Answer<T> = Result<Json<T>, Refusal>;

async fn token(
    State(running): Shared,
    caller: Caller,
    Form(request): Form<AccessTokenRequest>,
) -> Answer<AccessTokenResponse> {
    let client = caller.into_auth_info();
    let issued: Result<Result<_, Oauth2Error>, Refusal> = running
        .engine
        .write(|w, now| match w.check_oauth2_token_exchange(&client, &request, now) {
            // Committed although it is refused: a grant that is used twice ends its session.
            Err(Oauth2Error::InvalidGrant) => Ok(Err(Oauth2Error::InvalidGrant)),
            other => Ok(Ok(other?)),
        })
        .await;
    Ok(Json(issued??))
}

async fn introspect(
    State(running): Shared,
    caller: Caller,
    Form(request): Form<AccessTokenIntrospectRequest>,
) -> Answer<AccessTokenIntrospectResponse> {
    let client = caller.into_auth_info();
    let found: Result<_, Refusal> =
        running.engine.read(|r, now| Ok(r.check_oauth2_token_introspect(&client, &request, now)?)).await;
    Ok(Json(found?))
}

async fn revoke(State(running): Shared, caller: Caller, Form(request): Form<TokenRevokeRequest>) -> Answer<()> {
    let client = caller.into_auth_info();
    let done: Result<(), Refusal> =
        running.engine.write(|w, now| Ok(w.oauth2_token_revoke(&client, &request, now)?)).await;
    Ok(Json(done?))
}
