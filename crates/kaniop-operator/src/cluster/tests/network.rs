//! How clients reach the servers: each way comes and goes with its field, and none keeps the servers from anything.

use serde_json::{Value as Json, json};

use super::bootstrap::Scene;
use super::*;

const GROUP: &str = "gateway.networking.k8s.io";
const INGRESS: &str = "/apis/networking.k8s.io/v1/namespaces/default/ingresses/idm";
const ROUTE: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes/idm";

/// The API server has these kinds from now on, in this version.
pub(super) fn install_gateway_api(shelf: &Shelf, version: &str, kinds: &[&str]) {
    let resource = |kind: &&str| json!({"name": format!("{}s", kind.to_lowercase()), "singularName": "", "namespaced": true, "kind": kind, "verbs": ["get"]});
    let resources: Vec<_> = kinds.iter().map(resource).collect();
    let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{GROUP}/{version}"), "resources": resources});
    shelf.put(&format!("/apis/{GROUP}/{version}"), list);
}

fn set(shelf: &Shelf, field: &str, value: Json) {
    shelf.change(KANIDM, |kanidm| {
        if value.is_null() {
            kanidm["spec"].as_object_mut().unwrap().remove(field);
        } else {
            kanidm["spec"][field] = value;
        }
    });
}

fn gateway() -> Json {
    json!({"parentRefs": [{"name": "public"}],
        "backendTlsPolicy": {"validation": {"wellKnownCaCertificates": "System"}}})
}

/// Every write but of the status.
fn writes(world: &World) -> Vec<String> {
    let mut writes = world.shelf.writes();
    writes.retain(|write| !write.ends_with("/status"));
    writes
}

#[tokio::test]
async fn each_way_comes_with_its_field_is_left_alone_at_rest_and_goes_with_it() {
    let policy = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies/idm";
    let budget = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/idm";
    let backend = "/apis/gateway.networking.k8s.io/v1alpha3/namespaces/default/backendtlspolicies/idm";
    let region = "/apis/networking.k8s.io/v1/namespaces/default/ingresses/idm-eu";
    let node = service("idm-default-0");
    for (field, value, paths) in [
        ("ingress", json!({}), vec![INGRESS]),
        ("regionIngress", json!({"region": "eu"}), vec![region]),
        ("networkPolicy", json!({"enabled": true}), vec![policy]),
        ("podDisruptionBudget", json!({"enabled": true}), vec![budget]),
        ("replicaGroups", json!([{"name": "default", "replicas": 1, "services": {}}]), vec![node.as_str()]),
        ("gateway", gateway(), vec![ROUTE, backend]),
    ] {
        let world = World::running().await;
        install_gateway_api(&world.shelf, "v1", &["HTTPRoute"]);
        install_gateway_api(&world.shelf, "v1alpha3", &["BackendTLSPolicy"]);
        let before = world.shelf.get(KANIDM).unwrap()["spec"][field].clone();
        set(&world.shelf, field, value);
        world.pass().await.unwrap();
        assert_eq!(writes(&world), paths.iter().map(|path| format!("PATCH {path}")).collect::<Vec<_>>(), "{field} on");
        world.pass().await.unwrap();
        assert_eq!(world.shelf.writes(), Vec::<String>::new(), "{field} at rest");
        set(&world.shelf, field, before);
        world.pass().await.unwrap();
        let mut gone = writes(&world);
        gone.sort();
        let mut expected: Vec<_> = paths.iter().map(|path| format!("DELETE {path}")).collect();
        expected.sort();
        assert_eq!(gone, expected, "{field} off");
    }
}

#[tokio::test]
async fn a_way_that_is_edited_or_deleted_comes_back_as_it_was() {
    let world = World::running().await;
    install_gateway_api(&world.shelf, "v1", &["HTTPRoute", "BackendTLSPolicy"]);
    set(&world.shelf, "ingress", json!({}));
    set(&world.shelf, "gateway", gateway());
    world.pass().await.unwrap();
    writes(&world);
    for (path, pointer) in [(INGRESS, "/spec/rules"), (ROUTE, "/spec/hostnames")] {
        let before = world.shelf.get(path).unwrap();
        world.shelf.edit(path, pointer, json!([]));
        world.pass().await.unwrap();
        assert_eq!(writes(&world), [format!("PATCH {path}")]);
        assert_eq!(world.shelf.get(path).unwrap().pointer(pointer), before.pointer(pointer));
        world.shelf.delete(path);
        world.pass().await.unwrap();
        assert_eq!(writes(&world), [format!("PATCH {path}")]);
        assert_eq!(world.shelf.get(path).unwrap()["spec"], before["spec"]);
    }
}

