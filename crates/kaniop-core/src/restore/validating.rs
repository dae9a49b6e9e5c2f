//! Pending and Validating: everything that can be found out without an outage is found out here, so that a wrong request costs nothing. The
//! last act is the claim, by compare-and-swap: of two that are started together exactly one gets it.

use std::ops::ControlFlow::{Break, Continue};

use kaniop_api::restore::{Cause, Phase};

use super::effect::{Decision, Effect, Task};
use super::guard::Guard;
use super::world::{Answer, JobSeen, LiveProof, OtherState, Target};
use super::{Flow, Pass, evidence, persist, plan};

impl Pass<'_> {
    pub(super) fn pending(&self) -> Flow<Decision> {
        if self.world.request.deleting {
            return self.over();
        }
        if !self.guards.allow(Guard::FinalizerFirst, self.world.request.finalizer) {
            return Break(Decision::Act(vec![Effect::AddFinalizer]));
        }
        let mut next = self.saved.entering(Phase::Validating, self.now);
        next.target_uid = Some(self.world.request.target_uid.clone());
        Continue(persist(next))
    }

    pub(super) fn validating(&self, target: &Target) -> Flow<Decision> {
        if self.is_ours(target.claim.as_deref()) {
            return self.claimed(target);
        }
        if self.was_ours(target) {
            // Somebody took the annotation off by hand before the plan was frozen.
            return Break(Decision::Act(vec![Effect::Claim { version: target.version.clone() }]));
        }
        if self.world.request.deleting {
            return Break(self.fail(Cause::Deleted, "it was deleted before anything was touched"));
        }
        self.seen(self.world.claims.as_ref(), "the volume claims of the Kanidm")?;
        self.seen(self.world.workloads.as_ref(), "the StatefulSets of the Kanidm")?;
        let wrong = self.refusals(target);
        if !wrong.is_empty() {
            return Break(self.fail(Cause::InvalidRequest, wrong.join("; ")));
        }
        let predecessor = self.predecessor(target)?;
        self.file_where_a_server_lives(target)?;
        self.image_runs()?;
        self.remember(target, predecessor)?;
        Continue(Decision::Act(vec![Effect::Claim { version: target.version.clone() }]))
    }

    /// The claim is ours: freeze the plan. From here on whatever goes wrong is undone, or is known not to be.
    fn claimed(&self, target: &Target) -> Flow<Decision> {
        self.seen(self.world.claims.as_ref(), "the volume claims of the Kanidm")?;
        let Some(plan) = self.saved.plan.clone().or_else(|| plan::fresh(self.world, target)) else {
            return Break(self.wait("the volume claim of the primary"));
        };
        let mut next = self.saved.entering(Phase::Quiescing, self.now);
        next.plan = Some(plan);
        next.mutated = super::claim::inherits(&next);
        Continue(persist(next))
    }

    /// Every mistake of the request at once.
    fn refusals(&self, target: &Target) -> Vec<String> {
        let mut wrong = Vec::new();
        if !target.external_nodes.is_empty() {
            wrong.push(format!(
                "external replication nodes are configured ({}), which hold newer changes that nobody here can stop: remove them first, and \
                 refresh them from this cluster afterwards",
                target.external_nodes.join(", ")
            ));
        }
        if target.paused {
            wrong.push("spec.paused of the Kanidm is set: nothing would carry the restore out".to_owned());
        }
        match (&target.primary, &target.primary_claim) {
            (None, _) => wrong.push("the spec of the Kanidm is not valid: see its Ready condition".to_owned()),
            (Some(_), None) => wrong.push(
                "the database of the Kanidm is on no persistent volume: there is nothing to restore onto".to_owned(),
            ),
            (Some(_), Some(claim)) => {
                let mut seen = self.world.claims.iter().flatten();
                if !seen.any(|seen| seen.id.name == *claim && !seen.ending) {
                    wrong.push(format!(
                        "the volume claim '{claim}' of the primary does not exist, and with it no backup"
                    ));
                }
            }
        }
        let of_primary =
            |statefulset: &str| target.primary.as_deref().and_then(|pod| pod.strip_suffix("-0")) == Some(statefulset);
        if target.groups.iter().any(|group| of_primary(&group.statefulset) && group.replicas < 1) {
            wrong.push("the primary's replica group has no replicas: ask for at least one".to_owned());
        }
        if !is_basename(&self.world.request.file_name) {
            wrong.push(format!("'{}' is not the plain name of a file", self.world.request.file_name));
        }
        wrong.extend(super::job::refused_image(&self.world.request.image));
        let servers = target.image.as_deref();
        wrong.extend(servers.and_then(|servers| evidence::image_objection(&self.world.request.image, servers)));
        wrong
    }

    /// The failed restore that the claim would pass from, if there is one; and whether it may be taken at all.
    fn predecessor(&self, target: &Target) -> Flow<Option<String>> {
        let others = self.seen(self.world.others.as_ref(), "the other restores of the Kanidm")?;
        let Some(holder) = &target.claim else {
            let over = self.guards.allow(Guard::MaintenanceIsOver, target.maintenance.is_none());
            let name = || target.maintenance.as_ref().map_or("", |maintenance| &maintenance.name);
            return if over {
                Continue(None)
            } else {
                Break(self.wait(format!("the end of the maintenance by restore '{}'", name())))
            };
        };
        let other = others.iter().find(|other| other.uid == *holder);
        match other.map(|other| (other, other.state)) {
            Some((other, OtherState::Live)) if !self.guards.allow(Guard::ClaimIsFree, false) => {
                let message = format!("restore '{}' of this Kanidm is under way: wait for its end", other.name);
                Break(self.fail(Cause::Busy, message))
            }
            Some((other, OtherState::Over)) => {
                Break(self.wait(format!("restore '{}', which is over, to give its claim back", other.name)))
            }
            Some((_, OtherState::Live)) => Continue(None),
            Some((_, OtherState::Stranded)) | None => Continue(Some(holder.clone())),
        }
    }

    fn file_where_a_server_lives(&self, target: &Target) -> Flow<()> {
        match &self.world.live {
            LiveProof::NoServer => Continue(()),
            LiveProof::Unknown => Break(self.wait("the running primary to look at the backup")),
            LiveProof::Refused(why) => {
                Break(self.fail(
                    Cause::InvalidRequest,
                    format!("'{}' cannot be restored: {why}", self.world.request.file_name),
                ))
            }
            LiveProof::Proven(found) => self.acceptable(found, target),
        }
    }

    /// Whether this backup belongs here.
    pub(super) fn acceptable(&self, found: &kaniop_api::restore::DatabaseEvidence, target: &Target) -> Flow<()> {
        let objections = evidence::objections(found, target, &self.world.request.image);
        if objections.is_empty() {
            return Continue(());
        }
        let message = format!("'{}' cannot be restored: {}", self.world.request.file_name, objections.join("; "));
        Break(self.fail(Cause::EvidenceDiffers, message))
    }

    fn image_runs(&self) -> Flow<()> {
        match self.job(Task::Image)? {
            None => Break(Decision::Act(vec![Effect::CreateJob(Task::Image)])),
            Some(JobSeen::Ended(Some(Answer::Image(_)))) => Continue(()),
            Some(other) => Break(self.not_yet(Task::Image, other)),
        }
    }

    /// Persists whom the claim will pass from, with the plan that passes too, before it does.
    fn remember(&self, target: &Target, predecessor: Option<String>) -> Flow<()> {
        let predecessor = predecessor.filter(|_| !self.guards.allow(Guard::LatchIsInherited, false));
        let known = self.saved.plan.as_ref().and_then(|plan| plan.predecessors.last());
        if known == predecessor.as_ref() {
            return Continue(());
        }
        let mut next = self.saved.clone();
        next.plan = match &predecessor {
            None => None,
            Some(holder) => {
                let from = self.world.others.iter().flatten().find(|other| other.uid == *holder);
                let Some(plan) = plan::inherited(self.world, target, from, holder) else {
                    return Break(self.wait("the volume claim of the primary"));
                };
                Some(plan)
            }
        };
        Break(persist(next))
    }
}

/// A name without any folder.
fn is_basename(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])
}
