//! Whether every field of a manifest is still owned by us, as the API server itself keeps the books (`managedFields`).
//!
//! Whoever changes or removes a field of ours takes it over there. So this sees every change of others, without comparing values, which the
//! API server may have written in another form. What others add beside our fields is theirs.

use serde_json::{Map, Value};

/// Whether the set `ours` covers this manifest. `live` is the object as it is: `metadata`, and everything else under `rest`.
pub fn holds_manifest(ours: &Value, manifest: &Value, live: &Value) -> bool {
    let Some(fields) = manifest.as_object() else { return false };
    fields.iter().filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind")).all(|(key, wanted)| {
        let owned = &ours[format!("f:{key}")];
        if key == "metadata" {
            let identity = |key: &str| matches!(key, "name" | "namespace" | "uid");
            let tracked: Map<_, _> =
                wanted.as_object().into_iter().flatten().filter(|(key, _)| !identity(key)).map(clone).collect();
            return holds(owned, &Value::Object(tracked), &live["metadata"]);
        }
        holds(owned, wanted, &live["rest"][key])
    })
}

fn clone((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

fn holds(owned: &Value, wanted: &Value, live: &Value) -> bool {
    // What says nothing is dropped by the API server, and then nobody can own it.
    if is_blank(wanted) && (live.is_null() || live == wanted) {
        return true;
    }
    match (owned.as_object(), wanted) {
        (None, _) => false,
        // Owned as a whole.
        (Some(owned), _) if owned.is_empty() => true,
        (Some(_), Value::Object(fields)) => {
            fields.iter().all(|(key, wanted)| holds(&owned[format!("f:{key}")], wanted, &live[key.as_str()]))
        }
        (Some(entries), Value::Array(elements)) => elements.iter().all(|element| holds_element(entries, element, live)),
        (Some(_), _) => false,
    }
}

/// Elements of a list are told apart by some of their fields (`k:{…}`) or by their value (`v:…`).
fn holds_element(entries: &Map<String, Value>, wanted: &Value, live: &Value) -> bool {
    if entries.contains_key(&format!("v:{wanted}")) {
        return true;
    }
    let keyed = entries.iter().filter_map(|(key, owned)| {
        let key = serde_json::from_str::<Map<String, Value>>(key.strip_prefix("k:")?).ok()?;
        Some((key, owned))
    });
    let is_of =
        |element: &Value, key: &Map<String, Value>| key.iter().all(|(name, value)| element.get(name) == Some(value));
    keyed.into_iter().any(|(key, owned)| {
        let live = live.as_array().into_iter().flatten().find(|live| is_of(live, &key));
        is_of(wanted, &key) && holds(owned, wanted, live.unwrap_or(&Value::Null))
    })
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn manifest() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Thing",
            "metadata": {"name": "a", "namespace": "b", "uid": "c", "labels": {"x": "1"}},
            "spec": {
                "replicas": 1, "atomic": [{"a": 1}], "blank": {},
                "ports": [{"port": 8443, "protocol": "TCP", "name": "https"}],
                "set": ["one"],
            },
        })
    }

    fn ours() -> Value {
        json!({
            "f:metadata": {"f:labels": {"f:x": {}}},
            "f:spec": {
                "f:replicas": {}, "f:atomic": {},
                "f:ports": {"k:{\"port\":8443,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:protocol": {}, "f:name": {}}},
                "f:set": {"v:\"one\"": {}},
            },
        })
    }

    fn live() -> Value {
        json!({"metadata": {"labels": {"x": "1", "theirs": "2"}}, "rest": {"spec": {"replicas": 1}}})
    }

    #[test]
    fn what_was_applied_and_not_touched_is_held() {
        assert!(holds_manifest(&ours(), &manifest(), &live()));
    }

    #[test]
    fn a_field_that_another_manager_took_over_is_not_held() {
        for path in ["/f:metadata/f:labels/f:x", "/f:spec/f:replicas", "/f:spec/f:atomic", "/f:spec/f:set/v:\"one\""] {
            let mut ours = ours();
            let mut path = path;
            // A parent of which nothing is left is not in the books either.
            while let Some((parent, key)) = path.rsplit_once('/') {
                let fields = ours.pointer_mut(parent).unwrap().as_object_mut().unwrap();
                fields.remove(key).unwrap();
                path = if fields.is_empty() { parent } else { "" };
            }
            assert!(!holds_manifest(&ours, &manifest(), &live()), "{path}");
        }
    }

    #[test]
    fn a_field_in_an_element_of_a_list_that_another_manager_took_over_is_not_held() {
        let mut ours = ours();
        let ports = ours["f:spec"]["f:ports"].as_object_mut().unwrap();
        ports.values_mut().next().unwrap().as_object_mut().unwrap().remove("f:name");
        assert!(!holds_manifest(&ours, &manifest(), &live()));
    }

    #[test]
    fn something_where_the_manifest_has_nothing_is_not_ours() {
        let mut live = live();
        live["rest"]["spec"]["blank"] = json!({"theirs": 1});
        assert!(!holds_manifest(&ours(), &manifest(), &live));
    }

    #[test]
    fn without_any_books_nothing_is_held() {
        assert!(!holds_manifest(&Value::Null, &manifest(), &live()));
    }
}
