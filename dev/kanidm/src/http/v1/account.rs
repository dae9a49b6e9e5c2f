//! What persons and service accounts (and, for POSIX, groups) have beyond attributes: POSIX, sessions, RADIUS and
//! reset tokens.

use std::time::Duration;

use axum::extract::{Path, State};
use axum::routing::{delete as delete_route, get, post, put};
use axum::{Json, Router};
use kanidm_proto::internal::{CUIntentToken, CredentialStatus};
use kanidm_proto::v1::{Entry as ProtoEntry, SingleStringRequest, UatStatus, UnixGroupToken, UnixUserToken};
use kanidmd_lib::idm::account::{DestroySessionTokenEvent, ListUserAuthTokenEvent};
use kanidmd_lib::idm::credupdatesession::InitCredentialUpdateIntentEvent;
use kanidmd_lib::idm::event::{
    CredentialStatusEvent, RegenerateRadiusSecretEvent, UnixGroupTokenEvent, UnixPasswordChangeEvent,
    UnixUserTokenEvent,
};
use kanidmd_lib::prelude::*;
use serde::Deserialize;

use super::kind::Kind;
use super::operation;
use crate::http::caller::Caller;
use crate::http::error::{Answer, Failure};
use crate::http::{Routes, Shared};

/// The routes.
pub fn routes() -> Routes {
    Router::new()
        .merge(posix("/v1/person/{id}", Kind::Person))
        .merge(posix("/v1/service_account/{id}", Kind::ServiceAccount))
        .route("/v1/group/{id}/_unix", post(posix_group))
        .route("/v1/group/{id}/_unix/_token", get(group_token))
        .route("/v1/account/{id}/_unix/_token", get(user_token))
        .route("/v1/person/{id}/_unix/_credential", put(set_posix_password).delete(drop_posix_password))
        .route("/v1/person/{id}/_radius", get(radius).post(new_radius).delete(drop_radius))
        .route("/v1/person/{id}/_credential/_status", get(credential_status))
        .route("/v1/service_account/{id}/_credential/_status", get(credential_status))
        .route("/v1/person/{id}/_credential/_update_intent", get(intent))
        .route("/v1/person/{id}/_credential/_update_intent/{ttl}", get(intent_with_ttl))
        .route("/v1/person/_search/{query}", get(search_persons))
        .route("/v1/account/{id}/_user_auth_token", get(sessions))
        .route("/v1/account/{id}/_user_auth_token/{token}", delete_route(end_session))
}

fn posix(base: &str, kind: Kind) -> Routes {
    Router::new().route(
        &format!("{base}/_unix"),
        post(move |State(s): Shared, c: Caller, Path(id): Path<String>, Json(p): Json<Posix>| async move {
            let mods = p.mods(EntryClass::PosixAccount);
            operation::change(&s, &c, kind.one(&id), mods).await
        }),
    )
}

/// The body of POSIX extension; an absent or null number is assigned by the engine.
#[derive(Deserialize)]
struct Posix {
    gidnumber: Option<u32>,
    shell: Option<String>,
}

impl Posix {
    fn mods(self, class: EntryClass) -> Vec<Modify> {
        let mut mods = vec![Modify::Present(Attribute::Class, class.to_value())];
        if let Some(number) = self.gidnumber {
            mods.push(Modify::Purged(Attribute::GidNumber));
            mods.push(Modify::Present(Attribute::GidNumber, Value::new_uint32(number)));
        }
        if let Some(shell) = self.shell {
            mods.push(Modify::Purged(Attribute::LoginShell));
            mods.push(Modify::Present(Attribute::LoginShell, Value::new_iutf8(&shell)));
        }
        mods
    }
}

async fn posix_group(
    State(running): Shared,
    caller: Caller,
    Path(id): Path<String>,
    Json(body): Json<Posix>,
) -> Answer<()> {
    let posix = Posix { shell: None, ..body };
    operation::change(&running, &caller, Kind::Group.one(&id), posix.mods(EntryClass::PosixGroup)).await
}

async fn group_token(State(running): Shared, caller: Caller, Path(id): Path<String>) -> Answer<UnixGroupToken> {
    let token: Result<_, OperationError> = running
        .engine
        .read(|r, now| {
            let ident = caller.identity(r, now)?;
            let target = r.qs_read.name_to_uuid(&id)?;
            r.get_unixgrouptoken(&UnixGroupTokenEvent::from_parts(ident, target)?)
        })
        .await;
    Ok(Json(token?))
}

async fn user_token(State(running): Shared, caller: Caller, Path(id): Path<String>) -> Answer<UnixUserToken> {
    let token: Result<_, OperationError> = running
        .engine
        .read(|r, now| {
            let ident = caller.identity(r, now)?;
            let target = r.qs_read.name_to_uuid(&id)?;
            r.get_unixusertoken(&UnixUserTokenEvent::from_parts(ident, target)?, now)
        })
        .await;
    Ok(Json(token?))
}

async fn set_posix_password(
    State(running): Shared,
    caller: Caller,
    Path(id): Path<String>,
    Json(body): Json<SingleStringRequest>,
) -> Answer<()> {
    let done: Result<(), OperationError> = running
        .engine
        .write(|w, now| {
            let ident = caller.identity(w, now)?;
            let target = w.qs_write.name_to_uuid(&id)?;
            let event = UnixPasswordChangeEvent::from_parts(ident, target, body.value)?;
            w.set_unix_account_password(&event)
        })
        .await;
    Ok(Json(done?))
}

