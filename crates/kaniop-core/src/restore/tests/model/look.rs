//! What a restore sees of the model's state.

use std::collections::BTreeMap;

use kaniop_api::restore::{DatabaseEvidence, Maintenance, PlannedClaim, PlannedGroup};

use super::facts::{Data, Facts, Id, JobState, Life, PODS, Pod, Replica, SETS, uid};
use crate::restore::{
    Answer, Credentials, Holder, JobSeen, LiveProof, Node, Other, Request, Sight, Target, Task, VolumeClaim, Workload,
    WorkloadKind, World, state,
};

const DOMAIN: &str = "the-domain";

/// What restore `id` sees when what it sees of pods and Jobs is `children`, and of all else `facts`.
pub(super) fn world(facts: &Facts, children: &Facts, id: Id) -> World {
    let restore = &facts.restores[id];
    let others = (0..2).filter(|other| *other != id && facts.restores[*other].life == Life::Here);
    World {
        request: Request {
            name: format!("restore-{id}"),
            uid: uid(id),
            target: "idm".to_owned(),
            target_uid: "target-0".to_owned(),
            file_name: "backup.json.gz".to_owned(),
            image: "kanidm/server:1.10.5".to_owned(),
            deleting: restore.deleting,
            finalizer: restore.finalizer,
            force_release: restore.force.then(|| "we know".to_owned()),
        },
        target: target(facts),
        workloads: Some(
            (0..2)
                .filter(|_| facts.target.uid.is_some())
                .map(|set| Workload {
                    kind: WorkloadKind::StatefulSet,
                    name: SETS[set].to_owned(),
                    uid: String::new(),
                    version: String::new(),
                    replicas: facts.sets[set],
                })
                .collect(),
        ),
        claims: Some(claims(facts)),
        holders: Some(holders(children)),
        nodes: Some((0..2).filter(|pod| children.pods[*pod] == Pod::Running).map(|pod| node(children, pod)).collect()),
        jobs: Some(jobs(children, id)),
        others: Some(
            others
                .map(|other| Other {
                    name: format!("restore-{other}"),
                    uid: uid(other),
                    state: state(&facts.restores[other].saved),
                    plan: facts.restores[other].saved.plan.clone(),
                })
                .collect(),
        ),
        live: if children.pods[0] == Pod::Running { LiveProof::Proven(evidence(true)) } else { LiveProof::NoServer },
        credentials: match facts.credentials {
            _ if facts.pods[0] != Pod::Running => Credentials::Unknown,
            Some(whose) if whose == id => Credentials::Renewed,
            _ => Credentials::Stale,
        },
    }
}

fn target(facts: &Facts) -> Sight<Target> {
    let target = &facts.target;
    let Some(generation) = target.uid else { return Sight::Gone };
    Sight::Here(Target {
        uid: format!("target-{generation}"),
        deleting: false,
        version: String::new(),
        claim: target.claim.map(uid),
        servers: target.servers,
        maintenance: target.maintenance.map(|(id, servers)| Maintenance {
            name: format!("restore-{id}"),
            uid: uid(id),
            servers,
        }),
        groups: SETS.map(|set| PlannedGroup { statefulset: set.to_owned(), replicas: 1 }).to_vec(),
        primary: Some(PODS[0].to_owned()),
        primary_claim: Some("data-a".to_owned()),
        image: Some("kanidm/server:1.10.5".to_owned()),
        domain_uuid: Some(DOMAIN.to_owned()),
        external_nodes: Vec::new(),
        paused: false,
    })
}

fn claims(facts: &Facts) -> Vec<VolumeClaim> {
    let named = |name: &str, uid: String| PlannedClaim { name: name.to_owned(), uid };
    let primary = VolumeClaim { id: named("data-a", "a".to_owned()), ending: false };
    let secondary = facts.secondary.claim.map(|generation| VolumeClaim {
        id: named("data-b", format!("b-{generation}")),
        ending: facts.secondary.ending,
    });
    std::iter::once(primary).chain(secondary).collect()
}

fn holders(facts: &Facts) -> Vec<Holder> {
    let pods = (0..2).filter(|pod| facts.pods[*pod] != Pod::Absent);
    let pods = pods.map(|pod| Holder { who: PODS[pod].to_owned(), claim: ["data-a", "data-b"][pod].to_owned() });
    let job = facts.job_on_volume().then(|| Holder { who: "a Job".to_owned(), claim: "data-a".to_owned() });
    pods.chain(job).collect()
}

fn node(facts: &Facts, pod: usize) -> Node {
    // The domain is the same before and after a restore: it tells nothing of the data.
    let shows = pod == 0 || facts.secondary.data != Replica::Empty;
    Node { pod: PODS[pod].to_owned(), serving: true, domain_uuid: shows.then(|| DOMAIN.to_owned()) }
}

fn jobs(facts: &Facts, id: Id) -> BTreeMap<Task, JobSeen> {
    Task::ALL.into_iter().filter_map(|task| Some((task, job(facts.job(id, task), task)?))).collect()
}

fn job(state: JobState, task: Task) -> Option<JobSeen> {
    Some(match state {
        JobState::Absent => return None,
        JobState::Running => JobSeen::Running(None),
        JobState::Failed => JobSeen::Failed("it failed".to_owned()),
        JobState::Silent => JobSeen::Ended(None),
        JobState::Good | JobState::Differs => JobSeen::Ended(Some(match task {
            Task::Image => Answer::Image("1.10.5".to_owned()),
            Task::Preflight => Answer::Source(evidence(true)),
            Task::Restore => Answer::Restored(None),
            Task::Verify => Answer::Database(evidence(state == JobState::Good)),
            Task::Unmark => Answer::Unmarked,
        })),
    })
}

fn evidence(good: bool) -> DatabaseEvidence {
    DatabaseEvidence {
        version: "1.10".to_owned(),
        domain_uuid: DOMAIN.to_owned(),
        server_uuid: "the-server".to_owned(),
        key_handles: "hash".to_owned(),
        entries: if good { 2500 } else { 2400 },
        inconsistent: false,
    }
}

/// What the verify Job reads off the primary's volume. Both restores are of the same backup.
pub(super) const fn read(data: Data) -> JobState {
    match data {
        Data::Old | Data::Empty => JobState::Differs,
        Data::Half => JobState::Failed,
        Data::Restored(_) => JobState::Good,
    }
}
