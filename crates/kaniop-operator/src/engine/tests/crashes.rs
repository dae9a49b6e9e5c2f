//! The operator dies, before and after each call on either side, and lives again.

use kaniop_api::{KanidmGroup, KanidmOAuth2Client, KanidmPersonAccount, KanidmServiceAccount};
use kaniop_core::cluster::labels::ROTATED_AT;
use kaniop_core::identity::credential::FORCE_ROTATION;
use kube::ResourceExt;
use serde_json::{Value as Json, json};

use super::super::Managed;
use super::kinds::{Sample, alice, with};
use super::world::{Log, World, Writes};
use crate::scenario::Side;

/// Lets the operator die at each call in turn, lets it live again, and checks what is left. Returns at how many calls it died, on each side.
async fn wherever_it_dies<K: Sample>(
    begin: impl AsyncFn() -> World<K>,
    act: impl Fn(&World<K>),
    holds: impl Fn(&World<K>),
) -> usize {
    let (log, _listening) = Log::listen();
    let calm = {
        let world = Box::pin(begin()).await;
        let life = Box::pin(world.live()).await;
        act(&world);
        Box::pin(world.settle(&life)).await;
        holds(&world);
        world.writes()
    };
    let mut deaths = [0; 2];
    for (side, deaths) in [Side::Before, Side::After].into_iter().zip(&mut deaths) {
        for nth in 1.. {
            log.clear();
            let world = Box::pin(begin()).await;
            let life = Box::pin(world.live()).await;
            act(&world);
            world.faults.arm(nth, side);
            let died = Box::pin(world.settle_or_die(&life)).await;
            world.faults.disarm();
            drop(life);
            // Shown with whatever fails below.
            eprintln!("{}: died {side:?} call {nth}", K::KIND);
            let life = Box::pin(world.live()).await;
            Box::pin(world.settle(&life)).await;
            holds(&world);
            costs_little(calm, world.writes());
            world.keeps_secrets(&log);
            let before = world.writes();
            Box::pin(world.settle(&Box::pin(world.live()).await)).await;
            assert_eq!(world.writes(), before, "it is not at rest");
            if !died {
                break;
            }
            *deaths += 1;
        }
    }
    assert_eq!(deaths[0], deaths[1], "a call is missing on one side");
    deaths[0]
}

/// A crash costs one more write on each side at most: of a token, one that is revoked and one that is issued.
fn costs_little(calm: Writes, seen: Writes) {
    let more = |of: fn(&Writes) -> usize| of(&seen).saturating_sub(of(&calm));
    assert!(more(|writes| writes.kubernetes) <= 1, "{calm:?} {seen:?}");
    let made = more(|writes| writes.entries) + more(|writes| writes.credentials) + more(|writes| writes.issued);
    assert!(made <= 1, "{calm:?} {seen:?}");
    assert!(more(|writes| writes.revoked) <= more(|writes| writes.issued), "{calm:?} {seen:?}");
}

async fn new<K: Sample>() -> World<K> {
    World::with(K::sample()).await
}

fn nothing<K>(_: &World<K>) {}

/// Between the finalizer and the creation, between the creation and the status, and everywhere else.
#[tokio::test]
async fn a_person_without_a_link_is_created_once_with_four_requests() {
    let holds = |world: &World<KanidmPersonAccount>| {
        assert!(world.is_ready());
        assert_eq!(world.entries("alice").len(), 1);
        assert_eq!(world.kanidm.held.lock().unwrap().created, 1, "it was made twice");
        let object = world.object().unwrap();
        assert_eq!(object.finalizers(), [KanidmPersonAccount::FINALIZER]);
        assert_eq!(object.status.clone().unwrap().uuid.as_deref(), world.entries("alice")[0]["id"].as_str());
    };
    // Finalizer, creation, status, event.
    assert_eq!(wherever_it_dies(async || World::with(alice()).await, nothing, holds).await, 4);
}

