//! What wakes the loop of one kind from outside: its objects, and the Secrets that they control.

use std::sync::Arc;

use futures::{Stream, TryStreamExt};
use k8s_openapi::api::core::v1::Secret;
use kaniop_core::cluster::labels;
use kube::ResourceExt;
use kube::api::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{WatchStreamExt, watcher};

use super::Managed;
use super::claims::Claims;
use crate::context::Context;

/// The objects of one kind, without the fields that nobody reads: who manages which field takes more room than all the rest.
pub(super) fn objects<K: Managed>(
    api: Api<K>,
    claims: Arc<Claims>,
) -> (Store<K>, impl Stream<Item = Result<K, watcher::Error>> + Send + use<K>) {
    let (store, writer) = reflector::store();
    let watched = watcher(api, watcher::Config::default())
        .modify(|object| object.managed_fields_mut().clear())
        .inspect_ok(move |event| claims.follow(event))
        .reflect(writer)
        .applied_objects();
    (store, watched)
}

/// The Secrets of one kind's objects, without what is in them.
pub(super) fn secrets(
    ctx: &Context,
    manager: &str,
) -> impl Stream<Item = Result<PartialObjectMeta<Secret>, watcher::Error>> + Send + use<> {
    let api: Api<PartialObjectMeta<Secret>> = match &ctx.options.namespace {
        Some(namespace) => Api::namespaced(ctx.client.clone(), namespace),
        None => Api::all(ctx.client.clone()),
    };
    let ours = watcher::Config::default().labels(&format!("{}={manager}", labels::MANAGED_BY));
    watcher(api, ours).default_backoff().touched_objects()
}

/// The object that controls a Secret.
pub(super) fn holder<K: Managed>(secret: &PartialObjectMeta<Secret>) -> Option<ObjectRef<K>> {
    let namespace = secret.metadata.namespace.as_deref().unwrap_or_default();
    let owners = secret.metadata.owner_references.iter().flatten();
    let owner = owners.into_iter().find(|owner| owner.controller == Some(true) && owner.kind == K::KIND)?;
    Some(ObjectRef::new(&owner.name).within(namespace))
}
