//! The SCIM routes.

mod class;
mod list;
mod query;
mod write;

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::get;
use axum::{Json, Router};
use kanidm_proto::scim_v1::ScimEntryGetQuery;
use kanidm_proto::scim_v1::server::ScimEntryKanidm;
use kanidmd_lib::prelude::*;

use super::caller::Caller;
use super::error::Answer;
use super::{Routes, Shared};
use crate::server::Running;
use query::EntryQuery;

/// The routes. Persons have no list of their own, as in the real server.
pub fn routes() -> Routes {
    Router::new()
        .route("/scim/v1/Entry", get(list::list).post(write::create).put(write::put))
        .route("/scim/v1/Entry/{id}", get(entry).delete(write::delete))
        .route("/scim/v1/Person/{id}", get(person))
}

async fn entry(
    State(running): Shared,
    caller: Caller,
    Path(id): Path<String>,
    EntryQuery(query): EntryQuery,
) -> Answer<ScimEntryKanidm> {
    one(running, caller, id, query, EntryClass::Object).await
}

async fn person(
    State(running): Shared,
    caller: Caller,
    Path(id): Path<String>,
    EntryQuery(query): EntryQuery,
) -> Answer<ScimEntryKanidm> {
    one(running, caller, id, query, EntryClass::Person).await
}

async fn one(
    running: Arc<Running>,
    caller: Caller,
    id: String,
    query: ScimEntryGetQuery,
    class: EntryClass,
) -> Answer<ScimEntryKanidm> {
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
