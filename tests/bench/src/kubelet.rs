//! Stands in for the kubelet and the StatefulSet's controller: makes the pod of a Kanidm and says of it what they would say, with the address
//! of a server that runs as a process. What the operator would have made at a first start is there already: the pinned domain, the
//! administrators' passwords and its own token. So it never needs its helper in the pod, in which nothing can be started.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kaniop_core::cluster::credentials::{Administrators, OperatorToken};
use kaniop_core::cluster::{ValidatedCluster, names, validate};
use kaniop_e2e::cluster::Cluster;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::server::{HOST, Server};

/// How long the operator may take to make a StatefulSet, or to find a server that answers.
const SOON: Duration = Duration::from_secs(60);
/// The one replica group.
const GROUP: &str = "default";

/// Stores the Kanidm `name` with all that a first start leaves behind.
pub(crate) async fn store(cluster: &Cluster, namespace: &str, name: &str, server: &Server) -> Result<()> {
    cluster
        .apply(&json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": {"name": names::tls_secret(name), "namespace": namespace}, "stringData": server.tls,
        }))
        .await;
    let stored = cluster.apply(&kanidm(namespace, name)).await;
    let api: Api<kaniop_api::Kanidm> = Api::namespaced(cluster.client.clone(), namespace);
    let pinned = json!({"status": {"domainUuid": server.credentials.domain}});
    let kanidm = api.patch_status(&stored.name_any(), &PatchParams::default(), &Patch::Merge(&pinned)).await?;
    let owner = kanidm.controller_owner_ref(&()).context("the Kanidm has a UID")?;
    let valid =
        validate(&kanidm).map_err(|refusals| anyhow::anyhow!("the benchmark's Kanidm is refused: {refusals:?}"))?;
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), namespace);
    for mut secret in credentials(&valid, server) {
        secret.metadata.owner_references = Some(vec![owner.clone()]);
        secrets
            .create(&PostParams::default(), &secret)
            .await
            .with_context(|| format!("store {}", secret.name_any()))?;
    }
    Ok(())
}

fn kanidm(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "kaniop.rs/v1beta1", "kind": "Kanidm", "metadata": {"name": name, "namespace": namespace},
        // The servers are processes and of no image that could be judged.
        "spec": {"domain": HOST, "replicaGroups": [{"name": GROUP, "replicas": 1}], "disableUpgradeChecks": true},
    })
}

/// The Secrets that a bootstrap makes, as the operator would write them.
fn credentials(cluster: &ValidatedCluster, server: &Server) -> [Secret; 2] {
    let made = &server.credentials;
    let administrators = Administrators {
        admin: made.admin.expose_secret().to_owned(),
        idm_admin: made.idm_admin.expose_secret().to_owned(),
        made: None,
        domain: Some(made.domain),
    };
    let token = OperatorToken { token: made.token.expose_secret().to_owned(), domain: Some(made.domain) };
    [administrators.secret(cluster), token.secret(cluster)]
}

/// Makes the pod once the operator has made its StatefulSet, and returns when the operator has spoken to the server.
pub(crate) async fn run_pod(cluster: &Cluster, namespace: &str, name: &str, server: &Server) -> Result<()> {
    let sets: Api<StatefulSet> = Api::namespaced(cluster.client.clone(), namespace);
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), namespace);
    let wanted = names::statefulset(name, GROUP);
    let set = kaniop_e2e::eventually(&format!("StatefulSet {wanted}"), SOON, || async {
        sets.get_opt(&wanted).await.map_err(|error| error.to_string())?.ok_or_else(|| "absent".to_owned())
    })
    .await;
    let owner = set.controller_owner_ref(&()).context("the StatefulSet has a UID")?;
    let pod_name = names::pod(name, GROUP, 0);
    pods.create(&PostParams::default(), &pod(&set, &pod_name, owner)?).await.context("make the pod")?;
    let status = status(&server.address.ip().to_string());
    pods.patch_status(&pod_name, &PatchParams::default(), &Patch::Merge(&status)).await.context("tell of the pod")?;
    cluster.ready("Kanidm", namespace, name).await;
    Ok(())
}

/// The pod of the StatefulSet's template. Nobody runs it.
fn pod(set: &StatefulSet, name: &str, owner: OwnerReference) -> Result<Pod> {
    let template = set.spec.as_ref().map(|spec| spec.template.clone()).context("the StatefulSet has a template")?;
    let mut pod = Pod { metadata: template.metadata.unwrap_or_default(), spec: template.spec, status: None };
    pod.metadata.name = Some(name.to_owned());
    pod.metadata.owner_references = Some(vec![owner]);
    Ok(pod)
}

/// What a kubelet says of a pod that serves.
fn status(ip: &str) -> Value {
    json!({"status": {
        "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "ContainersReady", "status": "True"}],
        "containerStatuses": [{
            "name": names::SERVER_CONTAINER, "image": "none", "imageID": "none", "containerID": "bench://1",
            "ready": true, "started": true, "restartCount": 0, "state": {"running": {}},
        }],
    }})
}
