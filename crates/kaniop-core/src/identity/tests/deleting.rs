//! What becomes of entries when their objects go.

use kaniop_api::{KanidmOAuth2Client, KanidmServiceAccount};

use super::*;

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

/// Whether the entry is deleted.
fn is_deleted<K: IdentityKind>(want: &Desired<'_, K>, seen: &Snapshot) -> bool {
    match deletion(want, Ok(seen), Duration::ZERO, false) {
        Deletion::Delete(step) => {
            assert!(matches!(step, Step::Delete { .. }), "{step:?}");
            true
        }
        Deletion::Release(_) => false,
        Deletion::Wait(why) => panic!("{why}"),
    }
}

#[test]
fn an_adopted_entry_stays_unless_the_policy_says_otherwise_and_one_of_our_own_goes_unless_it_does() {
    let spec = group_spec();
    let theirs = entry(Uuid::from_u128(1 << 100), Collection::Group, "staff");
    let ours = entry(owner().uuid(0), Collection::Group, "staff");
    for (entry, adopted, policy, deleted) in [
        (&theirs, true, None, false),
        (&theirs, true, Some(DeletionPolicy::Retain), false),
        (&theirs, true, Some(DeletionPolicy::Delete), true),
        (&ours, false, None, true),
        (&ours, false, Some(DeletionPolicy::Delete), true),
        (&ours, false, Some(DeletionPolicy::Retain), false),
    ] {
        let want = Desired { pinned: Some(entry.uuid), adopted, deletion: policy, ..desired(&spec) };
        assert_eq!(is_deleted(&want, &Snapshot::new([entry.clone()])), deleted, "adopted {adopted}, {policy:?}");
    }
}

#[test]
fn nothing_is_taken_over_only_to_be_deleted() {
    let spec = group_spec();
    let seen = Snapshot::new([entry(Uuid::from_u128(1 << 100), Collection::Group, "staff")]);
    let want = Desired { adoption: Adoption::Granted, deletion: Some(DeletionPolicy::Delete), ..desired(&spec) };
    assert!(!is_deleted(&want, &seen));
}

#[test]
fn what_the_server_made_itself_is_never_deleted_whatever_the_policy_says() {
    let spec = group_spec();
    let built_in = entry(Uuid::from_u128(0x36), Collection::Group, "staff");
    for (adopted, inherited) in [(true, false), (false, false), (false, true)] {
        let pinned = Some(built_in.uuid).filter(|_| !inherited);
        let want = Desired { pinned, adopted, inherited, deletion: Some(DeletionPolicy::Delete), ..desired(&spec) };
        assert!(!is_deleted(&want, &Snapshot::new([built_in.clone()])), "adopted {adopted}, inherited {inherited}");
    }
}

#[test]
fn the_account_of_the_operator_is_never_deleted() {
    let spec = service_account_spec();
    let owner = Owner { kind: "KanidmServiceAccount", namespace: "n", name: OPERATOR_ACCOUNT, entry: OPERATOR_ACCOUNT };
    let operator = entry(Uuid::from_u128(7 << 100), Collection::ServiceAccount, OPERATOR_ACCOUNT);
    for (pinned, inherited) in [(Some(operator.uuid), false), (None, true)] {
        let deletion = Some(DeletionPolicy::Delete);
        let want =
            Desired { pinned, inherited, deletion, ..Desired::<KanidmServiceAccount>::first(owner.clone(), &spec) };
        assert!(!is_deleted(&want, &Snapshot::new([operator.clone()])), "inherited {inherited}");
    }
}

#[test]
fn an_entry_whose_creation_was_cut_short_goes_with_its_object() {
    let owner = Owner { kind: "KanidmOAuth2Client", namespace: "n", name: "app", entry: "app" };
    let spec = oauth2_spec();
    let want = Desired::<KanidmOAuth2Client>::first(owner.clone(), &spec);
    let newborn = entry(Uuid::from_u128(5 << 100), Collection::OAuth2Client, &owner.provisional());
    assert!(is_deleted(&want, &Snapshot::new([newborn])));
    // Of the same name, but nobody knows whose it is.
    let stranger = entry(Uuid::from_u128(5 << 100), Collection::OAuth2Client, "app");
    assert!(!is_deleted(&want, &Snapshot::new([stranger])));
}
