//! What a restore does to the world. Every effect is named by the restore's UID or carries the UID or version of what it was decided for, so
//! that doing it twice is doing it once, and doing it late is refused.

use std::time::Duration;

use jiff::Timestamp;
use kaniop_api::restore::{PlannedClaim, Servers};

use super::saved::Saved;
use super::world::WorkloadKind;

/// What to do in this pass: one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Write this, on top of what was read, and nothing else.
    Persist(Box<Saved>),
    /// Do these, in this order; the first that fails ends the pass.
    Act(Vec<Effect>),
    /// Do nothing, and look again then or when something changes.
    Wait {
        /// What for.
        why: Why,
        /// When to look again.
        after: Duration,
    },
    /// Nothing is left to do. Look again only when something changes.
    Finished,
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// Who or what keeps it, each for people. Never empty.
    pub on: Vec<String>,
    /// When the wait is over and counts as a failure. None once the restore has failed, and what is left to do is worth any wait.
    pub until: Option<Timestamp>,
}

/// One effect.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Put our finalizer on the request.
    AddFinalizer,
    /// Take our finalizer off the request.
    RemoveFinalizer,
    /// Set the claim to our UID and let no server run, if the target is as it was read.
    Claim {
        /// The target's resourceVersion.
        version: String,
    },
    /// Set which servers may run, if the target is as it was read.
    Allow {
        /// These.
        servers: Servers,
        /// The target's resourceVersion.
        version: String,
    },
    /// Take our claim away, if the target is as it was read.
    Release {
        /// The target's resourceVersion.
        version: String,
    },
    /// Set the number of pods, if it is as it was read.
    Scale {
        /// What.
        kind: WorkloadKind,
        /// Of this name.
        name: String,
        /// Of this UID.
        uid: String,
        /// At this resourceVersion.
        version: String,
        /// To so many.
        replicas: i32,
    },
    /// Make the Job of this task, unless there is one.
    CreateJob(Task),
    /// Delete the Job of this task with its pods.
    DeleteJob(Task),
    /// Delete a volume claim, by name and UID.
    Discard(PlannedClaim),
    /// Revoke what is not ours, issue what is missing, rewrite the Secrets.
    RenewCredentials,
}

/// What a Job is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Task {
    /// Shows that the image can be pulled and runs here. Has no volume.
    Image,
    /// Proves the backup and keeps it under a name of its own.
    Preflight,
    /// Replaces the database.
    Restore,
    /// Reads the database back.
    Verify,
    /// Takes the mark off the volume.
    Unmark,
}

impl Task {
    /// Every task, in order.
    pub const ALL: [Self; 5] = [Self::Image, Self::Preflight, Self::Restore, Self::Verify, Self::Unmark];

    /// As it stands in names and labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Preflight => "preflight",
            Self::Restore => "restore",
            Self::Verify => "verify",
            Self::Unmark => "unmark",
        }
    }
}
