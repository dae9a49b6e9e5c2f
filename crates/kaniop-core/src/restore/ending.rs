//! Endings: what is undone after a failure, what is left alone, and when the object may go.

use std::ops::ControlFlow::{Break, Continue};

use kaniop_api::restore::{Cause, Servers};

use super::effect::{Decision, Effect, Task};
use super::guard::Guard;
use super::rebuilding::all;
use super::world::{Answer, JobSeen, Target};
use super::{Flow, Pass, persist};

impl Pass<'_> {
    /// Something failed, and the phase is still the one that it failed in.
    pub(super) fn undoing(&self, target: &Target) -> Flow<Decision> {
        self.end_jobs()?;
        if !self.saved.mutated && self.is_ours(target.claim.as_deref()) {
            return self.put_back(target);
        }
        Continue(self.failed_now())
    }

    /// The counts as they were, and then the claim is given back: nothing was changed that matters.
    fn put_back(&self, target: &Target) -> Flow<Decision> {
        let mut effects = match &self.saved.plan {
            Some(plan) if !self.guards.allow(Guard::CountsArePutBack, false) => self.counts(&all(plan))?,
            _ => Vec::new(),
        };
        effects.push(Effect::Release { version: target.version.clone() });
        if self.guards.allow(Guard::ClaimIsFreed, false) && self.saved.phase != kaniop_api::restore::Phase::Failed {
            return Break(self.failed_now());
        }
        Continue(Decision::Act(effects))
    }

    /// No Job of this restore runs any more.
    fn end_jobs(&self) -> Flow<()> {
        let jobs = self.seen(self.world.jobs.as_ref(), "the Jobs of this restore")?;
        let running = jobs.iter().filter(|(_, job)| matches!(job, JobSeen::Running(_)));
        let ends: Vec<_> = running.map(|(task, _)| Effect::DeleteJob(*task)).collect();
        if ends.is_empty() { Continue(()) } else { Break(Decision::Act(ends)) }
    }

    pub(super) fn completed(&self, target: &Target) -> Flow<Decision> {
        if self.is_ours(target.claim.as_deref()) {
            // Somebody has put the annotation back by hand.
            return Break(Decision::Act(vec![Effect::Release { version: target.version.clone() }]));
        }
        self.over()
    }

    pub(super) fn failed(&self, target: &Target) -> Flow<Decision> {
        let ours = self.is_ours(target.claim.as_deref());
        let inherits = super::claim::inherits(self.saved);
        if (ours || self.was_ours(target)) && !self.saved.mutated && inherits {
            // The claim had already passed when this failed: so has the latch.
            let mut next = self.saved.clone();
            next.mutated = true;
            return Break(persist(next));
        }
        if ours && !self.saved.mutated {
            return self.put_back(target);
        }
        if !self.saved.mutated {
            return self.over();
        }
        self.stranded(target)
    }

    /// It failed after the database may have been changed: everything stays as it is, whatever people do.
    fn stranded(&self, target: &Target) -> Flow<Decision> {
        let version = || target.version.clone();
        match target.claim.as_deref() {
            // Freed by a successor that completed, or by force. The controller leaves its maintenance for nothing else.
            None if target.maintenance.is_none() => return self.over(),
            None if !super::holds(self.saved) => return self.kept(),
            None if self.may_reclaim(target) => {
                return Break(Decision::Act(vec![Effect::Claim { version: version() }]));
            }
            claim if self.is_ours(claim) => {}
            _ => return self.kept(),
        }
        if self.guards.allow(Guard::StaysOffline, false) {
            return self.put_back(target);
        }
        self.end_jobs()?;
        if self.saved.forced.is_some() {
            return self.forced(target);
        }
        if let Some(reason) = &self.world.request.force_release {
            let mut next = self.saved.clone();
            next.forced = Some(reason.clone());
            return Break(persist(next));
        }
        if !self.saved.replicas_cleared {
            self.stop()?;
        }
        self.kept()
    }

    /// Somebody took it upon himself: the mark goes, data from before is still discarded, then the claim goes.
    fn forced(&self, target: &Target) -> Flow<Decision> {
        if !self.guards.allow(Guard::ForcedStillClears, self.saved.replicas_cleared) {
            self.hold(target, Servers::None)?;
            self.stop()?;
            self.unmark()?;
            if let Some(plan) = &self.saved.plan {
                self.discard(plan)?;
            }
            let mut next = self.saved.clone();
            next.replicas_cleared = true;
            return Break(persist(next));
        }
        Continue(Decision::Act(vec![Effect::Release { version: target.version.clone() }]))
    }

    fn unmark(&self) -> Flow<()> {
        let primary = self.saved.plan.as_ref().map(|plan| &plan.primary_claim);
        let claims = self.seen(self.world.claims.as_ref(), "the volume claims of the Kanidm")?;
        if !claims.iter().any(|claim| Some(&claim.id) == primary) {
            // A volume that is gone has taken its mark along.
            return Continue(());
        }
        match self.job(Task::Unmark)? {
            None => {
                self.volumes_are_free()?;
                Break(Decision::Act(vec![Effect::CreateJob(Task::Unmark)]))
            }
            Some(JobSeen::Ended(Some(Answer::Unmarked))) => Continue(()),
            Some(JobSeen::Running(_)) => Break(self.wait("the Job that takes the mark off the volume")),
            // Nothing but another try is left, and making a pod takes its time.
            Some(JobSeen::Failed(_) | JobSeen::Ended(_)) => Break(Decision::Act(vec![Effect::DeleteJob(Task::Unmark)])),
        }
    }

    /// The Kanidm is gone, or on its way, or another one: nothing of it is touched.
    pub(super) fn without_target(&self) -> Flow<Decision> {
        self.end_jobs()?;
        if !self.is_over() {
            let request = &self.world.request;
            let message =
                format!("Kanidm '{}' with UID '{}' is gone or being deleted", request.target, request.target_uid);
            return Break(self.fail(Cause::TargetGone, message));
        }
        self.over()
    }

    /// Nothing is left to do, and the object may go.
    pub(super) fn over(&self) -> Flow<Decision> {
        let request = &self.world.request;
        if !request.deleting || !request.finalizer {
            return Continue(Decision::Finished);
        }
        let jobs = self.seen(self.world.jobs.as_ref(), "the Jobs of this restore")?;
        if jobs.is_empty() {
            return Continue(Decision::Act(vec![Effect::RemoveFinalizer]));
        }
        Continue(Decision::Act(jobs.keys().copied().map(Effect::DeleteJob).collect()))
    }

    /// Nothing is left to do, but the object stays.
    fn kept(&self) -> Flow<Decision> {
        if self.guards.allow(Guard::FinalizerStays, false) {
            return self.over();
        }
        Continue(Decision::Finished)
    }
}
