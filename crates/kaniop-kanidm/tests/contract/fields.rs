//! Every field of every kind: planned by the core, carried out by the client, and found as wanted when everything is read again.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use kaniop_api::{KanidmGroup, KanidmOAuth2Client, KanidmPersonAccount, KanidmServiceAccount};
use kaniop_core::entry::{Newcomer, Snapshot, Step, Value};
use kaniop_core::identity::{CA_LIST, Desired, IdentityKind, Managed, Wanted, attributes, plan};
use kaniop_core::name::Owner;
use kaniop_kanidm::Class;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::entries::{create, group, person};
use crate::server::shared;

/// Carries out plans until nothing is left. Returns how many requests that took and what was ours in shared sets.
async fn settle<K: IdentityKind<Spec: DeserializeOwned>>(
    name: &str,
    spec: &Json,
    managed: Managed,
) -> (usize, Managed) {
    settle_pinned::<K>(name, spec, managed, None).await
}

/// The same for an object whose status names its entry.
pub async fn settle_pinned<K: IdentityKind<Spec: DeserializeOwned>>(
    name: &str,
    spec: &Json,
    managed: Managed,
    pinned: Option<Uuid>,
) -> (usize, Managed) {
    let client = shared().operator();
    let attrs = attributes();
    let spec: K::Spec = serde_json::from_value(spec.clone()).unwrap();
    let owner = Owner { kind: K::KIND, namespace: "default", name, entry: name };
    let (mut pinned, mut managed) = (pinned, managed);
    for requests in 0..8 {
        let seen = Snapshot::new(client.entries(&attrs).await.unwrap());
        let want = Desired::<K> { pinned, managed: &managed, ..Desired::first(owner.clone(), &spec) };
        let planned = plan(&want, &seen);
        assert_eq!(planned.findings, [], "{name}");
        pinned = planned.entry.filter(|_| planned.pin).or(pinned);
        let Some(step) = planned.step else { return (requests, planned.managed) };
        client.execute(&step, &attrs).await.unwrap_or_else(|error| panic!("{name}: {step:?}: {error}"));
        managed = planned.managed;
    }
    panic!("{name} does not come to rest");
}

fn every_field_is_wanted<K: IdentityKind<Spec: DeserializeOwned>>(spec: &Json) {
    let spec: K::Spec = serde_json::from_value(spec.clone()).unwrap();
    for field in K::FIELDS {
        assert!(
            !matches!((field.want)(&spec), Wanted::Unmanaged | Wanted::Absent),
            "{} is left out of the spec",
            field.name
        );
    }
}