#[tokio::test]
async fn a_stranger_of_the_same_name_is_left_alone_told_and_keeps_nothing_else_from_being_made() {
    let world = World::new();
    world.give_certificate();
    let strange = json!({"metadata": {"name": "idm"}, "theirs": true});
    world.shelf.put(INGRESS, strange);
    set(&world.shelf, "ingress", json!({}));
    set(&world.shelf, "regionIngress", json!({"region": "eu"}));
    world.pass().await.unwrap();
    assert_eq!(world.shelf.get(INGRESS).unwrap()["theirs"], true);
    assert!(world.shelf.get(STATEFULSET).is_some(), "servers are made");
    assert!(world.shelf.get(&format!("{INGRESS}-eu")).is_some(), "and so are the other ways");
    assert_eq!(world.ready().0, "False PodsNotReady", "servers come first");
    set(&world.shelf, "ingress", Json::Null);
    world.pass().await.unwrap();
    assert_eq!(world.shelf.get(INGRESS).unwrap()["theirs"], true);
}

#[tokio::test]
async fn where_kubernetes_fails_at_one_way_the_rest_is_done_and_it_is_tried_again_soon() {
    let world = World::running().await;
    set(&world.shelf, "ingress", json!({}));
    set(&world.shelf, "regionIngress", json!({"region": "eu"}));
    world.shelf.held.lock().unwrap().refuse = Some((500, "InternalError"));
    world.pass().await.unwrap();
    assert!(world.shelf.get(INGRESS).is_none() && world.shelf.get(&format!("{INGRESS}-eu")).is_some());
    let waits = &world.life.clusters.retry;
    let key = crate::targets::ObjectKey { namespace: "default".to_owned(), name: "idm".to_owned() };
    assert!(waits.next(key.clone()) >= Duration::from_secs(1), "it has waited the first time of failures");
    assert!(waits.next(key.clone()) >= Duration::from_secs(2));
    world.pass().await.unwrap();
    assert!(world.shelf.get(INGRESS).is_some());
    assert!(waits.next(key) < Duration::from_secs(1), "and that is forgotten");
}

#[tokio::test]
async fn the_gateway_api_may_come_and_go_while_the_operator_runs() {
    let world = World::running().await;
    set(&world.shelf, "gateway", gateway());
    world.pass().await.unwrap();
    assert_eq!(writes(&world), Vec::<String>::new(), "nothing is asked of kinds that are not there");
    install_gateway_api(&world.shelf, "v1", &["HTTPRoute"]);
    world.pass().await.unwrap();
    assert_eq!(writes(&world), [format!("PATCH {ROUTE}")]);
    let policy = |version: &str| format!("/apis/{GROUP}/{version}/namespaces/default/backendtlspolicies/idm");
    install_gateway_api(&world.shelf, "v1alpha3", &["BackendTLSPolicy"]);
    world.pass().await.unwrap();
    assert_eq!(writes(&world), [format!("PATCH {}", policy("v1alpha3"))]);
    for version in ["v1", "v1alpha3"] {
        world.shelf.delete(&format!("/apis/{GROUP}/{version}"));
    }
    world.pass().await.unwrap();
    assert_eq!(writes(&world), Vec::<String>::new());
}

#[tokio::test]
async fn a_server_that_answers_is_not_ready_while_a_way_to_it_is_missing_and_the_cure_is_told() {
    let scene = Scene::with_a_started_server().await;
    let life = scene.begin().await;
    scene.until_ready(&life).await;
    set(&scene.shelf, "gateway", gateway());
    scene.pass(&life).await.unwrap();
    let (verdict, message) = ready(&scene.shelf);
    assert_eq!(verdict, "False GatewayApiMissing");
    assert!(message.contains("spec.gateway is not carried out") && message.contains("Install the CRDs"), "{message}");
    assert_eq!(scene.shelf.held.lock().unwrap().events.last().unwrap(), "GatewayApiMissing");
    scene.shelf.writes();
    scene.pass(&life).await.unwrap();
    assert_eq!(scene.shelf.writes(), Vec::<String>::new(), "it is told once");
    install_gateway_api(&scene.shelf, "v1", &["HTTPRoute", "BackendTLSPolicy"]);
    scene.until_ready(&life).await;
    scene.shelf.put(INGRESS, json!({"metadata": {"name": "idm"}, "theirs": true}));
    set(&scene.shelf, "ingress", json!({}));
    scene.pass(&life).await.unwrap();
    let (verdict, message) = ready(&scene.shelf);
    assert_eq!(verdict, "False NameConflict");
    assert!(message.contains("The server runs") && message.contains("Ingress 'idm' exists"), "{message}");
    scene.shelf.delete(INGRESS);
    scene.until_ready(&life).await;
}

#[tokio::test]
async fn who_does_not_use_the_gateway_api_asks_for_it_once_an_interval() {
    let world = World::running().await;
    let asked = || world.life.clusters.gateway.lock().unwrap().unwrap().0;
    world.pass().await.unwrap();
    let first = asked();
    install_gateway_api(&world.shelf, "v1", &["HTTPRoute"]);
    world.pass().await.unwrap();
    assert_eq!(asked(), first);
}

#[tokio::test]
async fn servers_take_the_certificate_of_the_ingress_where_they_have_none_of_their_own() {
    let world = World::running().await;
    set(&world.shelf, "ingress", json!({"tlsSecretName": "shown"}));
    world.pass().await.unwrap();
    assert_eq!(world.ready().0, "False TlsSecretMissing");
    assert!(world.ready().1.contains("'shown'"), "{}", world.ready().1);
}
