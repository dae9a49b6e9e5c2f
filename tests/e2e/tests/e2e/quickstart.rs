//! The first steps of a user.

use kaniop_e2e::certificate::Authority;
use kaniop_e2e::cluster::Cluster;
use kaniop_e2e::server::Bystander;
use kaniop_e2e::{PATIENCE, condition};

use super::{HOST, SHARED, quickstart, shared};

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_quickstart_applied_in_reverse_order_with_a_late_certificate_becomes_ready_and_its_entries_are_read_back() {
    let cluster = Cluster::connect().await;
    cluster.delete_namespace(SHARED, PATIENCE).await;
    cluster.namespace(SHARED).await;
    let mut objects = quickstart();
    objects.reverse();
    for object in &objects {
        cluster.apply(object).await;
    }

    let (_, message) = cluster.says("Kanidm", SHARED, "kanidm", "False TlsSecretMissing").await;
    assert!(message.contains("kanidm-tls"), "the missing Secret is named: {message}");
    let waiting = cluster.api("KanidmPersonAccount", SHARED).get("ada").await.unwrap();
    assert_ne!(
        condition(&waiting, "Ready").map(|(status, ..)| status).as_deref(),
        Some("True"),
        "nothing is Ready without a server"
    );

    let authority = Authority::default();
    cluster.apply(&authority.secret(SHARED, "kanidm-tls", HOST, &authority.pem)).await;
    for object in objects.iter().filter(|object| object["kind"] != "Namespace") {
        cluster.ready(object["kind"].as_str().unwrap(), SHARED, object["metadata"]["name"].as_str().unwrap()).await;
    }

    // No polling from here on: Ready means that it is there.
    let server = Bystander::of(&cluster, SHARED, "kanidm", HOST).await;
    assert_eq!(server.values("/v1/person/ada", "displayname").await, ["Ada Lovelace"]);
    assert_eq!(server.values("/v1/person/ada", "mail").await, ["ada@example.com", "countess@example.com"]);
    assert_eq!(server.values("/v1/person/grace", "legalname").await, ["Grace Brewster Hopper"]);
    assert_eq!(server.values("/v1/person/grace", "account_valid_from").await, ["2026-01-01T00:00:00Z"]);
    assert_eq!(server.values("/v1/group/crew", "description").await, ["Everybody on board"]);
    let mut members = server.values("/v1/group/crew", "member").await;
    members.sort();
    assert_eq!(members, ["ada@idm.example.com", "grace@idm.example.com"]);
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn the_status_of_a_kanidm_tells_what_runs() {
    let cluster = Cluster::connect().await;
    shared(&cluster).await;
    let kanidm = cluster.ready("Kanidm", SHARED, "kanidm").await;
    for kind in ["Available", "Initialized"] {
        assert_eq!(condition(&kanidm, kind).map(|(status, ..)| status).as_deref(), Some("True"), "{kind}");
    }
    let status = &kanidm.data["status"];
    assert_eq!(status["replicaColumn"], "1/1", "{status}");
    assert_eq!(status["secretName"], "kanidm-admin-passwords", "{status}");
    assert!(status["domainUuid"].as_str().is_some_and(|uuid| uuid.len() == 36), "{status}");
    assert_eq!(status["version"]["image"], super::setting("KANIOP_KANIDM_IMAGE"), "{status}");
    let ada = cluster.ready("KanidmPersonAccount", SHARED, "ada").await;
    assert_eq!(ada.data["status"]["kanidmRef"], "quickstart/kanidm");
    assert!(ada.data["status"]["uuid"].as_str().is_some_and(|uuid| uuid.len() == 36), "{}", ada.data["status"]);
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn the_admin_secret_has_exactly_its_four_keys() {
    let cluster = Cluster::connect().await;
    shared(&cluster).await;
    let secret = cluster.api("Secret", SHARED).get("kanidm-admin-passwords").await.unwrap();
    let keys: Vec<_> = secret.data["data"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["ADMIN_PASSWORD", "ADMIN_USERNAME", "IDM_ADMIN_PASSWORD", "IDM_ADMIN_USERNAME"]);
}
