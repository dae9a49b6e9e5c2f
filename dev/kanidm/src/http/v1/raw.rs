//! The engine's four operations, unwrapped.

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use kanidm_proto::internal::{CreateRequest, DeleteRequest, ModifyRequest, SearchRequest, SearchResponse};
use kanidmd_lib::event::SearchResult;
use kanidmd_lib::prelude::*;

use crate::http::caller::Caller;
use crate::http::error::Answer;
use crate::http::{Routes, Shared, conflict};

/// The routes.
pub fn routes() -> Routes {
    Router::new()
        .route("/v1/raw/search", post(search))
        .route("/v1/raw/create", post(create))
        .route("/v1/raw/modify", post(modify))
        .route("/v1/raw/delete", post(delete))
}

async fn search(State(running): Shared, caller: Caller, Json(request): Json<SearchRequest>) -> Answer<SearchResponse> {
    let found: Result<_, OperationError> = running
        .engine
        .read(|r, now| {
            let ident = caller.identity(r, now)?;
            let event = SearchEvent::from_message(ident, &request, &mut r.qs_read)?;
            let entries = r.qs_read.search_ext(&event)?;
            Ok(SearchResult::new(&mut r.qs_read, &entries)?.response())
        })
        .await;
    Ok(Json(found?))
}

async fn create(State(running): Shared, caller: Caller, Json(request): Json<CreateRequest>) -> Answer<()> {
    let candidates: conflict::Candidates = request.entries.iter().flat_map(conflict::of_v1).collect();
    running
        .engine
        .write(|w, now| {
            let ident = caller.identity(w, now)?;
            let event = CreateEvent::from_message(ident, &request, &mut w.qs_write)?;
            match w.qs_write.create(&event) {
                Ok(_) => Ok(()),
                Err(error) => Err(conflict::explain(error, &mut w.qs_write, &candidates, None)),
            }
        })
        .await
        .map(Json)
}

async fn modify(State(running): Shared, caller: Caller, Json(request): Json<ModifyRequest>) -> Answer<()> {
    let done: Result<(), OperationError> = running
        .engine
        .write(|w, now| {
            let ident = caller.identity(w, now)?;
            let event = ModifyEvent::from_message(ident, &request, &mut w.qs_write)?;
            w.qs_write.modify(&event)
        })
        .await;
    Ok(Json(done?))
}

async fn delete(State(running): Shared, caller: Caller, Json(request): Json<DeleteRequest>) -> Answer<()> {
    let done: Result<(), OperationError> = running
        .engine
        .write(|w, now| {
            let ident = caller.identity(w, now)?;
            let event = DeleteEvent::from_message(ident, &request, &mut w.qs_write)?;
            w.qs_write.delete(&event)
        })
        .await;
    Ok(Json(done?))
}
