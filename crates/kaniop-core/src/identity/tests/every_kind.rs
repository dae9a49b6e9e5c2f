//! What holds for every kind, whatever is wanted and seen.

use kaniop_api::{KanidmOAuth2Client, KanidmOAuth2ClientSpec, KanidmServiceAccount, KanidmServiceAccountSpec};
use proptest::option::of;
use proptest::test_runner::TestCaseError;
use serde_json::{Value as Json, json};

use super::server::carried_out;
use super::*;

/// Creation, a class for each block, everything that can be set at once, members that others share.
const REQUESTS: usize = 5;

/// A spec from JSON in which null means absent.
fn spec<S: serde::de::DeserializeOwned>(json: Json) -> S {
    serde_json::from_value(json).expect("a spec")
}

fn text() -> impl Strategy<Value = Option<String>> {
    of("[A-C]")
}

fn time() -> impl Strategy<Value = Option<String>> {
    of("202[6-8]-01-01T00:00:00Z")
}

fn posix() -> impl Strategy<Value = Json> {
    prop_oneof![
        Just(Json::Null),
        (of(1i64..4), of("/bin/[ab]")).prop_map(|(gid, shell)| json!({"gidnumber": gid, "loginshell": shell})),
    ]
}

prop_compose! {
    fn people()(name in "[A-C]", mail in mails(), legal in text(), from in time(), end in time(),
                keys in of(proptest::collection::btree_map("[a-b]", "ssh-ed25519 [A-C]", 0..3)), posix in posix()) -> KanidmPersonAccountSpec {
        spec(json!({
            "kanidmRef": {"name": "idm"}, "sshPublicKeys": keys, "posixAttributes": posix,
            "personAttributes": {"displayname": name, "mail": mail, "legalname": legal, "accountValidFrom": from, "accountExpire": end},
        }))
    }
}

prop_compose! {
    fn service_accounts()(name in "[A-C]", manager in "idm_admins|g|nobody", mail in mails(), from in time(), end in time(),
                          posix in posix()) -> KanidmServiceAccountSpec {
        spec(json!({
            "kanidmRef": {"name": "idm"}, "posixAttributes": posix,
            "serviceAccountAttributes": {"displayname": name, "entryManagedBy": manager, "mail": mail, "accountValidFrom": from, "accountExpire": end},
        }))
    }
}

/// Scopes by group, the last of which does not exist.
fn scopes() -> impl Strategy<Value = Json> {
    let rows = proptest::collection::btree_map("[gh]|gone", proptest::collection::btree_set("[x-z]", 1..3), 0..3);
    of(rows).prop_map(|rows| {
        rows.map_or(Json::Null, |rows| {
            rows.into_iter().map(|(group, scopes)| json!({"group": group, "scopes": scopes})).collect()
        })
    })
}

fn claims() -> impl Strategy<Value = Json> {
    let values = proptest::collection::btree_map("[gh]|gone", proptest::collection::btree_set("[x-z]", 1..3), 1..3);
    let claim = (values, "csv|ssv|array");
    of(proptest::collection::btree_map("[cd]", claim, 0..3)).prop_map(|claims| {
        let row = |(group, values)| json!({"group": group, "values": values});
        claims.map_or(Json::Null, |claims| {
            let claims = claims.into_iter().map(|(name, (values, join))| {
                json!({"name": name, "joinStrategy": join, "valuesMap": values.into_iter().map(row).collect::<Vec<_>>()})
            });
            claims.collect()
        })
    })
}

prop_compose! {
    fn clients()(name in "[A-C]", description in text(), landing in "https://[a-c]\\.test/?", urls in proptest::collection::btree_set("https://[a-c]\\.test/?", 0..3),
                 scopes in scopes(), more in scopes(), claims in claims(), strict in of(any::<bool>()), consent in of(any::<bool>()),
                 expiry in of(1i64..4)) -> KanidmOAuth2ClientSpec {
        spec(json!({
            "kanidmRef": {"name": "idm"}, "displayname": name, "description": description, "origin": landing, "redirectUrl": urls,
            "scopeMap": scopes, "supScopeMap": more, "claimMap": claims, "strictRedirectUrl": strict, "disableConsentPrompt": consent,
            "refreshTokenExpiry": expiry,
        }))
    }
}

/// A server with some people and groups, and the operator among the administrators.
fn others() -> Vec<Entry> {
    let operator = entry(Uuid::from_u128(7 << 100), Collection::ServiceAccount, OPERATOR_ACCOUNT);
    let mut idm_admins = entry(Uuid::from_u128(0x34), Collection::Group, "idm_admins");
    idm_admins.attrs.insert("member".to_owned(), Value::References([operator.uuid].into()));
    let groups =
        ["g", "h"].map(|name| entry(Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes()), Collection::Group, name));
    let people = ["a", "b", "c"].map(person);
    people.into_iter().chain(groups).chain([operator, idm_admins]).collect()
}

