//! What becomes of a state when nothing goes wrong any more: everybody does what there is to do, deadlines pass where nothing moves, until
//! nothing changes. Then every restore is over, what was deleted is gone, and a new restore succeeds.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use kaniop_api::restore::Phase;

use super::World;
use super::around::{Event, events, happen};
use super::facts::{Life, State};
use super::hand::{View, carry_out, decision};
use crate::restore::{Decision, OtherState, state as standing};

/// No way is longer than this; a longer one is a circle.
const LONGEST: usize = 400;

/// Whether everything ends as it should from here. Each state is followed once.
pub(super) fn ends(model: &World, state: &State) -> bool {
    let mut now = state.clone();
    now.past = None;
    now.faults = 0;
    now.broken.clear();
    let mut way = Vec::new();
    let verdict = loop {
        let key = hash(&now);
        if let Some(known) = model.settled.lock().unwrap().get(&key) {
            break *known;
        }
        way.push(key);
        if way.len() > LONGEST {
            break false;
        }
        if let Some(next) = undisturbed(model, &now) {
            now = next;
            continue;
        }
        match last_wishes(&now) {
            Ok(next) => now = next,
            Err(verdict) => break verdict,
        }
    };
    model.settled.lock().unwrap().extend(way.into_iter().map(|key| (key, verdict)));
    verdict
}

fn hash(state: &State) -> u64 {
    static BUILDER: OnceLock<RandomState> = OnceLock::new();
    BUILDER.get_or_init(RandomState::new).hash_one(state)
}

/// The next thing that happens when nothing goes wrong; none when nothing is left to happen.
fn undisturbed(model: &World, state: &State) -> Option<State> {
    let mut next = state.clone();
    for event in events(state).into_iter().filter(|event| *event != Event::SecondRestore) {
        if happen(&mut next, &event) && next != *state {
            return Some(next);
        }
    }
    let here = || (0..2).filter(|id| state.facts.restores[*id].life == Life::Here);
    for late in [false, true] {
        for id in here() {
            let decided = decision(state, id, View::Now, late, model.guards);
            if late && !matches!(decision(state, id, View::Now, false, model.guards), Decision::Wait { .. }) {
                continue;
            }
            carry_out(&mut next, id, View::Now, decided, usize::MAX);
            next.broken.clear();
            if next != *state {
                return Some(next);
            }
        }
    }
    None
}

/// Nothing moves any more. Either that is wrong, or right, or here is what somebody would do next.
fn last_wishes(state: &State) -> Result<State, bool> {
    let facts = &state.facts;
    let mut next = state.clone();
    for id in (0..2).filter(|id| facts.restores[*id].life == Life::Here) {
        let restore = &facts.restores[id];
        // L1
        if !matches!(restore.saved.phase, Phase::Completed | Phase::Failed) {
            return Err(false);
        }
        // S9, where a leader that came late had failed it.
        if standing(&restore.saved) == OtherState::Over && facts.target.claim == Some(id) {
            return Err(false);
        }
    }
    let ours = facts.target.uid == Some(0);
    // L3: the first time that all is still and a second restore is not there yet, it is made, and has to succeed.
    if facts.restores[1].life == Life::NotYet && ours {
        next.facts.restores[1].life = Life::Here;
        next.ghosts.still = true;
        return Ok(next);
    }
    let second = &facts.restores[1];
    if state.ghosts.still && second.life == Life::Here && !second.deleting && second.saved.phase != Phase::Completed {
        return Err(false);
    }
    // L4: whatever is left is deleted; what holds the Kanidm is let go by force, and must go then.
    for id in 0..2 {
        if facts.restores[id].life == Life::Here && !facts.restores[id].deleting {
            happen(&mut next, &Event::Deleted(id));
            return Ok(next);
        }
    }
    for id in 0..2 {
        if facts.restores[id].life == Life::Here && !facts.restores[id].force && ours {
            next.facts.restores[id].force = true;
            return Ok(next);
        }
    }
    let gone = facts.restores.iter().all(|restore| restore.life != Life::Here);
    let serves = !ours || (facts.target.claim.is_none() && facts.target.maintenance.is_none() && facts.sets == [1, 1]);
    Err(gone && serves)
}
