//! RestoringPrimary and Verifying: the database is replaced, and nothing is believed of that but what is read back.

use std::ops::ControlFlow::{Break, Continue};

use kaniop_api::restore::{Cause, Phase, RestoreEvidence, RestoreFailure, Servers};

use super::effect::{Decision, Effect, Task};
use super::evidence::differences;
use super::guard::Guard;
use super::world::{Answer, JobSeen, Target};
use super::{Flow, Pass, persist};

impl Pass<'_> {
    pub(super) fn restoring(&self, target: &Target) -> Flow<Decision> {
        self.hold(target, Servers::None)?;
        self.stop()?;
        match self.job(Task::Restore)? {
            None => self.start(Task::Restore),
            // It has moved the old database aside, so what is found in its place from now on is its work or none.
            Some(JobSeen::Ended(Some(Answer::Restored(path)))) => self.replaced(path.as_ref()),
            Some(JobSeen::Ended(None)) if self.guards.allow(Guard::RestoreHasAnswered, false) => self.replaced(None),
            Some(other) => Break(self.not_yet(Task::Restore, other)),
        }
    }

    /// The Job says that it did its work. Whether that is so, the next phase finds out.
    fn replaced(&self, safety_copy: Option<&String>) -> Flow<Decision> {
        self.volumes_are_free()?;
        let mut next = self.saved.entering(Phase::Verifying, self.now);
        next.safety_copy = safety_copy.cloned();
        Continue(persist(next))
    }

    pub(super) fn verifying(&self, target: &Target) -> Flow<Decision> {
        self.hold(target, Servers::None)?;
        self.stop()?;
        if !self.saved.is_proven() {
            return match self.job(Task::Verify)? {
                None => self.start(Task::Verify),
                Some(JobSeen::Ended(Some(Answer::Database(found)))) => self.compared(found),
                Some(_) if self.guards.allow(Guard::RestoredIsProven, false) => self.compared(&Default::default()),
                Some(other) => Break(self.not_yet(Task::Verify, other)),
            };
        }
        match self.job(Task::Unmark)? {
            None if !self.guards.allow(Guard::MarkIsRemoved, false) => self.start(Task::Unmark),
            Some(other) if !matches!(other, JobSeen::Ended(Some(Answer::Unmarked))) => {
                Break(self.not_yet(Task::Unmark, other))
            }
            _ => Continue(persist(self.saved.entering(Phase::RebuildingReplicas, self.now))),
        }
    }

    /// Makes a Job that works on the primary's volume, when nobody has it.
    pub(super) fn start(&self, task: Task) -> Flow<Decision> {
        self.volumes_are_free()?;
        Continue(Decision::Act(vec![Effect::CreateJob(task)]))
    }

    /// Persists what was read from the restored database, and whether it is what was in the backup.
    fn compared(&self, found: &kaniop_api::restore::DatabaseEvidence) -> Flow<Decision> {
        let source = self.saved.evidence.clone().unwrap_or_default().source;
        let found_differences = differences(&source, found);
        let agrees = self.guards.allow(Guard::RestoredIsProven, found_differences.is_empty());
        let mut next = self.saved.clone();
        next.evidence = Some(RestoreEvidence { source, restored: Some(found.clone()), agrees });
        if !agrees {
            next.failure = Some(RestoreFailure {
                phase: self.saved.phase,
                cause: Cause::EvidenceDiffers,
                message: format!(
                    "the restored database is not what is in the backup: {}",
                    found_differences.join("; ")
                ),
            });
        }
        Continue(persist(next))
    }
}
