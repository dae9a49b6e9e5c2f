//! Every field of every kind: planned by the core, carried out by the client, and found as wanted when everything is read again.

use std::collections::BTreeSet;

use kaniop_api::{KanidmGroup, KanidmPersonAccount};
use kaniop_core::entry::{Snapshot, Step};
use kaniop_core::identity::{Desired, IdentityKind, Managed, Wanted, attributes, plan};
use kaniop_core::name::Owner;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use crate::entries::{create, person};
use crate::server::shared;

/// Carries out plans until nothing is left. Returns how many requests that took and what was ours in shared sets.
async fn settle<K: IdentityKind<Spec: DeserializeOwned>>(
    name: &str,
    spec: &Json,
    managed: Managed,
) -> (usize, Managed) {
    let client = shared().operator();
    let attrs = attributes();
    let spec: K::Spec = serde_json::from_value(spec.clone()).unwrap();
    let owner = Owner { kind: K::KIND, namespace: "default", name, entry: name };
    let (spent, mut managed) = (BTreeSet::new(), managed);
    for requests in 0..8 {
        let seen = Snapshot::new(client.entries(&attrs).await.unwrap());
        let want = Desired::<K> {
            owner: owner.clone(),
            spec: &spec,
            pinned: None,
            inherited: false,
            spent: &spent,
            managed: &managed,
        };
        let planned = plan(&want, &seen);
        assert_eq!(planned.findings, [], "{name}");
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
