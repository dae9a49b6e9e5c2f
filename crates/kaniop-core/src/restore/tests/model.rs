//! The real [`step`](crate::restore::step) in a world of crashes, stale reads, a second leader, Jobs that lie or vanish, and people who do what
//! they like: what must always hold, holds in every state that can be reached; and without any one of its guards, it does not.

mod around;
mod facts;
mod hand;
mod look;
mod quiet;

use std::collections::HashMap;
use std::sync::Mutex;

use kaniop_api::restore::Phase;
use stateright::{Checker, HasDiscoveries, Model, Property};

use self::around::{Event, events, happen};
use self::facts::{Facts, Ghosts, Id, Life, Pod, State};
use self::hand::{View, carry_out, decision};
use super::super::guard::{Guard, Guards};
use crate::restore::{Decision, writes_are_paused};

/// What is tried, and how much of it.
struct World {
    guards: Guards,
    faults: u8,
    /// States from which, undisturbed, everything ends as it should; and those from which it does not.
    settled: Mutex<HashMap<u64, bool>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Action {
    /// A whole pass for a restore.
    Pass(Id, View),
    /// A pass whose deadline is over.
    LatePass(Id),
    /// A pass in which the operator dies after so many effects.
    Crash(Id, usize),
    Happens(Event),
}

impl World {
    fn new(guards: Guards, faults: u8) -> Self {
        Self { guards, faults, settled: Mutex::default() }
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            facts: Facts::beginning(),
            past: None,
            faults: self.faults,
            broken: Vec::new(),
            ghosts: Ghosts::default(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for id in (0..2).filter(|id| state.facts.restores[*id].life == Life::Here) {
            actions.push(Action::Pass(id, View::Now));
            if state.past.is_some() {
                actions.push(Action::Pass(id, View::StaleChildren));
            }
            if state.faults > 0 {
                actions.extend([Action::LatePass(id), Action::Crash(id, 1)]);
            }
        }
        if let Some(past) = &state.past {
            actions.push(Action::Pass(past.restore, View::Past));
        }
        actions.extend(events(state).into_iter().map(Action::Happens));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut next = last.clone();
        let fault = match action {
            Action::Pass(id, view) => {
                let decided = decision(last, id, view, false, self.guards);
                carry_out(&mut next, id, view, decided, usize::MAX);
                if view != View::Now {
                    next.past = None;
                }
                false
            }
            Action::LatePass(id) => {
                if !matches!(decision(last, id, View::Now, false, self.guards), Decision::Wait { .. }) {
                    return None;
                }
                let decided = decision(last, id, View::Now, true, self.guards);
                carry_out(&mut next, id, View::Now, decided, usize::MAX);
                true
            }
            Action::Crash(id, upto) => {
                let decided = decision(last, id, View::Now, false, self.guards);
                if !matches!(&decided, Decision::Act(effects) if effects.len() > upto) {
                    return None;
                }
                carry_out(&mut next, id, View::Now, decided, upto);
                true
            }
            Action::Happens(event) => {
                if !happen(&mut next, &event) {
                    return None;
                }
                event.is_fault()
            }
        };
        if let Some(past) = &mut next.past {
            past.target_changed |= last.facts.target != next.facts.target;
            for index in 0..2 {
                past.sets_changed[index] |= last.facts.sets[index] != next.facts.sets[index];
                past.saved_changed[index] |= last.facts.restores[index].saved != next.facts.restores[index].saved;
            }
        }
        next.faults -= u8::from(fault);
        (next != *last).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("S1 to S10: nothing happened that never may", |_, state: &State| state.broken.is_empty()),
            Property::always("S2 no Job replaces a database under a server", |_, state: &State| {
                !writes_under_a_server(&state.facts)
            }),
            Property::always("S5 no identity is written while there is a claim", |_, state: &State| {
                let target = &state.facts.target;
                let claim = target.claim.map(facts::uid);
                claim.is_none() || writes_are_paused(claim.as_deref(), None)
            }),
            Property::always("L1 to L4: undisturbed, everything ends", |model, state: &State| {
                quiet::ends(model, state)
            }),
            Property::sometimes("a restore completes", |_, state: &State| is(state, 0, Phase::Completed, true)),
            Property::sometimes("a restore fails before the mutation", |_, state: &State| {
                is(state, 0, Phase::Failed, false)
            }),
            Property::sometimes("a restore fails after the mutation", |_, state: &State| {
                is(state, 0, Phase::Failed, true)
            }),
            Property::sometimes("a second one completes after the first one has failed", |_, state: &State| {
                is(state, 0, Phase::Failed, true) && is(state, 1, Phase::Completed, true)
            }),
            Property::sometimes("a failed one is let go by force", |_, state: &State| {
                let saved = &state.facts.restores[0].saved;
                saved.forced.is_some() && saved.replicas_cleared && state.facts.target.claim.is_none()
            }),
            Property::sometimes("a deleted one is gone", |_, state: &State| state.facts.restores[0].life == Life::Gone),
            Property::sometimes("a deleted one goes on after the mutation", |_, state: &State| {
                state.facts.restores[0].deleting && is(state, 0, Phase::Completed, true)
            }),
        ]
    }
}

fn is(state: &State, id: Id, phase: Phase, mutated: bool) -> bool {
    let saved = &state.facts.restores[id].saved;
    saved.phase == phase && saved.mutated == mutated
}

fn writes_under_a_server(facts: &Facts) -> bool {
    let writes = (0..2).any(|id| facts.job(id, crate::restore::Task::Restore) == facts::JobState::Running);
    writes && facts.pods[0] != Pod::Absent
}

#[test]
fn whatever_happens_the_restore_machine_keeps_its_promises() {
    let started = std::time::Instant::now();
    let checker = World::new(Guards::ALL, FAULTS).checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    println!(
        "{} states, {} of them different, {} steps deep, {} faults each, in {:.1?}",
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth(),
        FAULTS,
        started.elapsed()
    );
    checker.assert_properties();
}

/// How much may go wrong on one way.
const FAULTS: u8 = 1;

#[test]
fn without_any_one_of_its_guards_it_does_not() {
    let mut needless = Vec::new();
    for guard in Guard::ALL {
        let model = World::new(Guards::without(*guard), FAULTS);
        let checker = model.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        let failures: Vec<_> = checker
            .discoveries()
            .into_iter()
            .filter(|(name, _)| checker.discovery_classification(name).to_string() == "counterexample")
            .map(|(name, path)| {
                let broken = path.last_state().broken.clone();
                format!("{name} {broken:?}, after {} steps", path.into_actions().len())
            })
            .collect();
        println!("without {guard:?}: {} states, {failures:?}", checker.unique_state_count());
        if failures.is_empty() {
            needless.push(guard);
        }
    }
    assert!(needless.is_empty(), "the model does not miss {needless:?}");
}
