//! Who stands for an entry: two objects of one name, and entries of somebody else.

use kaniop_api::{KanidmGroup, KanidmOAuth2Client, KanidmPersonAccount, KanidmServiceAccount};
use serde_json::json;

use super::is;
use super::kinds::{Sample, alice, with};
use super::world::World;

/// A younger object of another name for the same entry.
async fn the_older_wins<K: Sample>() {
    let world = World::<K>::with(with(K::sample(), "/metadata/creationTimestamp", json!("2026-01-01T00:00:00Z"))).await;
    let young = with(K::sample(), "/metadata/creationTimestamp", json!("2026-01-02T00:00:00Z"));
    let young = with(young, "/metadata/name", json!("a-younger-one"));
    let young = with(young, "/spec/kanidmName", json!(K::NAME.to_uppercase()));
    let young = world.put(young);
    let life = world.live().await;
    world.settle(&life).await;
    world.is_complete();
    assert_eq!(world.condition_of(&young, "Ready"), is("False", "Conflict"));
    assert!(world.shelf.get(&young).unwrap()["metadata"]["finalizers"].is_null(), "it holds on to something");
    assert_eq!(world.events().iter().filter(|reason| *reason == "EntryCreated").count(), 1);
    let before = world.writes();
    world.settle(&life).await;
    assert_eq!(world.writes(), before);

    world.delete();
    life.pass(world.object().unwrap()).await.unwrap();
    assert!(world.object().is_none());
    world.watch(&life);
    let object = serde_json::from_value::<K>(world.shelf.get(&young).unwrap()).unwrap();
    assert!(life.would_wake(&object), "nobody tells the younger one");
    world.settle(&life).await;
    let object = serde_json::from_value::<K>(world.shelf.get(&young).unwrap()).unwrap();
    assert_eq!(world.condition_of(&young, "Ready"), is("True", "Ready"), "{:?}", object.identity_status());
    assert_eq!(world.entries(K::NAME).len(), 1, "the younger one takes over");
}

#[tokio::test]
async fn of_two_people_of_one_name_the_older_wins_and_the_younger_follows() {
    the_older_wins::<KanidmPersonAccount>().await;
}

#[tokio::test]
async fn of_two_groups_of_one_name_the_older_wins_and_the_younger_follows() {
    the_older_wins::<KanidmGroup>().await;
}

#[tokio::test]
async fn of_two_oauth2_clients_of_one_name_the_older_wins_and_the_younger_follows() {
    the_older_wins::<KanidmOAuth2Client>().await;
}

#[tokio::test]
async fn of_two_service_accounts_of_one_name_the_older_wins_and_the_younger_follows() {
    the_older_wins::<KanidmServiceAccount>().await;
}

/// Somebody's entry, in a namespace that the Kanidm does not let adopt.
async fn is_left_alone<K: Sample>() {
    let object = with(K::sample(), "/metadata/namespace", json!("tenant"));
    let object = with(object, "/spec/kanidmRef/namespace", json!("default"));
    let mut world = World::<K>::with(with(object, "/spec/adoptionPolicy", json!("Adopt"))).await;
    let all = json!({});
    world.kanidm_spec = json!({
        "personNamespaceSelector": all, "groupNamespaceSelector": all, "oauth2ClientNamespaceSelector": all,
        "serviceAccountNamespaceSelector": all,
    });
    world.kanidm.put(&json!({
        "id": "11111111-1111-4111-8111-111111111111", "class": [K::COLLECTION.class()], "name": K::NAME,
        "spn": format!("{}@example.com", K::NAME), "displayname": "By hand",
    }));
    let before = world.entries(K::NAME);
    let life = world.live().await;
    world.settle(&life).await;
    assert_eq!(world.condition("Ready"), is("False", "EntryExists"));
    assert_eq!(world.entries(K::NAME), before);
    assert_eq!((world.writes().entries, world.credentials().told.len()), (0, 0));
    world.delete();
    world.settle(&life).await;
    assert!(world.object().is_none());
    assert_eq!(world.entries(K::NAME), before);
}

#[tokio::test]
async fn a_person_of_somebody_else_is_not_taken_over_where_that_is_not_granted() {
    is_left_alone::<KanidmPersonAccount>().await;
}

#[tokio::test]
async fn a_group_of_somebody_else_is_not_taken_over_where_that_is_not_granted() {
    is_left_alone::<KanidmGroup>().await;
}

#[tokio::test]
async fn an_oauth2_client_of_somebody_else_is_not_taken_over_where_that_is_not_granted() {
    is_left_alone::<KanidmOAuth2Client>().await;
}

#[tokio::test]
async fn a_service_account_of_somebody_else_is_not_taken_over_where_that_is_not_granted() {
    is_left_alone::<KanidmServiceAccount>().await;
}

#[tokio::test]
async fn a_namespace_that_the_kanidm_selects_for_it_may_take_over() {
    let object = with(alice(), "/metadata/namespace", json!("tenant"));
    let object = with(object, "/spec/kanidmRef/namespace", json!("default"));
    let mut world = World::<KanidmPersonAccount>::with(with(object, "/spec/adoptionPolicy", json!("Adopt"))).await;
    world.kanidm_spec = json!({"personNamespaceSelector": {}, "adoptionNamespaceSelector": {}});
    world.kanidm.put(&json!({
        "id": "11111111-1111-4111-8111-111111111111", "class": ["person"], "name": "alice", "spn": "alice@example.com", "displayname": "By hand",
    }));
    let life = world.live().await;
    world.settle(&life).await;
    assert!(world.is_ready());
    assert_eq!(world.entries("alice")[0]["displayname"], "Alice");
}

#[tokio::test]
async fn nobody_gets_the_account_of_the_operator() {
    for status in [
        json!(null),
        json!({"conditions": [{"type": "Exists", "status": "True", "reason": "Exists", "message": "", "lastTransitionTime": "2025-01-01T00:00:00Z"}]}),
        json!({"uuid": "00000007-0000-4000-8000-000000000000"}),
    ] {
        let object = with(KanidmServiceAccount::sample(), "/spec/kanidmName", json!("kaniop-operator"));
        let object = with(object, "/status", status);
        let world = World::<KanidmServiceAccount>::with(with(object, "/spec/adoptionPolicy", json!("Adopt"))).await;
        let life = world.live().await;
        world.settle(&life).await;
        assert_eq!(world.condition("Ready"), is("False", "EntryExists"));
        assert_eq!((world.writes().entries, world.credentials().told.len()), (0, 0));
        world.delete();
        world.settle(&life).await;
        assert!(world.object().is_none());
        assert_eq!(world.entries("kaniop-operator").len(), 1);
    }
}
