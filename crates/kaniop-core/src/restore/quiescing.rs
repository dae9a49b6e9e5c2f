//! Quiescing, and what every later phase asks again: is the claim ours, is everything stopped, does nobody have a volume.

use std::ops::ControlFlow::{Break, Continue};

use kaniop_api::restore::{Cause, Phase, PlannedClaim, RestoreEvidence, RestorePlan, Servers};

use super::effect::{Decision, Effect, Task};
use super::guard::Guard;
use super::world::{Answer, JobSeen, Target, Workload, WorkloadKind};
use super::{Flow, Pass, persist, plan};

impl<'a> Pass<'a> {
    pub(super) fn quiescing(&self, target: &Target) -> Flow<Decision> {
        if self.world.request.deleting && !self.saved.mutated {
            return Break(self.fail(Cause::Deleted, "it was deleted before the database was touched"));
        }
        self.plan()?;
        self.hold(target, Servers::None)?;
        self.stop()?;
        let source = match self.job(Task::Preflight)? {
            None => {
                self.volumes_are_free()?;
                return Break(Decision::Act(vec![Effect::CreateJob(Task::Preflight)]));
            }
            Some(JobSeen::Ended(Some(Answer::Source(found)))) => found.clone(),
            Some(_) if self.guards.allow(Guard::SourceIsProven, false) => {
                kaniop_api::restore::DatabaseEvidence::default()
            }
            Some(other) => return Break(self.not_yet(Task::Preflight, other)),
        };
        if !self.guards.allow(Guard::SourceIsProven, false) {
            self.acceptable(&source, target)?;
        }
        self.volumes_are_free()?;
        self.seen(self.world.claims.as_ref(), "the volume claims of the Kanidm")?;
        let mut next = self.saved.entering(Phase::RestoringPrimary, self.now);
        next.plan = self.saved.plan.as_ref().map(|plan| plan::with_claims(plan, self.world));
        next.evidence = Some(RestoreEvidence { source, restored: None, agrees: false });
        next.mutated = self.saved.mutated || !self.guards.allow(Guard::MutationIsPersisted, false);
        Continue(persist(next))
    }

    /// The claim is ours, it lets these servers run, and the cluster's controller has acknowledged exactly that.
    pub(super) fn hold(&self, target: &Target, servers: Servers) -> Flow<()> {
        let version = || target.version.clone();
        match target.claim.as_deref() {
            claim if self.is_ours(claim) => {}
            // Somebody took the annotation off by hand. That frees nothing: the way to do that is force-release.
            None if self.may_reclaim(target) => {
                return Break(Decision::Act(vec![Effect::Claim { version: version() }]));
            }
            Some(_) if self.guards.allow(Guard::ClaimIsOurs, false) => {}
            other => {
                let message = format!(
                    "the claim of the Kanidm went to restore '{}' while this one was under way",
                    other.or(target.maintenance.as_ref().map(|known| known.uid.as_str())).unwrap_or_default()
                );
                return Break(self.fail(Cause::ClaimLost, message));
            }
        }
        if target.servers != servers {
            return Break(Decision::Act(vec![Effect::Allow { servers, version: version() }]));
        }
        let acknowledged = target.maintenance.as_ref();
        let known = acknowledged.is_some_and(|known| self.is_ours(Some(&known.uid)) && known.servers == servers);
        if self.guards.allow(Guard::Acknowledged, known) {
            return Continue(());
        }
        Break(self.wait("the cluster's controller to acknowledge the claim in status.maintenance"))
    }

    /// The annotation is gone, and the cluster's controller knows it as ours.
    pub(super) fn was_ours(&self, target: &Target) -> bool {
        let known = target.maintenance.as_ref().map(|known| known.uid.as_str());
        target.claim.is_none() && self.is_ours(known)
    }

    /// Nobody but us, and those whom we followed, was known to have had the claim last.
    pub(super) fn may_reclaim(&self, target: &Target) -> bool {
        let Some(known) = target.maintenance.as_ref() else { return true };
        let predecessors = self.saved.plan.as_ref().map(|plan| plan.predecessors.as_slice()).unwrap_or_default();
        self.is_ours(Some(&known.uid)) || predecessors.contains(&known.uid)
    }

