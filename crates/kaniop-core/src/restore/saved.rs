//! What a restore has persisted: all that its next step may rely on besides what is seen. It is the object's status without the words.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kaniop_api::restore::{KanidmRestoreStatus, Phase, RestoreEvidence, RestoreFailure, RestorePlan};

/// What a restore has persisted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Saved {
    /// How far it is.
    pub phase: Phase,
    /// UID of the Kanidm that was checked.
    pub target_uid: Option<String>,
    /// What it was decided to do.
    pub plan: Option<RestorePlan>,
    /// The latch: from here on a failure leaves the Kanidm offline. Never taken back.
    pub mutated: bool,
    /// What was read from backup and database.
    pub evidence: Option<RestoreEvidence>,
    /// Where the old database lies.
    pub safety_copy: Option<String>,
    /// No volume from before the restore is left but the primary's.
    pub replicas_cleared: bool,
    /// The credentials are new and work: the claim may go.
    pub credentials_renewed: bool,
    /// What went wrong. In a phase other than `Failed`: what remains to be done is to undo.
    pub failure: Option<RestoreFailure>,
    /// The reason with which somebody let the Kanidm go after a failure.
    pub forced: Option<String>,
    /// When each phase began.
    pub phase_times: BTreeMap<Phase, Timestamp>,
}

impl Saved {
    /// What the status of an object says. An object without status is at its beginning.
    #[must_use]
    pub fn read(status: Option<&KanidmRestoreStatus>) -> Self {
        let Some(status) = status.cloned() else { return Self::default() };
        let times = status.phase_times.unwrap_or_default();
        Self {
            phase: status.phase.unwrap_or_default(),
            target_uid: status.observed_target_uid,
            plan: status.plan,
            mutated: status.database_mutation_started.unwrap_or_default(),
            evidence: status.evidence,
            safety_copy: status.safety_copy,
            replicas_cleared: status.replicas_cleared.unwrap_or_default(),
            credentials_renewed: status.credentials_renewed.unwrap_or_default(),
            failure: status.failure,
            forced: status.force_released,
            phase_times: PHASES.into_iter().filter_map(|phase| Some((phase, times.get(name(phase))?.0))).collect(),
        }
    }

    /// Writes itself into a status, whose words and conditions stay as they are.
    pub fn write(&self, status: &mut KanidmRestoreStatus) {
        let times = self.phase_times.iter().map(|(phase, time)| (name(*phase).to_owned(), Time(*time)));
        status.phase = Some(self.phase);
        status.observed_target_uid.clone_from(&self.target_uid);
        status.plan.clone_from(&self.plan);
        status.database_mutation_started = Some(self.mutated);
        status.evidence.clone_from(&self.evidence);
        status.safety_copy.clone_from(&self.safety_copy);
        status.replicas_cleared = Some(self.replicas_cleared);
        status.credentials_renewed = Some(self.credentials_renewed);
        status.failure.clone_from(&self.failure);
        status.force_released.clone_from(&self.forced);
        status.phase_times = Some(times.collect());
    }

    /// This, in another phase that begins now.
    #[must_use]
    pub(super) fn entering(&self, phase: Phase, now: Timestamp) -> Self {
        let mut next = self.clone();
        next.phase = phase;
        next.phase_times.insert(phase, now);
        next
    }

    /// Since when it is in its phase.
    pub(super) fn since(&self) -> Option<Timestamp> {
        self.phase_times.get(&self.phase).copied()
    }

    /// The restored database was compared with the backup and is the same.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.evidence.as_ref().is_some_and(|evidence| evidence.agrees)
    }
}

/// Every phase, in order.
pub const PHASES: [Phase; 9] = [
    Phase::Pending,
    Phase::Validating,
    Phase::Quiescing,
    Phase::RestoringPrimary,
    Phase::Verifying,
    Phase::RebuildingReplicas,
    Phase::Resuming,
    Phase::Completed,
    Phase::Failed,
];

/// The phase as it stands in a status.
#[must_use]
pub const fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "Pending",
        Phase::Validating => "Validating",
        Phase::Quiescing => "Quiescing",
        Phase::RestoringPrimary => "RestoringPrimary",
        Phase::Verifying => "Verifying",
        Phase::RebuildingReplicas => "RebuildingReplicas",
        Phase::Resuming => "Resuming",
        Phase::Completed => "Completed",
        Phase::Failed => "Failed",
    }
}
