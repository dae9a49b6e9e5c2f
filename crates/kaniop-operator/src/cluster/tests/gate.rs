//! An image that may not run on the database, and a server that the operator does not know.

use super::bootstrap::Scene;
use super::*;

impl Scene {
    /// A field of what the StatefulSet makes its server of.
    fn server(&self, field: &str) -> Json {
        self.shelf.get(STATEFULSET).unwrap()["spec"]["template"]["spec"]["containers"][0][field].clone()
    }

    pub(super) fn template_hash(&self) -> Json {
        let template = &self.shelf.get(STATEFULSET).unwrap()["spec"]["template"];
        template["metadata"]["annotations"]["kanidm.kaniop.rs/template-hash"].clone()
    }

    fn version(&self, field: &str) -> Json {
        self.shelf.get(KANIDM).unwrap()["status"]["version"][field].clone()
    }

    /// Passes beside a StatefulSet's controller that makes a deleted pod again.
    async fn passes(&self, life: &Life) {
        for nth in 2..8 {
            if self.shelf.get(POD).is_none() {
                self.start_pod(&format!("containerd://{nth}"));
            }
            self.pass(life).await.unwrap();
        }
    }

    fn set(&self, field: &str, value: Json) {
        self.shelf.change(KANIDM, |kanidm| kanidm["spec"][field] = value);
    }
}

#[tokio::test]
async fn a_blocked_image_stays_out_of_the_statefulset_while_the_environment_goes_through_and_is_told_once() {
    let scene = Scene::with_a_started_server().await;
    let life = scene.begin().await;
    scene.until_ready(&life).await;
    scene.pass(&life).await.unwrap();
    let running = scene.server("image");
    assert_eq!(scene.version("domainLevel"), 14);
    assert_eq!(says(&scene.shelf, "UpgradeBlocked").0, "False UpgradeAllowed");
    scene.events();
    scene.set("image", json!("kanidm/server:1.12.0"));
    scene.set("env", json!([{"name": "A", "value": "b"}]));
    scene.passes(&life).await;
    assert_eq!(scene.server("image"), running);
    assert_eq!(scene.server("env")[0]["name"], "A");
    let (verdict, message) = says(&scene.shelf, "UpgradeBlocked");
    assert_eq!(verdict, "True UpgradeSkipsRelease");
    assert!(message.contains("release 1.11 first"), "{message}");
    assert_eq!(ready(&scene.shelf), ("False UpgradeBlocked".to_owned(), message));
    let told = scene.events();
    assert_eq!(told.iter().filter(|event| *event == "UpgradeBlocked").count(), 1, "{told:?}");
    let verdicts = ["image", "upgradeCheckResult", "compatibilityResult"].map(|field| scene.version(field));
    assert_eq!(verdicts, [running.clone(), json!("Failed"), json!("Compatible")]);
    // Another refusal is another one to tell, the way out none.
    scene.set("image", json!("kanidm/server:1.9.0"));
    scene.pass(&life).await.unwrap();
    assert_eq!(scene.events(), ["UpgradeBlocked"]);
    scene.set("image", json!("kanidm/server:1.11.0"));
    scene.pass(&life).await.unwrap();
    assert_eq!(scene.server("image"), "kanidm/server:1.11.0");
    assert_eq!((scene.version("upgradeCheckResult"), scene.events()), (json!("Passed"), vec![]));
}

#[tokio::test]
async fn who_asks_not_to_be_asked_gets_any_image() {
    let scene = Scene::with_a_started_server().await;
    let life = scene.begin().await;
    scene.until_ready(&life).await;
    scene.set("image", json!("kanidm/server:latest"));
    scene.pass(&life).await.unwrap();
    assert_eq!(scene.version("upgradeCheckResult"), "Unknown");
    scene.set("disableUpgradeChecks", json!(true));
    scene.pass(&life).await.unwrap();
    assert_eq!(
        (scene.server("image"), scene.version("upgradeCheckResult")),
        (json!("kanidm/server:latest"), json!("Skipped"))
    );
    assert_eq!(says(&scene.shelf, "UpgradeBlocked").0, "False UpgradeChecksDisabled");
}

