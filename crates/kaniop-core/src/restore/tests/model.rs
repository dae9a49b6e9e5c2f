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
use stateright::{Checker, DiscoveryClassification, HasDiscoveries, Model, Property};

use self::around::{Event, events, happen};
use self::facts::{Facts, Ghosts, Id, Life, Pod, State};
use self::hand::{View, carry_out, decision};
use super::super::guard::{Guard, Guards};
use crate::restore::{Decision, writes_are_paused};

/// What is tried, and how much of it.
struct World {
    guards: Guards,
    faults: u8,
    /// The second restore may begin while the first is under way; else when that is over.
    together: bool,
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
    /// Two restores that may run together, and one thing that goes wrong at any point.
    fn crowded(guards: Guards) -> Self {
        Self { guards, faults: 1, together: true, settled: Mutex::default() }
    }

    /// One restore after another, and two things that go wrong.
    fn unlucky(guards: Guards) -> Self {
        Self { guards, faults: 2, together: false, settled: Mutex::default() }
    }

    fn may_begin(&self, facts: &Facts) -> bool {
        let first = &facts.restores[0];
        self.together || first.life == Life::Gone || matches!(first.saved.phase, Phase::Completed | Phase::Failed)
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
            Action::Happens(Event::SecondRestore) if !self.may_begin(&last.facts) => return None,
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

/// Looks at every state, and tells how many there were.
fn explore(world: World, what: &str) -> impl Checker<World> + use<> {
    let started = std::time::Instant::now();
    let checker = world.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    println!(
        "{what}: {} states, {} of them different, up to {} steps deep, in {:.1?}",
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth(),
        started.elapsed()
    );
    checker
}

#[test]
fn two_restores_together_keep_every_promise_whatever_goes_wrong() {
    explore(World::crowded(Guards::ALL), "two restores together, one fault").assert_properties();
}

#[test]
fn one_restore_after_another_keeps_every_promise_whatever_goes_wrong_twice() {
    explore(World::unlucky(Guards::ALL), "one restore after another, two faults").assert_properties();
}

#[test]
fn without_any_one_of_its_guards_the_machine_breaks_a_promise() {
    let mut needless = Vec::new();
    for guard in Guard::ALL {
        let guards = Guards::without(*guard);
        // Only after one fault is there something that another can spoil.
        let world = if *guard == Guard::FinalizerStays { World::unlucky(guards) } else { World::crowded(guards) };
        let what = format!("without {guard:?}");
        let checker = explore(world, &what);
        let failures: Vec<_> = checker
            .discoveries()
            .into_iter()
            .filter(|(name, _)| {
                matches!(checker.discovery_classification(name), DiscoveryClassification::Counterexample)
            })
            .map(|(name, path)| format!("{name} {:?}", path.last_state().broken))
            .collect();
        println!("  {}", failures.join(", "));
        if failures.is_empty() {
            needless.push(guard);
        }
    }
    assert!(needless.is_empty(), "the model does not miss {needless:?}");
}
