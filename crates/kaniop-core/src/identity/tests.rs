use std::collections::{BTreeMap, BTreeSet};

use kaniop_api::group::{AccountPolicy, MembersPolicy, PosixGroup};
use kaniop_api::{KanidmGroup, KanidmGroupSpec, KanidmPersonAccount, KanidmPersonAccountSpec, KanidmRef};
use proptest::prelude::*;

use super::*;

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

/// What the server would hold after a step.
fn carried_out(step: &Step, seen: &Snapshot) -> Snapshot {
    let mut after = seen.clone();
    match step {
        Step::Create { collection, uuid, attrs } => {
            let name = attrs.iter().find_map(|(attr, value)| match value {
                Value::Text(name) if *attr == Attr::NAME => Some(name.clone()),
                _ => None,
            });
            let mut made = entry(*uuid, *collection, &name.expect("a creation names its entry"));
            made.attrs = attrs.iter().map(|(attr, value)| (attr.name.to_owned(), value.clone())).collect();
            after.insert(made);
        }
        Step::CreateProvisional { name, newcomer } => {
            let collection = match newcomer {
                Newcomer::ServiceAccount { .. } => Collection::ServiceAccount,
                Newcomer::OAuth2Client { .. } => Collection::OAuth2Client,
            };
            after.insert(entry(Uuid::new_v5(&Uuid::NAMESPACE_DNS, name.as_bytes()), collection, name));
        }
        Step::Put { uuid, attrs } => {
            let mut changed = seen.get(*uuid).expect("only entries that exist are changed").clone();
            for (attr, value) in attrs {
                match value {
                    Some(Value::Text(name)) if *attr == Attr::NAME => changed.name.clone_from(name),
                    Some(value) => drop(changed.attrs.insert(attr.name.to_owned(), value.clone())),
                    None => drop(changed.attrs.remove(attr.name)),
                }
            }
            after.insert(changed);
        }
        Step::Extend { uuid, class, .. } => {
            let mut changed = seen.get(*uuid).expect("only entries that exist are changed").clone();
            changed.classes.insert((*class).to_owned());
            after.insert(changed);
        }
        Step::Adjust { uuid, attr, add, remove, .. } => {
            let mut changed = seen.get(*uuid).expect("only entries that exist are changed").clone();
            let Some(Value::References(old)) =
                changed.attrs.remove(attr.name).or(Some(Value::References(BTreeSet::new())))
            else {
                panic!("{} holds no references", attr.name)
            };
            let new: BTreeSet<_> = old.union(add).filter(|uuid| !remove.contains(uuid)).copied().collect();
            if !new.is_empty() {
                changed.attrs.insert(attr.name.to_owned(), Value::References(new));
            }
            after.insert(changed);
        }
        Step::Delete { uuid } => after.remove(*uuid),
    }
    after
}

#[test]
fn an_entry_of_our_derived_uuid_is_ours_without_any_status() {
    let spec = group_spec();
    let seen = Snapshot::new([entry(owner().uuid(3), Collection::Group, "staff")]);
    let want = desired(&spec);
    let plan = plan(&want, &seen);
    assert_eq!((plan.entry, plan.step, plan.findings), (Some(owner().uuid(3)), None, vec![]));
}

#[test]
fn a_used_up_uuid_is_stepped_over() {
    let spec = group_spec();
    let spent = BTreeSet::from([0, 1]);
    let want = Desired { spent: &spent, ..desired(&spec) };
    assert_eq!(plan(&want, &Snapshot::default()).entry, Some(owner().uuid(2)));
}

#[test]
fn when_every_uuid_is_used_up_nothing_is_created_and_the_finding_says_so() {
    let spec = group_spec();
    let spent = (0..GENERATIONS).collect();
    let want = Desired { spent: &spent, ..desired(&spec) };
    let plan = plan(&want, &Snapshot::default());
    assert_eq!((plan.step, plan.findings[0].reason), (None, Reason::NameConflict));
}

