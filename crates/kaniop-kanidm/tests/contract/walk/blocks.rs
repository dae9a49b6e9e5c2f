//! What becomes of SSH keys, POSIX blocks and account policies that a spec no longer has: they stay, for what is absent is managed elsewhere.
//! And of what only an entry's managers see, when the operator stops being one of them and becomes one again.

use std::collections::BTreeSet;

use kaniop_api::{KanidmGroup, KanidmPersonAccount, KanidmServiceAccount};
use kaniop_core::entry::{Entry, Value};
use kaniop_core::identity::{IdentityKind, Managed, attributes};
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use super::walker::{Object, servers};
use crate::fields::settle_pinned;
use crate::server::shared;

/// Brings an entry where a spec wants it. Returns how many requests that took, and the entry.
async fn settled<K: IdentityKind<Spec: DeserializeOwned>>(name: &str, spec: &Json) -> (usize, Entry) {
    let client = shared().operator();
    let there = client.entry_named(name, &attributes()).await.unwrap();
    let (requests, _) = settle_pinned::<K>(name, spec, Managed::new(), there.map(|entry| entry.uuid)).await;
    (requests, client.entry_named(name, &attributes()).await.unwrap().unwrap())
}

fn without(spec: &Json, block: &str) -> Json {
    let mut spec = spec.clone();
    spec.as_object_mut().unwrap().remove(block).unwrap();
    spec
}

/// Takes the POSIX block away and gives it back empty: neither changes anything.
async fn the_block_stays<K: IdentityKind<Spec: DeserializeOwned>>(name: &str, mut spec: Json, class: &str) {
    let (_, with) = settled::<K>(name, &spec).await;
    assert!(with.classes.contains(class), "{:?}", with.classes);
    assert_eq!(settled::<K>(name, &without(&spec, "posixAttributes")).await, (0, with.clone()));
    spec["posixAttributes"] = json!({});
    assert_eq!(settled::<K>(name, &spec).await, (0, with));
}

