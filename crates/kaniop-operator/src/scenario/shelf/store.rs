//! How the API server in memory changes objects: apply with field ownership, merge patches, deletion with finalizers and garbage collection.

use http::StatusCode;
use serde_json::{Map, Value as Json, json};

use super::{Held, refused};

impl Held {
    /// Puts an object there under a version of its own, if it differs from what is there.
    pub(super) fn store(&mut self, path: &str, mut object: Json) -> Json {
        let old = self.objects.get(path);
        let version = old.map(|old| old["metadata"]["resourceVersion"].clone()).filter(|version| !version.is_null());
        object["metadata"]["resourceVersion"] = version.unwrap_or_default();
        if old.is_some_and(|old| *old == object) {
            return object;
        }
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let meta = &object["metadata"];
        let ended = !meta["deletionTimestamp"].is_null() && meta["finalizers"].as_array().is_none_or(Vec::is_empty);
        if ended {
            self.collect(path);
        } else {
            drop(self.objects.insert(path.to_owned(), object.clone()));
        }
        object
    }

    /// Removes an object and everything that belongs to it.
    fn collect(&mut self, path: &str) {
        self.version += 1;
        let Some(gone) = self.objects.remove(path) else { return };
        let uid = &gone["metadata"]["uid"];
        let is_of = |object: &Json| {
            let owners = object["metadata"]["ownerReferences"].as_array();
            owners.into_iter().flatten().any(|owner| owner["uid"] == *uid)
        };
        self.objects.retain(|_, object| !is_of(object));
    }

    /// Deletes an object: at once, or when its finalizers are gone.
    pub(super) fn delete(&mut self, path: &str) -> Option<Json> {
        let mut object = self.objects.get(path)?.clone();
        if object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty) {
            self.collect(path);
            return Some(object);
        }
        if object["metadata"]["deletionTimestamp"].is_null() {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        Some(self.store(path, object))
    }

    /// Whether a write names another object or another version of it than the one that is there.
    fn is_stale(&self, path: &str, body: &Json) -> bool {
        let old = self.objects.get(path);
        ["uid", "resourceVersion"].iter().any(|field| {
            let named = &body["metadata"][field];
            !named.is_null() && old.is_none_or(|old| old["metadata"][field] != *named)
        })
    }

    /// A merge patch.
    pub(super) fn merge(&mut self, path: &str, body: &Json) -> (StatusCode, Json) {
        let (path, is_status) = path.strip_suffix("/status").map_or((path, false), |path| (path, true));
        let Some(mut object) = self.objects.get(path).cloned() else { return refused(404, "NotFound") };
        if self.is_stale(path, body) {
            return refused(409, "Conflict");
        }
        if is_status {
            merge(&mut object["status"], &body["status"]);
        } else {
            let mut body = body.clone();
            body.as_object_mut().unwrap().remove("status");
            merge(&mut object, &body);
        }
        (StatusCode::OK, self.store(path, object))
    }

    /// Server-side apply.
    pub(super) fn apply(&mut self, path: &str, body: &Json) -> (StatusCode, Json) {
        if self.is_stale(path, body) {
            return refused(409, "Conflict");
        }
        let mut tracked = body.clone();
        for field in ["apiVersion", "kind"] {
            tracked.as_object_mut().unwrap().remove(field);
        }
        for field in ["name", "namespace", "uid", "resourceVersion"] {
            tracked["metadata"].as_object_mut().unwrap().remove(field);
        }
        let tracked = books(&tracked);
        let mut object = self.objects.get(path).cloned().unwrap_or_else(|| {
            self.uids += 1;
            json!({"metadata": {"uid": format!("uid-{}", self.uids), "creationTimestamp": "2026-01-01T00:00:00Z"}})
        });
        let before = object.pointer("/metadata/managedFields/0/fieldsV1").cloned().unwrap_or_default();
        give_up(&mut object, &before, &tracked);
        merge(&mut object, body);
        object["metadata"]["managedFields"] =
            json!([{"manager": "kaniop", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": tracked}]);
        (StatusCode::OK, self.store(path, object))
    }
}

/// Takes over what a patch says; null takes a field away.
fn merge(into: &mut Json, patch: &Json) {
    let Json::Object(fields) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in fields {
        if value.is_null() { drop(into.as_object_mut().unwrap().remove(key)) } else { merge(&mut into[key], value) }
    }
}

/// Removes the fields that were owned and are not applied any more.
fn give_up(object: &mut Json, owned: &Json, applied: &Json) {
    for (field, inner) in owned.as_object().into_iter().flatten() {
        let Some(key) = field.strip_prefix("f:") else { continue };
        let Some(fields) = object.as_object_mut().filter(|fields| fields.contains_key(key)) else { continue };
        if applied[field].is_null() {
            fields.remove(key);
        } else {
            give_up(&mut fields[key], inner, &applied[field]);
        }
    }
}

/// Who owns what after everything in `value` was applied.
fn books(value: &Json) -> Json {
    match value {
        Json::Object(fields) => {
            fields.iter().map(|(key, value)| (format!("f:{key}"), books(value))).collect::<Map<_, _>>().into()
        }
        Json::Array(elements) => {
            let keyed = elements.iter().map(|element| Some((list_key(element)?, books(element))));
            keyed.collect::<Option<Map<_, _>>>().unwrap_or_default().into()
        }
        _ => json!({}),
    }
}

fn list_key(element: &Json) -> Option<String> {
    let keys: [&[&str]; 5] =
        [&["uid"], &["port", "protocol"], &["containerPort", "protocol"], &["mountPath"], &["name"]];
    let found = keys.iter().find(|keys| keys.iter().all(|key| !element[*key].is_null()))?;
    let key: Map<_, _> = found.iter().map(|key| ((*key).to_owned(), element[*key].clone())).collect();
    Some(format!("k:{}", Json::Object(key)))
}
