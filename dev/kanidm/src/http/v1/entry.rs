//! The routes that all kinds of entries share: list, get, create, change and delete, whole or by attribute.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use kanidm_proto::v1::Entry as ProtoEntry;
use kanidmd_lib::prelude::*;

use super::kind::Kind;
use super::operation::{append, attribute, create, delete, fetch, list, patch, remove, replace};
use crate::http::caller::Caller;
use crate::http::{Routes, Shared};

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
            get(move |State(s): Shared, c: Caller, Path((id, attr)): Path<(String, String)>| async move {
                attribute(&s, &c, kind.one(&id), &attr).await
            })
            .put(
 move |State(s): Shared, c: Caller, Path((id, attr)): Path<(String, String)>, Json(v): Json<Values>| async move {
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

/// Append and purge of one attribute; to read or replace one is left to the kinds that allow it.
pub fn attributes(base: &str, kind: Kind) -> Routes {
    Router::new().route(
        &format!("{base}/_attr/{{attr}}"),
        post(
            move |State(s): Shared, c: Caller, Path((id, attr)): Path<(String, String)>, Json(v): Json<Values>| async move {
                append(&s, &c, kind.one(&id), &attr, v).await
            },
        )
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

/// The list of a kind whose creation has routes of its own.
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