#[tokio::test]
#[ignore = "needs a server"]
async fn taking_a_posix_block_away_leaves_a_posix_account_or_group_as_it_is() {
    let reference = json!({ "name": "idm" });
    let person = json!({
        "kanidmRef": reference, "personAttributes": { "displayname": "Block" },
        "posixAttributes": { "gidnumber": 71_001, "loginshell": "/bin/zsh" },
    });
    the_block_stays::<KanidmPersonAccount>("block-person", person, "posixaccount").await;
    let group = json!({ "kanidmRef": reference, "posixAttributes": { "gidnumber": 71_002 } });
    the_block_stays::<KanidmGroup>("block-group", group, "posixgroup").await;
    let service = json!({
        "kanidmRef": reference, "serviceAccountAttributes": { "displayname": "Block", "entryManagedBy": "idm_admins" },
        "posixAttributes": { "gidnumber": 71_003, "loginshell": "/bin/sh" },
    });
    the_block_stays::<KanidmServiceAccount>("block-service", service, "posixaccount").await;
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_posix_block_without_a_number_takes_the_one_that_the_server_chooses_and_keeps_it() {
    let spec = json!({ "kanidmRef": { "name": "idm" }, "posixAttributes": {} });
    let (requests, chosen) = settled::<KanidmGroup>("block-chosen", &spec).await;
    assert_eq!(requests, 2, "a creation and a class");
    assert!(matches!(chosen.attrs["gidnumber"], Value::Int(number) if number >= 65_536), "{chosen:?}");
    assert_eq!(settled::<KanidmGroup>("block-chosen", &spec).await, (0, chosen));
}

#[tokio::test]
#[ignore = "needs a server"]
async fn taking_an_account_policy_away_leaves_its_rules_and_only_an_empty_block_resets_them() {
    let rules = json!({ "authSessionExpiry": 3600, "credentialTypeMinimum": "mfa", "allowPrimaryCredFallback": false });
    let spec = json!({ "kanidmRef": { "name": "idm" }, "accountPolicy": rules });
    let ruled = |entry: &Entry| {
        let names = ["authsession_expiry", "credential_type_minimum", "allow_primary_cred_fallback"];
        names.into_iter().filter(|name| entry.attrs.contains_key(*name)).collect::<BTreeSet<_>>().len()
    };
    let (_, with) = settled::<KanidmGroup>("block-policy", &spec).await;
    assert_eq!(ruled(&with), 3, "{with:?}");
    assert_eq!(settled::<KanidmGroup>("block-policy", &without(&spec, "accountPolicy")).await, (0, with.clone()));
    let mut empty = spec.clone();
    empty["accountPolicy"] = json!({ "authSessionExpiry": 3600 });
    let (requests, one) = settled::<KanidmGroup>("block-policy", &empty).await;
    assert_eq!((requests, ruled(&one)), (1, 1), "what a block leaves out is reset: {one:?}");
    empty["accountPolicy"] = json!({});
    let (requests, none) = settled::<KanidmGroup>("block-policy", &empty).await;
    assert_eq!((requests, ruled(&none)), (1, 0), "{none:?}");
    assert_eq!(none.classes, with.classes, "the class stays");
}

#[tokio::test]
#[ignore = "needs a server"]
async fn ssh_keys_that_are_left_out_stay_and_an_empty_map_removes_them() {
    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAeGXTnkOgnIq8mKTJrNfHZpvwZ2ghUvWNxwoY8cDqOe";
    let spec = |keys: Json| json!({ "kanidmRef": { "name": "idm" }, "personAttributes": { "displayname": "Keys" }, "sshPublicKeys": keys });
    let both = spec(json!({ "laptop": format!("{KEY}\n"), "desk": format!("{KEY}  at the  desk") }));
    let (_, two) = settled::<KanidmPersonAccount>("block-keys", &both).await;
    let keys = |entry: &Entry| match entry.attrs.get("ssh_publickey") {
        Some(Value::SshKeys(keys)) => keys.keys().cloned().collect(),
        _ => Vec::new(),
    };
    assert_eq!(keys(&two), ["desk", "laptop"]);
    assert_eq!(settled::<KanidmPersonAccount>("block-keys", &without(&both, "sshPublicKeys")).await, (0, two));
    let (requests, one) = settled::<KanidmPersonAccount>("block-keys", &spec(json!({ "laptop": KEY }))).await;
    assert_eq!((requests, keys(&one)), (1, vec!["laptop".to_owned()]));
    let (requests, none) = settled::<KanidmPersonAccount>("block-keys", &spec(json!({}))).await;
    assert_eq!((requests, keys(&none)), (1, Vec::new()));
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_service_account_that_the_operator_manages_again_gets_what_it_could_not_see_meanwhile() {
    let spec = |manager: &str, mail: &str| {
        let attributes = json!({
            "displayname": "Hidden", "entryManagedBy": manager, "mail": [mail], "accountExpire": "2036-01-02T03:04:05Z",
        });
        serde_json::from_value(json!({ "kanidmRef": { "name": "idm" }, "serviceAccountAttributes": attributes }))
            .unwrap()
    };
    let mut account = Object::<KanidmServiceAccount>::new(&servers()[0], "blocks".to_owned(), "walk-hidden");
    let (requests, _, before) = account.rest(&spec("idm_admins", "first@hidden.example.test"), false).await.unwrap();
    assert_eq!((requests, before.contains_key("account_expire")), (2, true));
    let (requests, ..) = account.rest(&spec("walk-fans", "second@hidden.example.test"), true).await.unwrap();
    assert_eq!(requests, 1, "its manager, and nothing that only managers may be sure of");
    let (requests, _, after) = account.rest(&spec("walk-owners", "second@hidden.example.test"), false).await.unwrap();
    assert_eq!(requests, 2, "its manager, and then what only managers may set");
    assert_eq!(after["mail"], ["second@hidden.example.test (primary)".to_owned()].into());
    assert_eq!(after["account_expire"], before["account_expire"]);
}