#[tokio::test]
async fn a_first_image_that_cannot_be_pulled_may_be_replaced_by_that_of_any_release() {
    let world = World::new();
    world.give_certificate();
    for image in ["kanidm/server:1.11.99", "kanidm/server:1.9.3", "kanidm/server:latest"] {
        world.shelf.change(KANIDM, |kanidm| kanidm["spec"]["image"] = json!(image));
        world.pass().await.unwrap();
        let set = world.shelf.get(STATEFULSET).unwrap();
        assert_eq!(set["spec"]["template"]["spec"]["containers"][0]["image"], image);
    }
}

#[tokio::test]
async fn a_first_image_of_a_release_that_nobody_knows_makes_no_server() {
    let world = World::new();
    world.give_certificate();
    world.shelf.change(KANIDM, |kanidm| kanidm["spec"]["image"] = json!("kanidm/server:1.6.4"));
    world.pass().await.unwrap();
    assert_eq!(world.ready().0, "False UpgradeBlocked");
    assert_eq!(says(&world.shelf, "UpgradeBlocked").0, "True UnsupportedVersion");
    assert!(world.shelf.get(STATEFULSET).is_none() && world.shelf.get(&service("idm")).is_some());
}

#[tokio::test]
async fn a_server_that_lacks_what_the_operator_needs_is_told_and_not_touched_until_it_has_it() {
    let scene = Scene::with_a_started_server().await;
    let life = scene.begin().await;
    {
        let mut held = scene.node.held.lock().unwrap();
        (held.level, held.takes_entries) = (11, false);
    }
    scene.shelf.writes();
    scene.set("env", json!([{"name": "A", "value": "b"}]));
    for life in [&life, &life, &scene.begin().await] {
        scene.pass(life).await.unwrap();
    }
    let (verdict, message) = ready(&scene.shelf);
    assert_eq!(verdict, "False UnsupportedVersion");
    assert!(message.contains("of release 1.7") && message.contains("Nothing of it is touched"), "{message}");
    assert_eq!(scene.version("compatibilityResult"), "Incompatible");
    assert_eq!(scene.shelf.writes(), [format!("PATCH {KANIDM}/status")]);
    assert_eq!((scene.counts(), scene.events()), ((0, 0), vec!["VersionIncompatible".to_owned()]));
    scene.node.held.lock().unwrap().takes_entries = true;
    scene.shelf.delete(POD);
    scene.passes(&life).await;
    scene.until_ready(&life).await;
    assert_eq!(scene.server("env")[0]["name"], "A");
    assert_eq!(scene.version("compatibilityResult"), "Compatible");
}

#[tokio::test]
async fn a_database_that_lasts_is_backed_up_and_that_proven_before_it_goes_to_the_next_release() {
    let claim = json!({"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}});
    let scene = Scene::with_a_started_server_on(claim).await;
    let life = scene.begin().await;
    scene.until_ready(&life).await;
    scene.pass(&life).await.unwrap();
    scene.events();
    let running = scene.server("image");
    scene.set("image", json!("kanidm/server:1.11.0"));
    // It takes its time.
    for _ in 0..2 {
        assert_eq!(scene.pass(&life).await.unwrap(), Action::requeue(Duration::from_secs(5)));
    }
    assert_eq!(says(&scene.shelf, "UpgradeBlocked").0, "False BackupPending");
    assert_eq!((scene.server("image"), ready(&scene.shelf).0.as_str()), (running.clone(), "True Ready"));
    // It fails, or is of something else.
    for (outcome, said) in [(Err("the volume is full"), "the volume is full"), (Ok("1.9"), "of another release series")]
    {
        scene.node.held.lock().unwrap().on_demand = Some(outcome);
        scene.pass(&life).await.unwrap();
        let (verdict, message) = says(&scene.shelf, "UpgradeBlocked");
        assert_eq!(verdict, "True UpgradeNeedsBackup");
        assert!(message.contains(said), "{message}");
    }
    assert_eq!((scene.server("image"), scene.events()), (running.clone(), vec!["UpgradeBlocked".to_owned()]));
    scene.node.held.lock().unwrap().on_demand = Some(Ok("1.10"));
    scene.pass(&life).await.unwrap();
    assert_eq!(
        (scene.server("image"), scene.events()),
        (json!("kanidm/server:1.11.0"), vec!["UpgradeBackedUp".to_owned()])
    );
    let backup = scene.version("upgradeBackup");
    assert_eq!(scene.node.held.lock().unwrap().backed_up.len(), 1, "one backup, however often it was asked for");
    assert_eq!(
        (&backup["image"], backup["fileName"].as_str().unwrap().starts_with("on-demand-before-1-11-")),
        (&running, true)
    );
}
