//! A Kanidm with a primary, a secondary group and what is left of an older one; a restore at any phase of an undisturbed run.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kaniop_api::restore::{
    DatabaseEvidence, Maintenance, Phase, PlannedClaim, PlannedGroup, RestoreEvidence, RestorePlan, Servers,
};
use kaniop_core::restore::{
    Answer, Credentials, Decision, Effect, JobSeen, LiveProof, Node, Request, Saved, Sight, Target, Task, VolumeClaim,
    Workload, WorkloadKind, World, step,
};

pub const DOMAIN: &str = "d0000000-0000-4000-8000-000000000000";

pub fn start() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

pub fn evidence() -> DatabaseEvidence {
    DatabaseEvidence {
        version: "1.10".to_owned(),
        domain_uuid: DOMAIN.to_owned(),
        server_uuid: "50000000-0000-4000-8000-000000000000".to_owned(),
        key_handles: "ab".repeat(32),
        entries: 2836,
        inconsistent: false,
    }
}

pub fn claim(name: &str) -> PlannedClaim {
    PlannedClaim { name: format!("kanidm-data-{name}"), uid: format!("uid-of-{name}") }
}

pub fn group(name: &str, replicas: i32) -> PlannedGroup {
    PlannedGroup { statefulset: name.to_owned(), replicas }
}

pub fn plan() -> RestorePlan {
    RestorePlan {
        groups: vec![group("idm-main", 2), group("idm-read", 1)],
        primary: "idm-main-0".to_owned(),
        primary_claim: claim("idm-main-0"),
        // An ordinal that was scaled away and a group that is gone have volumes too.
        claims: ["idm-gone-0", "idm-main-1", "idm-main-4", "idm-read-0"].map(claim).to_vec(),
        image: "kanidm/server:1.10.5".to_owned(),
        predecessors: Vec::new(),
    }
}

/// A restore, and what it sees.
#[derive(Clone, Debug)]
pub struct Scene {
    pub saved: Saved,
    pub world: World,
    pub now: Timestamp,
}

impl Scene {
    /// Claimed, acknowledged and stopped, as it is from Quiescing on; before that, serving.
    pub fn at(phase: Phase) -> Self {
        let claimed = phase >= Phase::Quiescing;
        let mutated = phase >= Phase::RestoringPrimary;
        let saved = Saved {
            phase,
            target_uid: (phase > Phase::Pending).then(|| "target".to_owned()),
            plan: claimed.then(plan),
            mutated,
            evidence: mutated.then(|| RestoreEvidence { source: evidence(), restored: None, agrees: false }),
            phase_times: BTreeMap::from([(phase, start())]),
            ..Saved::default()
        };
        let mut scene = Self { saved, world: world(), now: start() };
        scene.world.jobs.as_mut().unwrap().insert(Task::Image, ended(Answer::Image("1.10.5".to_owned())));
        if claimed {
            scene.claimed(Servers::None);
            scene.scaled([0, 0]);
            scene.world.nodes = Some(Vec::new());
            scene.world.live = LiveProof::NoServer;
        }
        if phase >= Phase::RebuildingReplicas {
            scene.saved.evidence.as_mut().unwrap().agrees = true;
        }
        scene
    }

    pub fn target(&mut self) -> &mut Target {
        match &mut self.world.target {
            Sight::Here(target) => target,
            other => panic!("{other:?}"),
        }
    }

    pub fn claimed(&mut self, servers: Servers) {
        let target = self.target();
        target.claim = Some("restore".to_owned());
        target.servers = servers;
        target.maintenance = Some(Maintenance { name: "after".to_owned(), uid: "restore".to_owned(), servers });
    }

    pub fn scaled(&mut self, replicas: [i32; 2]) {
        let workloads = self.world.workloads.as_mut().unwrap();
        for (workload, replicas) in workloads.iter_mut().zip(replicas) {
            workload.replicas = replicas;
        }
        workloads.last_mut().unwrap().replicas = i32::from(replicas != [0, 0]);
    }

    pub fn job(&mut self, task: Task, seen: JobSeen) {
        self.world.jobs.as_mut().unwrap().insert(task, seen);
    }

