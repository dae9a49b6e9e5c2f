//! The cluster as a user has it: apply, get, wait, delete, by kind and name.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Pod, Secret};
use k8s_openapi::api::events::v1::Event;
use kaniop_api::{GROUP, VERSION};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::{PATIENCE, condition, eventually, is_current};

/// Name under which the tests apply.
const MANAGER: &str = "kaniop-tests";

/// The API server, by `KUBECONFIG`.
#[derive(Clone)]
pub struct Cluster {
    /// For what has no short way here.
    pub client: Client,
}

impl Cluster {
    /// Connects.
    ///
    /// # Panics
    /// When `KUBECONFIG` names no cluster.
    pub async fn connect() -> Self {
        // Another test of this process may have set it already.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        Self { client: Client::try_default().await.expect("KUBECONFIG names a cluster") }
    }

    /// Objects of a kind in a namespace, by `kind` as in a manifest.
    #[must_use]
    pub fn api(&self, kind: &str, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &resource(kind))
    }

    /// Applies an object, as `kubectl apply --server-side` does.
    ///
    /// # Errors
    /// With the API server's refusal.
    pub async fn try_apply(&self, object: &Value) -> Result<DynamicObject, kube::Error> {
        let kind = object["kind"].as_str().unwrap_or_default();
        let api = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => self.api(kind, namespace),
            None => Api::all_with(self.client.clone(), &resource(kind)),
        };
        let params = PatchParams::apply(MANAGER).force();
        api.patch(object["metadata"]["name"].as_str().unwrap_or_default(), &params, &Patch::Apply(object)).await
    }

    /// Applies an object that must be accepted.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn apply(&self, object: &Value) -> DynamicObject {
        self.try_apply(object).await.unwrap_or_else(|error| panic!("{object} was refused: {error}"))
    }

    /// Makes a namespace that refuses every pod with more rights than it needs.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn namespace(&self, name: &str) {
        let labels = json!({"pod-security.kubernetes.io/enforce": "restricted", "kaniop.rs/e2e": "true"});
        self.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}))
            .await;
    }

    /// Deletes a namespace and waits until it is gone.
    ///
    /// # Panics
    /// When it does not end in time.
    pub async fn delete_namespace(&self, name: &str, limit: Duration) {
        let api: Api<Namespace> = Api::all(self.client.clone());
        let _ = api.delete(name, &DeleteParams::default()).await; // gone already is fine, the wait tells
        eventually(&format!("namespace {name} gone"), limit, || async {
            match api.get_opt(name).await {
                Ok(None) => Ok(()),
                Ok(Some(namespace)) => Err(format!("{:?}", namespace.status.and_then(|status| status.conditions))),
                Err(error) => Err(error.to_string()),
            }
        })
        .await;
    }

    /// Deletes an object and waits until it is gone.
    ///
    /// # Panics
    /// When it does not end in time.
    pub async fn delete(&self, kind: &str, namespace: &str, name: &str) {
        let api = self.api(kind, namespace);
        api.delete(name, &DeleteParams::default()).await.unwrap();
        eventually(&format!("{kind} {name} gone"), PATIENCE, || async {
            match api.get_opt(name).await {
                Ok(None) => Ok(()),
                Ok(Some(object)) => Err(format!("{:?} {:?}", object.metadata.finalizers, condition(&object, "Ready"))),
                Err(error) => Err(error.to_string()),
            }
        })
        .await;
    }

    /// Waits until the newest generation of an object is Ready.
    pub async fn ready(&self, kind: &str, namespace: &str, name: &str) -> DynamicObject {
        self.says(kind, namespace, name, "True").await.0
    }

    /// Waits until `Ready` of the newest generation has this status, or status and reason (`False TlsSecretMissing`); returns the message too.
    ///
    /// # Panics
    /// When it does not in time.
    pub async fn says(&self, kind: &str, namespace: &str, name: &str, ready: &str) -> (DynamicObject, String) {
        let api = self.api(kind, namespace);
        let (status, reason) = ready.split_once(' ').map_or((ready, None), |(status, reason)| (status, Some(reason)));
        eventually(&format!("{kind} {name} Ready={ready}"), PATIENCE, || async {
            let object = api.get(name).await.map_err(|error| error.to_string())?;
            match condition(&object, "Ready") {
                Some((is, why, message))
                    if is_current(&object) && is == status && reason.is_none_or(|reason| reason == why) =>
                {
                    Ok((object, message))
                }
                other => Err(format!("{other:?}, generation {:?}", object.metadata.generation)),
            }
        })
        .await
    }

    /// A value of a Secret.
    ///
    /// # Panics
    /// When there is none.
    pub async fn secret(&self, namespace: &str, name: &str, key: &str) -> String {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let secret = api.get(name).await.unwrap();
        String::from_utf8(secret.data.unwrap_or_default()[key].0.clone()).unwrap()
    }

    /// Events about an object, oldest first.
    ///
    /// # Panics
    /// When they cannot be listed.
    pub async fn events(&self, namespace: &str, kind: &str, name: &str) -> Vec<Event> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let about = |event: &Event| {
            event.regarding.as_ref().is_some_and(|r| r.kind.as_deref() == Some(kind) && r.name.as_deref() == Some(name))
        };
        let mut events = api.list(&ListParams::default()).await.unwrap().items;
        events.retain(about);
        events.sort_by_key(ResourceExt::creation_timestamp);
        events
    }

    /// The operator's pod.
    ///
    /// # Panics
    /// When there is none.
    pub async fn operator(&self) -> Pod {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &crate::setting("KANIOP_NAMESPACE"));
        let pods = api.list(&ListParams::default().labels("app.kubernetes.io/name=kaniop")).await.unwrap();
        pods.items.into_iter().find(|pod| pod.metadata.deletion_timestamp.is_none()).expect("the operator runs")
    }
}

/// Group, version and plural of a kind that the tests use.
fn resource(kind: &str) -> ApiResource {
    let (group, version) = match kind {
        "Namespace" | "Secret" | "Service" | "Pod" | "PersistentVolumeClaim" => ("", "v1"),
        "StatefulSet" => ("apps", "v1"),
        "Ingress" | "NetworkPolicy" => ("networking.k8s.io", "v1"),
        "PodDisruptionBudget" => ("policy", "v1"),
        "HTTPRoute" => ("gateway.networking.k8s.io", "v1"),
        // The version before the newest, which the operator has to find out.
        "BackendTLSPolicy" => ("gateway.networking.k8s.io", "v1alpha3"),
        "CustomResourceDefinition" => ("apiextensions.k8s.io", "v1"),
        "Lease" => ("coordination.k8s.io", "v1"),
        "StorageClass" => ("storage.k8s.io", "v1"),
        _ => (GROUP, VERSION),
    };
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}
