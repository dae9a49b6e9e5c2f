//! What all kinds of entries can do: list, get, create, change and delete, whole or by attribute.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use kanidm_proto::internal::{CreateRequest, Modify as ProtoModify, ModifyList as ProtoModifyList};
use kanidm_proto::v1::Entry as ProtoEntry;
use kanidmd_lib::event::SearchResult;
use kanidmd_lib::idm::server::IdmServerProxyReadTransaction;
use kanidmd_lib::prelude::*;

use super::kind::Kind;
use crate::http::caller::Caller;
use crate::http::error::{Answer, Failure};
use crate::http::{Routes, Shared, conflict};
use crate::server::Running;

type Values = Vec<String>;

/// The routes of a kind whose entries come and go.
pub fn collection(base: &str, kind: Kind) -> Routes {
    Router::new()
        .route(
            base,
            get(move |State(s): Shared, c: Caller| async move { list(&s, &c, kind).await }).post(
                move |State(s): Shared, c: Caller, Json(e): Json<ProtoEntry>| async move {
                    create(&s, &c, e, kind.classes()).await
                },
            ),
        )
        .merge(one(base, kind))
        .merge(attributes(&format!("{base}/{{id}}"), kind))
        .route(
            &format!("{base}/{{id}}/_attr/{{attr}}"),
            put(move |State(s): Shared, c: Caller, Path((id, attr)): Path<(String, String)>, Json(v): Json<Values>| async move {
                replace(&s, &c, kind.one(&id), attr, v).await
            }),
        )
}

/// Get, patch and delete of one entry.
pub fn one(base: &str, kind: Kind) -> Routes {
    Router::new().route(
        &format!("{base}/{{id}}"),
        get(move |State(s): Shared, c: Caller, Path(id): Path<String>| async move {
            fetch(&s, &c, kind.one(&id)).await.map(Json)
        })
        .patch(move |State(s): Shared, c: Caller, Path(id): Path<String>, Json(e): Json<ProtoEntry>| async move {
            patch(&s, &c, kind.one(&id), e).await
        })
        .delete(move |State(s): Shared, c: Caller, Path(id): Path<String>| async move {
            delete(&s, &c, kind.one(&id)).await
        }),
    )
}

/// Get, append and purge of one attribute; to replace one is left to the kinds that allow it.
pub fn attributes(base: &str, kind: Kind) -> Routes {
    Router::new().route(
        &format!("{base}/_attr/{{attr}}"),
        get(move |State(s): Shared, c: Caller, Path((id, attr)): Path<(String, String)>| async move {
            attribute(&s, &c, kind.one(&id), &attr).await
        })
        .post(move |State(s): Shared, c: Caller, Path((id, attr)): Path<(String, String)>, Json(v): Json<Values>| async move {
            append(&s, &c, kind.one(&id), &attr, v).await
        })
        .delete(move |State(s): Shared, c: Caller, Path((id, attr)): Path<(String, String)>, body: Bytes| async move {
            remove(&s, &c, kind.one(&id), &attr, &body).await
        }),
    )
}

/// The routes of a kind that has exactly one entry.
pub fn fixed(base: &str, kind: Kind) -> Routes {
    let target = move || kind.one(&kind.fixed_id());
    Router::new().route(base, get(move |State(s): Shared, c: Caller| async move { list(&s, &c, kind).await })).route(
        &format!("{base}/_attr/{{attr}}"),
        get(move |State(s): Shared, c: Caller, Path(attr): Path<String>| async move {
            attribute(&s, &c, target(), &attr).await
        })
        .put(move |State(s): Shared, c: Caller, Path(attr): Path<String>, Json(v): Json<Values>| async move {
            replace(&s, &c, target(), attr, v).await
        })
        .post(move |State(s): Shared, c: Caller, Path(attr): Path<String>, Json(v): Json<Values>| async move {
            append(&s, &c, target(), &attr, v).await
        })
        .delete(move |State(s): Shared, c: Caller, Path(attr): Path<String>, body: Bytes| async move {
            remove(&s, &c, target(), &attr, &body).await
        }),
    )
}

async fn list(running: &Arc<Running>, caller: &Caller, kind: Kind) -> Answer<Vec<ProtoEntry>> {
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
async fn patch(
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

async fn delete(running: &Arc<Running>, caller: &Caller, target: Filter<FilterInvalid>) -> Answer<()> {
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

async fn attribute(
    running: &Arc<Running>,
    caller: &Caller,
    target: Filter<FilterInvalid>,
    name: &str,
) -> Answer<Option<Values>> {
    let entry = fetch(running, caller, target).await?;
    Ok(Json(entry.and_then(|mut entry| entry.attrs.remove(name))))
}

async fn replace(
    running: &Arc<Running>,
    caller: &Caller,
    target: Filter<FilterInvalid>,
    name: String,
    values: Values,
) -> Answer<()> {
    patch(running, caller, target, ProtoEntry { attrs: [(name, values)].into() }).await
}

async fn append(
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

async fn remove(
    running: &Arc<Running>,
    caller: &Caller,
    target: Filter<FilterInvalid>,
    name: &str,
    body: &[u8],
) -> Answer<()> {
    let mods = if body.is_empty() {
        vec![ProtoModify::Purged(name.to_owned())]
    } else {
        let values: Values = serde_json::from_slice(body).map_err(|e| Failure::BadRequest(e.to_string()))?;
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

/// Not used by kinds whose creation needs more than classes.
pub fn list_only(base: &str, kind: Kind) -> Routes {
    Router::new().route(base, get(move |State(s): Shared, c: Caller| async move { list(&s, &c, kind).await }))
}

/// A route that creates entries of the given classes.
pub fn creator(path: &str, classes: &'static [EntryClass]) -> Routes {
    Router::new().route(
        path,
        post(move |State(s): Shared, c: Caller, Json(e): Json<ProtoEntry>| async move {
            create(&s, &c, e, classes.to_vec()).await
        }),
    )
}
