//! People and groups through their life.

use kaniop_e2e::cluster::Cluster;
use kaniop_e2e::{condition, example};
use serde_json::json;

use super::{SHARED, group, person, shared};

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_changed_spec_reaches_the_server_and_a_deleted_object_takes_its_entry_along() {
    let cluster = Cluster::connect().await;
    let server = shared(&cluster).await;
    cluster.apply(&person(SHARED, "edsger", "kanidm", "Edsger")).await;
    let first = cluster.ready("KanidmPersonAccount", SHARED, "edsger").await;

    let mut changed = person(SHARED, "edsger", "kanidm", "Edsger Dijkstra");
    changed["spec"]["personAttributes"]["mail"] = json!(["edsger@example.com"]);
    cluster.apply(&changed).await;
    let second = cluster.ready("KanidmPersonAccount", SHARED, "edsger").await;
    assert_eq!(server.values("/v1/person/edsger", "displayname").await, ["Edsger Dijkstra"]);
    assert_eq!(server.values("/v1/person/edsger", "mail").await, ["edsger@example.com"]);
    assert_eq!(first.data["status"]["uuid"], second.data["status"]["uuid"], "it is the same entry");

    cluster.delete("KanidmPersonAccount", SHARED, "edsger").await;
    assert!(!server.names("person").await.contains(&"edsger".to_owned()));
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn people_and_groups_for_machines_get_numbers_keys_and_a_policy() {
    let cluster = Cluster::connect().await;
    let server = shared(&cluster).await;
    let objects = example("examples/machines");
    for object in &objects {
        cluster.apply(object).await;
    }
    let group = cluster.ready("KanidmGroup", SHARED, "operators").await;
    let person = cluster.ready("KanidmPersonAccount", SHARED, "linus").await;
    assert_eq!(server.values("/v1/group/operators", "member").await, ["linus@idm.example.com"]);
    assert_eq!(server.values("/v1/group/operators", "credential_type_minimum").await, ["mfa"]);
    assert_eq!(server.values("/v1/person/linus", "loginshell").await, ["/bin/bash"]);
    for (path, object) in [("/v1/group/operators", &group), ("/v1/person/linus", &person)] {
        assert_eq!(server.values(path, "gidnumber").await, [object.data["status"]["gid"].to_string()], "{path}");
    }
    cluster.delete("KanidmGroup", SHARED, "operators").await;
    cluster.delete("KanidmPersonAccount", SHARED, "linus").await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn an_object_that_is_made_again_gets_an_entry_again() {
    let cluster = Cluster::connect().await;
    let server = shared(&cluster).await;
    for displayname in ["Barbara", "Barbara Liskov"] {
        // The server keeps the UUID of the deleted entry for days: a new one must be found.
        cluster.apply(&person(SHARED, "barbara", "kanidm", displayname)).await;
        cluster.ready("KanidmPersonAccount", SHARED, "barbara").await;
        assert_eq!(server.values("/v1/person/barbara", "displayname").await, [displayname]);
        cluster.delete("KanidmPersonAccount", SHARED, "barbara").await;
    }
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_group_waits_for_a_member_that_comes_later_and_is_woken_by_it() {
    let cluster = Cluster::connect().await;
    let server = shared(&cluster).await;
    cluster.apply(&group(SHARED, "readers", "kanidm", &["ada", "donald"])).await;
    let (_, message) = cluster.says("KanidmGroup", SHARED, "readers", "False").await;
    assert!(message.contains("donald"), "the missing member is named: {message}");

    cluster.apply(&person(SHARED, "donald", "kanidm", "Donald Knuth")).await;
    cluster.ready("KanidmGroup", SHARED, "readers").await;
    let mut members = server.values("/v1/group/readers", "member").await;
    members.sort();
    assert_eq!(members, ["ada@idm.example.com", "donald@idm.example.com"]);
    cluster.delete("KanidmGroup", SHARED, "readers").await;
    cluster.delete("KanidmPersonAccount", SHARED, "donald").await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn an_entry_that_somebody_else_made_is_neither_touched_nor_deleted() {
    let cluster = Cluster::connect().await;
    let server = shared(&cluster).await;
    let before = server.values("/v1/group/idm_admins", "member").await;
    let mut greedy = group(SHARED, "greedy", "kanidm", &["ada"]);
    greedy["spec"]["kanidmName"] = "idm_admins".into();
    cluster.apply(&greedy).await;
    cluster.says("KanidmGroup", SHARED, "greedy", "False EntryExists").await;
    cluster.delete("KanidmGroup", SHARED, "greedy").await;
    assert_eq!(server.values("/v1/group/idm_admins", "member").await, before);
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_person_whose_time_is_over_is_ready_but_not_valid() {
    let cluster = Cluster::connect().await;
    let server = shared(&cluster).await;
    let mut leaver = person(SHARED, "leaver", "kanidm", "Leaver");
    leaver["spec"]["personAttributes"]["accountExpire"] = "2020-01-01T00:00:00Z".into();
    cluster.apply(&leaver).await;
    let seen = cluster.ready("KanidmPersonAccount", SHARED, "leaver").await;
    assert_eq!(condition(&seen, "Valid").map(|(status, ..)| status).as_deref(), Some("False"));
    assert_eq!(server.values("/v1/person/leaver", "account_expire").await, ["2020-01-01T00:00:00Z"]);
    cluster.delete("KanidmPersonAccount", SHARED, "leaver").await;
}
