//! SSH keys of accounts.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::get;
use axum::{Json, Router};
use kanidmd_lib::prelude::*;

use super::kind::Kind;
use super::operation;
use crate::http::caller::Caller;
use crate::http::error::Answer;
use crate::http::{Routes, Shared};
use crate::server::Running;

/// The routes.
pub fn routes() -> Routes {
    Router::new().merge(of("/v1/person/{id}", Kind::Person)).merge(of("/v1/service_account/{id}", Kind::ServiceAccount))
}

fn of(base: &str, kind: Kind) -> Routes {
    Router::new()
        .route(
            &format!("{base}/_ssh_pubkeys"),
            get(move |State(s): Shared, c: Caller, Path(id): Path<String>| async move {
                ssh_keys(&s, &c, kind.one(&id)).await
            })
            .post(
                move |State(s): Shared, c: Caller, Path(id): Path<String>, Json((tag, key)): Json<(String, String)>| async move {
                    let add = Modify::Present(Attribute::SshPublicKey, Value::new_sshkey_str(&tag, &key)?);
                    operation::change(&s, &c, kind.one(&id), vec![add]).await
                },
            ),
        )
        .route(
            &format!("{base}/_ssh_pubkeys/{{tag}}"),
            get(move |State(s): Shared, c: Caller, Path((id, tag)): Path<(String, String)>| async move {
                ssh_key(&s, &c, kind.one(&id), &tag).await
            })
            .delete(move |State(s): Shared, c: Caller, Path((id, tag)): Path<(String, String)>| async move {
                let remove = Modify::Removed(Attribute::SshPublicKey, PartialValue::new_sshkey_tag(tag));
                operation::change(&s, &c, kind.one(&id), vec![remove]).await
            }),
        )
}

async fn ssh_keys(running: &Arc<Running>, caller: &Caller, target: Filter<FilterInvalid>) -> Answer<Vec<String>> {
    let keys: Result<_, OperationError> = running
        .engine
        .read(|r, now| {
            let ident = caller.identity(r, now)?;
            let entry = visible(&mut r.qs_read, ident, &target)?;
            let keys = entry.get_ava_iter_sshpubkeys(Attribute::SshPublicKey);
            Ok(keys.map(|keys| keys.collect()).unwrap_or_default())
        })
        .await;
    Ok(Json(keys?))
}

async fn ssh_key(
    running: &Arc<Running>,
    caller: &Caller,
    target: Filter<FilterInvalid>,
    tag: &str,
) -> Answer<Option<String>> {
    let key: Result<_, OperationError> = running
        .engine
        .read(|r, now| {
            let ident = caller.identity(r, now)?;
            let entry = visible(&mut r.qs_read, ident, &target)?;
            let keys = entry.get_ava_set(Attribute::SshPublicKey).and_then(|set| set.as_sshkey_map());
            Ok(keys.and_then(|keys| keys.get(tag)).map(ToString::to_string))
        })
        .await;
    Ok(Json(key?))
}

/// The one entry that the filter finds, as far as the caller may see it.
fn visible(
    reader: &mut QueryServerReadTransaction<'_>,
    ident: Identity,
    target: &Filter<FilterInvalid>,
) -> Result<Entry<EntryReduced, EntryCommitted>, OperationError> {
    let event = SearchEvent::from_internal_message(ident, target, None, reader)?;
    reader.search_ext(&event)?.pop().ok_or(OperationError::NoMatchingEntries)
}
