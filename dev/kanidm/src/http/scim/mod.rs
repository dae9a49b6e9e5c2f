//! The SCIM routes.

mod class;
mod filter;
mod list;
mod write;

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::routing::get;
use axum::{Json, Router};
use kanidm_proto::scim_v1::ScimEntryGetQuery;
use kanidm_proto::scim_v1::server::ScimEntryKanidm;
use kanidmd_lib::prelude::*;

use super::caller::Caller;
use super::error::{Answer, Failure};
use super::{Routes, Shared};
use crate::server::Running;

/// The routes. Persons have no list of their own, as in the real server.
pub fn routes() -> Routes {
    Router::new()
        .route("/scim/v1/Entry", get(list::list).post(write::create).put(write::put))
        .route("/scim/v1/Entry/{id}", get(entry).delete(write::delete))
        .route("/scim/v1/Person/{id}", get(person))
}

/// The query string as SCIM reads it; the engine's parser must not see what would overflow its stack.
fn parse_query(raw: Option<String>) -> Result<ScimEntryGetQuery, Failure> {
    let raw = raw.unwrap_or_default();
    filter::refuse_deep_nesting(&raw)?;
    serde_urlencoded::from_str(&raw)
        .map_err(|e| Failure::BadRequest(format!("Failed to deserialize query string: {e}")))
}

async fn entry(
    State(running): Shared,
    caller: Caller,
    Path(id): Path<String>,
    RawQuery(raw): RawQuery,
) -> Answer<ScimEntryKanidm> {
    one(running, caller, id, raw, EntryClass::Object).await
}

async fn person(
    State(running): Shared,
    caller: Caller,
    Path(id): Path<String>,
    RawQuery(raw): RawQuery,
) -> Answer<ScimEntryKanidm> {
    one(running, caller, id, raw, EntryClass::Person).await
}

async fn one(
    running: Arc<Running>,
    caller: Caller,
    id: String,
    raw: Option<String>,
    class: EntryClass,
) -> Answer<ScimEntryKanidm> {
    let query = parse_query(raw)?;
    let found: Result<_, OperationError> = running
        .engine
        .read(|r, now| {
            let ident = caller.identity(r, now)?;
            let target = r.qs_read.name_to_uuid(&id)?;
            r.qs_read.scim_entry_id_get_ext(target, class, query, ident)
        })
        .await;
    Ok(Json(found?))
}
