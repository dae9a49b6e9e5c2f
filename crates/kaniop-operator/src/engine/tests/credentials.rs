//! Secrets that somebody else has or edits, and tokens that somebody else issued.

use kaniop_api::{KanidmOAuth2Client, KanidmPersonAccount, KanidmServiceAccount};
use kaniop_core::identity::credential::FORCE_ROTATION;
use serde_json::{Value as Json, json};

use super::is;
use super::kinds::{Sample, alice, with};
use super::world::{World, encoded};

type Robots = World<KanidmServiceAccount>;

/// Somebody else has a Secret of the name.
async fn is_never_written<K: Sample>(name: &str) {
    let world = World::<K>::with(K::sample()).await;
    world.put_secret(name, "theirs", "precious");
    let life = world.live().await;
    world.settle(&life).await;
    assert_eq!(world.condition("Ready"), is("False", "NameConflict"));
    assert_eq!(world.condition("CredentialReady"), is("False", "NameConflict"));
    assert_eq!(world.secret(name).unwrap(), [("theirs".to_owned(), "precious".to_owned())].into());
    let wanted = K::SECRETS.iter().filter(|other| **other != name);
    assert_eq!(wanted.filter(|other| world.secret(other).is_none()).count(), 0, "the others are there");
    let made = world.credentials().writes();
    assert_eq!(made, K::SECRETS.iter().filter(|other| **other != name && !other.contains("oauth2")).count());
    world.settle(&life).await;
    assert_eq!(world.credentials().writes(), made, "nothing is made again and again");

    world.delete_secret(name);
    world.settle(&life).await;
    world.is_complete();
}

#[tokio::test]
async fn a_secret_of_somebody_else_is_never_written_and_nothing_is_made_for_it() {
    for name in KanidmServiceAccount::SECRETS {
        is_never_written::<KanidmServiceAccount>(name).await;
    }
    is_never_written::<KanidmOAuth2Client>(KanidmOAuth2Client::SECRETS[0]).await;
    is_never_written::<KanidmPersonAccount>(KanidmPersonAccount::SECRETS[0]).await;
}

/// Somebody edits one key, and adds one.
async fn is_repaired<K: Sample>(name: &str, key: &str) {
    let world = World::<K>::at_rest().await;
    let life = world.live().await;
    world.change_secret(name, |secret| secret["data"]["theirs"] = encoded("precious"));
    let before = world.writes();
    world.settle(&life).await;
    assert_eq!(world.writes(), before, "what others add is theirs");
    world.edit_secret(name, key, "edited");
    world.settle(&life).await;
    assert_eq!(world.secret(name).unwrap()["theirs"], "precious");
    assert_ne!(world.secret(name).unwrap()[key], "edited");
    world.is_complete();
}

#[tokio::test]
async fn an_edited_secret_is_repaired_and_the_keys_of_others_are_left() {
    for key in ["CLIENT_ID", "CLIENT_SECRET", "user", "pass"] {
        is_repaired::<KanidmOAuth2Client>(KanidmOAuth2Client::SECRETS[0], key).await;
    }
    is_repaired::<KanidmServiceAccount>("robot-ci-api-token", "token").await;
    is_repaired::<KanidmServiceAccount>("robot-kanidm-service-account-credentials", "password").await;
    for key in ["url", "token", "expires"] {
        is_repaired::<KanidmPersonAccount>(KanidmPersonAccount::SECRETS[0], key).await;
    }
}

#[tokio::test]
async fn a_client_secret_that_was_lost_is_read_again_and_not_drawn_anew() {
    let world = World::<KanidmOAuth2Client>::at_rest().await;
    let before = world.secret(KanidmOAuth2Client::SECRETS[0]);
    let life = world.live().await;
    for lose in [true, false] {
        if lose {
            world.delete_secret(KanidmOAuth2Client::SECRETS[0]);
        } else {
            world.edit_secret(KanidmOAuth2Client::SECRETS[0], "pass", "edited");
        }
        world.settle(&life).await;
        assert_eq!(world.secret(KanidmOAuth2Client::SECRETS[0]), before);
    }
    assert_eq!(world.credentials().redrawn, 0);
}

