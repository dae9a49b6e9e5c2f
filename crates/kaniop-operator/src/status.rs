//! The one place that writes the status of an object. A status that would not change is not written.
//!
//! What differs is sent as a merge patch, with the version that the decision was made on: the status has one writer, so nobody's fields have to be
//! told apart, and the API server does half the work that applying costs it.

use std::fmt::Debug;

use kube::api::{Api, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::context::Context;
use crate::error::Error;

/// Name under which everything is written.
pub const FIELD_MANAGER: &str = "kaniop";

/// Writes `new` unless the object already carries it. Returns the version that this made, if anything was written.
///
/// # Errors
/// When leadership is in doubt, or the API server refuses or does not answer. An object that is gone is no error.
pub async fn write<K, S>(ctx: &Context, object: &K, old: Option<&S>, new: &S) -> Result<Option<String>, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    S: Serialize + PartialEq,
{
    if old == Some(new) {
        return Ok(None);
    }
    let value =
        |status: Option<&S>| serde_json::to_value(status).map_err(|error| Error::Bug(format!("a status: {error}")));
    let patch = json!({
        // If it is not the newest, its watch event is on the way and decides anew.
        "metadata": {"uid": object.uid(), "resourceVersion": object.resource_version()},
        "status": difference(&value(old)?, value(Some(new))?),
    });
    ctx.guard.check()?;
    let name = object.name_any();
    let api: Api<K> = Api::namespaced(ctx.client.clone(), &object.namespace().unwrap_or_default());
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    match api.patch_status(&name, &params, &Patch::Merge(&patch)).await {
        Ok(written) => Ok(written.resource_version()),
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The merge patch that makes `new` of `old`.
fn difference(old: &Value, new: Value) -> Value {
    let Value::Object(old) = old else { return new };
    let new = match new {
        Value::Object(new) => new,
        other => return other,
    };
    let gone = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let mut patch: Map<_, _> = gone.collect();
    for (key, value) in new {
        match old.get(&key) {
            Some(before) if *before == value => {}
            Some(before) => drop(patch.insert(key, difference(before, value))),
            None => drop(patch.insert(key, value)),
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_sent_and_what_is_gone_is_taken_away() {
        let old = json!({"same": 1, "gone": 2, "other": 3, "set": {"kept": 4, "gone": 5}, "list": [1, 2]});
        let new = json!({"same": 1, "other": 6, "set": {"kept": 4, "new": 7}, "list": [1], "added": {"a": 8}});
        let patch = json!({
            "gone": null, "other": 6, "set": {"gone": null, "new": 7}, "list": [1], "added": {"a": 8},
        });
        assert_eq!(difference(&old, new.clone()), patch);
        assert_eq!(difference(&Value::Null, new.clone()), new);
    }
}
