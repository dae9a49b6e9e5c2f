//! The credential update session: what a person does with a reset token.

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use compact_jwt::JweCompact;
use kanidm_proto::internal::{CURequest, CUSessionToken, CUStatus};
use kanidmd_lib::idm::credupdatesession::{
    CredentialUpdateIntentTokenExchange, CredentialUpdateSessionToken, InitCredentialUpdateEvent,
};
use kanidmd_lib::prelude::*;
use std::str::FromStr;

use crate::http::caller::Caller;
use crate::http::error::{Answer, Failure};
use crate::http::{Routes, Shared};

/// The routes.
pub fn routes() -> Routes {
    Router::new()
        .route("/v1/person/{id}/_credential/_update", get(begin))
        .route("/v1/credential/_exchange_intent", post(exchange))
        .route("/v1/credential/_status", post(status))
        .route("/v1/credential/_update", post(update))
        .route("/v1/credential/_commit", post(commit))
        .route("/v1/credential/_cancel", post(cancel))
}

fn session(token: &CUSessionToken) -> Result<CredentialUpdateSessionToken, OperationError> {
    JweCompact::from_str(&token.token)
        .map(|token_enc| CredentialUpdateSessionToken { token_enc })
        .map_err(|_| OperationError::InvalidSessionState)
}

async fn begin(State(running): Shared, caller: Caller, Path(id): Path<String>) -> Answer<(CUSessionToken, CUStatus)> {
    let begun: Result<_, OperationError> = running
        .engine
        .write(|w, now| {
            let ident = caller.identity(w, now)?;
            let target = w.qs_write.name_to_uuid(&id)?;
            w.init_credential_update(&InitCredentialUpdateEvent::new(ident, target), now)
        })
        .await;
    let (token, status) = begun?;
    Ok(Json((CUSessionToken { token: token.token_enc.to_string() }, status.into())))
}

async fn exchange(State(running): Shared, Json(intent_id): Json<String>) -> Answer<(CUSessionToken, CUStatus)> {
    let begun: Result<_, OperationError> = running
        .engine
        .write(|w, now| w.exchange_intent_credential_update(CredentialUpdateIntentTokenExchange { intent_id }, now))
        .await;
    let (token, status) = begun?;
    Ok(Json((CUSessionToken { token: token.token_enc.to_string() }, status.into())))
}

async fn status(State(running): Shared, Json(token): Json<CUSessionToken>) -> Answer<CUStatus> {
    let token = session(&token)?;
    let transaction = running.engine.idms().cred_update_transaction().await?;
    Ok(Json(transaction.credential_update_status(&token, duration_from_epoch_now())?.into()))
}

async fn update(State(running): Shared, Json((request, token)): Json<(CURequest, CUSessionToken)>) -> Answer<CUStatus> {
    let token = session(&token)?;
    let now = duration_from_epoch_now();
    let t = running.engine.idms().cred_update_transaction().await?;
    let status = match request {
        CURequest::Password(text) => t.credential_primary_set_password(&token, now, &text),
        CURequest::PrimaryRemove => t.credential_primary_delete(&token, now),
        CURequest::TotpGenerate => t.credential_primary_init_totp(&token, now),
        CURequest::TotpVerify(code, label) => t.credential_primary_check_totp(&token, now, code, &label),
        CURequest::TotpAcceptSha1 => t.credential_primary_accept_sha1_totp(&token, now),
        CURequest::TotpRemove(label) => t.credential_primary_remove_totp(&token, now, &label),
        CURequest::BackupCodeGenerate => t.credential_primary_init_backup_codes(&token, now),
        CURequest::BackupCodeRemove => t.credential_primary_remove_backup_codes(&token, now),
        CURequest::CancelMFAReg => t.credential_update_cancel_mfareg(&token, now),
        CURequest::UnixPassword(text) => t.credential_unix_set_password(&token, now, &text),
        CURequest::UnixPasswordRemove => t.credential_unix_delete(&token, now),
        CURequest::SshPublicKey(label, key) => t.credential_sshkey_add(&token, now, label, key),
        CURequest::SshPublicKeyRemove(label) => t.credential_sshkey_remove(&token, now, &label),
        CURequest::PasskeyInit
        | CURequest::PasskeyFinish(..)
        | CURequest::PasskeyRemove(_)
        | CURequest::AttestedPasskeyInit
        | CURequest::AttestedPasskeyFinish(..)
        | CURequest::AttestedPasskeyRemove(_) => return Err(Failure::NotImplemented("registration of passkeys")),
    };
    Ok(Json(status?.into()))
}

async fn commit(State(running): Shared, Json(token): Json<CUSessionToken>) -> Answer<()> {
    let token = session(&token)?;
    let done: Result<(), OperationError> = running.engine.write(|w, now| w.commit_credential_update(&token, now)).await;
    Ok(Json(done?))
}

async fn cancel(State(running): Shared, Json(token): Json<CUSessionToken>) -> Answer<()> {
    let token = session(&token)?;
    let done: Result<(), OperationError> = running.engine.write(|w, now| w.cancel_credential_update(&token, now)).await;
    Ok(Json(done?))
}
