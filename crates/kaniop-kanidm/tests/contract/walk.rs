//! The walk: an object's spec changes at random, step by step, and after each step its entry is what an entry made from nothing would be, but for
//! what the spec does not manage, which stays as it was.
//!
//! Specs are made from the schema that users install. `KANIOP_WALK_SEED` takes another path (or a failed one again), `KANIOP_WALK_STEPS` a longer one.

mod blocks;
mod generator;
mod hints;
mod oracle;
mod record;
mod schema;
mod walker;

use std::collections::BTreeMap;

use kaniop_api::{KanidmGroup, KanidmOAuth2Client, KanidmPersonAccount, KanidmServiceAccount};

use self::generator::sequence;
use self::hints::{FROZEN, VARIANTS};
use self::record::{Mark, Record};
use self::walker::walk;

/// The path that the gate takes.
const SEED: u64 = 1;
/// How far it goes: as far as every field needs.
const STEPS: usize = 40;

#[test]
fn the_walk_sets_changes_and_removes_every_field_of_every_kind() {
    let left = undone(SEED, STEPS);
    assert!(left.is_empty(), "never done in {STEPS} steps of seed {SEED}:\n{}", left.join("\n"));
}

/// What a walk does to no field.
fn undone(seed: u64, steps: usize) -> Vec<String> {
    let mut records = BTreeMap::<_, Record>::new();
    for variant in VARIANTS {
        records.entry(variant.kind).or_default().merge(sequence(variant, seed, steps).1);
    }
    let mut left = Vec::new();
    for (kind, record) in records {
        let leaves = schema::leaves(&schema::spec_of(kind));
        for (leaf, optional) in leaves.iter().filter(|(leaf, _)| !FROZEN.iter().any(|(frozen, _)| frozen == leaf)) {
            let marks = [Mark::Set, Mark::Changed].into_iter().chain(optional.then_some(Mark::Removed));
            left.extend(marks.filter(|mark| !record.has(leaf, *mark)).map(|mark| format!("{kind} {leaf}: {mark:?}")));
        }
    }
    left
}

#[test]
fn what_the_walk_leaves_out_exists_and_is_left_alone() {
    for (frozen, why) in FROZEN {
        assert!(!why.is_empty());
        let holds = |kind| schema::leaves(&schema::spec_of(kind)).iter().any(|(leaf, _)| leaf == frozen);
        assert!(VARIANTS.iter().any(|variant| holds(variant.kind)), "{frozen} is in no schema any more");
    }
    for variant in VARIANTS {
        for stop in sequence(variant, SEED, STEPS).0 {
            for (name, value) in variant.fixed().as_object().unwrap() {
                assert_eq!(stop.spec[name], *value, "{}", variant.name);
            }
        }
    }
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_person_is_after_every_step_as_if_made_from_nothing() {
    walk::<KanidmPersonAccount>(&hints::PERSON, SEED, STEPS).await;
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_group_is_after_every_step_as_if_made_from_nothing() {
    walk::<KanidmGroup>(&hints::GROUP, SEED, STEPS).await;
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_service_account_is_after_every_step_as_if_made_from_nothing() {
    walk::<KanidmServiceAccount>(&hints::SERVICE_ACCOUNT, SEED, STEPS).await;
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_confidential_client_is_after_every_step_as_if_made_from_nothing() {
    walk::<KanidmOAuth2Client>(&hints::CONFIDENTIAL, SEED, STEPS).await;
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_public_client_is_after_every_step_as_if_made_from_nothing() {
    walk::<KanidmOAuth2Client>(&hints::PUBLIC, SEED, STEPS).await;
}
