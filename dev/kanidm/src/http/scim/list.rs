//! Listing entries: one call gives everything of a kind with chosen attributes.
//!
//! The engine reads few filters: no `ne`, and no values of SPNs, mails, URLs or dates; the real server of 1.10 is the
//! same. It sorts upwards only, whatever order is asked for, and cuts pages after the whole search: they save nothing
//! and lift no limit.

use axum::Json;
use axum::extract::State;
use kanidm_proto::scim_v1::server::ScimListResponse;
use kanidmd_lib::prelude::*;

use super::query::EntryQuery;
use crate::http::Shared;
use crate::http::caller::Caller;
use crate::http::error::Answer;

/// `GET /scim/v1/Entry`.
pub async fn list(State(running): Shared, caller: Caller, EntryQuery(query): EntryQuery) -> Answer<ScimListResponse> {
    let found: Result<_, OperationError> = running
        .engine
        .read(|r, now| {
            let ident = caller.identity(r, now)?;
            r.qs_read.scim_search_ext(ident, EntryClass::Object.into(), query)
        })
        .await;
    Ok(Json(found?))
}
