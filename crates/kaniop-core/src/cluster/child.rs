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

use super::gateway::Installed;

/// One object that a Kanidm needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// What it is.
    pub kind: ApiResource,
    /// The object as it is applied.
    pub manifest: Value,
    /// Whether servers do without it: what keeps it from being applied then keeps nothing else.
    pub apart: bool,
}

impl Child {
    /// An object of a kind that Kubernetes itself has.
    pub fn of<K>(object: &K) -> Self
    where
        K: Resource<DynamicType = ()> + Serialize,
    {
        // Such types are plain data with text keys, which always serialise; what were not to would be refused for having no name.
        Self {
            kind: ApiResource::erase::<K>(&()),
            manifest: serde_json::to_value(object).unwrap_or_default(),
            apart: false,
        }
    }

    /// The same, as one that servers do without.
    #[must_use]
    pub fn apart(self) -> Self {
        Self { apart: true, ..self }
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

/// The kinds of which a Kanidm may cease to need an object, as far as they are installed. StatefulSets, which hold data, are none of them.
#[must_use]
pub fn prunable(gateway: Installed) -> Vec<ApiResource> {
    let mut kinds = vec![
        ApiResource::erase::<Secret>(&()),
        ApiResource::erase::<Service>(&()),
        ApiResource::erase::<Ingress>(&()),
        ApiResource::erase::<NetworkPolicy>(&()),
        ApiResource::erase::<PodDisruptionBudget>(&()),
        ApiResource::erase::<Deployment>(&()),
    ];
    kinds.extend(gateway.kinds());
    kinds
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
        let kinds = prunable(Installed::default().with("v1", &["HTTPRoute", "BackendTLSPolicy"]));
        assert_eq!(kinds.len(), 8);
        assert!(!kinds.contains(&ApiResource::erase::<StatefulSet>(&())));
        for held in ["PersistentVolumeClaim", "PersistentVolume", "Pod", "Namespace"] {
            assert!(!kinds.iter().any(|kind| kind.kind == held), "{held}");
        }
    }
}
