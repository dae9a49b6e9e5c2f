//! Restoring a Kanidm from a backup: a pure table of what to do next, [`step`], from what was persisted and what is seen.
//!
//! One decision a pass. What is to be done is persisted first and done in a later pass; effects are named by the restore's UID and can be done
//! twice; an observation that is missing or contradicts another is a wait, never a step forward; every wait says on whom and until when.
//! Nothing here acts, and nothing here reads a clock.
//!
//! | phase | goes on when | is done meanwhile |
//! |---|---|---|
//! | Pending | | finalizer |
//! | Validating | request, claims, file (on the live node) and image are checked | claim, by compare-and-swap |
//! | Quiescing | the cluster's controller has acknowledged, nobody has a volume, the file is proven | scale to zero, preflight Job |
//! | RestoringPrimary | the Job ended; `databaseMutationStarted` was persisted before it was made | restore Job |
//! | Verifying | the database read back agrees with the backup, and the mark is off the volume | verify Job, then unmark Job |
//! | RebuildingReplicas | the primary alone, then all serve the restored domain | the other volumes discarded, servers started |
//! | Resuming | credentials are new and work | renewal, then the claim is released |
//!
//! Before the mutation a failure or a deletion puts the counts back and releases the claim, and only then is `Failed`. After it a failure stays
//! offline with the claim kept, until another restore inherits latch and plan, the target is gone, or somebody forces the release. A deletion
//! after the mutation stops nothing: the restore goes on to its end, and the finalizer stays until then.
//!
//! Claim and latch alone do not keep servers down whatever people do to the objects; two fences stand beside them. The cluster's controller
//! acknowledges a claim only when the pods' configuration says which servers may start ([`Servers`](kaniop_api::restore::Servers)); and the
//! restore Job marks the primary's volume before its first change, see [`job`].

mod claim;
mod deadline;
mod effect;
mod ending;
mod evidence;
mod guard;
pub mod job;
mod mutating;
mod plan;
mod quiescing;
mod rebuilding;
pub mod report;
mod saved;
#[cfg(test)]
mod tests;
mod validating;
mod world;

use std::ops::ControlFlow;

use jiff::Timestamp;
use kaniop_api::restore::{Cause, Phase, RestoreFailure};

pub use claim::{holds, state, writes_are_paused};
pub use effect::{Decision, Effect, Task, Why};
pub use evidence::differences;
pub use saved::{PHASES, Saved, name};
pub use world::{
    Answer, Credentials, Holder, JobSeen, LiveProof, Node, Other, OtherState, Request, Sight, Target, VolumeClaim,
    Workload, WorkloadKind, World,
};

use guard::{Guard, Guards};

/// What to do next.
#[must_use]
pub fn step(saved: &Saved, world: &World, now: Timestamp) -> Decision {
    step_with(saved, world, now, Guards::ALL)
}

/// [`step`] with these guards.
pub(crate) fn step_with(saved: &Saved, world: &World, now: Timestamp, guards: Guards) -> Decision {
    match (Pass { saved, world, now, guards }).decide() {
        ControlFlow::Break(decision) | ControlFlow::Continue(decision) => decision,
    }
}

/// Either the decision is made, or here is what the next question needs.
type Flow<T> = ControlFlow<Decision, T>;

/// One pass over one restore.
#[derive(Clone, Copy)]
struct Pass<'a> {
    saved: &'a Saved,
    world: &'a World,
    now: Timestamp,
    guards: Guards,
}

impl<'a> Pass<'a> {
    fn decide(&self) -> Flow<Decision> {
        let saved = self.saved;
        if saved.phase != Phase::Pending && saved.since().is_none() {
            // A status that has lost its times: deadlines begin anew, rather than never or at once.
            return Flow::Break(persist(saved.entering(saved.phase, self.now)));
        }
        let target = match &self.world.target {
            Sight::Unknown if self.is_over() => return Flow::Break(Decision::Finished),
            Sight::Unknown => {
                return Flow::Break(self.wait(format!("Kanidm '{}', which cannot be read", self.world.request.target)));
            }
            Sight::Here(target) if self.is_same(target) => target,
            Sight::Gone | Sight::Here(_) => return self.without_target(),
        };
        match saved.phase {
            Phase::Completed => self.completed(target),
            Phase::Failed => self.failed(target),
            _ if saved.failure.is_some() => self.undoing(target),
            Phase::Pending => self.pending(),
            Phase::Validating => self.validating(target),
            Phase::Quiescing => self.quiescing(target),
            Phase::RestoringPrimary => self.restoring(target),
            Phase::Verifying => self.verifying(target),
            Phase::RebuildingReplicas => self.rebuilding(target),
            Phase::Resuming => self.resuming(target),
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.saved.phase, Phase::Completed | Phase::Failed)
    }

    fn is_same(&self, target: &world::Target) -> bool {
        self.guards.allow(Guard::SameTarget, target.uid == self.world.request.target_uid && !target.deleting)
    }

    fn is_ours(&self, uid: Option<&str>) -> bool {
        uid == Some(self.world.request.uid.as_str())
    }

    /// What was looked at, or a wait for it.
    fn seen<T>(&self, look: Option<&'a T>, what: &str) -> Flow<&'a T> {
        look.map_or_else(|| Flow::Break(self.wait(format!("{what}, which cannot be read"))), Flow::Continue)
    }

    /// Wait for this; when the phase's time is over, that is a failure.
    fn wait(&self, on: impl Into<String>) -> Decision {
        self.wait_for(vec![on.into()])
    }

    fn wait_for(&self, on: Vec<String>) -> Decision {
        // At its end, and while it undoes what can be undone, giving up would only make things worse.
        let limit = deadline::of(self.saved.phase);
        let patient = self.is_over() || self.saved.failure.is_some();
        let until = (!patient).then(|| deadline::after(self.saved.since().unwrap_or(self.now), limit));
        if self.guards.allow(Guard::WaitsEnd, until.is_none_or(|until| self.now < until)) {
            return Decision::Wait { why: Why { on, until }, after: deadline::LOOK_AGAIN };
        }
        let message = format!("after {} minutes still waiting for {}", limit.as_secs() / 60, on.join(", "));
        self.fail(Cause::DeadlineExceeded, message)
    }

    /// What is persisted of a failure. Where nothing was touched it is the end; elsewhere it has to be undone first.
    fn fail(&self, cause: Cause, message: impl Into<String>) -> Decision {
        if self.saved.failure.is_some() {
            return self.failed_now();
        }
        let phase = self.saved.phase;
        let untouched = matches!(phase, Phase::Pending | Phase::Validating);
        let mut next = if untouched { self.saved.entering(Phase::Failed, self.now) } else { self.saved.clone() };
        next.failure = Some(RestoreFailure { phase, cause, message: message.into() });
        persist(next)
    }

    fn failed_now(&self) -> Decision {
        persist(self.saved.entering(Phase::Failed, self.now))
    }
}

fn persist(saved: Saved) -> Decision {
    Decision::Persist(Box::new(saved))
}
