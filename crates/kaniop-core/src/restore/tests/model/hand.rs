//! Carries decisions out, as API server and kubelet would: what was decided on an older state is refused where a version stands in its way.
//! What must never happen is noticed here, when it happens.

use std::sync::Arc;

use kaniop_api::restore::{Phase, Servers};

use super::facts::{Data, Facts, Id, JobState, Life, Pod, Replica, SETS, State};
use super::look::world;
use crate::restore::guard::Guards;
use crate::restore::{Decision, Effect, OtherState, Saved, Task, holds, state as standing, step_with};

/// On what a pass is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum View {
    /// Everything as it is.
    Now,
    /// Pods and Jobs as they were.
    StaleChildren,
    /// Everything as it was: a leader that was paused goes on.
    Past,
}

/// What this restore would do next.
pub(super) fn decision(state: &State, id: Id, view: View, late: bool, guards: Guards) -> Decision {
    let past = state.past.as_ref().map(|past| &past.facts);
    let (facts, children) = match (view, past) {
        (View::Now, _) | (_, None) => (&state.facts, &state.facts),
        (View::StaleChildren, Some(past)) => (&state.facts, past),
        (View::Past, Some(past)) => (past, past),
    };
    let now = jiff::Timestamp::from_second(if late { 10_000_000 } else { 1 }).unwrap();
    step_with(&facts.restores[id].saved, &world(facts, children, id), now, guards)
}

/// Does it, or the first `upto` effects of it when the operator dies then.
pub(super) fn carry_out(state: &mut State, id: Id, view: View, decision: Decision, upto: usize) {
    if state.facts.restores[id].life != Life::Here {
        // A leader acts for seconds on what it has read, and an object takes longer to go. A claim that was left by one that is gone would be
        // for the next restore to take over.
        return;
    }
    match decision {
        Decision::Persist(saved) => persist(state, id, view, *saved),
        Decision::Act(effects) => {
            for effect in effects.into_iter().take(upto) {
                if !act(state, id, view, &effect) {
                    return;
                }
            }
        }
        Decision::Wait { why, .. } => {
            let saved = &state.facts.restores[id].saved;
            let ends = why.until.is_some() || saved.failure.is_some();
            if why.on.is_empty() || why.on.iter().any(String::is_empty) || !ends {
                broken(state, "L2 a wait without an end or without a name");
            }
        }
        Decision::Finished => {}
    }
}

fn broken(state: &mut State, what: &'static str) {
    if !state.broken.contains(&what) {
        state.broken.push(what);
    }
}

fn persist(state: &mut State, id: Id, view: View, mut new: Saved) {
    if view == View::Past && state.past.as_ref().is_some_and(|past| past.saved_changed[id]) {
        return;
    }
    // Only how long ago the phase began matters, and that is either a moment or too long.
    let begun = new.phase_times.get(&new.phase).map(|_| jiff::Timestamp::UNIX_EPOCH);
    new.phase_times = begun.into_iter().map(|time| (new.phase, time)).collect();
    let old = Arc::clone(&state.facts.restores[id].saved);
    state.facts.restores[id].saved = Arc::new(new);
    let new = Arc::clone(&state.facts.restores[id].saved);
    if !along_the_table(old.phase, new.phase) {
        broken(state, "S10 a phase that does not follow");
    }
    if old.mutated && !new.mutated {
        broken(state, "S10 the latch was taken back");
    }
    if new.phase == Phase::Failed && !new.mutated && view != View::Past && state.facts.target.claim == Some(id) {
        broken(state, "S9 failed before the mark, and the claim is still there");
    }
    if new.phase == Phase::RestoringPrimary && old.phase != new.phase {
        state.ghosts.marked = Some(id);
        if new.evidence.as_ref().is_none_or(|evidence| evidence.source.entries == 0) {
            broken(state, "S9 marked without a backup that is proven");
        }
        if view == View::Now && state.facts.pods != [Pod::Absent; 2] {
            broken(state, "S3 a server runs when the mark is set");
        }
    }
    let complete = new.credentials_renewed && !old.credentials_renewed;
    if (complete || new.phase == Phase::Completed && !old.credentials_renewed) && !serves_restored(state, id, view) {
        broken(state, "S8 complete without everything being as it should");
    }
    state.ghosts.forced |= new.forced.is_some();
}