    pub fn serving(&mut self, pods: &[&str]) {
        let node = |pod: &&str| Node { pod: (*pod).to_owned(), serving: true, domain_uuid: Some(DOMAIN.to_owned()) };
        self.world.nodes = Some(pods.iter().map(node).collect());
    }

    pub fn decides(&self) -> Decision {
        step(&self.saved, &self.world, self.now)
    }

    /// What is persisted next.
    pub fn persists(&self) -> Saved {
        match self.decides() {
            Decision::Persist(saved) => *saved,
            other => panic!("{other:?}"),
        }
    }

    /// What is done next.
    pub fn acts(&self) -> Vec<Effect> {
        match self.decides() {
            Decision::Act(effects) => effects,
            other => panic!("{other:?}"),
        }
    }

    /// It waits, with an end, and says so much.
    pub fn waits_for(&self, said: &str) {
        match self.decides() {
            Decision::Wait { why, .. } => {
                assert!(why.on.join(", ").contains(said), "{why:?} does not name {said:?}");
                assert!(why.until.is_some_and(|until| until > self.now), "{why:?}");
            }
            other => panic!("{other:?} instead of a wait for {said:?}"),
        }
    }

    /// It fails, and says so much; where something was touched it stays in its phase until that is undone.
    pub fn fails(&self, said: &str) -> Saved {
        let next = self.persists();
        let failure = next.failure.clone().unwrap();
        assert!(failure.message.contains(said), "{failure:?} does not say {said:?}");
        assert_eq!(failure.phase, self.saved.phase);
        let untouched = self.saved.phase <= Phase::Validating;
        assert_eq!(next.phase, if untouched { Phase::Failed } else { self.saved.phase });
        next
    }

    pub fn hours_later(mut self, hours: i64) -> Self {
        self.now = self.now.checked_add(SignedDuration::from_hours(hours)).unwrap();
        self
    }
}

pub fn ended(answer: Answer) -> JobSeen {
    JobSeen::Ended(Some(answer))
}

pub fn scale(name: &str, replicas: i32) -> Effect {
    Effect::Scale {
        kind: if name == "idm-mail-sender" { WorkloadKind::MailSender } else { WorkloadKind::StatefulSet },
        name: name.to_owned(),
        uid: format!("uid-of-{name}"),
        version: "7".to_owned(),
        replicas,
    }
}

fn world() -> World {
    let workload = |kind, name: &str, replicas| Workload {
        kind,
        name: name.to_owned(),
        uid: format!("uid-of-{name}"),
        version: "7".to_owned(),
        replicas,
    };
    World {
        request: Request {
            name: "after".to_owned(),
            uid: "restore".to_owned(),
            target: "idm".to_owned(),
            target_uid: "target".to_owned(),
            file_name: "backup.json.gz".to_owned(),
            image: "kanidm/server:1.10.5".to_owned(),
            deleting: false,
            finalizer: true,
            force_release: None,
        },
        target: Sight::Here(Target {
            uid: "target".to_owned(),
            deleting: false,
            version: "42".to_owned(),
            claim: None,
            servers: Servers::None,
            maintenance: None,
            groups: plan().groups,
            primary: Some("idm-main-0".to_owned()),
            primary_claim: Some("kanidm-data-idm-main-0".to_owned()),
            image: Some("kanidm/server:1.10.5".to_owned()),
            domain_uuid: Some(DOMAIN.to_owned()),
            external_nodes: Vec::new(),
            paused: false,
        }),
        workloads: Some(vec![
            workload(WorkloadKind::StatefulSet, "idm-main", 2),
            workload(WorkloadKind::StatefulSet, "idm-read", 1),
            workload(WorkloadKind::MailSender, "idm-mail-sender", 1),
        ]),
        claims: Some(
            ["idm-main-0", "idm-main-1", "idm-main-4", "idm-read-0", "idm-gone-0"]
                .map(|name| VolumeClaim { id: claim(name), ending: false })
                .to_vec(),
        ),
        holders: Some(Vec::new()),
        nodes: Some(Vec::new()),
        jobs: Some(BTreeMap::new()),
        others: Some(Vec::new()),
        live: LiveProof::Proven(evidence()),
        credentials: Credentials::Stale,
    }
}
