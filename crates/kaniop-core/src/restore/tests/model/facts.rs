//! The state of the model: one Kanidm with a primary and a secondary, two restores, and whatever may be wrong with any of it.

use std::sync::Arc;

use kaniop_api::restore::Servers;

use crate::restore::{Saved, Task};

/// One of the two restores.
pub(super) type Id = usize;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub facts: Facts,
    /// What a leader that is paused, or a cache that lags, saw.
    pub past: Option<Box<Past>>,
    /// How much more may go wrong.
    pub faults: u8,
    /// What should never have happened, and did.
    pub broken: Vec<&'static str>,
    /// What happened at least once on the way here, for the properties that something can be reached.
    pub ghosts: Ghosts,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Past {
    pub facts: Facts,
    /// Whose pass the paused leader is in.
    pub restore: Id,
    /// What was written since: a write on top of what was read is refused.
    pub target_changed: bool,
    pub sets_changed: [bool; 2],
    pub saved_changed: [bool; 2],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Ghosts {
    /// The last restore that has persisted that the database may be changed.
    pub marked: Option<Id>,
    /// Somebody has let the Kanidm go by force.
    pub forced: bool,
    /// The second restore was made when all was still: it has to succeed.
    pub still: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Facts {
    pub restores: [Restore; 2],
    pub target: TargetFacts,
    /// Replicas of the StatefulSets of primary and secondary.
    pub sets: [i32; 2],
    pub pods: [Pod; 2],
    pub disk: Disk,
    pub secondary: Secondary,
    pub jobs: [[JobState; 5]; 2],
    /// Whose credentials are in the Secrets: of the time before (none), or renewed for a restore.
    pub credentials: Option<Id>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Restore {
    pub life: Life,
    pub deleting: bool,
    pub finalizer: bool,
    pub force: bool,
    pub saved: Arc<Saved>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Life {
    NotYet,
    Here,
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct TargetFacts {
    /// 0 as it was, 1 made again under the same name.
    pub uid: Option<u8>,
    pub claim: Option<Id>,
    pub servers: Servers,
    pub maintenance: Option<(Id, Servers)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Pod {
    Absent,
    Running,
    /// It should be gone, and its process may be alive.
    Stuck,
}

/// The primary's volume.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Disk {
    pub data: Data,
    pub mark: Option<Id>,
    /// Who may change it, from the journal.
    pub journal: Option<Id>,
    pub sealed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Data {
    Old,
    Half,
    /// The old one is out of the way, and nothing in its place.
    Empty,
    Restored(Id),
}

/// The secondary's volume: another one after it was discarded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Secondary {
    /// Which: none while there is none.
    pub claim: Option<u8>,
    /// How many there have been.
    pub made: u8,
    pub ending: bool,
    pub data: Replica,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Replica {
    Old,
    Empty,
    /// Refreshed from the primary, whose data were of this restore.
    Joined(Option<Id>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum JobState {
    Absent,
    Running,
    Failed,
    /// It ended with 0 and said nothing.
    Silent,
    /// It did what it was for, and said so.
    Good,
    /// It read something else than was hoped for.
    Differs,
}

pub(super) const SETS: [&str; 2] = ["idm-a", "idm-b"];
pub(super) const PODS: [&str; 2] = ["idm-a-0", "idm-b-0"];

impl Facts {
    pub(super) fn beginning() -> Self {
        let restore =
            |life| Restore { life, deleting: false, finalizer: false, force: false, saved: Arc::new(Saved::default()) };
        Self {
            restores: [restore(Life::Here), restore(Life::NotYet)],
            target: TargetFacts { uid: Some(0), claim: None, servers: Servers::None, maintenance: None },
            sets: [1, 1],
            pods: [Pod::Running, Pod::Running],
            disk: Disk { data: Data::Old, mark: None, journal: None, sealed: false },
            secondary: Secondary { claim: Some(0), made: 1, ending: false, data: Replica::Old },
            jobs: [[JobState::Absent; 5]; 2],
            credentials: None,
        }
    }

    pub(super) fn job(&self, id: Id, task: Task) -> JobState {
        self.jobs[id][task as usize]
    }

    pub(super) fn job_mut(&mut self, id: Id, task: Task) -> &mut JobState {
        &mut self.jobs[id][task as usize]
    }

    /// A Job of whomever that has the primary's volume.
    pub(super) fn job_on_volume(&self) -> bool {
        let mut running = (0..2).flat_map(|id| Task::ALL.map(|task| (id, task)));
        running.any(|(id, task)| task != Task::Image && self.job(id, task) == JobState::Running)
    }

    /// Restores that were followed by this one.
    pub(super) fn follows(&self, id: Id, other: Id) -> bool {
        let plan = self.restores[id].saved.plan.as_ref();
        plan.is_some_and(|plan| plan.predecessors.contains(&uid(other)))
    }
}

pub(super) fn uid(id: Id) -> String {
    ["uid-0", "uid-1"][id].to_owned()
}
