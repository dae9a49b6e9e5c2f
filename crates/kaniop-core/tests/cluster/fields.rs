//! Every field of the spec is set by a spec of this folder, so that what it comes to is in a golden file; and it is known which children a change
//! of it may change ([`changes`](super::changes)). The fields are read from the CRD, so a new one cannot be forgotten.

use std::collections::BTreeSet;

use kube::CustomResourceExt;

use super::*;

/// Fields whose own fields are Kubernetes': they are passed on as a whole.
const KUBERNETES: &[&str] = &[
    "adoptionNamespaceSelector",
    "containers",
    "dnsConfig",
    "env",
    "groupNamespaceSelector",
    "hostAliases",
    "imagePullSecrets",
    "initContainers",
    "oauth2ClientNamespaceSelector",
    "persistentVolumeClaimRetentionPolicy",
    "personNamespaceSelector",
    "securityContext",
    "serviceAccountNamespaceSelector",
    "volumeMounts",
    "volumes",
];

/// Fields that are not carried out yet. Whoever carries one out takes it from here; one that is set all the same fails.
pub(super) const LATER: &[&str] = &["domainAppearance", "mailSender"];

/// Every field of the spec, two levels deep, as `outer` or `outer.inner` or `outer[].inner`.
pub(super) fn fields() -> BTreeSet<String> {
    let crd = serde_json::to_value(Kanidm::crd()).unwrap();
    let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    let mut fields = BTreeSet::new();
    for (name, schema) in spec.as_object().unwrap() {
        let nested = [(".", &schema["properties"]), ("[].", &schema["items"]["properties"])];
        let inner = nested.iter().filter(|_| !KUBERNETES.contains(&name.as_str())).find_map(|(joint, properties)| {
            let inner = properties.as_object()?.keys();
            Some(inner.map(|inner| format!("{name}{joint}{inner}")).collect::<Vec<_>>())
        });
        fields.extend(inner.unwrap_or_else(|| vec![name.clone()]));
    }
    fields
}

/// Whether a field, or the one that it is in, is not carried out yet.
pub(super) fn is_later(field: &str) -> bool {
    LATER
        .iter()
        .any(|later| field.strip_prefix(later).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '['])))
}

/// Whether a spec as it is written sets a field.
fn sets(spec: &Value, field: &str) -> bool {
    let (outer, inner) = field.split_once('.').map_or((field, None), |(outer, inner)| (outer, Some(inner)));
    let found = &spec[outer.trim_end_matches("[]")];
    match (inner, found) {
        (None, found) => !found.is_null(),
        (Some(inner), Value::Array(elements)) => elements.iter().any(|element| !element[inner].is_null()),
        (Some(inner), found) => !found[inner].is_null(),
    }
}

fn written() -> Vec<Value> {
    let read = |name: &str| {
        let path = format!("{}/tests/cluster/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        let whole: Value = serde_norway::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        whole["spec"].clone()
    };
    specs().iter().map(|(name, _)| read(name)).collect()
}

#[test]
fn every_field_is_set_by_a_spec_of_this_folder() {
    let written = written();
    let is_set = |field: &&String| written.iter().any(|spec| sets(spec, field));
    let all = fields();
    assert!(all.len() > 60, "{all:?}");
    let missing: Vec<_> = all.iter().filter(|field| !is_later(field) && !is_set(field)).collect();
    assert!(missing.is_empty(), "set them in a file of tests/cluster, and read what it comes to: {missing:?}");
    let set_all_the_same: Vec<_> = all.iter().filter(|field| is_later(field)).filter(is_set).collect();
    assert!(set_all_the_same.is_empty(), "take them from LATER: {set_all_the_same:?}");
}

#[test]
fn the_lists_here_name_only_fields_that_there_are() {
    let all = fields();
    for name in KUBERNETES.iter().chain(LATER) {
        let is_there = all
            .iter()
            .any(|field| field.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '['])));
        assert!(is_there, "{name}");
    }
}
