//! Changes behind the operator's back.

use std::time::Instant;

use kaniop_e2e::cluster::Cluster;
use kaniop_e2e::{PATIENCE, eventually};

use super::{SHARED, interval, shared};

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_displayname_changed_on_the_server_is_back_within_one_interval_with_one_event() {
    let cluster = Cluster::connect().await;
    let server = shared(&cluster).await;
    let before = cluster.events(SHARED, "KanidmPersonAccount", "ada").await.len();

    server.put("/v1/person/ada", "displayname", &["Somebody Else"]).await;
    let changed = Instant::now();
    // The interval has a tenth of play, and repairing takes a moment on a busy machine.
    let limit = interval().mul_f64(1.1) + std::time::Duration::from_secs(3);
    eventually("the displayname is back", limit, || async {
        let found = server.values("/v1/person/ada", "displayname").await;
        if found == ["Ada Lovelace"] { Ok(()) } else { Err(found) }
    })
    .await;
    println!("repaired after {:.1} s", changed.elapsed().as_secs_f64());

    eventually("an event tells it", PATIENCE, || async {
        let events = cluster.events(SHARED, "KanidmPersonAccount", "ada").await;
        if events.len() > before { Ok(()) } else { Err(events.len()) }
    })
    .await;
    // Two more looks of the operator must not tell it again: waiting is the measurement here.
    tokio::time::sleep(interval() * 2).await;
    let events = cluster.events(SHARED, "KanidmPersonAccount", "ada").await;
    assert_eq!(events.len(), before + 1, "{events:#?}");
    assert!(events.last().unwrap().series.is_none(), "it was told once: {events:#?}");
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_member_added_by_hand_is_taken_out_of_an_exact_group() {
    let cluster = Cluster::connect().await;
    let server = shared(&cluster).await;
    server.put("/v1/group/crew", "member", &["ada", "grace", "idm_admin"]).await;
    eventually("the intruder is out", PATIENCE, || async {
        let mut members = server.values("/v1/group/crew", "member").await;
        members.sort();
        if members == ["ada@idm.example.com", "grace@idm.example.com"] { Ok(()) } else { Err(members) }
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn what_the_spec_does_not_name_is_left_alone() {
    let cluster = Cluster::connect().await;
    let server = shared(&cluster).await;
    server.put("/v1/person/ada", "legalname", &["Augusta Ada King"]).await;
    // A repair of another attribute shows that the operator has looked since.
    server.put("/v1/person/ada", "displayname", &["Somebody Else"]).await;
    eventually("the displayname is back", PATIENCE, || async {
        let found = server.values("/v1/person/ada", "displayname").await;
        if found == ["Ada Lovelace"] { Ok(()) } else { Err(found) }
    })
    .await;
    assert_eq!(server.values("/v1/person/ada", "legalname").await, ["Augusta Ada King"]);
    server.put("/v1/person/ada", "legalname", &[]).await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn an_entry_deleted_on_the_server_is_made_again() {
    let cluster = Cluster::connect().await;
    let server = shared(&cluster).await;
    server.delete("/v1/person/grace").await;
    eventually("grace is back, in her group", PATIENCE, || async {
        let members = server.values("/v1/group/crew", "member").await;
        if members.contains(&"grace@idm.example.com".to_owned()) { Ok(()) } else { Err(members) }
    })
    .await;
    cluster.ready("KanidmPersonAccount", SHARED, "grace").await;
    cluster.ready("KanidmGroup", SHARED, "crew").await;
}