async fn drop_posix_password(State(running): Shared, caller: Caller, Path(id): Path<String>) -> Answer<()> {
    let purge = Modify::Purged(Attribute::UnixPassword);
    operation::change(&running, &caller, Kind::Person.one(&id), vec![purge]).await
}

async fn radius(State(running): Shared, caller: Caller, Path(id): Path<String>) -> Answer<Option<String>> {
    let secret: Result<_, OperationError> = running
        .engine
        .read(|r, now| {
            let ident = caller.identity(r, now)?;
            let target = r.qs_read.name_to_uuid(&id)?;
            let event = SearchEvent::from_target_uuid_request(ident, target, &r.qs_read)?;
            let entries = r.qs_read.search_ext(&event)?;
            let secret = entries.first().and_then(|e| e.get_ava_single_secret(Attribute::RadiusSecret));
            Ok(secret.map(str::to_owned))
        })
        .await;
    Ok(Json(secret?))
}

async fn new_radius(State(running): Shared, caller: Caller, Path(id): Path<String>) -> Answer<String> {
    let secret: Result<_, OperationError> = running
        .engine
        .write(|w, now| {
            let ident = caller.identity(w, now)?;
            let target = w.qs_write.name_to_uuid(&id)?;
            w.regenerate_radius_secret(&RegenerateRadiusSecretEvent::from_parts(ident, target)?)
        })
        .await;
    Ok(Json(secret?))
}

async fn drop_radius(State(running): Shared, caller: Caller, Path(id): Path<String>) -> Answer<()> {
    let purge = Modify::Purged(Attribute::RadiusSecret);
    operation::change(&running, &caller, Kind::Person.one(&id), vec![purge]).await
}

/// An account without any credential has an empty list.
async fn credential_status(State(running): Shared, caller: Caller, Path(id): Path<String>) -> Answer<CredentialStatus> {
    let status: Result<_, OperationError> = running
        .engine
        .read(|r, now| {
            let ident = caller.identity(r, now)?;
            let target = r.qs_read.name_to_uuid(&id)?;
            match r.get_credentialstatus(&CredentialStatusEvent::from_parts(ident, target)?) {
                Err(OperationError::NoMatchingAttributes) => Ok(CredentialStatus { creds: Vec::new() }),
                other => other,
            }
        })
        .await;
    Ok(Json(status?))
}

async fn intent(state: Shared, caller: Caller, Path(id): Path<String>) -> Answer<CUIntentToken> {
    make_intent(state, caller, id, None).await
}

async fn intent_with_ttl(state: Shared, caller: Caller, Path((id, ttl)): Path<(String, u64)>) -> Answer<CUIntentToken> {
    make_intent(state, caller, id, Some(Duration::from_secs(ttl))).await
}

async fn make_intent(
    State(running): Shared,
    caller: Caller,
    id: String,
    ttl: Option<Duration>,
) -> Answer<CUIntentToken> {
    let token: Result<_, OperationError> = running
        .engine
        .write(|w, now| {
            let ident = caller.identity(w, now)?;
            let target = w.qs_write.name_to_uuid(&id)?;
            w.init_credential_update_intent(&InitCredentialUpdateIntentEvent::new(ident, target, ttl), now)
        })
        .await;
    let token = token?;
    Ok(Json(CUIntentToken { token: token.intent_id, expiry_time: token.expiry_time }))
}

async fn search_persons(State(running): Shared, caller: Caller, Path(query): Path<String>) -> Answer<Vec<ProtoEntry>> {
    if query.chars().count() < 3 {
        return Err(Failure::Operation(OperationError::EmptyRequest));
    }
    let filter = kanidmd_lib::filter_all!(f_and(vec![
        f_eq(Attribute::Class, EntryClass::Person.into()),
        f_or(vec![
            f_sub(Attribute::Name, PartialValue::new_iname(&query)),
            f_sub(Attribute::DisplayName, PartialValue::new_utf8s(&query)),
        ]),
    ]));
    Ok(Json(operation::search(&running, &caller, filter).await?))
}

async fn sessions(State(running): Shared, caller: Caller, Path(id): Path<String>) -> Answer<Vec<UatStatus>> {
    let list: Result<_, OperationError> = running
        .engine
        .read(|r, now| {
            let ident = caller.identity(r, now)?;
            let target = r.qs_read.name_to_uuid(&id)?;
            r.account_list_user_auth_tokens(&ListUserAuthTokenEvent { ident, target })
        })
        .await;
    Ok(Json(list?))
}

async fn end_session(State(running): Shared, caller: Caller, Path((id, token_id)): Path<(String, Uuid)>) -> Answer<()> {
    let done: Result<(), OperationError> = running
        .engine
        .write(|w, now| {
            let ident = caller.identity(w, now)?;
            let target = w.qs_write.name_to_uuid(&id)?;
            w.account_destroy_session_token(&DestroySessionTokenEvent { ident, target, token_id })
        })
        .await;
    Ok(Json(done?))
}