#[tokio::test]
async fn a_public_oauth2_client_has_no_secret() {
    let object = json!({
        "metadata": {"name": "app", "namespace": "default"},
        "spec": {"kanidmRef": {"name": "idm"}, "displayname": "App", "origin": "https://app.test/", "redirectUrl": [], "public": true},
    });
    let world = World::<KanidmOAuth2Client>::with(object).await;
    let life = world.live().await;
    world.settle(&life).await;
    assert!(world.is_ready());
    assert_eq!(world.secrets(), Vec::<String>::new());
    assert_eq!(world.condition("CredentialReady"), is("-", "-"));
}

fn uuid(world: &Robots) -> String {
    world.entries("robot")[0]["id"].as_str().unwrap().to_owned()
}

fn live_labels(world: &Robots) -> Vec<String> {
    let mut labels: Vec<_> = world.credentials().tokens[&uuid(world)].iter().map(|token| token.label.clone()).collect();
    labels.sort_unstable();
    labels
}

#[tokio::test]
async fn tokens_with_labels_that_are_not_ours_are_never_revoked() {
    let world = Robots::at_rest().await;
    let uuid = uuid(&world);
    let theirs = world.kanidm.held.lock().unwrap().credentials.put_token(&uuid, "by-hand");
    let life = world.live().await;
    world.edit(|object| object["metadata"]["annotations"][FORCE_ROTATION] = json!("now"));
    world.settle(&life).await;
    world.edit(|object| object["spec"]["apiTokens"] = Json::Null);
    world.settle(&life).await;
    assert_eq!(world.credentials().tokens[&uuid], [theirs]);
    assert_eq!(world.secrets(), ["robot-kanidm-service-account-credentials"]);
}

#[tokio::test]
async fn a_second_token_of_our_label_is_revoked_and_the_one_in_the_secret_stays() {
    let world = Robots::at_rest().await;
    let before = world.secret("robot-ci-api-token");
    let uuid = uuid(&world);
    world.kanidm.held.lock().unwrap().credentials.put_token(&uuid, "ci");
    let life = world.live().await;
    assert!(life.would_wake(&world.object().unwrap()), "nobody notices");
    world.settle(&life).await;
    assert_eq!(live_labels(&world), ["cd", "ci"]);
    assert_eq!(world.secret("robot-ci-api-token"), before);
    world.is_complete();
}

#[tokio::test]
async fn a_token_that_somebody_revoked_is_issued_again() {
    let world = Robots::at_rest().await;
    let uuid = uuid(&world);
    let life = world.live().await;
    world.settle(&life).await;
    world.kanidm.held.lock().unwrap().credentials.tokens.get_mut(&uuid).unwrap().retain(|token| token.label != "ci");
    life.targets.get(&super::idm()).unwrap().look_again().await.unwrap();
    assert!(life.would_wake(&world.object().unwrap()), "nobody notices");
    world.settle(&life).await;
    assert_eq!(live_labels(&world), ["cd", "ci"]);
    world.is_complete();
}

#[tokio::test]
async fn a_token_whose_purpose_changed_is_issued_anew_and_a_password_that_is_not_wanted_any_more_is_void() {
    let world = Robots::at_rest().await;
    let life = world.live().await;
    let before = world.secret("robot-ci-api-token");
    world.edit(|object| {
        object["spec"]["apiTokens"][0]["purpose"] = json!("readwrite");
        object["spec"]["generateCredentials"] = json!(false);
    });
    world.settle(&life).await;
    assert!(world.is_ready());
    assert_ne!(world.secret("robot-ci-api-token"), before);
    assert_eq!(world.secrets(), ["robot-cd-api-token", "robot-ci-api-token"]);
    let credentials = world.credentials();
    assert_eq!((credentials.issued, credentials.revoked), (3, 1));
    assert_eq!(credentials.generated, 2, "another password, which nobody was told");
}

