//! The one place that applies or deletes children: server-side apply under one field manager. What another owner controls is never written, and
//! what is as it was applied is not sent again, so that at rest nothing is written at all.

mod ownership;

use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kaniop_core::cluster::gateway::Installed;
use kaniop_core::cluster::growth::Larger;
use kaniop_core::cluster::labels::{self, APPLIED_HASH};
use kaniop_core::cluster::{Child, child, hash};
use kube::Resource;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, Preconditions};
use serde::Serialize;
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::Error;
use crate::status::FIELD_MANAGER;

/// The object that children belong to.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// Its namespace, and theirs.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its UID.
    pub uid: &'a str,
}

/// What came of applying one child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It was as it should be; nothing was sent.
    Unchanged,
    /// It was written.
    Written,
    /// It is being deleted; it is made anew when it is gone.
    Ending,
    /// Something of this kind and name exists and is not controlled by the owner. It was left alone.
    Conflict(String),
    /// The API server refuses it; for people.
    Refused(String),
}

/// Applies a child.
///
/// # Errors
/// When leadership is in doubt, or the API server does not answer.
pub async fn child(ctx: &Context, owner: &Owner<'_>, child: &Child) -> Result<Applied, Error> {
    send(ctx, owner, child, &parameters()).await
}

/// Applies one object of any kind, with the fields that `wanted` has.
///
/// # Errors
/// When leadership is in doubt, or the API server does not answer.
pub async fn object<K>(ctx: &Context, owner: &Owner<'_>, wanted: &K) -> Result<Applied, Error>
where
    K: Resource<DynamicType = ()> + Serialize,
{
    send(ctx, owner, &Child::of(wanted), &parameters()).await
}

/// What [`object`] would come to, as the API server judges it with its quotas and policies. Nothing is stored.
///
/// # Errors
/// When leadership is in doubt, or the API server does not answer.
pub async fn rehearse<K>(ctx: &Context, owner: &Owner<'_>, wanted: &K) -> Result<Applied, Error>
where
    K: Resource<DynamicType = ()> + Serialize,
{
    send(ctx, owner, &Child::of(wanted), &parameters().dry_run()).await
}

fn parameters() -> PatchParams {
    PatchParams::apply(FIELD_MANAGER).force()
}

async fn send(ctx: &Context, owner: &Owner<'_>, child: &Child, parameters: &PatchParams) -> Result<Applied, Error> {
    let (kind, name) = (&child.kind, child.name());
    let api: Api<DynamicObject> = Api::namespaced_with(ctx.client.clone(), owner.namespace, kind);
    let live = api.get_opt(name).await?;
    let mut manifest = child.manifest.clone();
    let hash = hash::of_manifest(&manifest);
    manifest["metadata"]["annotations"][APPLIED_HASH] = hash.clone().into();
    if let Some(live) = &live {
        if !is_controlled_by(&live.metadata, owner.uid) {
            let text = format!(
                "{} '{name}' exists and is not controlled by this object, so it is left alone. Delete or rename it, or give this object another name.",
                kind.kind
            );
            return Ok(Applied::Conflict(text));
        }
        if live.metadata.deletion_timestamp.is_some() {
            return Ok(Applied::Ending);
        }
        if is_as_applied(live, &manifest, &hash) {
            return Ok(Applied::Unchanged);
        }
        // Should it be deleted and made anew by somebody else meanwhile, this makes the API server refuse.
        manifest["metadata"]["uid"] = live.metadata.uid.clone().into();
    }
    ctx.guard.check()?;
    match api.patch(name, parameters, &Patch::Apply(&manifest)).await {
        Ok(_) => {
            if !parameters.dry_run {
                tracing::info!(kind = kind.kind, name, created = live.is_none(), "applied");
            }
            Ok(Applied::Written)
        }
        Err(kube::Error::Api(status)) if status.is_invalid() || status.is_forbidden() => {
            Ok(Applied::Refused(format!("Kubernetes refuses {} '{name}': {}", kind.kind, status.message)))
        }
        Err(error) => Err(error.into()),
    }
}

/// Asks a claim for more room, if it is still the one that was judged. The one change that Kubernetes allows to a claim in use; it takes nothing away.
///
/// # Errors
/// When leadership is in doubt, or the API server does not answer.
pub async fn grow(ctx: &Context, namespace: &str, larger: &Larger) -> Result<Applied, Error> {
    ctx.guard.check()?;
    let Larger { claim, uid, version, to, .. } = larger;
    let api: Api<PersistentVolumeClaim> = Api::namespaced(ctx.client.clone(), namespace);
    let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let patch = json!({
        "metadata": {"uid": uid, "resourceVersion": version, "annotations": {labels::GROWN_TO: to}},
        "spec": {"resources": {"requests": {"storage": to}}},
    });
    match api.patch(claim, &parameters, &Patch::Merge(&patch)).await {
        Ok(_) => {
            tracing::info!(kind = "PersistentVolumeClaim", name = claim, to, "asked for more room");
            Ok(Applied::Written)
        }
        // It was changed or deleted since it was read: the news wakes the loop.
        Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => Ok(Applied::Unchanged),
        Err(kube::Error::Api(status)) if status.is_invalid() || status.is_forbidden() => {
            Ok(Applied::Refused(format!("Kubernetes refuses PersistentVolumeClaim '{claim}': {}", status.message)))
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether somebody of this UID is the controller of an object.
#[must_use]
pub fn is_controlled_by(metadata: &ObjectMeta, uid: &str) -> bool {
    metadata.owner_references.iter().flatten().any(|owner| owner.controller == Some(true) && owner.uid == uid)
}

/// Whether the manifest is the one that was applied last, and every field of it is still ours as it was then.
fn is_as_applied(live: &DynamicObject, manifest: &Value, hash: &str) -> bool {
    let applied = live.metadata.annotations.as_ref().and_then(|annotations| annotations.get(APPLIED_HASH));
    let managed = live.metadata.managed_fields.iter().flatten().find(|fields| {
        fields.manager.as_deref() == Some(FIELD_MANAGER)
            && fields.operation.as_deref() == Some("Apply")
            && fields.subresource.as_deref().unwrap_or_default().is_empty()
    });
    let ours = managed.and_then(|fields| fields.fields_v1.as_ref());
    let live = json!({"metadata": live.metadata, "rest": live.data});
    applied.is_some_and(|applied| applied == hash)
        && ours.is_some_and(|ours| ownership::holds_manifest(&ours.0, manifest, &live))
}

/// Deletes what is labelled ours, controlled by the owner, and not wanted (any more). Secrets with credentials, and StatefulSets, which hold data,
/// are never among it. Returns how many.
///
/// # Errors
/// When leadership is in doubt, or the API server refuses or does not answer.
pub async fn prune(ctx: &Context, owner: &Owner<'_>, wanted: &[Child], gateway: Installed) -> Result<usize, Error> {
    let selector = format!(
        "{}={},{}={},!{}",
        labels::MANAGED_BY,
        labels::MANAGER,
        labels::CLUSTER,
        owner.name,
        labels::SECRET_TYPE
    );
    let kinds = child::prunable(gateway);
    let pruned = kinds.iter().map(|kind| {
        let named = wanted.iter().filter(|child| child.kind.kind == kind.kind && child.kind.group == kind.group);
        let wanted: Vec<_> = named.map(Child::name).collect();
        let selector = &selector;
        async move { prune_kind(ctx, owner, kind, selector, &wanted).await }
    });
    Ok(try_join_all(pruned).await?.into_iter().sum())
}

/// Deletes the Secrets of one object that this selector finds and that are not wanted (any more). Returns how many.
///
/// # Errors
/// When leadership is in doubt, or the API server refuses or does not answer.
pub async fn prune_secrets(ctx: &Context, owner: &Owner<'_>, selector: &str, wanted: &[&str]) -> Result<usize, Error> {
    prune_kind(ctx, owner, &ApiResource::erase::<Secret>(&()), selector, wanted).await
}

/// Deletes a Secret, if it is still the one of this UID. One that is gone is no error.
///
/// # Errors
/// When leadership is in doubt, or the API server refuses or does not answer.
pub async fn delete_secret(ctx: &Context, namespace: &str, name: &str, uid: Option<String>) -> Result<(), Error> {
    ctx.guard.check()?;
    delete(ctx, namespace, &ApiResource::erase::<Secret>(&()), name, uid).await
}

async fn prune_kind(
    ctx: &Context,
    owner: &Owner<'_>,
    kind: &ApiResource,
    selector: &str,
    wanted: &[&str],
) -> Result<usize, Error> {
    let api: Api<DynamicObject> = Api::namespaced_with(ctx.client.clone(), owner.namespace, kind);
    let ours = match api.list_metadata(&ListParams::default().labels(selector)).await {
        Ok(ours) => ours,
        // The kind is not installed, so there are no objects of it. The API server says so in plain text, without a reason.
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(0),
        Err(error) => return Err(error.into()),
    };
    let mut pruned = 0;
    for found in ours {
        let name = found.metadata.name.clone().unwrap_or_default();
        let unwanted = is_controlled_by(&found.metadata, owner.uid) && !wanted.contains(&name.as_str());
        if unwanted && found.metadata.deletion_timestamp.is_none() {
            ctx.guard.check()?;
            delete(ctx, owner.namespace, kind, &name, found.metadata.uid).await?;
            tracing::info!(kind = kind.kind, name, "deleted, for it is not wanted any more");
            pruned += 1;
        }
    }
    Ok(pruned)
}

/// Deletes a pod, if it is still the one of this UID, so that its StatefulSet makes it again from the newest template.
///
/// # Errors
/// When leadership is in doubt, or the API server refuses or does not answer. A pod that is gone or another one is no error.
pub async fn restart_pod(ctx: &Context, namespace: &str, name: &str, uid: &str) -> Result<(), Error> {
    ctx.guard.check()?;
    delete(ctx, namespace, &ApiResource::erase::<Pod>(&()), name, Some(uid.to_owned())).await
}

/// Takes all pods of a StatefulSet away, if it is still the one of this UID.
///
/// # Errors
/// When leadership is in doubt, or the API server refuses or does not answer.
pub async fn scale_to_zero(ctx: &Context, namespace: &str, name: &str, uid: &str) -> Result<(), Error> {
    ctx.guard.check()?;
    let api: Api<StatefulSet> = Api::namespaced(ctx.client.clone(), namespace);
    let patch = json!({"metadata": {"uid": uid}, "spec": {"replicas": 0}});
    match api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Deletes a StatefulSet that has no pods left, if it is still the one of this UID. Its claims are what its retention policy says.
///
/// # Errors
/// When leadership is in doubt, or the API server refuses or does not answer.
pub async fn delete_statefulset(ctx: &Context, namespace: &str, name: &str, uid: &str) -> Result<(), Error> {
    ctx.guard.check()?;
    delete(ctx, namespace, &ApiResource::erase::<StatefulSet>(&()), name, Some(uid.to_owned())).await
}

async fn delete(
    ctx: &Context,
    namespace: &str,
    kind: &ApiResource,
    name: &str,
    uid: Option<String>,
) -> Result<(), Error> {
    let api: Api<DynamicObject> = Api::namespaced_with(ctx.client.clone(), namespace, kind);
    let exactly = Preconditions { uid, resource_version: None };
    match api.delete(name, &DeleteParams::default().preconditions(exactly)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
        Err(error) => Err(error.into()),
    }
}
