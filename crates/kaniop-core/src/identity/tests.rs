use std::collections::{BTreeMap, BTreeSet};

use kaniop_api::group::{AccountPolicy, MembersPolicy, PosixGroup};
use kaniop_api::{
    KanidmGroup, KanidmGroupSpec, KanidmOAuth2ClientSpec, KanidmPersonAccount, KanidmPersonAccountSpec, KanidmRef,
    KanidmServiceAccountSpec,
};
use proptest::prelude::*;

use super::*;
use crate::name::OPERATOR_ACCOUNT;
use server::{carried_out, settled};

mod deleting;
mod every_kind;
mod ownership;
mod server;

fn owner() -> Owner<'static> {
    Owner { kind: "KanidmGroup", namespace: "default", name: "staff", entry: "staff" }
}

fn group_spec() -> KanidmGroupSpec {
    KanidmGroupSpec {
        kanidm_ref: KanidmRef { name: "idm".to_owned(), namespace: None },
        kanidm_name: None,
        adoption_policy: None,
        deletion_policy: None,
        description: None,
        entry_managed_by: None,
        mail: None,
        members: None,
        members_policy: MembersPolicy::Exclusive,
        posix_attributes: None,
        account_policy: None,
    }
}

fn service_account_spec() -> KanidmServiceAccountSpec {
    let json =
        r#"{"kanidmRef":{"name":"idm"},"serviceAccountAttributes":{"displayname":"A","entryManagedBy":"idm_admins"}}"#;
    serde_json::from_str(json).expect("a spec")
}

fn oauth2_spec() -> KanidmOAuth2ClientSpec {
    let json = r#"{"kanidmRef":{"name":"idm"},"displayname":"A","origin":"https://a.test","redirectUrl":[]}"#;
    serde_json::from_str(json).expect("a spec")
}

/// What an object without any history wants.
fn desired(spec: &KanidmGroupSpec) -> Desired<'_, KanidmGroup> {
    Desired::first(owner(), spec)
}

fn entry(uuid: Uuid, collection: Collection, name: &str) -> Entry {
    Entry {
        uuid,
        collection,
        name: name.to_owned(),
        spn: format!("{name}@example.com"),
        classes: BTreeSet::new(),
        attrs: BTreeMap::new(),
    }
}

#[test]
fn an_entry_renamed_behind_our_back_gets_its_name_again() {
    let spec = group_spec();
    let seen = Snapshot::new([entry(owner().uuid(0), Collection::Group, "renamed")]);
    let want = desired(&spec);
    assert_eq!(plan(&want, &seen).changes, vec!["name"]);
}

#[test]
fn validity_turns_at_its_dates_and_says_when() {
    let at = |second| Timestamp::from_second(second).expect("a time");
    let mut person = entry(Uuid::from_u128(1), Collection::Person, "alice");
    person.attrs.insert("account_valid_from".to_owned(), Value::Time(at(100)));
    person.attrs.insert("account_expire".to_owned(), Value::Time(at(200)));
    let said = |now| {
        let (stated, due) = facts::<KanidmPersonAccount>(&person, at(now));
        (stated[0].reason, due.map(|due| due.as_secs()))
    };
    assert_eq!(said(40), (Reason::NotYetValid, Some(60)));
    assert_eq!(said(100), (Reason::WithinValidity, Some(100)));
    assert_eq!(said(200), (Reason::Expired, None));
}

fn person(name: &str) -> Entry {
    entry(Uuid::new_v5(&Uuid::NAMESPACE_DNS, name.as_bytes()), Collection::Person, name)
}

fn mails() -> impl Strategy<Value = Option<Vec<String>>> {
    proptest::option::of(
        proptest::collection::btree_set("[a-c]@example\\.com", 0..3).prop_map(|set| set.into_iter().collect()),
    )
}

fn names() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec("[a-e]", 0..5)
}

prop_compose! {
    fn group()(description in proptest::option::of("[a-z]{1,4}"), mail in mails(), members in proptest::option::of(names()),
               manager in proptest::option::of("[a-e]"), additive in any::<bool>(), gid in proptest::option::of(proptest::option::of(1i64..9)),
               policy in proptest::option::of((proptest::option::of(1i64..9), proptest::option::of(any::<bool>())))) -> KanidmGroupSpec {
        let posix_attributes = gid.map(|gidnumber| PosixGroup { gidnumber });
        let account_policy = policy.map(|(expiry, fallback)| AccountPolicy {
            auth_session_expiry: expiry, allow_primary_cred_fallback: fallback, ..AccountPolicy::default()
        });
        let members_policy = if additive { MembersPolicy::Additive } else { MembersPolicy::Exclusive };
        KanidmGroupSpec { description, mail, members, members_policy, entry_managed_by: manager, posix_attributes, account_policy, ..group_spec() }
    }
}

