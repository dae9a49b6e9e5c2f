//! Credentials: generated passwords, who can log in, links to set credentials, and what only the managers of a service account may.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use jiff::Timestamp;
use kaniop_core::entry::{Attr, Newcomer, Step};
use kaniop_core::reason::Reason;
use kaniop_kanidm::{Class, Client, Error, Purpose};
use secrecy::ExposeSecret;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::entries::{create, group, mails, newcomer, person, text};
use crate::raw::Raw;
use crate::server::{ATTRS, Authority, DISPLAYNAME, MAIL, shared, uuid};

async fn robot(operator: &Client, name: &str, managed_by: &str) -> Result<Uuid, Error> {
    let managed_by = operator.entry_named(managed_by, ATTRS).await.unwrap().unwrap().uuid;
    newcomer(operator, name, &Newcomer::ServiceAccount { displayname: "Robot".to_owned(), managed_by }).await
}

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
#[ignore = "needs a server"]
async fn a_service_account_is_made_once_found_by_its_name_and_keeps_its_uuid_when_it_is_renamed() {
    let operator = shared().operator();
    let id = robot(&operator, "robot-old", "idm_admins").await.unwrap();
    let found = operator.entry_named("robot-old", ATTRS).await.unwrap().unwrap();
    assert_eq!((found.uuid, &found.attrs["displayname"]), (id, &text("Robot")));
    let error = robot(&operator, "robot-old", "idm_admins").await.unwrap_err();
    assert!(matches!(&error, Error::Conflict { attributes } if attributes.iter().any(|a| a == "name")), "{error:?}");

    let rename = Step::Put { uuid: id, attrs: vec![(Attr::NAME, Some(text("robot-new")))] };
    let renamed = operator.execute(&rename, ATTRS).await.unwrap().unwrap();
    assert_eq!(
        (renamed.uuid, renamed.name.as_str(), renamed.spn.as_str()),
        (id, "robot-new", "robot-new@example.test")
    );
    for name in ["robot-old", "robot \"quoted\" or name pr", "robot-ne"] {
        assert_eq!(operator.entry_named(name, ATTRS).await.unwrap(), None, "{name}");
    }
    assert_eq!(operator.entry_named("robot-new", ATTRS).await.unwrap(), Some(renamed));
}

#[tokio::test]
#[ignore = "needs a server"]
async fn each_generated_password_is_another_one_and_the_last_one_logs_in() {
    let shared = shared();
    let operator = shared.operator();
    let id = robot(&operator, "robot-password", "idm_admins").await.unwrap();
    assert_eq!(operator.service_account_password(id).await.unwrap(), None);
    assert!(!operator.service_accounts_with_password().await.unwrap().contains(&id));
    let first = operator.generate_password(id).await.unwrap();
    let first_id = operator.service_account_password(id).await.unwrap();
    assert_eq!(operator.service_account_password(id).await.unwrap(), first_id, "looking does not change it");
    let second = operator.generate_password(id).await.unwrap();
    assert_ne!(first.expose_secret(), second.expose_secret());
    assert!(first_id.is_some() && operator.service_account_password(id).await.unwrap() != first_id);
    assert!(operator.service_accounts_with_password().await.unwrap().contains(&id));
    Client::login(&shared.endpoint(), "robot-password", &second).await.unwrap();
    let denied = Client::login(&shared.endpoint(), "robot-password", &first).await.unwrap_err();
    assert!(matches!(denied, Error::LoginDenied { .. }), "{denied:?}");

    let nobody = uuid("no such robot");
    assert_eq!(operator.generate_password(nobody).await.unwrap_err(), Error::NotFound);
    assert_eq!(operator.service_account_password(nobody).await, Err(Error::NotFound));
}

/// Whoever plans for such an account must not take silence for absence.
#[tokio::test]
#[ignore = "needs a server"]
async fn what_a_service_account_of_other_managers_has_is_invisible_and_its_credentials_are_denied() {
    let shared = shared();
    let operator = shared.operator();
    create(&operator, &group("robot-keepers", &[])).await;
    let id = robot(&operator, "robot-of-others", "robot-keepers").await.unwrap();
    // Some of its attributes are not shown either; which differs between releases.
    let put = Step::Put { uuid: id, attrs: vec![(MAIL, Some(mails(["robot@example.test"])))] };
    let shown = operator.execute(&put, ATTRS).await.unwrap().unwrap();
    assert!(!shown.attrs.contains_key("mail") || !shown.attrs.contains_key("displayname"), "{shown:?}");

    let expiry = Some(Timestamp::MAX);
    let issue = operator.issue_api_token("robot-of-others", "mine", Purpose::ReadOnly, expiry).await;
    assert_eq!(issue.unwrap_err(), Error::AccessDenied);
    assert_eq!(operator.generate_password(id).await.unwrap_err(), Error::AccessDenied);
    assert_eq!(operator.api_tokens("robot-of-others").await.unwrap(), []);
    let visible = Raw::of(shared).listed("service_account", id, "name,api_token_session").await;
    assert!(visible["api_token_session"].is_null(), "{visible}");
}

