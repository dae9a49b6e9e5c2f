//! The engine's operations as requests need them: who asks, on what, in one transaction.

use std::sync::Arc;

use axum::Json;
use kanidm_proto::internal::{CreateRequest, Modify as ProtoModify, ModifyList as ProtoModifyList};
use kanidm_proto::v1::Entry as ProtoEntry;
use kanidmd_lib::event::SearchResult;
use kanidmd_lib::idm::server::IdmServerProxyReadTransaction;
use kanidmd_lib::prelude::*;

use super::kind::Kind;
use crate::http::caller::Caller;
use crate::http::conflict;
use crate::http::error::{Answer, Failure};
use crate::server::Running;

type Values = Vec<String>;

/// Everything of a kind that the caller may see.
pub async fn list(running: &Arc<Running>, caller: &Caller, kind: Kind) -> Answer<Vec<ProtoEntry>> {
    Ok(Json(search(running, caller, kind.all()).await?))
}

/// Everything that the caller may see of what the filter matches.
pub async fn search(
    running: &Arc<Running>,
    caller: &Caller,
    filter: Filter<FilterInvalid>,
) -> Result<Vec<ProtoEntry>, Failure> {
    let found: Result<_, OperationError> = running
        .engine
        .read(|r, now| {
            let ident = caller.identity(r, now)?;
            search_in(r, ident, &filter)
        })
        .await;
    Ok(found?)
}

/// The same, inside a transaction.
pub fn search_in(
    transaction: &mut IdmServerProxyReadTransaction<'_>,
    ident: Identity,
    filter: &Filter<FilterInvalid>,
) -> Result<Vec<ProtoEntry>, OperationError> {
    let reader = &mut transaction.qs_read;
    let event = SearchEvent::from_internal_message(ident, filter, None, reader)?;
    let entries = reader.search_ext(&event)?;
    Ok(SearchResult::new(reader, &entries)?.into_proto_array())
}

/// One entry; a missing one is `None`, not an error.
pub async fn fetch(
    running: &Arc<Running>,
    caller: &Caller,
    filter: Filter<FilterInvalid>,
) -> Result<Option<ProtoEntry>, Failure> {
    Ok(search(running, caller, filter).await?.pop())
}

/// Creates one entry of the given classes; classes in the request are overruled.
pub async fn create(
    running: &Arc<Running>,
    caller: &Caller,
    mut entry: ProtoEntry,
    classes: Vec<EntryClass>,
) -> Answer<()> {
    entry.attrs.insert("class".to_owned(), classes.into_iter().map(String::from).collect());
    let candidates = conflict::of_v1(&entry);
    let request = CreateRequest { entries: vec![entry] };
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

/// Replaces the attributes that are named, in one transaction; an empty list purges.
pub async fn patch(
    running: &Arc<Running>,
    caller: &Caller,
    target: Filter<FilterInvalid>,
    entry: ProtoEntry,
) -> Answer<()> {
    let candidates = conflict::of_v1(&entry);
    running
        .engine
        .write(|w, now| {
            let ident = caller.identity(w, now)?;
            let changes = ModifyList::from_patch(&entry, &mut w.qs_write)?;
            modify_in(&mut w.qs_write, ident, &target, &changes)
                .map_err(|error| explain(error, &mut w.qs_write, &target, &candidates))
        })
        .await
        .map(Json)
}

/// Changes what the filter matches; nothing matched is `NoMatchingEntries`.
pub fn modify_in(
    writer: &mut QueryServerWriteTransaction<'_>,
    ident: Identity,
    target: &Filter<FilterInvalid>,
    changes: &ModifyList<ModifyInvalid>,
) -> Result<(), OperationError> {
    let event = ModifyEvent::from_internal_parts(ident, changes, target, writer)?;
    writer.modify(&event)
}

fn explain(
    error: OperationError,
    writer: &mut QueryServerWriteTransaction<'_>,
    target: &Filter<FilterInvalid>,
    candidates: &[(Attribute, Vec<String>)],
) -> Failure {
    let own = writer.internal_search(target.clone()).ok().and_then(|e| e.first().map(|e| e.get_uuid()));
    conflict::explain(error, writer, candidates, own)
}

/// Deletes what the filter matches.
pub async fn delete(running: &Arc<Running>, caller: &Caller, target: Filter<FilterInvalid>) -> Answer<()> {
    let done: Result<(), OperationError> = running
        .engine
        .write(|w, now| {
            let ident = caller.identity(w, now)?;
            let event = DeleteEvent::from_parts(ident, &target, &mut w.qs_write)?;
            w.qs_write.delete(&event)
        })
        .await;
    Ok(Json(done?))
}

/// The values of one attribute; none is `null`.
pub async fn attribute(
    running: &Arc<Running>,
    caller: &Caller,
    target: Filter<FilterInvalid>,
    name: &str,
) -> Answer<Option<Values>> {
    let entry = fetch(running, caller, target).await?;
    Ok(Json(entry.and_then(|mut entry| entry.attrs.remove(name))))
}

/// Replaces one attribute.
pub async fn replace(
    running: &Arc<Running>,
    caller: &Caller,
    target: Filter<FilterInvalid>,
    name: String,
    values: Values,
) -> Answer<()> {
    patch(running, caller, target, ProtoEntry { attrs: [(name, values)].into() }).await
}

/// Adds values to one attribute.
pub async fn append(
    running: &Arc<Running>,
    caller: &Caller,
    target: Filter<FilterInvalid>,
    name: &str,
    values: Values,
) -> Answer<()> {
    let candidates = vec![(Attribute::from(name), values.clone())];
    let mods = values.into_iter().map(|value| ProtoModify::Present(name.to_owned(), value)).collect();
    modify(running, caller, target, mods, candidates).await
}

/// Removes the values in the body, or all of them when it has none.
pub async fn remove(
    running: &Arc<Running>,
    caller: &Caller,
    target: Filter<FilterInvalid>,
    name: &str,
    body: &[u8],
) -> Answer<()> {
    let values: Values = if body.is_empty() {
        Vec::new()
    } else {
        serde_json::from_slice(body).map_err(|e| Failure::Unprocessable(e.to_string()))?
    };
    let mods = if values.is_empty() {
        vec![ProtoModify::Purged(name.to_owned())]
    } else {
        values.into_iter().map(|value| ProtoModify::Removed(name.to_owned(), value)).collect()
    };
    modify(running, caller, target, mods, Vec::new()).await
}

async fn modify(
    running: &Arc<Running>,
    caller: &Caller,
    target: Filter<FilterInvalid>,
    mods: Vec<ProtoModify>,
    candidates: conflict::Candidates,
) -> Answer<()> {
    let list = ProtoModifyList { mods };
    running
        .engine
        .write(|w, now| {
            let ident = caller.identity(w, now)?;
            let changes = ModifyList::from(&list, &mut w.qs_write)?;
            modify_in(&mut w.qs_write, ident, &target, &changes)
                .map_err(|error| explain(error, &mut w.qs_write, &target, &candidates))
        })
        .await
        .map(Json)
}

/// Makes engine-level changes to one entry of a kind.
pub async fn change(
    running: &Arc<Running>,
    caller: &Caller,
    target: Filter<FilterInvalid>,
    mods: Vec<Modify>,
) -> Answer<()> {
    let changes = ModifyList::new_list(mods);
    let done: Result<(), OperationError> = running
        .engine
        .write(|w, now| {
            let ident = caller.identity(w, now)?;
            modify_in(&mut w.qs_write, ident, &target, &changes)
        })
        .await;
    Ok(Json(done?))
}
