//! Everything beside the restore: the cluster's controller, the kubelet, the Jobs, and people. What may go wrong costs one of a few faults.

use kaniop_api::restore::{Phase, Servers};

use super::facts::{Data, Facts, Ghosts, Id, JobState, Life, Past, Pod, Replica, State};
use super::hand::{end_job, gone};
use super::look::read;
use crate::restore::{Task, holds};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Event {
    /// The cluster's controller does what it does.
    Cluster,
    PodStarts(usize),
    PodEnds(usize),
    /// A stuck pod goes at last.
    PodIsFreed(usize),
    SecondaryJoins,
    VolumeGoes,
    JobEnds(Id, Task),
    SecondRestore,

    /// A leader is paused in a pass for this restore, or its cache lags from here on.
    Pause(Id),
    JobFails(Id, Task),
    JobLeavesHalf(Id),
    /// The restore Job says that it did its work, and the path is empty.
    JobLies(Id),
    JobEndsSilently(Id, Task),
    JobVanishes(Id, Task),
    PodSticks(usize),
    PodDies(usize),
    ScaledByHand(usize),
    ClaimRemovedByHand,
    Deleted(Id),
    Forced(Id),
    TargetDeleted,
    TargetMadeAgain,
}

impl Event {
    pub(super) const fn is_fault(&self) -> bool {
        !matches!(
            self,
            Self::Cluster
                | Self::PodStarts(_)
                | Self::PodEnds(_)
                | Self::PodIsFreed(_)
                | Self::SecondaryJoins
                | Self::VolumeGoes
                | Self::JobEnds(..)
                | Self::SecondRestore
                | Self::Forced(_)
                | Self::TargetMadeAgain
        )
    }
}

/// What may happen next.
pub(super) fn events(state: &State) -> Vec<Event> {
    let mut events =
        vec![Event::Cluster, Event::SecondaryJoins, Event::VolumeGoes, Event::SecondRestore, Event::TargetMadeAgain];
    for pod in 0..2 {
        events.extend([Event::PodStarts(pod), Event::PodEnds(pod), Event::PodIsFreed(pod)]);
    }
    for id in 0..2 {
        events.extend(Task::ALL.map(|task| Event::JobEnds(id, task)));
        events.push(Event::Forced(id));
    }
    if state.faults == 0 {
        return events;
    }
    events.extend([Event::ClaimRemovedByHand, Event::TargetDeleted]);
    for id in 0..2 {
        events.extend([
            Event::Pause(id),
            Event::JobLeavesHalf(id),
            Event::JobLies(id),
            Event::Deleted(id),
            Event::Forced(id),
        ]);
        events.extend([Event::PodSticks(id), Event::PodDies(id), Event::ScaledByHand(id)]);
        for task in Task::ALL {
            events.extend([Event::JobFails(id, task), Event::JobEndsSilently(id, task), Event::JobVanishes(id, task)]);
        }
    }
    events
}

/// Lets it happen; no if it cannot.
pub(super) fn happen(state: &mut State, event: &Event) -> bool {
    let running = |state: &State, id, task| state.facts.job(id, task) == JobState::Running;
    match *event {
        Event::Cluster => return cluster(&mut state.facts),
        Event::PodStarts(pod) => return pod_starts(state, pod),
        Event::PodEnds(pod) => return pod_ends(&mut state.facts, pod, Pod::Absent),
        Event::PodSticks(pod) => return pod_ends(&mut state.facts, pod, Pod::Stuck),
        Event::PodIsFreed(pod) if state.facts.pods[pod] == Pod::Stuck => state.facts.pods[pod] = Pod::Absent,
        Event::PodDies(pod) if state.facts.pods[pod] == Pod::Running => state.facts.pods[pod] = Pod::Absent,
        Event::SecondaryJoins => return joins(&mut state.facts),
        Event::VolumeGoes => return volume_goes(&mut state.facts),
        Event::JobEnds(id, task) if running(state, id, task) => {
            let end = good_end(&mut state.facts, id, task);
            *state.facts.job_mut(id, task) = end;
        }
        Event::JobFails(id, task) if running(state, id, task) => *state.facts.job_mut(id, task) = JobState::Failed,
        Event::JobEndsSilently(id, task) if running(state, id, task) => {
            *state.facts.job_mut(id, task) = JobState::Silent;
        }
        Event::JobLeavesHalf(id) if running(state, id, Task::Restore) => {
            state.facts.disk.data = Data::Half;
            *state.facts.job_mut(id, Task::Restore) = JobState::Failed;
        }
        Event::JobLies(id) if running(state, id, Task::Restore) => {
            state.facts.disk.data = Data::Empty;
            *state.facts.job_mut(id, Task::Restore) = JobState::Good;
        }
        Event::JobVanishes(id, task) if state.facts.job(id, task) != JobState::Absent => {
            end_job(&mut state.facts, id, task);
        }
        Event::SecondRestore if state.facts.restores[1].life == Life::NotYet => {
            state.facts.restores[1].life = Life::Here;
        }
        Event::Pause(restore) if state.past.is_none() && state.facts.restores[restore].life == Life::Here => {
            state.past = Some(Box::new(Past {
                facts: state.facts.clone(),
                restore,
                target_changed: false,
                sets_changed: [false; 2],
                saved_changed: [false; 2],
            }));
        }
        Event::ScaledByHand(set) if state.facts.target.uid.is_some() => {
            state.facts.sets[set] = 1 - state.facts.sets[set];
        }
        Event::ClaimRemovedByHand if state.facts.target.claim.is_some() => state.facts.target.claim = None,
        Event::Deleted(id) => return deleted(state, id),
        Event::Forced(id) => return forced(&mut state.facts, id),
        Event::TargetDeleted if state.facts.target.uid == Some(0) => target_goes(&mut state.facts),
        Event::TargetMadeAgain if state.facts.target.uid.is_none() => {
            // A leader acts for seconds on what it has read, which its lease sees to; deleting and making a Kanidm again takes longer.
            state.past = None;
            state.facts.target.uid = Some(1);
            state.facts.sets = [1, 1];
        }
        _ => return false,
    }
    true
}