fn serves_restored(state: &State, id: Id, view: View) -> bool {
    let facts = &state.facts;
    let running = view != View::Now || facts.pods == [Pod::Running; 2];
    facts.restores[id].saved.is_proven()
        && facts.disk.data == Data::Restored(id)
        && facts.secondary.data == Replica::Joined(Some(id))
        && facts.credentials == Some(id)
        && running
}

fn along_the_table(from: Phase, to: Phase) -> bool {
    let next = match from {
        Phase::Pending => Phase::Validating,
        Phase::Validating => Phase::Quiescing,
        Phase::Quiescing => Phase::RestoringPrimary,
        Phase::RestoringPrimary => Phase::Verifying,
        Phase::Verifying => Phase::RebuildingReplicas,
        Phase::RebuildingReplicas => Phase::Resuming,
        Phase::Resuming => Phase::Completed,
        Phase::Completed | Phase::Failed => from,
    };
    to == from || to == next || (to == Phase::Failed && from != Phase::Completed)
}

/// Whether it was done; the first effect that is refused ends a pass.
fn act(state: &mut State, id: Id, view: View, effect: &Effect) -> bool {
    match effect {
        Effect::AddFinalizer => {
            let restore = &mut state.facts.restores[id];
            // The API server takes no new finalizer on an object that is being deleted.
            restore.finalizer |= !restore.deleting;
        }
        Effect::RemoveFinalizer => {
            let holds = holds(&state.facts.restores[id].saved) && state.facts.target.claim == Some(id);
            if holds && state.facts.target.uid == Some(0) {
                broken(state, "S6 the object went while it had the Kanidm");
            }
            state.facts.restores[id].finalizer = false;
            if state.facts.restores[id].deleting {
                gone(state, id);
            }
        }
        Effect::Claim { .. } | Effect::Allow { .. } | Effect::Release { .. } => {
            return on_target(state, id, view, effect);
        }
        Effect::Scale { name, replicas, .. } => return scale(state, id, view, (name, *replicas)),
        Effect::CreateJob(task) => create(state, id, view, *task),
        Effect::DeleteJob(task) => end_job(&mut state.facts, id, *task),
        Effect::Discard(claim) => discard(state, id, view, &claim.uid),
        Effect::RenewCredentials => {
            owner_only(state, id, view);
            if state.facts.pods[0] != Pod::Running {
                return false;
            }
            state.facts.credentials = Some(id);
        }
    }
    true
}

/// What is decided now by somebody without the claim is done by two.
fn owner_only(state: &mut State, id: Id, view: View) {
    if view != View::Past && state.facts.target.claim != Some(id) {
        broken(state, "S1 something was done without the claim");
    }
    if view != View::Past && state.facts.target.uid != Some(0) {
        broken(state, "S7 something was done to another Kanidm");
    }
}

fn on_target(state: &mut State, id: Id, view: View, effect: &Effect) -> bool {
    let stale = view == View::Past && state.past.as_ref().is_some_and(|past| past.target_changed);
    if stale || state.facts.target.uid.is_none() {
        return false;
    }
    if state.facts.target.uid != Some(0) {
        broken(state, "S7 another Kanidm was claimed or let go");
    }
    let claim = state.facts.target.claim;
    let target = &mut state.facts.target;
    match effect {
        Effect::Claim { .. } => {
            target.claim = Some(id);
            target.servers = Servers::None;
            let finalizer = state.facts.restores[id].finalizer;
            let followed = claim.is_none_or(|other| other == id || follows_lawfully(&state.facts, other));
            if !followed {
                broken(state, "S6 the claim was taken from a restore that had not let it go");
            }
            if !finalizer {
                broken(state, "L4 something was touched without the finalizer");
            }
        }
        Effect::Allow { servers, .. } => {
            target.servers = *servers;
            owner_only(state, id, view);
            let facts = &state.facts;
            let serves = facts.disk.data == Data::Restored(id) && (view != View::Now || facts.pods[0] == Pod::Running);
            if *servers == Servers::All && !serves {
                broken(state, "S8 the others were let in before the primary served");
            }
        }
        _ => {
            if claim != Some(id) {
                return false;
            }
            target.claim = None;
            target.servers = Servers::None;
            released(state, id, view);
        }
    }
    true
}