/// It dies at each call of a creation, and the object is deleted before it lives again.
#[tokio::test]
async fn nothing_is_left_of_a_person_whose_object_goes_wherever_its_creation_was_cut_short() {
    for side in [Side::Before, Side::After] {
        for nth in 1.. {
            let world = World::<KanidmPersonAccount>::with(alice()).await;
            let life = world.live().await;
            world.faults.arm(nth, side);
            let died = world.settle_or_die(&life).await;
            world.faults.disarm();
            drop(life);
            eprintln!("died {side:?} call {nth}");
            world.delete();
            world.settle(&world.live().await).await;
            is_gone(&world);
            if !died {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_person_with_a_link_is_created_once() {
    let deaths = wherever_it_dies(new::<KanidmPersonAccount>, nothing, World::is_complete).await;
    // Finalizer, creation, its event, three of the link and its Secret, the event, status.
    assert!(deaths >= 7, "{deaths}");
}

#[tokio::test]
async fn a_group_with_shared_members_is_created_once() {
    let deaths = wherever_it_dies(new::<KanidmGroup>, nothing, World::is_complete).await;
    assert!(deaths >= 4, "{deaths}");
}

#[tokio::test]
async fn a_service_account_with_two_tokens_and_a_password_is_created_once() {
    let deaths = wherever_it_dies(new::<KanidmServiceAccount>, nothing, World::is_complete).await;
    assert!(deaths >= 25, "{deaths}");
}

#[tokio::test]
async fn a_confidential_oauth2_client_is_created_once() {
    let deaths = wherever_it_dies(new::<KanidmOAuth2Client>, nothing, World::is_complete).await;
    assert!(deaths >= 10, "{deaths}");
}

/// As if the period were over.
fn make_old<K: Sample>(world: &World<K>) {
    for name in K::SECRETS {
        world.change_secret(name, |secret| {
            secret["metadata"]["annotations"][ROTATED_AT] = json!("2020-01-01T00:00:00Z");
        });
    }
}

/// That all credentials are others than these.
fn all_are_new<K: Sample>(world: &World<K>, before: usize) {
    world.is_complete();
    for name in K::SECRETS {
        let secret = world.secret(name).unwrap();
        let key = ["token", "password", "CLIENT_SECRET"].into_iter().find(|key| secret.contains_key(*key)).unwrap();
        let nth = world.credentials().told.iter().position(|told| *told == secret[key]).unwrap();
        assert!(nth >= before, "{name} holds what it held");
    }
    assert!(world.object().unwrap().meta().annotations.as_ref().is_none_or(|all| !all.contains_key(FORCE_ROTATION)));
}

#[tokio::test]
async fn a_client_secret_whose_period_is_over_is_made_anew_once() {
    wherever_it_dies(World::<KanidmOAuth2Client>::at_rest, make_old, |world| all_are_new(world, 1)).await;
}

#[tokio::test]
async fn tokens_and_a_password_whose_period_is_over_are_made_anew_once() {
    wherever_it_dies(World::<KanidmServiceAccount>::at_rest, make_old, |world| all_are_new(world, 3)).await;
}

fn force<K: Sample>(world: &World<K>) {
    world.edit(|object| object["metadata"]["annotations"][FORCE_ROTATION] = json!("please"));
}

#[tokio::test]
async fn a_client_secret_is_made_anew_once_when_somebody_asks() {
    wherever_it_dies(World::<KanidmOAuth2Client>::at_rest, force, |world| all_are_new(world, 1)).await;
}

#[tokio::test]
async fn tokens_and_a_password_are_made_anew_once_when_somebody_asks() {
    wherever_it_dies(World::<KanidmServiceAccount>::at_rest, force, |world| all_are_new(world, 3)).await;
}

#[tokio::test]
async fn a_token_whose_secret_was_lost_is_issued_anew_once() {
    let act = |world: &World<KanidmServiceAccount>| world.delete_secret("robot-cd-api-token");
    wherever_it_dies(World::at_rest, act, World::is_complete).await;
}

#[tokio::test]
async fn one_more_token_is_issued_once_and_the_others_stay() {
    let begin = async || {
        let world = World::<KanidmServiceAccount>::at_rest().await;
        assert_eq!(world.credentials().issued, 2);
        world
    };
    let act = |world: &World<KanidmServiceAccount>| {
        world.edit(|object| object["spec"]["apiTokens"].as_array_mut().unwrap().push(json!({"label": "more"})));
    };
    let holds = |world: &World<KanidmServiceAccount>| {
        assert!(world.is_ready());
        KanidmServiceAccount::fits(world, "robot");
        let credentials = world.credentials();
        let live = credentials.tokens.values().next().unwrap();
        assert_eq!(live.iter().map(|token| token.label.as_str()).collect::<Vec<_>>(), ["ci", "cd", "more"]);
        let told = |nth: usize| live[nth].value == credentials.told[nth];
        assert!(told(0) && told(1), "a token was made anew that nobody asked for");
    };
    wherever_it_dies(begin, act, holds).await;
}

#[tokio::test]
async fn a_token_that_is_not_wanted_any_more_goes_with_its_secret_and_no_other_does() {
    let begin = async || {
        let world = World::<KanidmServiceAccount>::at_rest().await;
        let uuid = world.entries("robot")[0]["id"].as_str().unwrap().to_owned();
        world.kanidm.held.lock().unwrap().credentials.put_token(&uuid, "by-hand");
        world
    };
    let act = |world: &World<KanidmServiceAccount>| {
        world.edit(|object| drop(object["spec"]["apiTokens"].as_array_mut().unwrap().pop()));
    };
    let holds = |world: &World<KanidmServiceAccount>| {
        KanidmServiceAccount::fits(world, "robot");
        let live = world.credentials().tokens.into_values().next().unwrap();
        assert_eq!(live.iter().map(|token| token.label.as_str()).collect::<Vec<_>>(), ["ci", "by-hand"]);
        assert_eq!(world.secrets(), ["robot-ci-api-token", "robot-kanidm-service-account-credentials"]);
        let managed = world.object().unwrap().status.clone().unwrap().managed.unwrap();
        assert_eq!(managed["apiTokens"], ["ci"]);
    };
    wherever_it_dies(begin, act, holds).await;
}

#[tokio::test]
async fn the_link_goes_when_the_person_has_set_a_credential_wherever_the_operator_died_before() {
    for side in [Side::Before, Side::After] {
        for nth in 1.. {
            let world = new::<KanidmPersonAccount>().await;
            let life = world.live().await;
            world.faults.arm(nth, side);
            let died = world.settle_or_die(&life).await;
            world.faults.disarm();
            drop(life);
            eprintln!("died {side:?} call {nth}");
            let entry = world.entries("alice").pop();
            let set = entry.and_then(|entry| entry["id"].as_str().map(str::to_owned));
            world.kanidm.held.lock().unwrap().credentials.set.extend(set.clone());
            let life = world.live().await;
            world.settle(&life).await;
            if set.is_some() {
                assert_eq!(world.secrets(), Vec::<String>::new());
                assert_eq!(world.condition("CredentialReady"), super::is("True", "CredentialExists"));
            }
            if !died {
                break;
            }
        }
    }
}

fn delete<K: Sample>(world: &World<K>) {
    world.delete();
}

fn is_gone<K: Sample>(world: &World<K>) {
    assert!(world.object().is_none(), "the object is still there");
    assert!(world.entries(K::NAME).is_empty(), "the entry is still there");
    assert_eq!(world.secrets(), Vec::<String>::new());
}

#[tokio::test]
async fn a_deletion_ends_with_entry_object_and_secrets_gone() {
    // Definition, deletion, event, finalizer.
    assert_eq!(wherever_it_dies(World::<KanidmPersonAccount>::at_rest, delete, is_gone).await, 4);
    assert_eq!(wherever_it_dies(World::<KanidmGroup>::at_rest, delete, is_gone).await, 4);
    assert_eq!(wherever_it_dies(World::<KanidmOAuth2Client>::at_rest, delete, is_gone).await, 4);
    assert_eq!(wherever_it_dies(World::<KanidmServiceAccount>::at_rest, delete, is_gone).await, 4);
}

/// An entry that was there before, as somebody made it by hand.
fn by_hand<K: Sample>() -> Json {
    json!({
        "id": "11111111-1111-4111-8111-111111111111", "class": ["object", "account", K::COLLECTION.class()], "name": K::NAME,
        "spn": format!("{}@example.com", K::NAME), "displayname": "By hand",
    })
}

async fn is_adopted<K: Sample>() {
    let begin = async || {
        let world = World::<K>::with(with(K::sample(), "/spec/adoptionPolicy", json!("Adopt"))).await;
        world.kanidm.put(&by_hand::<K>());
        if K::COLLECTION == kaniop_core::entry::Collection::OAuth2Client {
            let mut kanidm = world.kanidm.held.lock().unwrap();
            let id = "11111111-1111-4111-8111-111111111111".to_owned();
            kanidm.credentials.secrets.insert(id, "secret-from-before".to_owned());
        }
        world
    };
    let holds = |world: &World<K>| {
        world.is_complete();
        let status = world.object().unwrap().identity_status().cloned().unwrap();
        assert_eq!(status.adopted, Some(true), "it is forgotten that the entry was there before");
        assert_eq!(status.uuid.as_deref(), Some("11111111-1111-4111-8111-111111111111"));
    };
    wherever_it_dies(begin, nothing, holds).await;
}

#[tokio::test]
async fn an_entry_is_taken_over_once_and_for_all() {
    is_adopted::<KanidmPersonAccount>().await;
    is_adopted::<KanidmGroup>().await;
    is_adopted::<KanidmOAuth2Client>().await;
    is_adopted::<KanidmServiceAccount>().await;
}

#[tokio::test]
async fn an_entry_that_was_taken_over_stays_when_the_object_goes() {
    let begin = async || {
        let world = World::<KanidmPersonAccount>::with(with(alice(), "/spec/adoptionPolicy", json!("Adopt"))).await;
        world.kanidm.put(&by_hand::<KanidmPersonAccount>());
        let life = world.live().await;
        world.settle(&life).await;
        assert!(world.is_ready());
        world
    };
    let holds = |world: &World<KanidmPersonAccount>| {
        assert!(world.object().is_none());
        assert_eq!(world.entries("alice").len(), 1);
    };
    wherever_it_dies(begin, delete, holds).await;
}
