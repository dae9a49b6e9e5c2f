//! What needs a real API server but no pods: definitions, rules, roles, election, children. Run by `cargo xtask test`, or by
//! `cargo xtask with-apiserver -- PROGRAM`.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::time::Duration;

use http::Request;
use kaniop_e2e::cluster::Cluster;
use kaniop_e2e::{condition, eventually};
use serde_json::Value;

mod definitions;
mod network;
mod operator;
mod pods;
mod rules;

/// How long the API server may take for anything.
const SOON: Duration = Duration::from_secs(60);

/// A cluster with the kinds in it.
async fn cluster() -> Cluster {
    let cluster = Cluster::connect().await;
    for definition in kaniop_api::crd::all().unwrap() {
        cluster.apply(&serde_json::to_value(&definition).unwrap()).await;
    }
    let api = |name: &str| format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
    for definition in kaniop_api::crd::all().unwrap() {
        let name = definition.metadata.name.unwrap();
        eventually(&format!("{name} established"), SOON, || async {
            let text = cluster.client.request_text(Request::get(api(&name)).body(Vec::new()).unwrap()).await.unwrap();
            let found: kube::api::DynamicObject = serde_json::from_str(&text).unwrap();
            match condition(&found, "Established") {
                Some((status, ..)) if status == "True" => Ok(()),
                other => Err(other),
            }
        })
        .await;
    }
    cluster
}

/// A namespace for one test, made anew.
async fn space(cluster: &Cluster, name: &str) -> String {
    cluster.namespace(name).await;
    name.to_owned()
}

/// Whether, once the passes are over that the children themselves wake, no object of a namespace is written for as long as five looks of the
/// operator take.
async fn stands_still(cluster: &Cluster, space: &str) {
    let before = eventually("the objects stand still", SOON, || async {
        let before = cluster.versions(space).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let after = cluster.versions(space).await;
        if before == after { Ok(after) } else { Err(after) }
    })
    .await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(before, cluster.versions(space).await);
}

/// A minimal object of each kind, by kind.
fn minimal(kind: &str, namespace: &str, name: &str) -> Value {
    let spec = match kind {
        "Kanidm" => {
            serde_json::json!({"domain": "idm.example.com", "replicaGroups": [{"name": "default", "replicas": 1}]})
        }
        "KanidmGroup" => serde_json::json!({"kanidmRef": {"name": "idm"}}),
        "KanidmOAuth2Client" => serde_json::json!({
            "kanidmRef": {"name": "idm"}, "displayname": "An application", "origin": "https://app.example.com", "redirectUrl": [],
        }),
        "KanidmServiceAccount" => serde_json::json!({
            "kanidmRef": {"name": "idm"}, "serviceAccountAttributes": {"displayname": "A program", "entryManagedBy": "idm_admins"},
        }),
        "KanidmRestore" => serde_json::json!({
            "targetRef": {"name": "idm", "uid": "6b1f5a7c-0000-4000-8000-000000000000"},
            "source": {"local": {"fileName": "backup.json.gz"}}, "restoreImage": "kanidm/server:1.10.5",
        }),
        _ => serde_json::json!({"kanidmRef": {"name": "idm"}, "personAttributes": {"displayname": "A Person"}}),
    };
    serde_json::json!({
        "apiVersion": "kaniop.rs/v1beta1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec,
    })
}