    /// Everything that runs pods is at zero.
    pub(super) fn stop(&self) -> Flow<()> {
        let workloads = self.seen(self.world.workloads.as_ref(), "the StatefulSets of the Kanidm")?;
        let running: Vec<_> = workloads.iter().filter(|workload| workload.replicas != 0).map(|w| scale(w, 0)).collect();
        if self.guards.allow(Guard::ScaledToZero, running.is_empty()) {
            Continue(())
        } else {
            Break(Decision::Act(running))
        }
    }

    /// Nobody has any volume of the Kanidm.
    pub(super) fn volumes_are_free(&self) -> Flow<()> {
        let holders = self.seen(self.world.holders.as_ref(), "who has the volumes")?;
        let named: Vec<_> =
            holders.iter().map(|holder| format!("{} to leave volume claim '{}'", holder.who, holder.claim)).collect();
        if self.guards.allow(Guard::VolumesAreFree, named.is_empty()) {
            Continue(())
        } else {
            Break(self.wait_for(named))
        }
    }

    /// The StatefulSets as they are to be, from a list of wanted counts; those that are not in it are at zero.
    pub(super) fn counts(&self, wanted: &[(String, i32)]) -> Flow<Vec<Effect>> {
        let workloads = self.seen(self.world.workloads.as_ref(), "the StatefulSets of the Kanidm")?;
        let statefulsets = workloads.iter().filter(|workload| workload.kind == WorkloadKind::StatefulSet);
        let differing = statefulsets.filter_map(|workload| {
            let wanted = wanted.iter().find(|(name, _)| *name == workload.name).map_or(0, |(_, replicas)| *replicas);
            (workload.replicas != wanted).then(|| scale(workload, wanted))
        });
        Continue(differing.collect())
    }

    /// This restore's Job for this task, if it exists.
    pub(super) fn job(&self, task: Task) -> Flow<Option<&'a JobSeen>> {
        Continue(self.seen(self.world.jobs.as_ref(), "the Jobs of this restore")?.get(&task))
    }

    /// A Job that has not answered as it should: wait for it, or take it for failed.
    pub(super) fn not_yet(&self, task: Task, job: &JobSeen) -> Decision {
        let name = super::job::name(&self.world.request, task);
        match job {
            JobSeen::Running(None) => self.wait(format!("Job '{name}'")),
            JobSeen::Running(Some(trouble)) => self.wait(format!("Job '{name}': {trouble}")),
            JobSeen::Failed(message) => self.fail(Cause::JobFailed, format!("Job '{name}' failed: {message}")),
            JobSeen::Ended(_) => self.fail(
                Cause::JobFailed,
                format!("Job '{name}' ended without saying what it did, which counts as nothing done"),
            ),
        }
    }

    /// The frozen plan, which every phase after Validating has.
    pub(super) fn plan(&self) -> Flow<&'a RestorePlan> {
        match &self.saved.plan {
            Some(plan) => Continue(plan),
            None => Break(self.fail(
                Cause::InvalidRequest,
                "the plan is gone from the status, and nothing else knows what there was before",
            )),
        }
    }

    /// Volumes of the plan that are still there, and whether each is being deleted.
    pub(super) fn old_volumes(&self, plan: &RestorePlan) -> Flow<Vec<(PlannedClaim, bool)>> {
        let claims = self.seen(self.world.claims.as_ref(), "the volume claims of the Kanidm")?;
        let is_planned = |claim: &PlannedClaim| {
            let beside_the_primary = claim.name != plan.primary_claim.name;
            self.guards.allow(Guard::OnlyPlannedVolumes, beside_the_primary && plan.claims.contains(claim))
        };
        Continue(
            claims.iter().filter(|claim| is_planned(&claim.id)).map(|claim| (claim.id.clone(), claim.ending)).collect(),
        )
    }
}

fn scale(workload: &Workload, replicas: i32) -> Effect {
    Effect::Scale {
        kind: workload.kind,
        name: workload.name.clone(),
        uid: workload.uid.clone(),
        version: workload.version.clone(),
        replicas,
    }
}
