//! The ways to the servers, as a real API server keeps them: its defaults and its books must not make the operator write again and again.

use kaniop_e2e::certificate::Authority;
use kaniop_e2e::cluster::Cluster;
use kaniop_e2e::eventually;
use serde_json::{Value, json};

use super::operator::Operator;
use super::{SOON, cluster, minimal, space};

const HTTP_ROUTE: &str = "httproutes.gateway.networking.k8s.io";
const BACKEND_TLS_POLICY: &str = "backendtlspolicies.gateway.networking.k8s.io";

/// A kind of the Gateway API as far as an API server is concerned.
fn definition(name: &str, kind: &str, version: &str) -> Value {
    let (plural, group) = name.split_once('.').unwrap();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}

async fn remove_gateway_api(cluster: &Cluster) {
    let definitions: kube::Api<kube::api::DynamicObject> = kube::Api::all_with(
        cluster.client.clone(),
        &kube::api::ApiResource::from_gvk(&kube::api::GroupVersionKind::gvk(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
        )),
    );
    for name in [HTTP_ROUTE, BACKEND_TLS_POLICY] {
        let _ = definitions.delete(name, &Default::default()).await; // perhaps it never was there
        eventually(&format!("{name} gone"), SOON, || async {
            definitions.get_opt(name).await.unwrap().map_or(Ok(()), |_| Err("it is there"))
        })
        .await;
    }
}

async fn is_there(cluster: &Cluster, space: &str, kind: &str, name: &str, wanted: bool) {
    let api = cluster.api(kind, space);
    eventually(&format!("{kind} {name} there: {wanted}"), SOON, || async {
        let there = api.get_opt(name).await.map_err(|error| error.to_string())?.is_some();
        if there == wanted { Ok(()) } else { Err(format!("there: {there}")) }
    })
    .await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test"]
async fn each_way_is_written_once_comes_back_and_goes_and_the_gateway_api_may_come_later() {
    let cluster = cluster().await;
    remove_gateway_api(&cluster).await;
    let space = space(&cluster, "t2-network").await;
    let _operator = Operator::start(&space, "network-only");
    let authority = Authority::default();
    cluster.apply(&authority.secret(&space, "idm-tls", "idm.example.com", &authority.pem)).await;
    let plain = minimal("Kanidm", &space, "idm");
    let mut everywhere = plain.clone();
    let ways = json!({
        "ldapPortName": "ldaps", "ingress": {"extraTlsHosts": ["login.example.com"]}, "regionIngress": {"region": "eu"},
        "networkPolicy": {"enabled": true}, "podDisruptionBudget": {"enabled": true},
        "gateway": {"parentRefs": [{"name": "public"}], "backendTlsPolicy": {"validation": {"wellKnownCaCertificates": "System"}}},
    });
    everywhere["spec"].as_object_mut().unwrap().extend(ways.as_object().unwrap().clone());
    everywhere["spec"]["replicaGroups"][0]["services"] =
        json!({"annotationsTemplate": {"example.com/pod": "{pod_name}"}});
    cluster.apply(&everywhere).await;
    let mut made = vec![
        ("Ingress", "idm"),
        ("Ingress", "idm-eu"),
        ("NetworkPolicy", "idm"),
        ("PodDisruptionBudget", "idm"),
        ("Service", "idm-default-0"),
    ];
    for (kind, name) in &made {
        is_there(&cluster, &space, kind, name, true).await;
    }
    is_there(&cluster, &space, "StatefulSet", "idm-default", true).await;

    cluster.apply(&definition(HTTP_ROUTE, "HTTPRoute", "v1")).await;
    cluster.apply(&definition(BACKEND_TLS_POLICY, "BackendTLSPolicy", "v1alpha3")).await;
    made.extend([("HTTPRoute", "idm"), ("BackendTLSPolicy", "idm")]);
    for (kind, name) in &made {
        is_there(&cluster, &space, kind, name, true).await;
    }

    // With nobody to make pods the world stands still: so must the objects. Two looks of the operator are the measurement.
    let versions = async || {
        let mut versions = Vec::new();
        for (kind, name) in &made {
            versions.push((*kind, *name, cluster.api(kind, &space).get(name).await.unwrap().metadata.resource_version));
        }
        versions
    };
    let before = versions().await;
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert_eq!(before, versions().await);

    for (kind, name) in &made {
        cluster.api(kind, &space).delete(name, &Default::default()).await.unwrap();
    }
    for (kind, name) in &made {
        is_there(&cluster, &space, kind, name, true).await;
    }

    cluster.apply(&plain).await;
    for (kind, name) in &made {
        is_there(&cluster, &space, kind, name, false).await;
    }
    for (kind, name) in [("Service", "idm"), ("Secret", "idm-config"), ("StatefulSet", "idm-default")] {
        is_there(&cluster, &space, kind, name, true).await;
    }
    cluster.delete("Kanidm", &space, "idm").await;
    remove_gateway_api(&cluster).await;
}