#[test]
fn an_entry_renamed_behind_our_back_gets_its_name_again() {
    let spec = group_spec();
    let seen = Snapshot::new([entry(owner().uuid(0), Collection::Group, "renamed")]);
    let want = desired(&spec);
    assert_eq!(plan(&want, &seen).changes, vec!["name"]);
}

#[test]
fn an_entry_of_another_kind_is_never_ours_even_if_a_status_claims_it() {
    let spec = group_spec();
    let admin = entry(Uuid::from_u128(0x10), Collection::Person, "staff");
    let seen = Snapshot::new([admin.clone()]);
    let want = Desired { pinned: Some(admin.uuid), ..desired(&spec) };
    let plan = plan(&want, &seen);
    assert_eq!((plan.step, plan.findings[0].reason), (None, Reason::EntryExists));
}

#[test]
fn the_entry_that_an_older_release_made_is_ours_but_never_one_of_the_servers_own() {
    let spec = group_spec();
    let made = entry(Uuid::from_u128(1 << 100), Collection::Group, "staff");
    let built_in = entry(Uuid::from_u128(0x36), Collection::Group, "staff");
    for (held, ours) in [(made, true), (built_in, false)] {
        let want = Desired { inherited: true, ..desired(&spec) };
        let planned = plan(&want, &Snapshot::new([held.clone()]));
        assert_eq!((planned.entry == Some(held.uuid), planned.findings.is_empty()), (ours, ours), "{}", held.uuid);
    }
}

#[test]
fn deletion_follows_what_is_known_of_the_server() {
    let spec = group_spec();
    let want = desired(&spec);
    let ours = Snapshot::new([entry(owner().uuid(0), Collection::Group, "staff")]);
    let theirs = Snapshot::new([entry(Uuid::from_u128(1), Collection::Group, "staff")]);
    let minute = Duration::from_secs(60);
    let down = Obstacle::Unreachable("down".to_owned());
    type Case<'a> = (&'a str, Result<&'a Snapshot, &'a Obstacle>, Duration, bool, &'a str);
    let cases: Vec<Case<'_>> = vec![
        ("our entry is deleted", Ok(&ours), minute, false, "delete"),
        ("an entry that is not ours stays", Ok(&theirs), minute, false, "release"),
        ("a Kanidm that is gone holds nobody up", Err(&Obstacle::KanidmGone), minute, false, "release"),
        ("a removed definition deletes no people", Err(&Obstacle::DefinitionGoing), minute, false, "release"),
        (
            "a namespace that is no longer selected keeps its entry",
            Err(&Obstacle::NotSelected),
            minute,
            false,
            "release",
        ),
        ("a pause is waited for", Err(&Obstacle::Paused), minute * 60, false, "wait"),
        ("a pause does not hold a going namespace for ever", Err(&Obstacle::Paused), minute * 5, true, "release"),
        ("a server that is down is waited for", Err(&down), minute * 600, false, "wait"),
        ("a going namespace is patient", Err(&down), minute, true, "wait"),
        ("a going namespace is not patient for ever", Err(&down), minute * 5, true, "release"),
    ];
    for (sentence, seen, waited, terminating, expected) in cases {
        let kind = match deletion(&want, seen, waited, terminating) {
            Deletion::Delete(_) => "delete",
            Deletion::Release(_) => "release",
            Deletion::Wait(_) => "wait",
        };
        assert_eq!(kind, expected, "{sentence}");
    }
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

/// The world when every plan has been carried out, and how many requests that took.
fn settled<K: IdentityKind>(want: &Desired<'_, K>, seen: &Snapshot) -> (Snapshot, usize) {
    let mut seen = seen.clone();
    for requests in 0..10 {
        match plan(want, &seen).step {
            Some(step) => seen = carried_out(&step, &seen),
            None => return (seen, requests),
        }
    }
    panic!("the plans do not come to an end");
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
            seen = settled(&want, &seen).0;
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
        let (_, requests) = settled(&want, &seen);
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
