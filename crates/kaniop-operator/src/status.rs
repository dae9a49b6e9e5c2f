//! The one place that writes the status of an object. A status that would not change is not written.

use std::fmt::Debug;

use kube::api::{Api, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::context::Context;
use crate::error::Error;

/// Name under which everything is applied.
pub const FIELD_MANAGER: &str = "kaniop";

/// Writes `new` unless the object already carries it. Returns whether anything was written.
///
/// # Errors
/// When leadership is in doubt, or the API server refuses or does not answer. An object that is gone is no error.
pub async fn write<K, S>(ctx: &Context, object: &K, old: Option<&S>, new: &S) -> Result<bool, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    S: Serialize + PartialEq,
{
    if old == Some(new) {
        return Ok(false);
    }
    ctx.guard.check()?;
    let name = object.name_any();
    let api: Api<K> = Api::namespaced(ctx.client.clone(), &object.namespace().unwrap_or_default());
    let patch = json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        // The version that the decision was made on: if it is not the newest, its watch event is on the way and decides anew.
        "metadata": {"name": name, "uid": object.uid(), "resourceVersion": object.resource_version()},
        "status": new,
    });
    let params = PatchParams::apply(FIELD_MANAGER).force();
    match api.patch_status(&name, &params, &Patch::Apply(&patch)).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(false),
        Err(error) => Err(error.into()),
    }
}
