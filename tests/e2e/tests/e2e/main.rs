//! What a user is promised, on a real Kubernetes with real pods. Run by `cargo xtask e2e`, which installs the operator with a short interval.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::time::Duration;

use kaniop_e2e::certificate::Authority;
use kaniop_e2e::cluster::Cluster;
use kaniop_e2e::server::Bystander;
use kaniop_e2e::{example, setting};
use serde_json::{Value, json};

mod cluster;
mod crash;
mod credentials;
mod drift;
mod identities;
mod ownership;
mod quickstart;
mod replication;
mod rest;
mod rights;
mod trouble;

/// The namespace of `examples/quickstart`, whose Kanidm most tests share.
const SHARED: &str = "quickstart";
/// The domain of the shared Kanidm.
const HOST: &str = "idm.example.com";

/// The operator's interval.
fn interval() -> Duration {
    Duration::from_secs(setting("KANIOP_INTERVAL").parse().unwrap())
}

/// The objects of the quickstart, with the image of this run.
fn quickstart() -> Vec<Value> {
    let mut objects = example("examples/quickstart");
    for kanidm in objects.iter_mut().filter(|object| object["kind"] == "Kanidm") {
        kanidm["spec"]["image"] = setting("KANIOP_KANIDM_IMAGE").into();
    }
    objects
}

/// The quickstart, applied and Ready; done by whichever test comes first.
async fn shared(cluster: &Cluster) -> Bystander {
    cluster.namespace(SHARED).await;
    if cluster.api("Secret", SHARED).get_opt("kanidm-tls").await.unwrap().is_none() {
        let authority = Authority::default();
        cluster.apply(&authority.secret(SHARED, "kanidm-tls", HOST, &authority.pem)).await;
    }
    let objects = quickstart();
    for object in &objects {
        cluster.apply(object).await;
    }
    for object in objects.iter().filter(|object| object["kind"] != "Namespace") {
        cluster.ready(object["kind"].as_str().unwrap(), SHARED, object["metadata"]["name"].as_str().unwrap()).await;
    }
    Bystander::of(cluster, SHARED, "kanidm", HOST).await
}

/// A Kanidm of one node without lasting storage.
fn kanidm(namespace: &str, name: &str, domain: &str) -> Value {
    json!({
        "apiVersion": "kaniop.rs/v1beta1", "kind": "Kanidm", "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "domain": domain, "image": setting("KANIOP_KANIDM_IMAGE"),
            "replicaGroups": [{"name": "default", "replicas": 1, "primaryNode": true}],
        },
    })
}

fn person(namespace: &str, name: &str, kanidm: &str, displayname: &str) -> Value {
    json!({
        "apiVersion": "kaniop.rs/v1beta1", "kind": "KanidmPersonAccount", "metadata": {"name": name, "namespace": namespace},
        "spec": {"kanidmRef": {"name": kanidm}, "personAttributes": {"displayname": displayname}},
    })
}

fn group(namespace: &str, name: &str, kanidm: &str, members: &[&str]) -> Value {
    json!({
        "apiVersion": "kaniop.rs/v1beta1", "kind": "KanidmGroup", "metadata": {"name": name, "namespace": namespace},
        "spec": {"kanidmRef": {"name": kanidm}, "members": members},
    })
}
