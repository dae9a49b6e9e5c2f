//! Volumes that are to grow: claims are asked for more room where their class lets them, whatever happens in between, and nothing is ever deleted.

use super::bootstrap::Scene;
use super::*;
use crate::scenario::{Faults, Side};
use crate::targets::{Health, ObjectKey};

const CLASS: &str = "/apis/storage.k8s.io/v1/storageclasses/fast";

fn claim_path(ordinal: i32) -> String {
    format!("/api/v1/namespaces/default/persistentvolumeclaims/kanidm-data-idm-default-{ordinal}")
}

fn storage(size: &str) -> Json {
    json!({"volumeClaimTemplate": {"spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": {"requests": {"storage": size}},
    }}})
}

/// A server on a claim of 1Gi, and how its class answers.
async fn scene(class: Option<Json>) -> Scene {
    let scene = Box::pin(Scene::with_a_started_server_on(storage("1Gi"))).await;
    if let Some(allows) = class {
        scene
            .shelf
            .put(CLASS, json!({"metadata": {"name": "fast"}, "provisioner": "p", "allowVolumeExpansion": allows}));
    }
    scene.shelf.make_claim(0);
    scene.until_ready(&scene.begin().await).await;
    scene.shelf.writes();
    scene.events();
    scene
}

impl Shelf {
    /// What the StatefulSet's controller and a provisioner do.
    fn make_claim(&self, ordinal: i32) {
        let set = self.get(STATEFULSET).unwrap();
        let template = set["spec"]["volumeClaimTemplates"][0].clone();
        self.put(
            &claim_path(ordinal),
            json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"name": format!("kanidm-data-idm-default-{ordinal}"), "namespace": "default", "labels": set["spec"]["selector"]["matchLabels"]},
                "spec": template["spec"],
                "status": {"phase": "Bound", "capacity": template["spec"]["resources"]["requests"]},
            }),
        );
    }

    fn ask_for(&self, size: &str) {
        self.change(KANIDM, |kanidm| kanidm["spec"]["storage"] = storage(size));
    }

    fn asks(&self, ordinal: i32) -> String {
        let claim = self.get(&claim_path(ordinal)).unwrap();
        claim["spec"]["resources"]["requests"]["storage"].as_str().unwrap().to_owned()
    }

    /// The driver has done its work.
    fn follow(&self, ordinal: i32) {
        self.change(&claim_path(ordinal), |claim| {
            claim["status"]["capacity"] = claim["spec"]["resources"]["requests"].clone();
        });
    }
}

impl Scene {
    fn says(&self, kind: &str) -> (String, String) {
        let conditions = self.shelf.get(KANIDM).unwrap()["status"]["conditions"].clone();
        let found = conditions.as_array().unwrap().iter().find(|condition| condition["type"] == kind).unwrap().clone();
        let text = |field: &str| found[field].as_str().unwrap().to_owned();
        (format!("{} {}", text("status"), text("reason")), text("message"))
    }

    /// Two passes, and what they wrote besides the status.
    async fn settle(&self) -> Vec<String> {
        let life = self.begin().await;
        self.until_answered(&life).await;
        let writes = self.shelf.writes();
        for _ in 0..2 {
            self.pass(&life).await.unwrap();
        }
        assert_eq!(self.shelf.writes(), Vec::<String>::new(), "what is asked for once is not asked for again");
        assert!(writes.iter().all(|write| !write.starts_with("DELETE")), "{writes:?}");
        writes.into_iter().filter(|write| !write.ends_with("/status")).collect()
    }

    /// Passes until the server has answered in this life and the status says what follows.
    async fn until_answered(&self, life: &Life) {
        let key = ObjectKey { namespace: "default".to_owned(), name: "idm".to_owned() };
        let mut news = life.clusters.ctx.targets.subscribe();
        for _ in 0..100 {
            self.pass(life).await.unwrap();
            if life.clusters.ctx.targets.health(&key) == Health::Answers {
                for _ in 0..2 {
                    self.pass(life).await.unwrap();
                }
                return;
            }
            let _ = tokio::time::timeout(Duration::from_millis(200), news.recv()).await;
        }
        panic!("the server does not answer");
    }
}

