//! What is said of a restore: its status with conditions and a message that says what happens, or what to do. It decides nothing.

use jiff::Timestamp;
use kaniop_api::restore::{FORCE_RELEASE, KanidmRestoreStatus, Phase};

use super::effect::{Decision, Task};
use super::job;
use super::saved::Saved;
use super::world::Request;
use crate::condition::{self, Statement};
use crate::reason::Reason;

/// The status after a decision, on top of the old one. Written when it differs.
#[must_use]
pub fn status(
    old: Option<&KanidmRestoreStatus>,
    saved: &Saved,
    decision: &Decision,
    request: &Request,
    at: (Option<i64>, Timestamp),
) -> KanidmRestoreStatus {
    let (generation, now) = at;
    let message = message(saved, decision, request);
    let mut status = old.cloned().unwrap_or_default();
    saved.write(&mut status);
    let stated = statements(saved, &message);
    status.conditions =
        Some(condition::after(status.conditions.as_deref().unwrap_or_default(), &stated, generation, now));
    status.observed_generation = generation;
    status.message = Some(message);
    let known = |from: Phase, task| saved.phase_times.contains_key(&from).then(|| job::name(request, task));
    status.restore_job_name = known(Phase::RestoringPrimary, Task::Restore);
    status.verify_job_name = known(Phase::Verifying, Task::Verify);
    status
}

fn statements(saved: &Saved, message: &str) -> [Statement; 3] {
    let over = matches!(saved.phase, Phase::Completed | Phase::Failed);
    let (completed, failed) = (saved.phase == Phase::Completed, saved.phase == Phase::Failed);
    let ready = if completed { Reason::RestoreCompleted } else { Reason::RestoreNotCompleted };
    let failure = if failed { Reason::RestoreFailed } else { Reason::NoRestoreFailure };
    [
        Statement::new("Progressing", !over, reason(saved.phase), message),
        Statement::new("Ready", completed, ready, message),
        Statement::new("Failed", failed, failure, if failed { message } else { "" }),
    ]
}

/// The phase as a reason.
#[must_use]
pub const fn reason(phase: Phase) -> Reason {
    match phase {
        Phase::Pending => Reason::Pending,
        Phase::Validating => Reason::Validating,
        Phase::Quiescing => Reason::Quiescing,
        Phase::RestoringPrimary => Reason::RestoringPrimary,
        Phase::Verifying => Reason::Verifying,
        Phase::RebuildingReplicas => Reason::RebuildingReplicas,
        Phase::Resuming => Reason::Resuming,
        Phase::Completed => Reason::Completed,
        Phase::Failed => Reason::Failed,
    }
}

fn message(saved: &Saved, decision: &Decision, request: &Request) -> String {
    if let Some(failure) = &saved.failure {
        return format!("{}: {}. {}", super::name(failure.phase), failure.message, consequence(saved, request));
    }
    if let Decision::Wait { why, .. } = decision {
        return format!("waiting for {}", why.on.join(", "));
    }
    match saved.phase {
        Phase::Pending => "not looked at yet".to_owned(),
        Phase::Validating => "everything that can be checked without an outage is checked".to_owned(),
        Phase::Quiescing => "the servers are stopped and the backup is proven once more".to_owned(),
        Phase::RestoringPrimary => "the database of the primary is replaced".to_owned(),
        Phase::Verifying => "the restored database is compared with the backup".to_owned(),
        Phase::RebuildingReplicas => "older databases are discarded and the servers are started".to_owned(),
        Phase::Resuming => "credentials that the backup brought back are replaced".to_owned(),
        Phase::Completed => {
            format!("Kanidm '{}' serves what is in '{}'", request.target, request.file_name)
        }
        Phase::Failed => "it failed".to_owned(),
    }
}

/// What a failure means for the Kanidm, and what to do.
fn consequence(saved: &Saved, request: &Request) -> String {
    let target = &request.target;
    match (&saved.forced, saved.mutated, saved.phase) {
        (Some(reason), ..) if saved.replicas_cleared => format!("Kanidm '{target}' was let go by force: {reason}"),
        (Some(reason), ..) => format!("Kanidm '{target}' is being let go by force: {reason}"),
        (None, true, _) => format!(
            "Kanidm '{target}' stays in maintenance: restore it again, from a backup that is known to be good; this one's latch and plan pass on. \
             The last resort is the annotation {FORCE_RELEASE} with a reason, on this object"
        ),
        (None, false, Phase::Failed) => format!("Nothing was changed in Kanidm '{target}'"),
        (None, false, _) => format!("Kanidm '{target}' is put back as it was"),
    }
}
