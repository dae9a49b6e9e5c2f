//! API tokens and generated passwords of service accounts.

use axum::extract::{Path, State};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use kanidm_proto::internal::ApiToken;
use kanidmd_lib::idm::event::GeneratePasswordEvent;
use kanidmd_lib::idm::serviceaccount::{DestroyApiTokenEvent, GenerateApiTokenEvent, ListApiTokenEvent};
use kanidmd_lib::prelude::*;
use serde::Deserialize;
use time::OffsetDateTime;

use crate::http::caller::Caller;
use crate::http::error::{Answer, Failure};
use crate::http::{Routes, Shared};

/// The routes.
pub fn routes() -> Routes {
    Router::new()
        .route("/v1/service_account/{id}/_api_token", get(list).post(issue))
        .route("/v1/service_account/{id}/_api_token/{token}", delete(revoke))
        .route("/v1/service_account/{id}/_credential/_generate", get(new_password))
        .route("/v1/service_account/{id}/_into_person", post(into_person))
}

#[derive(Deserialize)]
struct Wanted {
    label: String,
    #[serde(with = "time::serde::timestamp::option")]
    expiry: Option<OffsetDateTime>,
    read_write: bool,
    #[serde(default)]
    compact: bool,
}

async fn list(State(running): Shared, caller: Caller, Path(id): Path<String>) -> Answer<Vec<ApiToken>> {
    let tokens: Result<_, OperationError> = running
        .engine
        .read(|r, now| {
            let ident = caller.identity(r, now)?;
            let target = r.qs_read.name_to_uuid(&id)?;
            r.service_account_list_api_token(&ListApiTokenEvent { ident, target })
        })
        .await;
    Ok(Json(tokens?))
}

async fn issue(
    State(running): Shared,
    caller: Caller,
    Path(id): Path<String>,
    Json(wanted): Json<Wanted>,
) -> Answer<String> {
    if wanted.compact {
        return Err(Failure::NotImplemented("the compact form of API tokens"));
    }
    let token: Result<_, OperationError> = running
        .engine
        .write(|w, now| {
            let ident = caller.identity(w, now)?;
            let target = w.qs_write.name_to_uuid(&id)?;
            let Wanted { label, expiry, read_write, .. } = wanted;
            let event = GenerateApiTokenEvent { ident, target, label, expiry, read_write };
            w.service_account_generate_api_token(&event, now)
        })
        .await;
    Ok(Json(token?.to_string()))
}

async fn revoke(State(running): Shared, caller: Caller, Path((id, token_id)): Path<(String, Uuid)>) -> Answer<()> {
    let done: Result<(), OperationError> = running
        .engine
        .write(|w, now| {
            let ident = caller.identity(w, now)?;
            let target = w.qs_write.name_to_uuid(&id)?;
            w.service_account_destroy_api_token(&DestroyApiTokenEvent { ident, target, token_id })
        })
        .await;
    Ok(Json(done?))
}

/// A GET that changes something, as in the real server: each call makes a new password.
async fn new_password(State(running): Shared, caller: Caller, Path(id): Path<String>) -> Answer<String> {
    let password: Result<_, OperationError> = running
        .engine
        .write(|w, now| {
            let ident = caller.identity(w, now)?;
            let target = w.qs_write.name_to_uuid(&id)?;
            w.generate_service_account_password(&GeneratePasswordEvent::from_parts(ident, target)?)
        })
        .await;
    Ok(Json(password?))
}

async fn into_person(State(running): Shared, caller: Caller, Path(id): Path<String>) -> Answer<()> {
    let done: Result<(), OperationError> = running
        .engine
        .write(|w, now| {
            let ident = caller.identity(w, now)?;
            let target = w.qs_write.name_to_uuid(&id)?;
            w.service_account_into_person(&ident, target)
        })
        .await;
    Ok(Json(done?))
}
