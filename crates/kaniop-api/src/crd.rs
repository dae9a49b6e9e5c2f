//! The CustomResourceDefinitions, as the chart installs them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

use crate::{Kanidm, KanidmGroup, KanidmOAuth2Client, KanidmPersonAccount, KanidmRestore, KanidmServiceAccount};

/// Every CustomResourceDefinition, in the order in which the documents list them.
///
/// # Errors
/// Only when a schema does not read back after it was polished: a defect of this crate that its tests would show.
pub fn all() -> Result<Vec<CustomResourceDefinition>, serde_json::Error> {
    let all = [
        Kanidm::crd(),
        KanidmGroup::crd(),
        KanidmPersonAccount::crd(),
        KanidmOAuth2Client::crd(),
        KanidmServiceAccount::crd(),
        KanidmRestore::crd(),
    ];
    all.into_iter().map(polished).collect()
}

/// Removes `nullable` and the integer formats that Kubernetes warns about.
///
/// Without `nullable` the API server drops an explicit null before it applies defaults and rules, so that null means absent everywhere;
/// with it the null would be stored, defaults skipped, and CEL's `has()` would answer true.
fn polished(crd: CustomResourceDefinition) -> Result<CustomResourceDefinition, serde_json::Error> {
    let mut value = serde_json::to_value(crd)?;
    polish(&mut value);
    serde_json::from_value(value)
}

fn polish(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if map.get("nullable") == Some(&Value::Bool(true)) {
                map.remove("nullable");
            }
            if let Some(Value::String(format)) = map.get("format")
                && format.starts_with("uint")
            {
                map.remove("format");
            }
            map.values_mut().for_each(polish);
        }
        Value::Array(items) => items.iter_mut().for_each(polish),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_schema_is_nullable_so_that_null_counts_as_absent() {
        for crd in all().unwrap() {
            let text = serde_json::to_string(&crd).unwrap();
            assert!(!text.contains("\"nullable\":true"), "{}", crd.metadata.name.unwrap_or_default());
        }
    }

    #[test]
    fn names_of_the_kinds_never_change() {
        let names: Vec<_> = all()
            .unwrap()
            .into_iter()
            .map(|crd| {
                let names = crd.spec.names;
                format!("{} {} {}", names.kind, names.plural, names.short_names.unwrap_or_default().join(","))
            })
            .collect();
        assert_eq!(
            names,
            [
                "Kanidm kanidms idm",
                "KanidmGroup kanidmgroups kg",
                "KanidmPersonAccount kanidmpersonaccounts person",
                "KanidmOAuth2Client kanidmoauth2clients oauth2",
                "KanidmServiceAccount kanidmserviceaccounts kanidmsa",
                "KanidmRestore kanidmrestores idmrestore",
            ]
        );
    }

    #[test]
    fn every_text_and_list_that_users_write_is_bounded() {
        // Fields that Kubernetes itself defines are bounded by Kubernetes.
        let theirs = [
            "affinity",
            "annotations",
            "annotationsTemplate",
            "additionalLabels",
            "certificate",
            "containers",
            "dnsConfig",
            "hostAliases",
            "initContainers",
            "labels",
            "statefulSetAnnotations",
            "volumeMounts",
            "volumes",
            "env",
            "resources",
            "securityContext",
            "tolerations",
            "topologySpreadConstraints",
            "storage",
            "imagePullSecrets",
            "groupNamespaceSelector",
            "personNamespaceSelector",
            "oauth2ClientNamespaceSelector",
            "serviceAccountNamespaceSelector",
            "adoptionNamespaceSelector",
            "nodeSelector",
            "service",
            "persistentVolumeClaimRetentionPolicy",
        ];
        for crd in all().unwrap() {
            let schema = serde_json::to_value(&crd.spec.versions[0].schema).unwrap();
            let spec = &schema["openAPIV3Schema"]["properties"]["spec"];
            let mut unbounded = Vec::new();
            look(spec, "spec", &theirs, &mut unbounded);
            assert!(unbounded.is_empty(), "{}: {unbounded:?}", crd.spec.names.kind);
        }
    }

    fn look(schema: &Value, path: &str, skip: &[&str], unbounded: &mut Vec<String>) {
        let bounded = match schema["type"].as_str() {
            Some("string") => {
                schema.get("maxLength").is_some() || schema.get("enum").is_some() || schema.get("format").is_some()
            }
            Some("array") => schema.get("maxItems").is_some(),
            _ => true,
        };
        if !bounded {
            unbounded.push(path.to_owned());
        }
        for (name, property) in
            schema["properties"].as_object().into_iter().flatten().filter(|(name, _)| !skip.contains(&name.as_str()))
        {
            look(property, &format!("{path}.{name}"), skip, unbounded);
        }
        if let Some(items) = schema.get("items") {
            look(items, &format!("{path}[]"), skip, unbounded);
        }
    }
}
