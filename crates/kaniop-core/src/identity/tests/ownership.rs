//! Whose an entry is.

use kaniop_api::{KanidmOAuth2Client, KanidmServiceAccount};

use super::server::carried_out;
use super::*;

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

fn theirs() -> Entry {
    entry(Uuid::from_u128(1 << 100), Collection::Group, "staff")
}

#[test]
fn an_entry_that_was_there_before_is_taken_over_only_where_that_was_granted() {
    let spec = KanidmGroupSpec { description: Some("ours now".to_owned()), ..group_spec() };
    let seen = Snapshot::new([theirs()]);
    for (adoption, way_out) in [
        (Adoption::NotAsked, "Set adoptionPolicy: Adopt"),
        (Adoption::NotGranted, "adoptionNamespaceSelector does not select it"),
    ] {
        let plan = plan(&Desired { adoption, ..desired(&spec) }, &seen);
        assert_eq!((plan.entry, plan.step, plan.pin), (None, None, false), "{adoption:?}");
        assert_eq!(plan.findings[0].reason, Reason::EntryExists);
        assert!(plan.findings[0].message.contains(way_out), "{}", plan.findings[0].message);
    }
    let plan = plan(&Desired { adoption: Adoption::Granted, ..desired(&spec) }, &seen);
    assert_eq!((plan.entry, plan.adopted, plan.pin, plan.findings), (Some(theirs().uuid), true, true, vec![]));
}

#[test]
fn what_was_taken_over_stays_ours_when_the_grant_is_taken_back_and_under_another_name() {
    let spec = group_spec();
    for name in ["staff", "renamed"] {
        let held = Entry { name: name.to_owned(), ..theirs() };
        let want = Desired { pinned: Some(held.uuid), adopted: true, ..desired(&spec) };
        let plan = plan(&want, &Snapshot::new([held.clone()]));
        assert_eq!((plan.entry, plan.adopted, plan.pin), (Some(held.uuid), true, false), "{name}");
        assert!(plan.findings.is_empty(), "{:?}", plan.findings);
    }
}

#[test]
fn our_own_entry_is_ours_before_one_that_may_be_taken_over() {
    let spec = group_spec();
    let ours = entry(owner().uuid(0), Collection::Group, "renamed");
    let want = Desired { adoption: Adoption::Granted, ..desired(&spec) };
    let plan = plan(&want, &Snapshot::new([ours.clone(), theirs()]));
    assert_eq!((plan.entry, plan.adopted, plan.step), (Some(ours.uuid), false, None));
    assert_eq!(plan.findings[0].reason, Reason::EntryExists, "its name is somebody else's");
}

#[test]
fn an_entry_of_another_kind_is_never_taken_over() {
    let spec = group_spec();
    let person = entry(Uuid::from_u128(1 << 100), Collection::Person, "staff");
    let plan = plan(&Desired { adoption: Adoption::Granted, ..desired(&spec) }, &Snapshot::new([person]));
    assert_eq!((plan.entry, plan.step, plan.findings[0].reason), (None, None, Reason::EntryExists));
}

#[test]
fn the_account_of_the_operator_is_never_anybody_elses() {
    let spec = service_account_spec();
    let operator = entry(Uuid::from_u128(7 << 100), Collection::ServiceAccount, OPERATOR_ACCOUNT);
    let idm_admins = entry(Uuid::from_u128(0x34), Collection::Group, "idm_admins");
    let seen = Snapshot::new([operator.clone(), idm_admins]);
    let owner = Owner { kind: "KanidmServiceAccount", namespace: "n", name: OPERATOR_ACCOUNT, entry: OPERATOR_ACCOUNT };
    for (pinned, inherited) in [(None, false), (None, true), (Some(operator.uuid), false)] {
        let adoption = Adoption::Granted;
        let want =
            Desired { pinned, inherited, adoption, ..Desired::<KanidmServiceAccount>::first(owner.clone(), &spec) };
        let plan = plan(&want, &seen);
        assert_eq!((plan.entry, plan.step), (None, None), "pinned {pinned:?}, inherited {inherited}");
        assert_eq!(plan.findings[0].reason, Reason::EntryExists);
        assert!(plan.findings[0].message.contains("the operator's own"), "{}", plan.findings[0].message);
    }
}