prop_compose! {
    fn server()(people in proptest::collection::btree_set("[a-e]", 0..5), ours in proptest::option::of(group()),
                by_hand in proptest::option::of("[a-z]{1,4}")) -> Snapshot {
        let mut seen = Snapshot::new(people.iter().map(|name| person(name)));
        if let Some(spec) = ours {
            let want = desired(&spec);
            seen = settled(&want, &seen).seen;
        }
        if let Some(mut ours) = seen.get(owner().uuid(0)).cloned() && let Some(value) = by_hand {
            ours.attrs.insert("set_by_hand".to_owned(), Value::Text(value));
            seen.insert(ours);
        }
        seen
    }
}

proptest! {
    #[test]
    fn a_few_requests_are_enough_and_then_nothing_is_left_to_do(spec in group(), seen in server()) {
        let want = desired(&spec);
        let requests = settled(&want, &seen).requests;
        // Creation, two classes, everything else at once, members that others share.
        prop_assert!(requests <= 5, "{} requests", requests);
    }

    #[test]
    fn additive_members_are_whom_the_spec_names_and_whom_somebody_else_added_whatever_else_changes(
        wanted in (names(), group()), later in (names(), group()), others in names(),
    ) {
        let everybody = Snapshot::new("abcde".chars().map(|name| person(&name.to_string())));
        let ids = |names: &[String]| names.iter().map(|name| person(name).uuid).collect::<BTreeSet<_>>();
        let mut group = entry(owner().uuid(0), Collection::Group, "staff");
        group.attrs.insert("member".to_owned(), Value::References(ids(&others)));
        let mut seen = everybody;
        seen.insert(group);
        let mut managed = Managed::new();
        let expected = ids(&others).union(&ids(&later.0)).copied().collect::<BTreeSet<_>>();
        for (members, rest) in [wanted, later] {
            let spec = KanidmGroupSpec { members: Some(members), members_policy: MembersPolicy::Additive, ..rest };
            // Step by step: what one step makes ours is what the next plan is told.
            for _ in 0..10 {
                let planned = plan(&Desired { managed: &managed, ..desired(&spec) }, &seen);
                seen = planned.step.map_or_else(|| seen.clone(), |step| carried_out(&step, &seen));
                managed = planned.managed;
            }
        }
        let group = seen.get(owner().uuid(0)).unwrap();
        let left = group.attrs.get("member").cloned().unwrap_or(Value::References(BTreeSet::new()));
        prop_assert_eq!(left, Value::References(expected));
    }

    #[test]
    fn what_the_spec_leaves_out_is_never_written(spec in group(), seen in server()) {
        let want = desired(&spec);
        let unmanaged: BTreeSet<_> = KanidmGroup::FIELDS.iter().filter(|field| (field.want)(&spec) == Wanted::Unmanaged).map(|field| field.attr.name).collect();
        let written: Vec<_> = match plan(&want, &seen).step {
            Some(Step::Put { attrs, .. }) => attrs.into_iter().map(|(attr, _)| attr.name).collect(),
            Some(Step::Create { attrs, .. }) => attrs.into_iter().map(|(attr, _)| attr.name).collect(),
            _ => vec![],
        };
        for name in written {
            prop_assert!(!unmanaged.contains(name), "{} was written", name);
            prop_assert!(name == "name" || KanidmGroup::FIELDS.iter().any(|field| field.attr.name == name), "{} is no field", name);
        }
    }

    #[test]
    fn a_plan_never_touches_an_entry_of_somebody_else(spec in group(), seen in server()) {
        let want = desired(&spec);
        if let Some(Step::Put { uuid, .. } | Step::Create { uuid, .. }) = plan(&want, &seen).step {
            prop_assert!(owner().generation_of(uuid).is_some());
        }
    }
}

#[test]
fn a_person_needs_nothing_but_a_display_name() {
    let spec: KanidmPersonAccountSpec =
        serde_json::from_str(r#"{"kanidmRef":{"name":"idm"},"personAttributes":{"displayname":"A"}}"#).expect("a spec");
    let owner = Owner { kind: "KanidmPersonAccount", namespace: "n", name: "a", entry: "a" };
    let want = Desired::<KanidmPersonAccount>::first(owner, &spec);
    let Some(Step::Create { attrs, .. }) = plan(&want, &Snapshot::default()).step else { panic!("nothing is created") };
    assert_eq!(attrs.iter().map(|(attr, _)| attr.name).collect::<Vec<_>>(), ["name", "displayname"]);
}
