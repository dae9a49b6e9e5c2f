//! Deleted entries, until they are purged.

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use kanidm_proto::v1::Entry as ProtoEntry;
use kanidmd_lib::event::{ReviveRecycledEvent, SearchResult};
use kanidmd_lib::prelude::*;

use crate::http::caller::Caller;
use crate::http::error::{Answer, Failure};
use crate::http::{Routes, Shared};

/// The routes.
pub fn routes() -> Routes {
    Router::new()
        .route("/v1/recycle_bin", get(list))
        .route("/v1/recycle_bin/{id}", get(one))
        .route("/v1/recycle_bin/{id}/_revive", post(revive))
}

async fn search(
    State(running): Shared,
    caller: Caller,
    filter: Filter<FilterInvalid>,
) -> Result<Vec<ProtoEntry>, Failure> {
    let found: Result<_, OperationError> = running
        .engine
        .read(|r, now| {
            let ident = caller.identity(r, now)?;
            let event = SearchEvent::from_internal_recycle_message(ident, &filter, None, &r.qs_read)?;
            let entries = r.qs_read.search_ext(&event)?;
            Ok(SearchResult::new(&mut r.qs_read, &entries)?.into_proto_array())
        })
        .await;
    Ok(found?)
}

async fn list(state: Shared, caller: Caller) -> Answer<Vec<ProtoEntry>> {
    let all = kanidmd_lib::filter_all!(f_pres(Attribute::Class));
    Ok(Json(search(state, caller, all).await?))
}

async fn one(state: Shared, caller: Caller, Path(id): Path<String>) -> Answer<Option<ProtoEntry>> {
    let filter = kanidmd_lib::filter_all!(f_id(&id));
    Ok(Json(search(state, caller, filter).await?.pop()))
}

async fn revive(State(running): Shared, caller: Caller, Path(id): Path<String>) -> Answer<()> {
    let filter = kanidmd_lib::filter_all!(f_id(&id));
    let done: Result<(), OperationError> = running
        .engine
        .write(|w, now| {
            let ident = caller.identity(w, now)?;
            let event = ReviveRecycledEvent::from_parts(ident, &filter, &w.qs_write)?;
            w.qs_write.revive_recycled(&event)
        })
        .await;
    Ok(Json(done?))
}