#[tokio::test]
async fn a_larger_size_is_asked_of_the_claim_and_told_until_the_volume_has_followed() {
    let scene = scene(Some(json!(true))).await;
    let set = scene.shelf.get(STATEFULSET).unwrap();
    scene.shelf.ask_for("2Gi");
    assert_eq!(scene.settle().await, [format!("PATCH {}", claim_path(0))]);
    assert_eq!(scene.shelf.asks(0), "2Gi");
    assert_eq!(scene.events(), ["ClaimExpanded"]);
    assert_eq!(scene.says("Ready").0, "True Ready");
    let (verdict, message) = scene.says("Progressing");
    assert_eq!(verdict, "True VolumesGrowing");
    assert!(
        message.contains("'kanidm-data-idm-default-0' grows from 1Gi to 2Gi: its driver has not begun"),
        "{message}"
    );
    assert_eq!(scene.shelf.get(STATEFULSET).unwrap()["spec"], set["spec"], "its template cannot change");
    scene.shelf.follow(0);
    assert_eq!(scene.settle().await, Vec::<String>::new());
    assert_eq!(scene.says("Progressing").0, "False Ready");
}

#[tokio::test]
async fn a_class_that_does_not_let_volumes_grow_is_named_and_everything_else_goes_on() {
    for (class, said) in [
        (Some(json!(false)), "StorageClass 'fast' does not allow it"),
        (Some(Json::Null), "StorageClass 'fast' does not allow it"),
        (None, "StorageClass 'fast' does not exist"),
    ] {
        let scene = scene(class).await;
        scene.shelf.ask_for("2Gi");
        scene.shelf.change(KANIDM, |kanidm| kanidm["spec"]["service"] = json!({"type": "LoadBalancer"}));
        assert_eq!(scene.settle().await, [format!("PATCH {}", service("idm"))]);
        assert_eq!(scene.shelf.asks(0), "1Gi");
        let (verdict, message) = scene.says("Ready");
        assert_eq!(verdict, "False InvalidSpec");
        assert!(message.contains(said) && message.contains("set requests.storage back to 1Gi"), "{message}");
        assert!(message.contains("The server runs as before"), "{message}");
        scene.shelf.ask_for("1Gi");
        scene.settle().await;
        assert_eq!(scene.says("Ready").0, "True Ready");
    }
}

#[tokio::test]
async fn without_the_right_to_read_classes_the_api_server_judges_and_its_answer_is_told() {
    let scene = scene(None).await;
    scene.shelf.held.lock().unwrap().hidden = Some(CLASS.to_owned());
    scene.shelf.held.lock().unwrap().full = Some(claim_path(0));
    scene.shelf.ask_for("2Gi");
    assert_eq!(scene.settle().await, Vec::<String>::new());
    let (verdict, message) = scene.says("Ready");
    assert_eq!(verdict, "False InvalidSpec");
    assert!(message.contains("Kubernetes refuses PersistentVolumeClaim 'kanidm-data-idm-default-0': no"), "{message}");
    scene.shelf.held.lock().unwrap().full = None;
    assert_eq!(scene.settle().await, [format!("PATCH {}", claim_path(0))]);
    assert_eq!(scene.says("Ready").0, "True Ready");
}

#[tokio::test]
async fn a_claim_that_is_made_later_from_the_old_template_is_grown_right_after() {
    let scene = scene(Some(json!(true))).await;
    scene.shelf.ask_for("2Gi");
    scene.settle().await;
    scene.shelf.follow(0);
    scene.shelf.make_claim(1);
    assert_eq!(scene.shelf.asks(1), "1Gi");
    assert_eq!(scene.settle().await, [format!("PATCH {}", claim_path(1))]);
    assert_eq!(scene.shelf.asks(1), "2Gi");
}