fn target_goes(facts: &mut Facts) {
    facts.target.uid = None;
    facts.target.claim = None;
    facts.target.servers = Servers::None;
    facts.target.maintenance = None;
    facts.sets = [0, 0];
}

fn cluster(facts: &mut Facts) -> bool {
    if facts.target.uid.is_none() {
        return false;
    }
    let before = (facts.target.maintenance, facts.sets);
    match (facts.target.claim, facts.target.maintenance) {
        (Some(id), _) => facts.target.maintenance = Some((id, facts.target.servers)),
        (None, Some((id, _))) => {
            let restore = &facts.restores[id];
            if restore.life != Life::Here || !holds(&restore.saved) {
                facts.target.maintenance = None;
            }
        }
        (None, None) => facts.sets = [1, 1],
    }
    before != (facts.target.maintenance, facts.sets)
}

fn pod_starts(state: &mut State, pod: usize) -> bool {
    let facts = &mut state.facts;
    let allowed = match facts.target.maintenance.map(|(_, servers)| servers) {
        None | Some(Servers::All) => true,
        Some(Servers::Primary) => pod == 0,
        Some(Servers::None) => false,
    };
    // The init container refuses: by the pods' configuration, and by the mark on the volume.
    let refused = !allowed || (pod == 0 && facts.disk.mark.is_some()) || (pod == 1 && facts.secondary.ending);
    if facts.target.uid.is_none() || facts.sets[pod] == 0 || facts.pods[pod] != Pod::Absent || refused {
        return false;
    }
    facts.pods[pod] = Pod::Running;
    if pod == 1 && facts.secondary.claim.is_none() {
        facts.secondary.claim = Some(facts.secondary.made);
        facts.secondary.made += 1;
        facts.secondary.data = Replica::Empty;
    }
    if facts.target.uid == Some(0)
        && let Some(what) = wrong_start(facts, state.ghosts, pod)
        && !state.broken.contains(&what)
    {
        state.broken.push(what);
    }
    true
}

fn wrong_start(facts: &Facts, ghosts: Ghosts, pod: usize) -> Option<&'static str> {
    let last = ghosts.marked?;
    if pod == 1 {
        let old = matches!(facts.secondary.data, Replica::Old)
            || matches!(facts.secondary.data, Replica::Joined(whose) if whose != Some(last) && !ghosts.forced);
        return old.then_some("S4 a node with data from before started after the mark");
    }
    match facts.disk.data {
        _ if ghosts.forced => None,
        Data::Half | Data::Empty => Some("S3 a server started on half a database"),
        Data::Restored(id) if id == last => {
            let proven = facts.restores[id].saved.is_proven();
            (!proven).then_some("S3 a server started before the evidence agreed")
        }
        Data::Old | Data::Restored(_) => Some("S4 the primary started with data from before after the mark"),
    }
}

fn pod_ends(facts: &mut Facts, pod: usize, to: Pod) -> bool {
    let ends = facts.pods[pod] == Pod::Running && facts.sets[pod] == 0;
    if ends {
        facts.pods[pod] = to;
    }
    ends
}

fn joins(facts: &mut Facts) -> bool {
    let joins = facts.pods == [Pod::Running; 2] && facts.secondary.data == Replica::Empty;
    if joins {
        facts.secondary.data = Replica::Joined(match facts.disk.data {
            Data::Restored(id) => Some(id),
            Data::Old | Data::Half | Data::Empty => None,
        });
    }
    joins
}

fn volume_goes(facts: &mut Facts) -> bool {
    let goes = facts.secondary.ending && facts.pods[1] == Pod::Absent;
    if goes {
        facts.secondary.claim = None;
        facts.secondary.ending = false;
        facts.secondary.data = Replica::Empty;
    }
    goes
}

/// What a Job does on the volume, as the table in the module of the Jobs says.
fn good_end(facts: &mut Facts, id: Id, task: Task) -> JobState {
    match task {
        Task::Image => JobState::Good,
        Task::Preflight => {
            let free = facts.disk.mark.is_none();
            let may = free || facts.disk.journal.is_none_or(|whose| whose == id || facts.follows(id, whose));
            if may && facts.disk.journal != Some(id) {
                facts.disk.journal = Some(id);
                facts.disk.sealed = false;
            }
            if may { JobState::Good } else { JobState::Failed }
        }
        Task::Restore => {
            facts.disk.data = Data::Restored(id);
            facts.credentials = None;
            JobState::Good
        }
        Task::Verify => read(facts.disk.data),
        Task::Unmark => {
            if facts.disk.mark.is_some_and(|whose| whose != id && !facts.follows(id, whose)) {
                return JobState::Failed;
            }
            facts.disk.mark = None;
            JobState::Good
        }
    }
}

fn deleted(state: &mut State, id: Id) -> bool {
    let restore = &mut state.facts.restores[id];
    if restore.life != Life::Here || restore.deleting {
        return false;
    }
    restore.deleting = true;
    if !restore.finalizer {
        gone(state, id);
    }
    true
}

fn forced(facts: &mut Facts, id: Id) -> bool {
    let restore = &mut facts.restores[id];
    let stranded = restore.life == Life::Here && restore.saved.phase == Phase::Failed && restore.saved.mutated;
    if restore.force || !stranded {
        return false;
    }
    restore.force = true;
    true
}