#[test]
fn an_entry_with_a_provisional_name_is_pinned_before_it_is_renamed() {
    let owner = Owner { kind: "KanidmOAuth2Client", namespace: "n", name: "app", entry: "app" };
    let spec = oauth2_spec();
    let want = Desired::<KanidmOAuth2Client>::first(owner.clone(), &spec);
    let first = plan(&want, &Snapshot::default());
    let Some(step @ Step::CreateProvisional { .. }) = &first.step else { panic!("{:?}", first.step) };
    assert_eq!((first.entry, first.pin), (None, false));
    let seen = carried_out(step, &Snapshot::default());

    let second = plan(&want, &seen);
    let uuid = second.entry.expect("it is recognised by its name");
    assert!(second.pin && !second.adopted, "nothing else tells whose it is once it is renamed");
    let pinned = Desired { pinned: Some(uuid), ..Desired::<KanidmOAuth2Client>::first(owner, &spec) };
    let third = plan(&pinned, &seen);
    assert!(!third.pin && third.changes.contains(&"name"), "{:?}", third.changes);
}

#[test]
fn a_provisional_name_is_of_one_object_only() {
    let owner = |namespace| Owner { kind: "KanidmOAuth2Client", namespace, name: "app", entry: "app" };
    assert_ne!(owner("one").provisional(), owner("two").provisional());
    let spec = oauth2_spec();
    let newborn = entry(Uuid::from_u128(5 << 100), Collection::OAuth2Client, &owner("one").provisional());
    let seen = Snapshot::new([newborn]);
    let other = plan(&Desired::<KanidmOAuth2Client>::first(owner("two"), &spec), &seen);
    assert!(other.entry.is_none() && matches!(other.step, Some(Step::CreateProvisional { .. })));
}

#[test]
fn a_pinned_entry_that_is_gone_is_created_again_and_pinned_anew() {
    let owner = Owner { kind: "KanidmOAuth2Client", namespace: "n", name: "app", entry: "app" };
    let spec = oauth2_spec();
    let gone = Uuid::from_u128(9 << 100);
    let want = Desired { pinned: Some(gone), ..Desired::<KanidmOAuth2Client>::first(owner, &spec) };
    let settled = settled(&want, &Snapshot::default());
    assert!(settled.pinned.is_some() && settled.pinned != Some(gone));
    assert_eq!(settled.plan.entry, settled.pinned);
}

#[test]
fn the_group_of_the_administrators_never_loses_the_operator() {
    let idm_admins = entry(Uuid::from_u128(0x34), Collection::Group, "idm_admins");
    let operator = entry(Uuid::from_u128(7 << 100), Collection::ServiceAccount, OPERATOR_ACCOUNT);
    let owner = Owner { kind: "KanidmGroup", namespace: "n", name: "admins", entry: "idm_admins" };
    for members in [vec![], vec!["alice".to_owned()]] {
        let mut group = idm_admins.clone();
        group.attrs.insert("member".to_owned(), Value::References([operator.uuid].into()));
        let seen = Snapshot::new([group, operator.clone(), person("alice")]);
        let spec = KanidmGroupSpec { members: Some(members.clone()), ..group_spec() };
        let want = Desired { adoption: Adoption::Granted, ..Desired::<KanidmGroup>::first(owner.clone(), &spec) };
        let after = settled(&want, &seen).seen;
        let left = after.get(idm_admins.uuid).and_then(|group| group.attrs.get("member").cloned());
        let mut expected: BTreeSet<_> = members.iter().map(|name| person(name).uuid).collect();
        expected.insert(operator.uuid);
        assert_eq!(left, Some(Value::References(expected)));
    }
}

#[test]
fn names_that_would_lead_to_another_objects_entry_are_refused_for_every_kind() {
    let spec = group_spec();
    for name in [
        "kaniop-00112233445566778899aabbccddeeff",
        "Kaniop-00112233445566778899AABBCCDDEEFF",
        "staff@example.com",
        "00000000-0000-0000-0000-000000000001",
    ] {
        let want = Desired { owner: Owner { entry: name, ..owner() }, ..desired(&spec) };
        let plan = plan(&want, &Snapshot::default());
        assert_eq!((plan.step, plan.findings[0].reason), (None, Reason::InvalidValue), "{name}");
    }
    let want = Desired { owner: Owner { entry: "kaniop-0011", ..owner() }, ..desired(&spec) };
    assert!(plan(&want, &Snapshot::default()).step.is_some(), "other names of that beginning are anybody's");
}
