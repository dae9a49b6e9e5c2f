//! The Jobs of a restore, whole, and what is said of one.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kaniop_api::restore::{KanidmRestoreStatus, Phase, RestorePlan};
use kaniop_core::cluster::labels;
use kaniop_core::restore::job::{Surroundings, job, name};
use kaniop_core::restore::{Saved, Task, report};

use crate::scene::{Scene, plan};

fn around() -> Surroundings<'static> {
    Surroundings {
        namespace: "identity",
        owner: OwnerReference {
            api_version: "kaniop.rs/v1beta1".to_owned(),
            kind: "KanidmRestore".to_owned(),
            name: "after".to_owned(),
            uid: "restore".to_owned(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        },
        helper_image: "example.com/kaniop:1",
        domain: "idm.example.com",
        origin: "https://idm.example.com",
        pull_secrets: serde_norway::from_str("[{name: registry}]").unwrap(),
        resources: serde_norway::from_str("{requests: {memory: 512Mi}}").unwrap(),
        node_selector: serde_norway::from_str("{disk: ssd}").unwrap(),
        tolerations: serde_norway::from_str("[{key: dedicated, operator: Exists}]").unwrap(),
        ..Surroundings::default()
    }
}

fn made(task: Task) -> Job {
    let followed = RestorePlan { predecessors: vec!["first".to_owned()], ..plan() };
    let plan = (task != Task::Image).then_some(&followed);
    job(&Scene::at(Phase::Quiescing).world.request, plan, task, &around())
}

#[test]
fn the_job_that_replaces_the_database() {
    insta::assert_yaml_snapshot!("restore-job", made(Task::Restore));
}

#[test]
fn the_job_that_tries_the_image_has_no_volume_of_the_kanidm() {
    insta::assert_yaml_snapshot!("image-job", made(Task::Image));
}

#[test]
fn each_job_is_told_what_it_needs_word_by_word() {
    let commands: Vec<_> = Task::ALL
        .into_iter()
        .map(|task| made(task).spec.unwrap().template.spec.unwrap().containers[0].command.clone().unwrap().join(" "))
        .collect();
    assert_eq!(
        commands,
        [
            "/kaniop/kaniop node restore-image --restore=restore",
            "/kaniop/kaniop node restore-preflight --restore=restore --file=backup.json.gz --predecessor=first",
            "/kaniop/kaniop node restore-database --restore=restore --domain=idm.example.com --origin=https://idm.example.com --predecessor=first",
            "/kaniop/kaniop node restore-verify --restore=restore --domain=idm.example.com --origin=https://idm.example.com",
            "/kaniop/kaniop node restore-unmark --restore=restore --predecessor=first",
        ]
    );
}

#[test]
fn no_service_and_no_statefulset_of_servers_selects_a_pod_of_a_restore() {
    for task in Task::ALL {
        let pod = made(task).spec.unwrap().template.metadata.unwrap().labels.unwrap();
        let selectors = [labels::servers("idm"), labels::group("idm", "main")];
        for selector in selectors {
            assert!(!selector.keys().any(|key| pod.contains_key(key)), "{task:?}");
        }
    }
}

#[test]
fn names_are_short_enough_whatever_the_restore_is_called_and_never_shared() {
    let mut request = Scene::at(Phase::Pending).world.request;
    for length in [1, 37, 60, 253] {
        for letter in ["a", "a.", "-"] {
            request.name = letter.repeat(length).chars().take(length).collect();
            let mut names: Vec<_> = Task::ALL.into_iter().map(|task| name(&request, task)).collect();
            request.uid = "another".to_owned();
            names.extend(Task::ALL.into_iter().map(|task| name(&request, task)));
            request.uid = "restore".to_owned();
            for name in &names {
                assert!(name.len() <= 63 && !name.contains('.') && !name.ends_with('-'), "{name}");
            }
            names.sort();
            names.dedup();
            assert_eq!(names.len(), 10);
        }
    }
}

#[test]
fn what_is_persisted_comes_back_from_the_status_as_it_was() {
    for phase in kaniop_core::restore::PHASES {
        let scene = Scene::at(phase);
        let status = report::status(None, &scene.saved, &scene.decides(), &scene.world.request, (Some(1), scene.now));
        let text = serde_json::to_string(&status).unwrap();
        let read: KanidmRestoreStatus = serde_json::from_str(&text).unwrap();
        assert_eq!(Saved::read(Some(&read)), scene.saved, "{phase:?}");
    }
    assert_eq!(Saved::read(None), Saved::default());
}

#[test]
fn a_status_says_what_happens_what_it_waits_for_and_what_to_do() {
    let said = |scene: &Scene| {
        let at = (Some(1), Timestamp::from_second(1_800_000_000).unwrap());
        report::status(None, &scene.saved, &scene.decides(), &scene.world.request, at)
    };
    let mut waiting = Scene::at(Phase::Quiescing);
    waiting.target().maintenance = None;
    assert!(said(&waiting).message.unwrap().starts_with("waiting for the cluster's controller"));
    let mut failing = Scene::at(Phase::RestoringPrimary);
    failing.saved.failure = Some(Scene::at(Phase::RestoringPrimary).hours_later(9).fails_anyhow());
    failing.saved = failing.persists();
    insta::assert_yaml_snapshot!("failed-after-the-mutation", said(&failing));
    insta::assert_yaml_snapshot!("completed", said(&Scene::at(Phase::Completed)));
}

impl Scene {
    fn fails_anyhow(mut self) -> kaniop_api::restore::RestoreFailure {
        self.job(Task::Restore, kaniop_core::restore::JobSeen::Running(None));
        self.persists().failure.unwrap()
    }
}
