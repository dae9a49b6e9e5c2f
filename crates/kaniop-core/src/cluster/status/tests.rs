use super::*;
use crate::cluster::gateway::Installed;
use crate::cluster::pods::Trouble;
use crate::cluster::{Child, Surroundings, build, template_hash, validate};

struct Scene {
    kanidm: Kanidm,
    refusals: Vec<Refusal>,
    refused: Vec<Refusal>,
    growing: Vec<String>,
    blocked: Option<Obstacle>,
    left_out: Vec<Obstacle>,
    tls: TlsSeen,
    pods: Vec<PodSeen>,
    nodes: Vec<NodeSeen>,
    certificates: Certificates,
    admin_secret: bool,
    access: Access,
    verdict: Verdict,
}

/// A Kanidm of one node that serves and answers.
fn healthy() -> Scene {
    let yaml = "
apiVersion: kaniop.rs/v1beta1
kind: Kanidm
metadata: {name: idm, namespace: default, generation: 3}
spec: {domain: idm.example.com, replicaGroups: [{name: default, replicas: 1}]}
";
    let tls = Usable { hash: "h".to_owned(), chain: vec![], authority: None, not_after: at(9), problem: None };
    let mut scene = Scene {
        kanidm: serde_norway::from_str(yaml).unwrap(),
        refusals: vec![],
        refused: vec![],
        growing: vec![],
        blocked: None,
        left_out: vec![],
        tls: TlsSeen::Usable(tls),
        pods: vec![],
        nodes: vec![],
        certificates: Certificates::default(),
        admin_secret: true,
        access: Access::Answered,
        verdict: Verdict::Same,
    };
    let hash = template_hash(&scene.wanted()[0]).map(str::to_owned);
    scene.pods.push(PodSeen {
        name: "idm-default-0".to_owned(),
        statefulset: "idm-default".to_owned(),
        template_hash: hash,
        started: true,
        ready: true,
        ..PodSeen::default()
    });
    scene
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

impl Scene {
    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn cluster(&self) -> ValidatedCluster {
        validate(&self.kanidm).unwrap()
    }

    fn wanted(&self) -> Vec<StatefulSet> {
        let certificates = Certificates::default();
        let around = Surroundings {
            helper_image: "kaniop",
            tls_hash: Some("h"),
            live: &[],
            gateway: Installed::default(),
            domain: Some(Uuid::from_u128(7)),
            certificates: &certificates,
            primary_serves: true,
        };
        build(&self.cluster(), &around).iter().filter_map(Child::read).collect()
    }

    fn status_at(&self, now: i64) -> KanidmStatus {
        let (cluster, wanted) = (self.cluster(), self.wanted());
        let world = World {
            kanidm: &self.kanidm,
            cluster: if self.refusals.is_empty() { Ok(&cluster) } else { Err(&self.refusals) },
            refused: &self.refused,
            growing: &self.growing,
            blocked: self.blocked.clone(),
            left_out: &self.left_out,
            tls: self.tls.clone(),
            wanted: &wanted,
            pods: &self.pods,
            nodes: &self.nodes,
            digests: &BTreeMap::new(),
            certificates: &self.certificates,
            admin_secret: self.admin_secret,
            domain: Some((Uuid::from_u128(7), self.verdict)),
            access: self.access.clone(),
            backup: backup::Report::default(),
        };
        status(&world, at(now))
    }

    /// A condition as `status reason`, and its message.
    fn says(&self, kind: &str) -> (String, String) {
        let conditions = self.status_at(1).conditions.unwrap();
        let condition = conditions.into_iter().find(|condition| condition.type_ == kind).unwrap();
        (format!("{} {}", condition.status, condition.reason), condition.message)
    }
}

#[test]
fn a_server_that_answered_is_ready_and_nothing_is_left_to_do() {
    let scene = healthy();
    for (kind, said) in [
        ("Ready", "True Ready"),
        ("Available", "True Ready"),
        ("Initialized", "True Bootstrapped"),
        ("Progressing", "False Ready"),
    ] {
        assert_eq!(scene.says(kind).0, said, "{kind}");
    }
    let status = scene.status_at(1);
    assert_eq!(
        (status.replica_column.as_deref(), status.updated_replicas, status.unavailable_replicas),
        (Some("1/1"), Some(1), Some(0))
    );
    assert_eq!(status.version.unwrap().image_tag.as_deref(), Some("1.10.5"));
    assert_eq!((status.observed_generation, status.secret_name.as_deref()), (Some(3), Some("idm-admin-passwords")));
}

#[test]
fn the_same_world_again_gives_the_same_status() {
    let mut scene = healthy();
    let first = scene.status_at(1);
    scene.kanidm.status = Some(first.clone());
    assert_eq!(scene.status_at(99), first);
}

#[test]
fn ready_names_the_first_obstacle_and_what_to_do() {
    type Change = fn(&mut Scene);
    let failed: fn(&mut Scene) = |s| s.access = Access::Failed(Obstacle::unknown(Reason::ConnectionFailed, "no route"));
    let cases: [(&str, Change, &str, &str); 12] = [
        ("paused", |s| s.kanidm.spec.paused = true, "False Paused", "Unset it"),
        (
            "wrong spec",
            |s| s.refusals = vec![Refusal::new("spec.origin", "wrong")],
            "False InvalidSpec",
            "spec.origin: wrong",
        ),
        (
            "conflict",
            |s| s.blocked = Some(Obstacle::known(Reason::NameConflict, "Service 'idm' is not ours")),
            "False NameConflict",
            "not ours",
        ),
        ("no TLS Secret", |s| s.tls = TlsSeen::Missing, "False TlsSecretMissing", "Create it with tls.crt and tls.key"),
        (
            "bad TLS Secret",
            |s| s.tls = TlsSeen::Invalid("it has no tls.key".to_owned()),
            "False TlsSecretInvalid",
            "no tls.key. Put it right",
        ),
        ("no replicas", |s| s.kanidm.spec.replica_groups[0].replicas = 0, "False ScaledToZero", "Set replicas to 1"),
        ("no pod", |s| s.pods.clear(), "False PodsNotReady", "does not exist yet"),
        ("pod starting", |s| s.pods[0].ready = false, "False PodsNotReady", "Waiting for pod 'idm-default-0'"),
        (
            "image",
            |s| trouble(s, Trouble::Image("ErrImagePull".to_owned())),
            "False ImageUnavailable",
            "Put spec.image right",
        ),
        (
            "crash",
            |s| trouble(s, Trouble::Other("it ended with code 1".to_owned())),
            "False PodsNotReady",
            "ended with code 1",
        ),
        ("bootstrap", |s| s.access = Access::Pending("Setting up.".to_owned()), "False Bootstrapping", "Setting up."),
        ("outage", failed, "Unknown ConnectionFailed", "no route"),
    ];
    for (what, change, said, message) in cases {
        let (verdict, text) = healthy().with(change).says("Ready");
        assert_eq!(verdict, said, "{what}");
        assert!(text.contains(message), "{what}: {text}");
    }
}

fn trouble(scene: &mut Scene, trouble: Trouble) {
    scene.pods[0].ready = false;
    scene.pods[0].trouble = Some(trouble);
}

#[test]
fn a_certificate_that_clients_refuse_is_the_cause_of_a_failed_connection() {
    let scene = healthy().with(|s| {
        if let TlsSeen::Usable(usable) = &mut s.tls {
            usable.problem = Some("the certificate ended yesterday".to_owned());
        }
        s.access = Access::Failed(Obstacle::unknown(Reason::ConnectionFailed, "handshake"));
    });
    assert_eq!(scene.says("Ready").0, "False CertificateInvalid");
}

#[test]
fn another_domain_counts_before_everything_that_follows_from_it() {
    let scene = healthy().with(|s| {
        s.pods[0].ready = false;
        s.access = Access::Failed(Obstacle::known(Reason::DomainMismatch, "another domain"));
    });
    assert_eq!(scene.says("Ready").0, "False DomainMismatch");
}

#[test]
fn a_change_that_cannot_be_made_is_told_although_the_server_answers() {
    let scene = healthy().with(|s| s.refused = vec![Refusal::new("spec.storage", "put it back")]);
    let (verdict, message) = scene.says("Ready");
    assert_eq!(verdict, "False InvalidSpec");
    assert!(message.contains("runs as before") && message.contains("put it back"), "{message}");
    assert_eq!(scene.says("Available").0, "True Ready");
}

#[test]
fn what_is_missing_beside_the_servers_is_told_last_and_all_of_it() {
    let unknown = Obstacle::unknown(Reason::ConnectionFailed, "Ingress 'idm' is tried again.");
    let known = Obstacle::known(Reason::GatewayApiMissing, "Install it.");
    let scene = healthy().with(|s| s.left_out = vec![unknown.clone(), known.clone()]);
    let (verdict, message) = scene.says("Ready");
    assert_eq!(verdict, "False GatewayApiMissing");
    assert!(message.ends_with("Ingress 'idm' is tried again. Install it."), "{message}");
    assert_eq!(scene.says("Available").0, "True Ready");
    assert_eq!(scene.says("Progressing").0, "False GatewayApiMissing");
    let only_unknown = healthy().with(|s| s.left_out = vec![unknown]);
    assert_eq!(only_unknown.says("Ready").0, "Unknown ConnectionFailed");
    let outdated = healthy().with(|s| {
        s.left_out = vec![known];
        s.pods[0].template_hash = Some("older".to_owned());
    });
    assert_eq!(outdated.says("Progressing").0, "True RollingOut", "it keeps no server from being restarted");
    let down = scene.with(|s| s.pods[0].ready = false);
    assert_eq!(down.says("Ready").0, "False PodsNotReady");
}

#[test]
fn a_pod_of_an_older_template_is_progress_to_be_made() {
    let scene = healthy().with(|s| s.pods[0].template_hash = Some("older".to_owned()));
    assert_eq!(scene.says("Progressing").0, "True RollingOut");
    assert_eq!(scene.status_at(1).updated_replicas, Some(0));
}

#[test]
fn the_domain_is_pinned_by_the_first_answer_and_moves_only_when_it_had_to() {
    let seven = Uuid::from_u128(7).to_string();
    for (verdict, pinned) in [
        (Verdict::First, &*seven),
        (Verdict::Same, "before"),
        (Verdict::Mismatch, "before"),
        (Verdict::Replaced, &*seven),
    ] {
        let scene = healthy().with(|s| {
            s.kanidm.status = Some(KanidmStatus { domain_uuid: Some("before".to_owned()), ..KanidmStatus::default() });
            s.verdict = verdict;
        });
        assert_eq!(scene.status_at(1).domain_uuid.as_deref(), Some(pinned), "{verdict:?}");
    }
}

#[test]
fn a_wrong_spec_does_not_erase_what_was_known() {
    let mut scene = healthy();
    scene.kanidm.status = Some(scene.status_at(1));
    scene.refusals = vec![Refusal::new("spec.image", "wrong")];
    let status = scene.status_at(2);
    assert_eq!(status.version.unwrap().image.as_deref(), Some("kanidm/server:1.10.5"));
    assert_eq!(status.secret_name.as_deref(), Some("idm-admin-passwords"));
}

#[test]
fn a_users_image_is_kept_only_once_it_served_and_a_default_at_once() {
    let image = |scene: &Scene| scene.status_at(2).version.and_then(|version| version.image);
    let starting = |scene: &mut Scene| scene.pods[0].ready = false;
    let default = image(&healthy().with(starting));
    assert_eq!(default.as_deref(), Some(crate::cluster::image::DEFAULT_IMAGE));
    for before in [None, default] {
        let mut scene = healthy().with(|scene| scene.kanidm.spec.image = Some("kanidm/server:typo".to_owned()));
        scene.kanidm.status = Some(KanidmStatus {
            version: before.clone().map(|image| VersionStatus { image: Some(image), image_tag: None }),
            ..KanidmStatus::default()
        });
        // The pod that serves is of the former template; the new one never does.
        assert_eq!(image(&scene), before);
        scene.pods[0].template_hash = template_hash(&scene.wanted()[0]).map(str::to_owned);
        starting(&mut scene);
        assert_eq!(image(&scene), before);
        scene.pods[0].ready = true;
        assert_eq!(image(&scene).as_deref(), Some("kanidm/server:typo"));
    }
}

#[test]
fn volumes_that_grow_are_progress_of_a_server_that_is_ready() {
    let scene =
        healthy().with(|scene| scene.growing = vec!["Claim 'a' grows.".to_owned(), "Claim 'b' too.".to_owned()]);
    assert_eq!(scene.says("Ready").0, "True Ready");
    let expected = ("True VolumesGrowing".to_owned(), "Claim 'a' grows. Claim 'b' too.".to_owned());
    assert_eq!(scene.says("Progressing"), expected);
    let outdated = scene.with(|scene| scene.pods[0].template_hash = None);
    let (verdict, message) = outdated.says("Progressing");
    assert_eq!(verdict, "True RollingOut");
    assert!(message.ends_with("idm-default-0. Claim 'a' grows. Claim 'b' too."), "{message}");
}