#[tokio::test]
#[ignore = "needs a server"]
async fn the_list_shows_the_tokens_of_the_service_accounts_that_one_manages() {
    let shared = shared();
    let operator = shared.operator();
    let id = robot(&operator, "robot-tokens", "idm_admins").await.unwrap();
    let raw = Raw::of(shared);
    let listed = async || raw.listed("service_account", id, "api_token_session").await["api_token_session"].clone();
    assert_eq!(listed().await, Json::Null);
    let expiry: Timestamp = "2100-01-01T00:00:00Z".parse().unwrap();
    operator.issue_api_token("robot-tokens", "a", Purpose::ReadWrite, Some(expiry)).await.unwrap();
    operator.issue_api_token("robot-tokens", "b", Purpose::ReadOnly, None).await.unwrap();
    let mut shown = listed().await.as_array().unwrap().clone();
    shown.sort_by_key(|token| token["label"].to_string());
    let mut tokens = operator.api_tokens("robot-tokens").await.unwrap();
    tokens.sort_by(|a, b| a.label.cmp(&b.label));
    for (shown, token) in shown.iter().zip(&tokens) {
        assert_eq!((&shown["id"], &shown["label"]), (&json!(token.token_id), &json!(token.label)));
        let issued: Timestamp = shown["issuedAt"].as_str().unwrap().parse().unwrap();
        assert_eq!(Some(issued.as_second()), token.issued_at.map(Timestamp::as_second));
    }
    let seen: Vec<_> = shown.iter().map(|token| (&token["scope"], &token["expires"])).collect();
    assert_eq!(seen, [(&json!("read_write"), &json!("2100-01-01T00:00:00Z")), (&json!("read_only"), &Json::Null)]);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_person_that_sets_a_password_by_a_reset_can_log_in_and_no_list_shows_the_credential() {
    let shared = shared();
    let (operator, raw) = (shared.operator(), Raw::of(shared));
    let person = create(&operator, &person("reset-person", &[])).await.uuid;
    // People need a second factor by default.
    raw.set("/v1/group/idm_all_persons/_attr/credential_type_minimum", json!(["any"])).await;
    let reset = operator.credential_reset(person, HOUR).await.unwrap();
    let begun = raw.post("/v1/credential/_exchange_intent", json!(reset.token.expose_secret())).await;
    let password = "correct horse battery staple 42";
    raw.post("/v1/credential/_update", json!([{ "password": password }, begun[0]])).await;
    assert!(!operator.people_with_credentials().await.unwrap().contains(&person), "half done is not done");
    raw.post("/v1/credential/_commit", begun[0].clone()).await;
    assert!(operator.people_with_credentials().await.unwrap().contains(&person));

    Client::login(&shared.endpoint(), "reset-person", &password.into()).await.unwrap();
    let attributes = "name,primary_credential,passkeys,attested_passkeys";
    let shown = raw.listed("person", person, attributes).await;
    for name in ["primary_credential", "passkeys", "attested_passkeys"] {
        assert!(shown[name].is_null(), "{shown}");
    }
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_reset_lasts_as_long_as_asked_for_between_five_minutes_and_a_day() {
    let operator = shared().operator();
    let person = create(&operator, &person("reset-times", &[])).await.uuid;
    let asked = [Duration::ZERO, HOUR, Duration::from_secs(999_999)];
    let mut ends = Vec::new();
    for ttl in asked {
        ends.push(operator.credential_reset(person, ttl).await.unwrap().expires.as_second());
    }
    for (end, wanted) in ends.iter().zip([300, 3600, 86_400]) {
        let apart = end - ends[0];
        // Between the calls some seconds may go by.
        assert!((wanted - 300..wanted - 240).contains(&apart), "{wanted}: {apart}");
    }
    assert_eq!(operator.credential_reset(uuid("nobody to reset"), HOUR).await.unwrap_err(), Error::NotFound);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_reset_by_mail_is_sent_or_the_version_that_can_is_named() {
    let operator = shared().operator();
    let more = [(MAIL, mails(["reset-mail@example.test"])), (DISPLAYNAME, text("Mail"))];
    let person = create(&operator, &person("reset-mail", &more)).await.uuid;
    let sent = operator.send_credential_reset(person, HOUR, "reset-mail@example.test").await;
    let version = operator.server_version().unwrap();
    let minor: u32 = version.split('.').nth(1).unwrap().parse().unwrap();
    if minor >= 10 {
        return sent.unwrap();
    }
    let error = sent.unwrap_err();
    assert_eq!((error.class(), error.reason()), (Class::Blocked, Reason::InvalidSpec), "{error:?}");
    assert!(error.to_string().contains("1.10") && error.to_string().contains(&version), "{error}");
}

/// So nothing but memory tells whether the list that is set is the one that is wanted.
#[tokio::test]
#[ignore = "needs a server"]
async fn of_a_list_of_attestation_authorities_only_the_names_of_devices_are_shown_and_scim_only_purges_it() {
    let shared = shared();
    let (operator, raw) = (shared.operator(), Raw::of(shared));
    let id = create(&operator, &group("policy-devices", &[])).await.uuid;
    raw.post("/v1/group/policy-devices/_attr/class", json!(["account_policy"])).await;
    let certificate = Authority::new().der();
    let kid = BASE64.encode(Sha256::digest(&certificate));
    let list = |devices: Json, all: bool| {
        let authority = json!({"ca": BASE64.encode(&certificate), "aaguids": devices, "blanket_allow": all});
        json!({"cas": {kid.clone(): authority}})
    };
    let device = |name: &str| json!({uuid(name).to_string(): {"en": name, "localised": {}}});
    let path = "/v1/group/policy-devices/_attr/webauthn_attestation_ca_list";
    let shown = async || raw.listed("group", id, "webauthn_attestation_ca_list").await;
    for (wanted, names) in [(list(device("Some Key"), false), json!(["Some Key"])), (list(json!({}), true), json!([]))]
    {
        raw.set(path, json!([wanted.to_string()])).await;
        assert_eq!(shown().await["webauthn_attestation_ca_list"], names);
        assert!(raw.put(id, json!({"webauthn_attestation_ca_list": wanted})).await.is_err());
    }
    raw.put(id, json!({"webauthn_attestation_ca_list": null})).await.unwrap();
    assert_eq!(shown().await.get("webauthn_attestation_ca_list"), None);
}
