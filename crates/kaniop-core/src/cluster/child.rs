//! One object that a Kanidm needs, of any kind, and the closed list of kinds that are removed when they are not wanted any more.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Resource;
use kube::core::ApiResource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// One object that a Kanidm needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// What it is.
    pub kind: ApiResource,
    /// The object as it is applied.
    pub manifest: Value,
}

impl Child {
    /// An object of a kind that Kubernetes itself has.
    pub fn of<K>(object: &K) -> Self
    where
        K: Resource<DynamicType = ()> + Serialize,
    {
        // Such types are plain data with text keys, which always serialise; what were not to would be refused for having no name.
        Self { kind: ApiResource::erase::<K>(&()), manifest: serde_json::to_value(object).unwrap_or_default() }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.manifest["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// The object, if it is of this kind.
    #[must_use]
    pub fn read<K>(&self) -> Option<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        if self.kind != ApiResource::erase::<K>(&()) {
            return None;
        }
        serde_json::from_value(self.manifest.clone()).ok()
    }
}

/// The kinds of which a Kanidm may cease to need an object. StatefulSets, which hold data, are none of them.
#[must_use]
pub fn prunable() -> Vec<ApiResource> {
    vec![
        ApiResource::erase::<Secret>(&()),
        ApiResource::erase::<Service>(&()),
        ApiResource::erase::<Ingress>(&()),
        ApiResource::erase::<NetworkPolicy>(&()),
        ApiResource::erase::<PodDisruptionBudget>(&()),
        ApiResource::erase::<Deployment>(&()),
        gateway("HTTPRoute", "v1", "httproutes"),
        gateway("BackendTLSPolicy", "v1", "backendtlspolicies"),
    ]
}

fn gateway(kind: &str, version: &str, plural: &str) -> ApiResource {
    const GROUP: &str = "gateway.networking.k8s.io";
    ApiResource {
        group: GROUP.to_owned(),
        version: version.to_owned(),
        api_version: format!("{GROUP}/{version}"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::StatefulSet;
    use kube::core::ObjectMeta;

    fn secret() -> Secret {
        Secret {
            metadata: ObjectMeta { name: Some("a".to_owned()), ..ObjectMeta::default() },
            type_: Some("Opaque".to_owned()),
            ..Secret::default()
        }
    }

    #[test]
    fn a_child_is_read_as_what_it_is_and_as_nothing_else() {
        let child = Child::of(&secret());
        assert_eq!((child.name(), child.manifest["kind"].as_str()), ("a", Some("Secret")));
        assert_eq!(child.read::<Secret>(), Some(secret()));
        assert_eq!(child.read::<Service>(), None);
    }

    #[test]
    fn nothing_that_holds_data_is_ever_pruned() {
        let kinds = prunable();
        assert!(!kinds.contains(&ApiResource::erase::<StatefulSet>(&())));
        for held in ["PersistentVolumeClaim", "PersistentVolume", "Pod", "Namespace"] {
            assert!(!kinds.iter().any(|kind| kind.kind == held), "{held}");
        }
    }
}
