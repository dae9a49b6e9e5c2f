//! Sentences that hold for every kind.

use kaniop_api::{KanidmGroup, KanidmOAuth2Client, KanidmPersonAccount, KanidmServiceAccount};
use serde_json::json;

use super::kinds::{Sample, with};
use super::world::{Log, World};

async fn comes_to_rest<K: Sample>() {
    let (log, _listening) = Log::listen();
    let world = World::<K>::at_rest().await;
    world.is_complete();
    // What the first list did not have yet (tokens) is seen by the next one, and then nothing is new.
    let life = world.live().await;
    world.settle(&life).await;
    let before = (world.writes(), world.events().len(), world.shelf.held.lock().unwrap().version);
    for _ in 0..3 {
        life.targets.get(&super::idm()).unwrap().look_again().await.unwrap();
        assert!(!life.would_wake(&world.object().unwrap()), "somebody is woken");
        life.pass(world.object().unwrap()).await.unwrap();
    }
    assert_eq!((world.writes(), world.events().len(), world.shelf.held.lock().unwrap().version), before);
    world.keeps_secrets(&log);
}

#[tokio::test]
async fn a_person_at_rest_is_written_to_by_nobody_and_nobody_is_woken() {
    comes_to_rest::<KanidmPersonAccount>().await;
}

#[tokio::test]
async fn a_group_at_rest_is_written_to_by_nobody_and_nobody_is_woken() {
    comes_to_rest::<KanidmGroup>().await;
}

#[tokio::test]
async fn an_oauth2_client_at_rest_is_written_to_by_nobody_and_nobody_is_woken() {
    comes_to_rest::<KanidmOAuth2Client>().await;
}

#[tokio::test]
async fn a_service_account_at_rest_is_written_to_by_nobody_and_nobody_is_woken() {
    comes_to_rest::<KanidmServiceAccount>().await;
}

/// The entry has a name of its own; object, status and Secrets keep the object's.
async fn has_another_name<K: Sample>() {
    let world = World::<K>::with(with(K::sample(), "/spec/kanidmName", json!("other_name"))).await;
    let life = world.live().await;
    world.settle(&life).await;
    world.is_complete();
    assert!(world.entries(K::NAME).is_empty());
    world.delete();
    world.settle(&life).await;
    assert!(world.object().is_none() && world.entries("other_name").is_empty());
    assert_eq!(world.secrets(), Vec::<String>::new());
}

#[tokio::test]
async fn a_person_may_have_another_name_on_the_server() {
    has_another_name::<KanidmPersonAccount>().await;
}

#[tokio::test]
async fn a_group_may_have_another_name_on_the_server() {
    has_another_name::<KanidmGroup>().await;
}

#[tokio::test]
async fn an_oauth2_client_may_have_another_name_on_the_server() {
    has_another_name::<KanidmOAuth2Client>().await;
}

#[tokio::test]
async fn a_service_account_may_have_another_name_on_the_server() {
    has_another_name::<KanidmServiceAccount>().await;
}

/// An entry that is to be retained survives its object, and a new object finds or takes it over.
async fn is_retained<K: Sample>() {
    let world = World::<K>::with(with(K::sample(), "/spec/deletionPolicy", json!("Retain"))).await;
    let life = world.live().await;
    world.settle(&life).await;
    world.is_complete();
    let before = world.entries(K::NAME);
    world.delete();
    world.settle(&life).await;
    assert!(world.object().is_none());
    assert_eq!(world.entries(K::NAME), before);
    assert_eq!(world.secrets(), Vec::<String>::new());
}

#[tokio::test]
async fn a_retained_person_survives_the_object() {
    is_retained::<KanidmPersonAccount>().await;
}

#[tokio::test]
async fn a_retained_group_survives_the_object() {
    is_retained::<KanidmGroup>().await;
}

#[tokio::test]
async fn a_retained_oauth2_client_survives_the_object() {
    is_retained::<KanidmOAuth2Client>().await;
}

#[tokio::test]
async fn a_retained_service_account_survives_the_object() {
    is_retained::<KanidmServiceAccount>().await;
}
