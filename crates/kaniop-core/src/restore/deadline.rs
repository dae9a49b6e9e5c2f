//! How long each phase may take before that counts as a failure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kaniop_api::restore::Phase;

use super::effect::Task;

/// When to look again at something that is waited for; most of it wakes the restore by itself.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// How long a phase may take. Those that run a Job give it time to be scheduled, to end, and to be seen.
pub(super) const fn of(phase: Phase) -> Duration {
    let minutes = match phase {
        Phase::Pending | Phase::Completed | Phase::Failed => 15,
        Phase::Validating => 20,
        Phase::Quiescing => 30,
        Phase::RestoringPrimary => 150,
        Phase::Verifying => 120,
        Phase::RebuildingReplicas => 120,
        Phase::Resuming => 60,
    };
    Duration::from_secs(minutes * 60)
}

/// How long a Job may run, the pull of its image included. Restoring took 44 s for 23,000 entries.
pub(super) const fn of_job(task: Task) -> Duration {
    let minutes = match task {
        Task::Image | Task::Preflight | Task::Unmark => 15,
        Task::Restore => 120,
        Task::Verify => 60,
    };
    Duration::from_secs(minutes * 60)
}

/// That much later.
pub(super) fn after(since: Timestamp, limit: Duration) -> Timestamp {
    // A time beyond what can be written is no deadline at all, which only a status that was edited by hand could ask for.
    let limit = SignedDuration::try_from(limit).unwrap_or(SignedDuration::ZERO);
    since.checked_add(limit).unwrap_or(since)
}