#[tokio::test]
async fn killed_at_any_call_every_claim_grows_in_the_next_life() {
    let calls = {
        let (faults, world) = world_of_three().await;
        faults.arm(usize::MAX, Side::Before);
        world.pass().await.unwrap();
        faults.calls()
    };
    let mut grown_in_between = 0;
    for nth in 1..=calls {
        for side in [Side::Before, Side::After] {
            let (faults, mut world) = world_of_three().await;
            faults.arm(nth, side);
            tokio::select! {
                _ = world.pass() => {}
                () = faults.death() => {}
            }
            faults.disarm();
            let grown = (0..3).filter(|ordinal| world.shelf.asks(*ordinal) == "2Gi").count();
            grown_in_between += usize::from(grown == 1 || grown == 2);
            world.life = Life::begin(world.shelf.client());
            world.pass().await.unwrap();
            assert!((0..3).all(|ordinal| world.shelf.asks(ordinal) == "2Gi"), "killed {side:?} call {nth}");
            let writes = world.shelf.writes();
            let of =
                |ordinal| writes.iter().filter(|write| **write == format!("PATCH {}", claim_path(ordinal))).count();
            assert!((0..3).all(|ordinal| of(ordinal) == 1), "{writes:?}");
            assert!(writes.iter().all(|write| !write.starts_with("DELETE")), "{writes:?}");
        }
    }
    assert!(grown_in_between > 2, "{grown_in_between} of {calls}");
}

/// Three claims that are to grow, of a server that need not answer.
async fn world_of_three() -> (Arc<Faults>, World) {
    let faults = Arc::new(Faults::none());
    let shelf = Shelf::failing(faults.clone());
    put_kanidm(&shelf);
    shelf.ask_for("1Gi");
    let life = Life::begin(shelf.client());
    let world = World { shelf, life };
    world.give_certificate();
    world.pass().await.unwrap();
    world.shelf.put(CLASS, json!({"metadata": {"name": "fast"}, "provisioner": "p", "allowVolumeExpansion": true}));
    for ordinal in 0..3 {
        world.shelf.make_claim(ordinal);
    }
    world.shelf.ask_for("2Gi");
    world.shelf.writes();
    (faults, world)
}

#[tokio::test]
async fn a_smaller_size_is_refused_and_a_claim_that_a_user_made_larger_is_left_alone() {
    let scene = scene(Some(json!(true))).await;
    scene.shelf.ask_for("2Gi");
    scene.settle().await;
    scene.shelf.follow(0);
    scene.shelf.ask_for("1Gi");
    assert_eq!(scene.settle().await, Vec::<String>::new());
    let (verdict, message) = scene.says("Ready");
    assert_eq!(verdict, "False InvalidSpec");
    assert!(message.contains("up to 2Gi, and a volume cannot become smaller"), "{message}");
    scene.shelf.change(&claim_path(0), |claim| claim["spec"]["resources"]["requests"]["storage"] = json!("5Gi"));
    assert_eq!(scene.settle().await, Vec::<String>::new());
    assert_eq!((scene.shelf.asks(0).as_str(), scene.says("Ready").0.as_str()), ("5Gi", "True Ready"));
}

#[tokio::test]
async fn claims_of_others_are_not_touched() {
    let scene = scene(Some(json!(true))).await;
    let ours = scene.shelf.get(&claim_path(0)).unwrap();
    for (name, change) in [
        ("kanidm-data-idm-default-1", json!({"labels": {"kanidm.kaniop.rs/cluster": "another"}})),
        (
            "kanidm-data-idm-default-2",
            json!({"ownerReferences": [{"kind": "Thing", "name": "x", "uid": "x", "controller": true}]}),
        ),
        ("kanidm-data-idm-other-0", json!({})),
        ("kanidm-data-idm-default-x", json!({})),
        ("kanidm-data-idm-default-03", json!({})),
        ("my-own", json!({})),
    ] {
        let mut claim = ours.clone();
        for (field, value) in change.as_object().unwrap() {
            claim["metadata"][field] = value.clone();
        }
        claim["metadata"]["name"] = json!(name);
        scene.shelf.put(&format!("/api/v1/namespaces/default/persistentvolumeclaims/{name}"), claim);
    }
    scene.shelf.ask_for("2Gi");
    assert_eq!(scene.settle().await, [format!("PATCH {}", claim_path(0))]);
}

#[tokio::test]
async fn while_paused_no_claim_grows() {
    let scene = scene(Some(json!(true))).await;
    scene.shelf.ask_for("2Gi");
    scene.shelf.change(KANIDM, |kanidm| kanidm["spec"]["paused"] = json!(true));
    scene.pass(&scene.begin().await).await.unwrap();
    assert_eq!(scene.shelf.asks(0), "1Gi");
}