#[tokio::test]
#[ignore = "needs a server"]
async fn every_field_of_a_person_is_written_and_found_as_wanted() {
    let spec = json!({
        "kanidmRef": {"name": "idm"},
        "personAttributes": {
            "displayname": "Every Field", "legalname": "Every Single Field", "mail": ["every-b@example.test", "every-a@example.test", "every-c@example.test"],
            "accountValidFrom": "2026-01-02T03:04:05+02:00", "accountExpire": "2036-01-02T03:04:05Z",
        },
        "posixAttributes": {"gidnumber": 70123, "loginshell": "/bin/zsh"},
        "sshPublicKeys": {
            "laptop": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAeGXTnkOgnIq8mKTJrNfHZpvwZ2ghUvWNxwoY8cDqOe somebody@laptop",
        },
    });
    every_field_is_wanted::<KanidmPersonAccount>(&spec);
    let (requests, _) = settle::<KanidmPersonAccount>("every-person", &spec, Managed::new()).await;
    assert_eq!(requests, 3, "a creation, a class, and everything that is left in one");
    assert_eq!(settle::<KanidmPersonAccount>("every-person", &spec, Managed::new()).await.0, 0);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn every_field_of_a_group_is_written_and_found_as_wanted_and_a_policy_is_reset() {
    create(&shared().operator(), &person("every-member", &[])).await;
    let mut spec = json!({
        "kanidmRef": {"name": "idm"},
        "description": "Every field", "entryManagedBy": "idm_admins", "mail": ["every-group@example.test"], "members": ["every-member"],
        "posixAttributes": {"gidnumber": 70124},
        "accountPolicy": {
            "authSessionExpiry": 3600, "credentialTypeMinimum": "mfa", "passwordMinimumLength": 16, "privilegeExpiry": 600,
            "allowPrimaryCredFallback": true, "limitSearchMaxResults": 2000, "limitSearchMaxFilterTest": 3000,
            "webauthnAttestationCaList": "{}",
        },
    });
    every_field_is_wanted::<KanidmGroup>(&spec);
    let (requests, _) = settle::<KanidmGroup>("every-group", &spec, Managed::new()).await;
    assert_eq!(requests, 4, "a creation, two classes, and everything that is left in one");
    spec["accountPolicy"] = json!({});
    assert_eq!(
        settle::<KanidmGroup>("every-group", &spec, Managed::new()).await.0,
        1,
        "a policy is reset in one request"
    );
    assert_eq!(settle::<KanidmGroup>("every-group", &spec, Managed::new()).await.0, 0);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_list_of_attestation_authorities_is_taken_shown_in_another_form_and_purged() {
    let (client, attrs) = (shared().operator(), attributes());
    let spec = json!({"kanidmRef": {"name": "idm"}, "accountPolicy": {"webauthnAttestationCaList": "{}"}});
    settle::<KanidmGroup>("attesting", &spec, Managed::new()).await;
    let group = client.entry_named("attesting", &attrs).await.unwrap().unwrap();
    assert!(!group.attrs.contains_key(CA_LIST.name));
    let authority = rcgen::generate_simple_self_signed(["keys.example.test".to_owned()]).unwrap();
    let (der, keys) =
        (authority.cert.der(), json!({"d8522d9f-575b-4866-88a9-ba99fa02f35b": {"en": "Some Key", "localised": {}}}));
    let list = json!({"cas": {
        BASE64.encode(Sha256::digest(der)): {"ca": BASE64.encode(der), "aaguids": keys, "blanket_allow": false},
    }});
    client.set_attribute(group.collection, group.uuid, CA_LIST, &[&list.to_string()]).await.unwrap();
    let shown = client.entry(group.uuid, &attrs).await.unwrap().unwrap();
    assert!(matches!(&shown.attrs[CA_LIST.name], Value::Digest(shown) if shown.contains("Some Key")), "{shown:?}");
    let refused = client.set_attribute(group.collection, group.uuid, CA_LIST, &["rubbish"]).await.unwrap_err();
    assert_eq!(refused.class(), Class::Blocked, "{refused:?}");
    let reset = json!({"kanidmRef": {"name": "idm"}, "accountPolicy": {}});
    assert_eq!(settle::<KanidmGroup>("attesting", &reset, Managed::new()).await.0, 1);
    assert!(!client.entry(group.uuid, &attrs).await.unwrap().unwrap().attrs.contains_key(CA_LIST.name));
}

#[tokio::test]
#[ignore = "needs a server"]
async fn every_field_of_a_service_account_is_written_and_found_as_wanted() {
    let spec = json!({
        "kanidmRef": {"name": "idm"},
        "serviceAccountAttributes": {
            "displayname": "Every Field", "entryManagedBy": "idm_admins", "mail": ["every-sb@example.test", "every-sa@example.test"],
            "accountValidFrom": "2026-01-02T03:04:05+02:00", "accountExpire": "2036-01-02T03:04:05Z",
        },
        "posixAttributes": {"gidnumber": 70125, "loginshell": "/bin/sh"},
    });
    every_field_is_wanted::<KanidmServiceAccount>(&spec);
    let (requests, _) = settle::<KanidmServiceAccount>("every-service", &spec, Managed::new()).await;
    assert_eq!(requests, 3, "a creation, a class, and everything that is left in one");
}

#[tokio::test]
#[ignore = "needs a server"]
async fn every_field_of_an_oauth2_client_is_written_and_found_as_wanted_and_goes_again() {
    create(&shared().operator(), &group("every-reader", &[])).await;
    let mut spec = json!({
        "kanidmRef": {"name": "idm"},
        "displayname": "Every Field", "description": "Every field", "origin": "https://every.example.test",
        "redirectUrl": ["https://every.example.test/b", "https://every.example.test/a", "every.app:///back"],
        "scopeMap": [{"group": "every-reader", "scopes": ["openid", "email"]}, {"group": "idm_all_persons", "scopes": ["openid"]}],
        "supScopeMap": [{"group": "every-reader", "scopes": ["extra"]}],
        "claimMap": [
            {"name": "role", "joinStrategy": "csv", "valuesMap": [{"group": "every-reader", "values": ["b", "a"]}, {"group": "idm_all_persons", "values": ["c"]}]},
            {"name": "tier", "valuesMap": [{"group": "every-reader", "values": ["gold"]}]},
            {"name": "team", "joinStrategy": "ssv", "valuesMap": [{"group": "every-reader", "values": ["x"]}]},
        ],
        "strictRedirectUrl": false, "preferShortUsername": true, "allowInsecureClientDisablePkce": true,
        "jwtLegacyCryptoEnable": true, "disableConsentPrompt": true, "refreshTokenExpiry": 600, "allowLocalhostRedirect": true,
    });
    every_field_is_wanted::<KanidmOAuth2Client>(&spec);
    spec.as_object_mut().unwrap().remove("allowLocalhostRedirect");
    let (requests, _) = settle::<KanidmOAuth2Client>("every-client", &spec, Managed::new()).await;
    assert_eq!(requests, 2, "a creation, and everything that is left in one");
    for map in ["scopeMap", "supScopeMap", "claimMap", "redirectUrl"] {
        spec[map] = json!([]);
    }
    let entry = shared().operator().entry_named("every-client", &attributes()).await.unwrap().unwrap();
    let settled = settle_pinned::<KanidmOAuth2Client>("every-client", &spec, Managed::new(), Some(entry.uuid)).await;
    assert_eq!(settled.0, 1, "all maps are emptied in one request");
    let public = json!({
        "kanidmRef": {"name": "idm"}, "displayname": "Public", "origin": "https://public.example.test", "redirectUrl": [],
        "public": true, "allowLocalhostRedirect": true,
    });
    assert_eq!(settle::<KanidmOAuth2Client>("every-public", &public, Managed::new()).await.0, 2);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_creation_under_a_provisional_name_can_be_sent_again() {
    let (client, attrs) = (shared().operator(), attributes());
    let newcomer = Newcomer::OAuth2Client {
        displayname: "Twice".to_owned(),
        landing: "https://twice.example.test/".to_owned(),
        public: false,
    };
    let step = Step::CreateProvisional { name: "kaniop-twice".to_owned(), newcomer };
    let first = client.execute(&step, &attrs).await.unwrap().unwrap();
    assert_eq!(client.execute(&step, &attrs).await.unwrap().unwrap().uuid, first.uuid);
    client.execute(&Step::Delete { uuid: first.uuid }, &attrs).await.unwrap();
}

#[tokio::test]
#[ignore = "needs a server"]
async fn additive_members_leave_those_alone_that_somebody_else_added() {
    let client = shared().operator();
    for name in ["additive-ours", "additive-theirs"] {
        create(&client, &person(name, &[])).await;
    }
    let members = |names: &[&str]| json!({"kanidmRef": {"name": "idm"}, "members": names, "membersPolicy": "Additive"});
    let (_, managed) = settle::<KanidmGroup>("additive", &members(&["additive-ours"]), Managed::new()).await;
    client.add_member("additive", "additive-theirs").await.unwrap();
    let (requests, managed) = settle::<KanidmGroup>("additive", &members(&["additive-ours"]), managed).await;
    assert_eq!(requests, 0);
    settle::<KanidmGroup>("additive", &members(&[]), managed).await;
    let seen = Snapshot::new(client.entries(&attributes()).await.unwrap());
    let left = seen.find("additive").unwrap().attrs["member"].clone();
    assert_eq!(left, kaniop_core::entry::Value::References([seen.find("additive-theirs").unwrap().uuid].into()));
    client.execute(&Step::Delete { uuid: seen.find("additive").unwrap().uuid }, &[]).await.unwrap();
}