fn follows_lawfully(facts: &Facts, other: Id) -> bool {
    let other = &facts.restores[other];
    // One that was let go by force in the meantime was about to give the claim back anyway.
    other.life != Life::Here || standing(&other.saved) != OtherState::Live
}

fn released(state: &mut State, id: Id, view: View) {
    let saved = Arc::clone(&state.facts.restores[id].saved);
    let undone = !saved.mutated && (saved.failure.is_some() || saved.phase == Phase::Failed);
    let forced = saved.forced.is_some() && saved.replicas_cleared;
    if !(undone || forced || saved.credentials_renewed) {
        broken(state, "S6 the claim was freed without a right to");
    }
    if undone && saved.plan.is_some() && view == View::Now && state.facts.sets != [1, 1] {
        broken(state, "S9 let go without the counts put back");
    }
    let old_volume = state.facts.secondary.claim.is_some() && state.facts.secondary.data == Replica::Old;
    if forced && (state.facts.disk.mark.is_some() || old_volume) {
        broken(state, "S4 let go by force with mark or old volumes in place");
    }
}

fn scale(state: &mut State, id: Id, view: View, to: (&str, i32)) -> bool {
    let Some(set) = SETS.iter().position(|name| *name == to.0) else { return false };
    let stale = view == View::Past && state.past.as_ref().is_some_and(|past| past.sets_changed[set]);
    if stale || state.facts.target.uid.is_none() {
        return false;
    }
    owner_only(state, id, view);
    state.facts.sets[set] = to.1;
    true
}

fn discard(state: &mut State, id: Id, view: View, uid: &str) {
    owner_only(state, id, view);
    if uid == "a" {
        broken(state, "S8 the restored volume was discarded");
    }
    let saved = Arc::clone(&state.facts.restores[id].saved);
    if !(saved.is_proven() || saved.forced.is_some()) {
        broken(state, "I7 a volume was discarded before the restored database was proven");
    }
    if !saved.plan.iter().flat_map(|plan| &plan.claims).any(|claim| claim.uid == uid) {
        broken(state, "S8 a volume was discarded that is not in the plan");
    }
    let secondary = &mut state.facts.secondary;
    secondary.ending |= secondary.claim.is_some_and(|generation| format!("b-{generation}") == uid);
}

/// A Job that is made starts at once, or refuses.
fn create(state: &mut State, id: Id, view: View, task: Task) {
    if state.facts.job(id, task) != JobState::Absent {
        return;
    }
    if task == Task::Image {
        *state.facts.job_mut(id, task) = JobState::Running;
        return;
    }
    owner_only(state, id, view);
    if task == Task::Restore {
        if view == View::Now && state.facts.pods[0] != Pod::Absent {
            broken(state, "S2 a Job that writes was made beside a server");
        }
        if !state.facts.restores[id].saved.mutated {
            broken(state, "I7 a Job that writes was made before that was persisted");
        }
    }
    let taken = state.facts.job_on_volume() || state.facts.pods[0] == Pod::Running;
    let ours = state.facts.disk.journal == Some(id);
    let may = !taken
        && match task {
            Task::Image | Task::Preflight | Task::Unmark => true,
            Task::Restore => ours && !state.facts.disk.sealed,
            Task::Verify => ours,
        };
    *state.facts.job_mut(id, task) = if may { JobState::Running } else { JobState::Failed };
    if may && task == Task::Restore {
        state.facts.disk.mark = Some(id);
    }
    if may && task == Task::Unmark {
        state.facts.disk.journal = Some(id);
    }
    if may && matches!(task, Task::Verify | Task::Unmark) {
        state.facts.disk.sealed = true;
    }
}

/// A Job and its pods go. One that was replacing the database leaves half of it.
pub(super) fn end_job(facts: &mut Facts, id: Id, task: Task) {
    if task == Task::Restore && facts.job(id, task) == JobState::Running {
        facts.disk.data = Data::Half;
    }
    *facts.job_mut(id, task) = JobState::Absent;
}

/// The object is gone, and its Jobs with it.
pub(super) fn gone(state: &mut State, id: Id) {
    let task = Task::ALL.into_iter().find(|task| state.facts.job(id, *task) == JobState::Running);
    if task == Some(Task::Restore) {
        broken(state, "L4 the object went while its Job was replacing the database");
    }
    Task::ALL.into_iter().for_each(|task| end_job(&mut state.facts, id, task));
    state.facts.restores[id].life = Life::Gone;
}
