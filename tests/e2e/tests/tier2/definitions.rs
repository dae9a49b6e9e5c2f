//! The API server takes the definitions and the examples as they are.

use http::Request;
use kaniop_e2e::{example, objects, root};
use kube::client::Body;
use serde_json::Value;

use super::{cluster, minimal, space};

/// Asks the API server itself, for the warnings that clients drop.
async fn send(cluster: &kaniop_e2e::cluster::Cluster, request: Request<Vec<u8>>) -> (u16, Vec<String>, String) {
    let answer = cluster.client.send(request.map(Body::from)).await.unwrap();
    let warnings = answer.headers().get_all("warning").iter().map(|value| value.to_str().unwrap().to_owned()).collect();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect_bytes().await.unwrap();
    (status, warnings, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test"]
async fn the_definitions_of_the_chart_are_taken_without_a_warning() {
    let cluster = cluster().await;
    let folder = root().join("charts/kaniop/crds");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let definition = objects(&std::fs::read_to_string(file.unwrap().path()).unwrap()).remove(0);
        let name = definition["metadata"]["name"].as_str().unwrap();
        let path = format!(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}?fieldManager=kaniop-tests&force=true&fieldValidation=Strict"
        );
        let request = Request::patch(path).header("content-type", "application/apply-patch+yaml");
        let (status, warnings, body) = send(&cluster, request.body(definition.to_string().into_bytes()).unwrap()).await;
        assert_eq!((status, warnings), (200, Vec::new()), "{name}: {body}");
        count += 1;
    }
    assert_eq!(count, kaniop_api::crd::all().unwrap().len());
}

/// What the API server says to an object under strict validation of fields.
async fn strictly(cluster: &kaniop_e2e::cluster::Cluster, object: &Value) -> (u16, Vec<String>, String) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let plural = format!("{}s", text(&object["kind"]).to_lowercase());
    let (namespace, name) = (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]));
    let path = format!(
        "/apis/kaniop.rs/v1beta1/namespaces/{namespace}/{plural}/{name}?fieldManager=kaniop-tests&force=true&fieldValidation=Strict"
    );
    let request = Request::patch(path).header("content-type", "application/apply-patch+yaml");
    send(cluster, request.body(object.to_string().into_bytes()).unwrap()).await
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test"]
async fn every_example_is_taken_in_any_order_without_an_unknown_field() {
    let cluster = cluster().await;
    // The others are additions to the first: its namespace is there by then.
    let folders = [
        "examples/quickstart",
        "examples/replicated",
        "examples/machines",
        "examples/single-sign-on",
        "examples/automation",
        "examples/takeover",
        "examples/ingress",
        "examples/restore",
    ];
    for folder in folders {
        let all = example(folder);
        let (spaces, mut rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|object| object["kind"] == "Namespace");
        for space in &spaces {
            cluster.apply(space).await;
        }
        // Every rotation, and each of them backwards.
        for turn in 0..rest.len() * 2 {
            rest.rotate_left(1);
            if turn % 2 == 0 {
                rest.reverse();
            }
            for object in &rest {
                let (status, warnings, body) = strictly(&cluster, object).await;
                assert!(
                    (status == 200 || status == 201) && warnings.is_empty(),
                    "{object}: {status} {warnings:?} {body}"
                );
            }
        }
    }
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test"]
async fn a_misspelt_field_is_refused_when_a_client_asks_for_strictness() {
    let cluster = cluster().await;
    let space = space(&cluster, "t2-misspelt").await;
    let mut object = minimal("KanidmPersonAccount", &space, "a");
    object["spec"]["personAttributes"]["displayName"] = "wrong case".into();
    let (status, _, body) = strictly(&cluster, &object).await;
    assert!(status >= 400 && body.contains("displayName"), "{status} {body}");
}

/// By create and replace, as `kubectl create` and `kubectl apply` send objects. Server-side apply does not drop a null: there the API server
/// refuses it by the field's type.
#[tokio::test]
#[ignore = "needs an API server: cargo xtask test"]
async fn null_counts_as_absent_in_every_optional_field() {
    let cluster = cluster().await;
    let space = space(&cluster, "t2-null").await;
    for definition in kaniop_api::crd::all().unwrap() {
        let kind = definition.spec.names.kind.clone();
        let plain = cluster.apply(&minimal(&kind, &space, "plain")).await;
        let schema = serde_json::to_value(&definition.spec.versions[0].schema).unwrap();
        let spec = &schema["openAPIV3Schema"]["properties"]["spec"];
        let required = spec["required"].as_array().cloned().unwrap_or_default();
        let mut object = minimal(&kind, &space, "nulls");
        for field in spec["properties"].as_object().unwrap().keys() {
            if !required.contains(&field.as_str().into()) {
                object["spec"][field] = Value::Null;
            }
        }
        let object: kube::api::DynamicObject = serde_json::from_value(object).unwrap();
        let api = cluster.api(&kind, &space);
        let mut taken = api.create(&Default::default(), &object).await.unwrap();
        assert_eq!(taken.data["spec"], plain.data["spec"], "{kind}: defaults apply as if nothing had been said");
        taken.data["spec"] = object.data["spec"].clone();
        let again = api.replace("nulls", &Default::default(), &taken).await.unwrap();
        assert_eq!(again.data["spec"], plain.data["spec"], "{kind}");
    }
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test"]
async fn the_printed_columns_are_those_of_the_reference() {
    let cluster = cluster().await;
    for (plural, expected) in [
        ("kanidms", vec!["Name", "Ready", "Replicas", "Version", "Domain", "Age", "Secret", "Last backup", "Reason"]),
        ("kanidmpersonaccounts", vec!["Name", "Kanidm", "Ready", "Reason", "GID", "Valid", "Age"]),
        ("kanidmoauth2clients", vec!["Name", "Kanidm", "Ready", "Reason", "Public", "Secret", "Age"]),
        ("kanidmserviceaccounts", vec!["Name", "Kanidm", "Ready", "Reason", "GID", "Valid", "Age"]),
        ("kanidmrestores", vec!["Name", "Target", "Phase", "Message", "Age"]),
        ("kanidmgroups", vec!["Name", "Kanidm", "Ready", "Reason", "ManagedBy", "GID", "Age"]),
    ] {
        let request = Request::get(format!("/apis/kaniop.rs/v1beta1/{plural}"))
            .header("accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
            .body(Vec::new())
            .unwrap();
        let (_, _, body) = send(&cluster, request).await;
        let table: Value = serde_json::from_str(&body).unwrap();
        let columns: Vec<_> = table["columnDefinitions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["name"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(columns, expected, "{plural}");
    }
}