#[tokio::test]
async fn whoever_is_not_managed_by_the_operator_is_told_and_gets_no_credentials() {
    let world = Robots::with(KanidmServiceAccount::sample()).await;
    world.kanidm.put(&json!({
        "id": "22222222-2222-4222-8222-222222222222", "class": ["group"], "name": "others", "spn": "others@example.com",
    }));
    world.edit(|object| object["spec"]["serviceAccountAttributes"]["entryManagedBy"] = json!("others"));
    let life = world.live().await;
    world.settle(&life).await;
    assert_eq!(world.condition("Ready"), is("False", "AccessDenied"));
    assert_eq!((world.credentials().writes(), world.secrets().len()), (0, 0));
}

#[tokio::test]
async fn a_link_goes_by_mail_when_the_delivery_is_changed_and_is_sent_once() {
    let world = World::<KanidmPersonAccount>::at_rest().await;
    let life = world.live().await;
    world.edit(|object| object["spec"]["credentialReset"]["delivery"] = json!("Email"));
    world.settle(&life).await;
    assert_eq!((world.credentials().mails, world.secrets().len()), (1, 0));
    assert_eq!(world.condition("CredentialReady"), is("False", "ResetLinkOpen"));
    world.settle(&life).await;
    assert_eq!(world.credentials().mails, 1);
}

#[tokio::test]
async fn a_person_without_a_mail_address_cannot_get_the_link_by_mail() {
    let object = with(alice(), "/spec/credentialReset/delivery", json!("Email"));
    let world = World::<KanidmPersonAccount>::with(with(object, "/spec/personAttributes/mail", json!([]))).await;
    let life = world.live().await;
    world.settle(&life).await;
    assert_eq!(world.condition("Ready"), is("False", "InvalidValue"));
    assert_eq!(world.credentials().mails, 0);
}

/// A quota lets nothing be stored.
async fn makes_nothing_that_cannot_be_stored<K: Sample>(name: &str) {
    let world = World::<K>::with(K::sample()).await;
    let path = format!("/api/v1/namespaces/default/secrets/{name}");
    world.shelf.held.lock().unwrap().full = Some(path);
    let life = world.live().await;
    world.settle(&life).await;
    assert_eq!(world.condition("CredentialReady"), is("False", "InvalidSpec"));
    assert_eq!(world.condition("Ready"), is("False", "InvalidSpec"));
    let made = world.credentials().writes();
    assert_eq!(made, K::SECRETS.len() - 1);
    assert_eq!(
        world.events().iter().filter(|told| TOLD.contains(&told.as_str())).count(),
        made,
        "{:?}",
        world.events()
    );
    world.settle(&life).await;
    assert_eq!(world.credentials().writes(), made);
    world.shelf.held.lock().unwrap().full = None;
    world.settle(&life).await;
    world.is_complete();
}

/// Events that tell of a credential in its Secret.
const TOLD: [&str; 2] = ["CredentialIssued", "ResetLinkIssued"];

#[tokio::test]
async fn nothing_is_made_nor_told_that_could_not_be_stored() {
    for name in KanidmServiceAccount::SECRETS {
        makes_nothing_that_cannot_be_stored::<KanidmServiceAccount>(name).await;
    }
    makes_nothing_that_cannot_be_stored::<KanidmPersonAccount>(KanidmPersonAccount::SECRETS[0]).await;
}

#[tokio::test]
async fn tokens_whose_secrets_would_share_a_name_are_refused_once_and_forgotten_never() {
    let world = Robots::at_rest().await;
    let life = world.live().await;
    world.edit(|object| {
        let more = json!({"label": "more", "secretName": "robot-ci-api-token"});
        object["spec"]["apiTokens"].as_array_mut().unwrap().push(more);
    });
    // It comes to rest at all: a pass that forgot what the last one noted would wake itself for ever.
    world.settle(&life).await;
    assert_eq!(world.condition("Ready"), is("False", "InvalidValue"));
    let labels = world.object().unwrap().status.clone().unwrap().managed.unwrap()["apiTokens"].clone();
    assert_eq!(labels, ["cd", "ci"]);
}
