//! Logging in, in three steps, and what belongs to a session.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{COOKIE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use kanidm_proto::internal::UserAuthToken;
use kanidm_proto::v1::{AuthIssueSession, AuthRequest, AuthResponse, AuthState as ProtoState, WhoamiResponse};
use kanidmd_lib::event::SearchResult;
use kanidmd_lib::idm::AuthState;
use kanidmd_lib::idm::account::DestroySessionTokenEvent;
use kanidmd_lib::idm::event::{AuthEvent, AuthResult};
use kanidmd_lib::idm::server::IdmServerTransaction;
use kanidmd_lib::prelude::*;

use super::caller::Caller;
use super::error::{Answer, Failure};
use super::login_session::LoginSessions;
use super::{Routes, Shared};

const SESSION_COOKIE: &str = "auth-session-id";
const SESSION_HEADER: &str = "x-kanidm-auth-session-id";

/// The routes.
pub fn routes(sessions: Arc<LoginSessions>) -> Routes {
    Router::new()
        .route("/v1/auth", post(step))
        .route("/v1/reauth", post(reauth))
        .route("/v1/auth/valid", get(valid))
        .route("/v1/logout", get(logout))
        .route("/v1/self", get(whoami))
        .route("/v1/self/_uat", get(own_token))
        .layer(Extension(sessions))
}

async fn step(
    State(running): Shared,
    Extension(sessions): Extension<Arc<LoginSessions>>,
    caller: Caller,
    headers: HeaderMap,
    Json(request): Json<AuthRequest>,
) -> Result<Response, Failure> {
    let event = AuthEvent::from_message(session_id(&sessions, &headers), request)?;
    let now = duration_from_epoch_now();
    let result = {
        let mut transaction = running.engine.idms().auth().await?;
        transaction.expire_auth_sessions(now).await;
        let result = transaction.auth(&event, now, caller.into_auth_info()).await;
        // Committed whatever the result: a refusal counts towards the soft lock.
        transaction.commit()?;
        result?
    };
    respond(&sessions, result)
}

async fn reauth(
    State(running): Shared,
    Extension(sessions): Extension<Arc<LoginSessions>>,
    caller: Caller,
    Json(issue): Json<AuthIssueSession>,
) -> Result<Response, Failure> {
    let now = duration_from_epoch_now();
    let result = {
        let mut transaction = running.engine.idms().auth().await?;
        let identity = caller.identity(&mut transaction, now)?;
        transaction.expire_auth_sessions(now).await;
        let result = transaction.reauth_init(identity, issue, now, caller.into_auth_info()).await;
        transaction.commit()?;
        result?
    };
    respond(&sessions, result)
}

/// The session of a login in progress, from the header or the cookie.
fn session_id(sessions: &LoginSessions, headers: &HeaderMap) -> Option<Uuid> {
    let header = headers.get(SESSION_HEADER).and_then(|v| v.to_str().ok());
    let cookie = || {
        headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|line| line.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .find(|(name, _)| *name == SESSION_COOKIE)
            .map(|(_, value)| value)
    };
    header.or_else(cookie).and_then(|name| sessions.session(name))
}

fn respond(sessions: &LoginSessions, result: AuthResult) -> Result<Response, Failure> {
    let sessionid = result.sessionid;
    let (state, in_progress) = match result.state {
        AuthState::Choose(mechs) => (ProtoState::Choose(mechs), true),
        AuthState::Continue(allowed) => (ProtoState::Continue(allowed), true),
        AuthState::Denied(reason) => (ProtoState::Denied(reason), false),
        AuthState::Success(token, _issue) => (ProtoState::Success(token.to_string()), false),
    };
    let mut response = Json(AuthResponse { sessionid, state }).into_response();
    let name = if in_progress {
        sessions.name(sessionid).map_err(|_| Failure::Operation(OperationError::CryptographyError))?
    } else {
        String::new()
    };
    let lifetime = if in_progress { "" } else { "; Max-Age=0" };
    let cookie = format!("{SESSION_COOKIE}={name}; HttpOnly; SameSite=Strict; Secure{lifetime}");
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&cookie) {
        headers.insert(SET_COOKIE, value);
    }
    if in_progress && let Ok(value) = HeaderValue::from_str(&name) {
        headers.insert(SESSION_HEADER, value);
    }
    Ok(response)
}

async fn valid(State(running): Shared, caller: Caller) -> Answer<()> {
    running.engine.read(|r, now| caller.identity(r, now).map(|_| ())).await.map(Json).map_err(Failure::Operation)
}

async fn logout(State(running): Shared, caller: Caller) -> Answer<()> {
    running
        .engine
        .write(|w, now| {
            let ident = caller.identity(w, now)?;
            if !ident.can_logout() {
                return Err(OperationError::InvalidState);
            }
            let target = ident.get_uuid().ok_or(OperationError::InvalidState)?;
            let token_id = ident.get_session_id();
            w.account_destroy_session_token(&DestroySessionTokenEvent { ident, target, token_id })
        })
        .await
        .map(Json)
        .map_err(Failure::Operation)
}

async fn whoami(State(running): Shared, caller: Caller) -> Answer<WhoamiResponse> {
    let youare = running
        .engine
        .read(|r, now| {
            let ident = caller.identity(r, now)?;
            let event = SearchEvent::from_whoami_request(ident, &r.qs_read)?;
            let entries = r.qs_read.search_ext(&event)?;
            let mut found = SearchResult::new(&mut r.qs_read, &entries)?.into_proto_array();
            found.pop().ok_or(OperationError::NoMatchingEntries)
        })
        .await?;
    Ok(Json(WhoamiResponse::new(youare)))
}

async fn own_token(State(running): Shared, caller: Caller) -> Answer<UserAuthToken> {
    let token: Result<_, OperationError> =
        running.engine.read(|r, now| r.validate_client_auth_info_to_uat(&caller.into_auth_info(), now)).await;
    Ok(Json(token?))
}
