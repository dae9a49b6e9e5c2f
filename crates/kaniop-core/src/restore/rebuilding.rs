//! RebuildingReplicas and Resuming: what is older than the restore is discarded, the primary starts alone, the others join it anew, and the
//! claim goes when the credentials work.

use std::ops::ControlFlow::{Break, Continue};

use kaniop_api::restore::{Phase, RestorePlan, Servers};

use super::effect::{Decision, Effect};
use super::guard::Guard;
use super::world::{Credentials, Target};
use super::{Flow, Pass, persist};

impl Pass<'_> {
    pub(super) fn rebuilding(&self, target: &Target) -> Flow<Decision> {
        let plan = self.plan()?;
        if !self.guards.allow(Guard::ReplicasAreCleared, self.saved.replicas_cleared) {
            self.hold(target, Servers::None)?;
            self.stop()?;
            self.discard(plan)?;
            let mut next = self.saved.clone();
            next.replicas_cleared = true;
            return Break(persist(next));
        }
        if target.servers == Servers::All && self.is_ours(target.claim.as_deref()) {
            self.hold(target, Servers::All)?;
            self.scaled(&all(plan))?;
            self.every_node_serves(plan)?;
            return Continue(persist(self.saved.entering(Phase::Resuming, self.now)));
        }
        self.hold(target, Servers::Primary)?;
        self.scaled(&primary_alone(plan))?;
        if !self.guards.allow(Guard::PrimaryServesFirst, false) {
            self.serve(std::slice::from_ref(&plan.primary))?;
        }
        Continue(Decision::Act(vec![Effect::Allow { servers: Servers::All, version: target.version.clone() }]))
    }

    pub(super) fn resuming(&self, target: &Target) -> Flow<Decision> {
        let plan = self.plan()?;
        if !self.guards.allow(Guard::ReleaseIsPersisted, self.saved.credentials_renewed) {
            self.hold(target, Servers::All)?;
            self.scaled(&all(plan))?;
            self.credentials()?;
            self.every_node_serves(plan)?;
            let mut next = self.saved.clone();
            next.credentials_renewed = true;
            return Break(persist(next));
        }
        if self.is_ours(target.claim.as_deref()) {
            self.credentials()?;
            return Break(Decision::Act(vec![Effect::Release { version: target.version.clone() }]));
        }
        Continue(persist(self.saved.entering(Phase::Completed, self.now)))
    }

    fn credentials(&self) -> Flow<()> {
        let renewed = match self.world.credentials {
            Credentials::Renewed => true,
            Credentials::Stale | Credentials::Unknown => self.guards.allow(Guard::CredentialsAreRenewed, false),
        };
        match self.world.credentials {
            _ if renewed => Continue(()),
            Credentials::Stale => Break(Decision::Act(vec![Effect::RenewCredentials])),
            _ => Break(self.wait("the server to say whether the credentials work")),
        }
    }

    /// Deletes what is left of the plan's volumes but the primary's, and waits until all of them are gone.
    pub(super) fn discard(&self, plan: &RestorePlan) -> Flow<()> {
        let left = self.old_volumes(plan)?;
        if left.is_empty() {
            return Continue(());
        }
        let unasked: Vec<_> =
            left.iter().filter(|(_, ending)| !ending).map(|(claim, _)| Effect::Discard(claim.clone())).collect();
        if !unasked.is_empty() {
            return Break(Decision::Act(unasked));
        }
        Break(
            self.wait_for(left.iter().map(|(claim, _)| format!("volume claim '{}' to be gone", claim.name)).collect()),
        )
    }

    fn scaled(&self, wanted: &[(String, i32)]) -> Flow<()> {
        let differing = self.counts(wanted)?;
        if differing.is_empty() { Continue(()) } else { Break(Decision::Act(differing)) }
    }

    fn every_node_serves(&self, plan: &RestorePlan) -> Flow<()> {
        if self.guards.allow(Guard::EveryNodeServes, false) {
            return Continue(());
        }
        let pods: Vec<_> = plan
            .groups
            .iter()
            .flat_map(|group| (0..group.replicas).map(|ordinal| format!("{}-{ordinal}", group.statefulset)))
            .collect();
        self.serve(&pods)
    }

    /// These pods serve the domain that was restored.
    fn serve(&self, pods: &[String]) -> Flow<()> {
        let nodes = self.seen(self.world.nodes.as_ref(), "the servers")?;
        let domain = self.saved.evidence.as_ref().map(|evidence| evidence.source.domain_uuid.as_str());
        let not_yet: Vec<_> = pods
            .iter()
            .filter_map(|pod| match nodes.iter().find(|node| node.pod == *pod) {
                Some(node) if !node.serving => Some(format!("pod '{pod}' to serve")),
                Some(node) if node.domain_uuid.as_deref() != domain => {
                    Some(format!("pod '{pod}' to show the restored domain"))
                }
                Some(_) => None,
                None => Some(format!("pod '{pod}' to exist")),
            })
            .collect();
        if not_yet.is_empty() { Continue(()) } else { Break(self.wait_for(not_yet)) }
    }
}

/// Every group as the plan has it.
pub(super) fn all(plan: &RestorePlan) -> Vec<(String, i32)> {
    plan.groups.iter().map(|group| (group.statefulset.clone(), group.replicas)).collect()
}

fn primary_alone(plan: &RestorePlan) -> Vec<(String, i32)> {
    let statefulset = plan.primary.strip_suffix("-0").unwrap_or(&plan.primary);
    vec![(statefulset.to_owned(), 1)]
}
