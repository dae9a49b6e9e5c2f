//! The loop of the identities in a world in memory: what it does in which order, and what is left when it dies anywhere.

mod crashes;
mod credentials;
mod every_kind;
mod kinds;
mod names;
mod world;

use std::time::Duration;

use serde_json::{Value as Json, json};

use self::kinds::{alice, with};
use self::world::{World, idm};
use super::assess::Assessment;
use crate::targets::{Health, Unusable, Wake};

type People = World<kaniop_api::KanidmPersonAccount>;

fn is(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

#[tokio::test]
async fn a_person_is_created_with_one_request_and_is_ready_by_what_the_server_answered() {
    let world = People::with(alice()).await;
    let life = world.live().await;
    world.settle(&life).await;
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    assert_eq!(world.events(), ["EntryCreated"]);
    let entry = world.entries("alice").remove(0);
    assert_eq!((entry["displayname"].as_str(), world.writes().entries), (Some("Alice"), 1));
    let pinned = world.object().unwrap().status.clone().unwrap().uuid;
    assert_eq!(pinned.as_deref(), entry["id"].as_str());
}

#[tokio::test]
async fn what_the_watch_still_shows_of_versions_that_we_have_replaced_asks_nobody_anything() {
    let world = People::with(alice()).await;
    let life = world.live().await;
    let stale = world.object().unwrap();
    life.pass(stale.clone()).await.unwrap();
    assert_eq!(world.condition("Ready"), is("True", "Ready"), "one pass is enough");
    let calls = world.faults.calls();
    life.pass(stale.clone()).await.unwrap();
    assert_eq!(world.faults.calls(), calls);
    world.edit(|object| object["spec"]["personAttributes"]["displayname"] = json!("Alice B."));
    life.pass(stale).await.unwrap();
    assert_eq!(world.faults.calls(), calls);
    world.settle(&life).await;
    assert_eq!(world.entries("alice")[0]["displayname"], "Alice B.", "somebody else's change is seen");
}

#[tokio::test]
async fn an_object_that_was_changed_since_it_was_seen_gets_no_finalizer_and_no_entry() {
    let world = People::with(alice()).await;
    let life = world.live().await;
    let stale = world.object().unwrap();
    world.edit(|object| object["metadata"]["labels"] = json!({"by": "somebody"}));
    assert!(life.pass(stale.clone()).await.is_err(), "it is tried again");
    world.delete();
    life.pass(stale).await.unwrap();
    assert_eq!((world.entries("alice").len(), world.writes().entries), (0, 0));
}

#[tokio::test]
async fn a_value_changed_behind_our_back_is_set_again_with_one_event() {
    let world = People::with(alice()).await;
    let life = world.live().await;
    world.settle(&life).await;
    for entry in world.kanidm.held.lock().unwrap().entries.values_mut().filter(|entry| entry["name"] == "alice") {
        entry.insert("displayname".to_owned(), json!("Mallory"));
    }
    drop(life);
    let life = world.live().await;
    assert!(life.engine.has_work(&world.object().unwrap()));
    world.settle(&life).await;
    assert_eq!(world.events(), ["EntryCreated", "DriftRepaired"]);
    assert_eq!(world.entries("alice")[0]["displayname"], "Alice");
}

#[tokio::test]
async fn an_operator_that_has_just_begun_leaves_the_last_word_standing_until_it_knows_better() {
    let world = People::with(alice()).await;
    world.settle(&world.live().await).await;
    let before = (world.writes(), world.events().len());
    let life = world.begin();
    let mut news = life.targets.subscribe();
    world.settle(&life).await;
    assert!(!life.engine.has_work(&world.object().unwrap()));
    life.targets.set(&idm(), &world.kanidm.connection).unwrap();
    world.settle(&life).await;
    news.recv().await.unwrap();
    assert!(life.engine.has_work(&world.object().unwrap()), "it is woken when the server was read");
    world.settle(&life).await;
    assert_eq!((world.writes(), world.events().len()), before);
}

#[tokio::test]
async fn a_kanidm_that_was_looked_into_and_has_no_server_is_told_as_such() {
    let world = People::with(alice()).await;
    let life = world.begin();
    world.settle(&life).await;
    assert_eq!(world.condition("Ready").0, "-");
    let mut news = life.targets.subscribe();
    life.targets.judged(&idm());
    assert_eq!(news.recv().await.unwrap(), Wake::Kanidm(idm()));
    assert!(life.engine.has_work(&world.object().unwrap()));
    world.settle(&life).await;
    assert_eq!(world.condition("Ready"), is("Unknown", "KanidmNotReady"));
    life.targets.judged(&idm());
    assert!(news.is_empty(), "only the first time is news");
}

#[tokio::test]
async fn an_object_created_again_after_its_entry_was_deleted_gets_the_next_uuid() {
    let world = People::with(alice()).await;
    let life = world.live().await;
    world.settle(&life).await;
    world.delete();
    world.settle(&life).await;
    assert!(world.object().is_none());
    world.put(alice());
    world.settle(&life).await;
    assert_eq!(world.condition("Ready").0, "True");
    assert_eq!(world.entries("alice").len(), 1);
}

#[tokio::test]
async fn an_entry_of_somebody_else_is_left_alone_and_the_object_says_so_without_a_finalizer() {
    let world = People::with(alice()).await;
    let theirs = json!({"id": "11111111-1111-4111-8111-111111111111", "class": ["person"], "name": "alice", "spn": "alice@example.com", "displayname": "By hand"});
    world.kanidm.put(&theirs);
    let life = world.live().await;
    world.settle(&life).await;
    assert_eq!(world.condition("Ready"), is("False", "EntryExists"));
    assert_eq!(Json::from(world.entries("alice").remove(0)), theirs);
    assert!(world.object().unwrap().metadata.finalizers.as_ref().is_none_or(Vec::is_empty));
    assert_eq!(world.events(), ["EntryExists"]);
}

#[tokio::test]
async fn another_namespace_needs_the_selector_and_then_touches_nothing() {
    let mut object = alice();
    object["metadata"]["namespace"] = json!("tenant");
    object["spec"]["kanidmRef"]["namespace"] = json!("default");
    let world = People::with(object).await;
    let life = world.live().await;
    world.settle(&life).await;
    assert_eq!(world.condition("Ready"), is("False", "NamespaceNotSelected"));
    assert_eq!((world.events(), world.writes().entries), (vec!["ResourceNotWatched".to_owned()], 0));
}

#[tokio::test]
async fn a_refused_value_is_said_with_the_field_and_is_not_sent_again_at_once() {
    let world = People::with(alice()).await;
    let life = world.live().await;
    let refusal = json!({"invalidattribute": "mail"});
    world.kanidm.held.lock().unwrap().refuse = Some((400, refusal));
    world.settle(&life).await;
    assert_eq!(world.condition("Ready"), is("False", "InvalidValue"));
    assert_eq!(world.events(), ["KanidmClientError"]);
    assert!(!life.engine.has_work(&world.object().unwrap()), "a refresh must not wake it while nothing changed");
}

#[tokio::test]
async fn values_that_are_refused_are_said_once_keep_no_other_back_and_wake_nobody() {
    let object = with(alice(), "/spec/personAttributes/legalname", json!("Alice A."));
    let object = with(object, "/spec/sshPublicKeys", json!({"laptop": "ssh-ed25519 AAAA"}));
    let world = People::with(object).await;
    world.kanidm.held.lock().unwrap().dislikes = vec!["mail", "ssh_publickey"];
    let life = world.live().await;
    world.settle(&life).await;
    assert_eq!(world.condition("Ready"), is("False", "InvalidValue"));
    let entry = world.entries("alice").remove(0);
    assert_eq!((entry["displayname"].as_str(), entry["legalname"].as_str()), (Some("Alice"), Some("Alice A.")));
    let status = world.object().unwrap().status.clone().unwrap();
    let message = status.conditions.unwrap().into_iter().find(|condition| condition.type_ == "Ready").unwrap().message;
    for field in ["personAttributes.mail: ", "sshPublicKeys: "] {
        assert_eq!(message.matches(field).count(), 1, "{message}");
    }
    for _ in 0..2 {
        life.targets.get(&idm()).unwrap().look_again().await.unwrap();
        assert!(!life.would_wake(&world.object().unwrap()), "a refresh must not wake it while nothing changed");
    }
    world.kanidm.held.lock().unwrap().dislikes.clear();
    world.settle(&life).await;
    assert!(world.is_ready());
}

#[tokio::test]
async fn a_server_that_refuses_the_token_is_not_asked_by_anybody_else() {
    let world = People::with(alice()).await;
    let life = world.live().await;
    world.kanidm.held.lock().unwrap().refuse = Some((401, json!("notauthenticated")));
    world.settle(&life).await;
    let mut news = life.targets.subscribe();
    while !matches!(life.targets.health(&idm()), Health::Fails(_)) {
        tokio::time::timeout(Duration::from_secs(10), news.recv()).await.unwrap().unwrap();
    }
    assert!(matches!(life.targets.get(&idm()).unwrap().snapshot(), Err(Unusable::Fails(_))));
    let calls = world.faults.calls();
    let (assessed, usable) = life.engine.assess(&world.object().unwrap());
    assert!(matches!(assessed, Assessment::Unknown(_)) && usable.is_none());
    world.settle(&life).await;
    assert_eq!(world.condition("Ready").0, "Unknown");
    assert_eq!(world.writes().entries, 0);
    assert!(world.faults.calls() <= calls + 3, "only the status and its event are written");
}

#[tokio::test]
async fn a_deletion_that_the_server_refuses_is_said_and_goes_on_when_it_does_not() {
    let world = People::with(alice()).await;
    let life = world.live().await;
    world.settle(&life).await;
    world.delete();
    world.kanidm.held.lock().unwrap().refuse = Some((403, json!("accessdenied")));
    world.settle(&life).await;
    assert_eq!(world.condition("Ready"), is("Unknown", "Deleting"));
    assert_eq!(world.events(), ["EntryCreated", "Deleting"]);
    world.kanidm.held.lock().unwrap().refuse = None;
    world.settle(&life).await;
    assert!(world.object().is_none() && world.entries("alice").is_empty());
}

#[tokio::test]
async fn a_person_whose_creation_was_answered_to_nobody_does_not_outlive_the_object() {
    let world = People::with(alice()).await;
    let life = world.live().await;
    // Made behind the snapshot's back, as by a request whose answer was lost.
    let other = world.live().await;
    world.settle(&other).await;
    world.edit(|object| object["status"] = Json::Null);
    world.delete();
    world.settle(&life).await;
    assert!(world.object().is_none() && world.entries("alice").is_empty());
}

#[tokio::test]
async fn the_entry_of_an_object_from_an_older_release_is_taken_over_by_its_status() {
    let mut object = alice();
    object["status"] = json!({"conditions": [{
        "type": "Exists", "status": "True", "reason": "Exists", "message": "", "lastTransitionTime": "2025-01-01T00:00:00Z",
    }]});
    let world = People::with(object).await;
    let id = "11111111-1111-4111-8111-111111111111";
    let entry =
        json!({"id": id, "class": ["person"], "name": "alice", "spn": "alice@example.com", "displayname": "Old"});
    world.kanidm.put(&entry);
    let life = world.live().await;
    world.settle(&life).await;
    assert_eq!(world.condition("Ready").0, "True");
    assert_eq!(world.object().unwrap().status.clone().unwrap().uuid.as_deref(), Some(id));
    assert_eq!(world.kanidm.held.lock().unwrap().created, 0);
}

#[tokio::test]
async fn nothing_is_sent_when_the_lease_is_in_doubt() {
    let world = People::with(alice()).await;
    let life = world.live().await;
    life.engine.ctx.guard.close();
    assert!(matches!(life.pass(world.object().unwrap()).await, Err(crate::error::Error::NotLeader)));
    assert_eq!((world.writes().kubernetes, world.writes().entries), (0, 0));
}

#[tokio::test]
async fn a_definition_that_is_being_removed_deletes_no_people() {
    let world = People::with(alice()).await;
    let life = world.live().await;
    world.settle(&life).await;
    world.shelf.delete(&People::definition());
    world.delete();
    world.settle(&life).await;
    assert!(world.object().is_none());
    assert_eq!(world.entries("alice").len(), 1);
    assert_eq!(world.events().last().map(String::as_str), Some("EntryLeftBehind"));
}