fn subject<K: IdentityKind>() -> Owner<'static> {
    Owner { kind: K::KIND, namespace: "default", name: "subject", entry: "subject-entry" }
}

/// Brings the entry from one spec to another, with something set by hand in between, and checks what has to hold.
fn holds<K: IdentityKind>(first: Option<&K::Spec>, then: &K::Spec, by_hand: bool) -> Result<(), TestCaseError> {
    let (mut seen, mut pinned) = (Snapshot::new(others()), None);
    let mut managed = Managed::new();
    if let Some(first) = first {
        let before = settled(&Desired::<K>::first(subject::<K>(), first), &seen);
        (seen, pinned, managed) = (before.seen, before.pinned, before.plan.managed);
    }
    let ours = |seen: &Snapshot| seen.find("subject-entry").cloned();
    if let Some(mut ours) = ours(&seen).filter(|_| by_hand) {
        ours.attrs.insert("set_by_hand".to_owned(), Value::Text("x".to_owned()));
        seen.insert(ours);
    }
    let was = ours(&seen);
    let want = Desired { pinned, managed: &managed, ..Desired::<K>::first(subject::<K>(), then) };
    is_safe_to_repeat(&want, &seen)?;
    let after = settled(&want, &seen);
    prop_assert!(after.requests <= REQUESTS, "{} requests", after.requests);
    for other in others() {
        prop_assert_eq!(after.seen.get(other.uuid), Some(&other), "an entry of somebody else");
    }
    let (was, is) = (was.map(|entry| entry.attrs).unwrap_or_default(), ours(&after.seen));
    let Some(is) = is.map(|entry| entry.attrs) else {
        prop_assert!(!after.plan.findings.is_empty(), "nothing is there and nobody says why");
        return Ok(());
    };
    prop_assert_eq!(was.get("set_by_hand"), is.get("set_by_hand"));
    for field in K::FIELDS.iter().filter(|field| (field.want)(then) == Wanted::Unmanaged) {
        prop_assert_eq!(was.get(field.attr.name), is.get(field.attr.name), "{} is left alone", field.name);
    }
    // A manager that is not there yet leaves the entry with whom it had.
    let stranger = K::not_manager(then, &after.seen).is_some() || !after.plan.findings.is_empty();
    for field in K::FIELDS {
        if let Wanted::Value(value) = (field.want)(then) {
            let as_wanted = is.get(field.attr.name).map_or_else(|| value.is_empty(), |is| is.same(&value));
            prop_assert!(
                as_wanted || stranger && field.for_managers,
                "{} is {:?}",
                field.name,
                is.get(field.attr.name)
            );
        }
    }
    Ok(())
}

/// The same is planned for the same, and a change that was carried out is neither planned again nor does it do anything when it is sent again.
fn is_safe_to_repeat<K: IdentityKind>(want: &Desired<'_, K>, seen: &Snapshot) -> Result<(), TestCaseError> {
    let planned = plan(want, seen);
    prop_assert_eq!(&planned, &plan(want, seen));
    let Some(step) = &planned.step else { return Ok(()) };
    let after = carried_out(step, seen);
    prop_assert!(plan(want, &after).step.as_ref() != Some(step), "{:?} is sent twice", step);
    let (once, twice) =
        (after.find("subject-entry").cloned(), carried_out(step, &after).find("subject-entry").cloned());
    prop_assert_eq!(once, twice);
    Ok(())
}

proptest! {
    #[test]
    fn a_group_comes_to_rest_as_wanted_and_nothing_else_is_touched(first in of(group()), then in group(), by_hand in any::<bool>()) {
        holds::<KanidmGroup>(first.as_ref(), &then, by_hand)?;
    }

    #[test]
    fn a_person_comes_to_rest_as_wanted_and_nothing_else_is_touched(first in of(people()), then in people(), by_hand in any::<bool>()) {
        holds::<KanidmPersonAccount>(first.as_ref(), &then, by_hand)?;
    }

    #[test]
    fn a_service_account_comes_to_rest_as_wanted_and_nothing_else_is_touched(
        first in of(service_accounts()), then in service_accounts(), by_hand in any::<bool>(),
    ) {
        holds::<KanidmServiceAccount>(first.as_ref(), &then, by_hand)?;
    }

    #[test]
    fn an_oauth2_client_comes_to_rest_as_wanted_and_nothing_else_is_touched(first in of(clients()), then in clients(), by_hand in any::<bool>()) {
        holds::<KanidmOAuth2Client>(first.as_ref(), &then, by_hand)?;
    }
}
