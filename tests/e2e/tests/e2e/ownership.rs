//! Whose an entry is: taking over, standing back, leaving behind.

use kaniop_e2e::cluster::Cluster;
use kaniop_e2e::example;
use serde_json::json;

use super::{SHARED, group, person, shared};

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn all_examples_applied_in_shuffled_order_become_ready() {
    let cluster = Cluster::connect().await;
    shared(&cluster).await;
    let folders = ["examples/machines", "examples/single-sign-on", "examples/automation", "examples/takeover"];
    let mut objects: Vec<_> = folders.iter().flat_map(|folder| example(folder)).collect();
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    fastrand::Rng::with_seed(seed).shuffle(&mut objects);
    for object in &objects {
        cluster.apply(object).await;
    }
    for object in &objects {
        let (kind, name) = (object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap());
        cluster.ready(kind, SHARED, name).await;
    }
    for object in &objects {
        let (kind, name) = (object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap());
        cluster.delete(kind, SHARED, name).await;
    }
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_built_in_group_is_taken_over_only_when_asked_and_never_deleted() {
    let cluster = Cluster::connect().await;
    let server = shared(&cluster).await;
    let path = "/v1/group/idm_people_on_boarding";
    let mut adopting = group(SHARED, "on-boarding", "kanidm", &["ada"]);
    adopting["spec"]["kanidmName"] = "idm_people_on_boarding".into();
    adopting["spec"]["membersPolicy"] = "Additive".into();
    cluster.apply(&adopting).await;
    cluster.says("KanidmGroup", SHARED, "on-boarding", "False EntryExists").await;
    let before = server.values(path, "member").await;
    adopting["spec"]["adoptionPolicy"] = "Adopt".into();
    cluster.apply(&adopting).await;
    let taken = cluster.ready("KanidmGroup", SHARED, "on-boarding").await;
    assert_eq!(taken.data["status"]["adopted"], true);
    assert!(server.values(path, "member").await.contains(&"ada@idm.example.com".to_owned()));
    adopting["spec"]["members"] = json!([]);
    cluster.apply(&adopting).await;
    cluster.ready("KanidmGroup", SHARED, "on-boarding").await;
    assert_eq!(server.values(path, "member").await, before, "only whom we added is removed");
    adopting["spec"]["deletionPolicy"] = "Delete".into();
    cluster.apply(&adopting).await;
    cluster.delete("KanidmGroup", SHARED, "on-boarding").await;
    assert!(server.names("group").await.contains(&"idm_people_on_boarding".to_owned()));
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn of_two_objects_for_one_entry_the_older_wins_and_the_younger_takes_over_when_it_goes() {
    let cluster = Cluster::connect().await;
    let server = shared(&cluster).await;
    cluster.apply(&person(SHARED, "hedy", "kanidm", "Hedy")).await;
    cluster.ready("KanidmPersonAccount", SHARED, "hedy").await;
    // Creation times count in seconds; within one, the name that sorts first is the older.
    let mut younger = person(SHARED, "z-hedy", "kanidm", "Somebody else");
    younger["spec"]["kanidmName"] = "Hedy".into();
    cluster.apply(&younger).await;
    let (_, message) = cluster.says("KanidmPersonAccount", SHARED, "z-hedy", "False Conflict").await;
    assert!(message.contains("hedy"), "the winner is named: {message}");
    assert_eq!(server.values("/v1/person/hedy", "displayname").await, ["Hedy"]);
    cluster.delete("KanidmPersonAccount", SHARED, "hedy").await;
    cluster.ready("KanidmPersonAccount", SHARED, "z-hedy").await;
    assert_eq!(server.values("/v1/person/hedy", "displayname").await, ["Somebody else"]);
    cluster.delete("KanidmPersonAccount", SHARED, "z-hedy").await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_retained_entry_survives_its_object_and_is_found_again_by_a_new_one() {
    let cluster = Cluster::connect().await;
    let server = shared(&cluster).await;
    let mut keeper = person(SHARED, "annie", "kanidm", "Annie");
    keeper["spec"]["deletionPolicy"] = "Retain".into();
    cluster.apply(&keeper).await;
    let first = cluster.ready("KanidmPersonAccount", SHARED, "annie").await;
    cluster.delete("KanidmPersonAccount", SHARED, "annie").await;
    assert_eq!(server.values("/v1/person/annie", "displayname").await, ["Annie"]);
    cluster.apply(&person(SHARED, "annie", "kanidm", "Annie Easley")).await;
    let second = cluster.ready("KanidmPersonAccount", SHARED, "annie").await;
    assert_eq!(first.data["status"]["uuid"], second.data["status"]["uuid"], "it is the same entry");
    cluster.delete("KanidmPersonAccount", SHARED, "annie").await;
    assert!(!server.names("person").await.contains(&"annie".to_owned()));
}
