//! Backups beside a node that lists them: when it is asked, what is told, and that nothing is written while nothing happens.

use super::bootstrap::Scene;
use super::*;

/// Once a year: no run is due while a test runs.
const YEARLY: &str = "30 4 2 3 *";

fn file(name: &str, verdict: &str, domain: u128, series: &str) -> Json {
    let evidence = json!({
        "series": series, "domain": uuid::Uuid::from_u128(domain), "server": uuid::Uuid::from_u128(9), "entries": 42,
        "newestChange": "2025-01-01T00:00:00Z", "keys": "k", "sha256": "s", "contentBytes": 9000,
    });
    let proven = verdict == "proven";
    json!({
        "fileName": name, "sizeBytes": 1000, "modified": "2026-01-01T00:00:00Z", "verdict": verdict,
        "evidence": if proven { evidence } else { Json::Null },
    })
}

/// Made by the schedule's run of this year.
fn of_year(year: i16, verdict: &str) -> Json {
    let mut file = file(&format!("backup-{year}-03-02T04:30:00.25Z.json.gz"), verdict, 1, "1.10");
    file["modified"] = json!(format!("{year}-03-02T04:30:01Z"));
    file
}

fn this_year() -> i16 {
    let now = Clock::start().now();
    now.to_zoned(jiff::tz::TimeZone::UTC).year()
}

impl Scene {
    /// A server that makes backups and lists these, ready; and the life of the operator that found it so. Runs are expected since some years ago.
    async fn with_backups(files: Option<Json>) -> (Self, Life) {
        let claim = json!({"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}});
        let scene = Self::with_a_started_server_on(claim).await;
        let mut kanidm = scene.shelf.get(KANIDM).unwrap();
        kanidm["spec"]["backup"] = json!({"schedule": YEARLY, "versions": 3});
        kanidm["spec"]["replicaGroups"][0]["primaryNode"] = json!(true);
        kanidm["spec"]["image"] = json!("kanidm/server:1.10.5");
        kanidm["status"]["backup"] = json!({"schedule": YEARLY, "since": "2015-01-01T00:00:00Z"});
        scene.shelf.put(KANIDM, kanidm);
        scene.node.held.lock().unwrap().backups = files.map(|files| json!({"files": files}));
        let life = scene.begin().await;
        scene.pass(&life).await.unwrap();
        scene.start_pod("containerd://2");
        scene.until_ready(&life).await;
        // What the last pass learnt of the domain and the image, the next one knows.
        scene.pass(&life).await.unwrap();
        scene.pass(&life).await.unwrap();
        scene.shelf.writes();
        (scene, life)
    }

    fn status(&self) -> Json {
        self.shelf.get(KANIDM).unwrap()["status"].clone()
    }

    /// `BackupHealthy` as `status reason`, and its message.
    fn backups(&self) -> (String, String) {
        let conditions = self.status()["conditions"].clone();
        let found =
            conditions.as_array().unwrap().iter().find(|condition| condition["type"] == "BackupHealthy").cloned();
        let text = |field: &str| found.as_ref().map_or("-", |found| found[field].as_str().unwrap()).to_owned();
        (format!("{} {}", text("status"), text("reason")), text("message"))
    }

    fn asked(&self) -> usize {
        self.node.held.lock().unwrap().asked_for_backups
    }
}

#[tokio::test]
async fn the_servers_file_asks_for_backups_and_the_status_tells_what_was_proven() {
    let (year, files) = (this_year(), |year| json!([of_year(year, "proven"), of_year(year - 1, "proven")]));
    let (scene, life) = Scene::with_backups(Some(files(year - 1))).await;
    let config = scene.shelf.get(&secret("idm-config")).unwrap();
    let config: k8s_openapi::api::core::v1::Secret = serde_json::from_value(config).unwrap();
    let config = String::from_utf8(config.data.unwrap()["idm-default-0.toml"].0.clone()).unwrap();
    assert!(
        config.contains(&format!("[online_backup]\npath = \"/data/backups\"\nschedule = \"{YEARLY}\"\nversions = 3\n")),
        "{config}"
    );
    assert_eq!(scene.backups().0, "True BackupProven", "{:?}", scene.backups());
    let told = scene.status()["backup"].clone();
    let name = format!("backup-{}-03-02T04:30:00.25Z.json.gz", year - 1);
    let time = format!("{}-03-02T04:30:00Z", year - 1);
    assert_eq!(
        told["lastBackup"],
        json!({"fileName": name, "time": time, "sizeBytes": 1000, "entries": 42, "series": "1.10"})
    );
    assert!(told["nextDueTime"].as_str().unwrap().ends_with("-03-02T04:30:00Z"), "{told}");
    assert_eq!(told["files"].as_array().unwrap().len(), 2);
    let metrics = life.clusters.ctx.metrics.encode().unwrap();
    let second = time.parse::<jiff::Timestamp>().unwrap().as_second();
    for line in [
        format!(r#"kaniop_backup_last_success_timestamp_seconds{{namespace="default",name="idm"}} {second}"#),
        r#"kaniop_backup_last_size_bytes{namespace="default",name="idm"} 1000"#.to_owned(),
        r#"kaniop_backup_files{namespace="default",name="idm",verdict="Proven"} 2"#.to_owned(),
        r#"kaniop_backup_files{namespace="default",name="idm",verdict="Truncated"} 0"#.to_owned(),
    ] {
        assert!(metrics.contains(&line), "{line} is not in\n{metrics}");
    }
}

#[tokio::test]
async fn at_rest_the_node_is_not_asked_and_nothing_is_written() {
    let (scene, life) = Scene::with_backups(Some(json!([of_year(this_year() - 1, "proven")]))).await;
    let asked = scene.asked();
    assert_eq!(asked, 1);
    for _ in 0..5 {
        scene.pass(&life).await.unwrap();
    }
    assert_eq!((scene.asked(), scene.shelf.writes()), (1, Vec::new()));
    let next = scene.begin().await;
    scene.until_ready(&next).await;
    assert_eq!(scene.asked(), 2, "a new life of the operator asks once");
    assert_eq!(scene.shelf.writes().iter().filter(|write| write.ends_with("/status")).count(), 0);
}

#[tokio::test]
async fn a_truncated_newest_backup_is_unhealthy_and_never_the_last_one() {
    let year = this_year();
    let files = json!([of_year(year - 1, "truncated"), of_year(year - 2, "proven")]);
    let (scene, _) = Scene::with_backups(Some(files)).await;
    let (verdict, message) = scene.backups();
    assert_eq!(verdict, "False BackupInvalid");
    assert!(message.contains(&format!("backup-{}", year - 1)) && message.contains("ends too early"), "{message}");
    assert!(scene.status()["backup"]["lastBackup"]["fileName"].as_str().unwrap().contains(&(year - 2).to_string()));
}

#[tokio::test]
async fn runs_that_left_nothing_are_unhealthy() {
    let (scene, _) = Scene::with_backups(Some(json!([]))).await;
    let (verdict, message) = scene.backups();
    assert_eq!(verdict, "False BackupMissed");
    assert!(message.contains("2015-03-02T04:30:00Z and 2016-03-02T04:30:00Z"), "{message}");
}

#[tokio::test]
async fn a_backup_of_another_domain_or_series_is_not_the_last_one() {
    for (domain, series, said) in [(2, "1.10", "False BackupInvalid"), (1, "1.9", "Unknown BackupPending")] {
        let mut newest = file("x", "proven", domain, series);
        for field in ["fileName", "modified"] {
            newest[field] = of_year(this_year() - 1, "proven")[field].clone();
        }
        let (scene, _) = Scene::with_backups(Some(json!([newest]))).await;
        assert_eq!(scene.backups().0, said, "{series}: {:?}", scene.backups());
        assert_eq!(scene.status()["backup"]["lastBackup"], Json::Null);
    }
}

#[tokio::test]
async fn a_node_that_cannot_say_is_unknown_and_what_was_told_stays() {
    let (scene, _) = Scene::with_backups(Some(json!([of_year(this_year() - 1, "proven")]))).await;
    let before = scene.status()["backup"].clone();
    scene.node.held.lock().unwrap().backups = None;
    let next = scene.begin().await;
    scene.until_ready(&next).await;
    scene.pass(&next).await.unwrap();
    let (verdict, message) = scene.backups();
    assert_eq!(verdict, "Unknown Unknown");
    assert!(message.contains("could not be asked") && message.contains("the disk is gone"), "{message}");
    assert_eq!(scene.status()["backup"], before);
    scene.shelf.writes();
    for _ in 0..3 {
        scene.pass(&next).await.unwrap();
    }
    assert_eq!(scene.shelf.writes(), Vec::<String>::new());
    assert_eq!(scene.asked(), 2, "it is not asked again at once");
}

#[tokio::test]
async fn without_backups_in_the_spec_nothing_is_asked_or_told() {
    let (scene, life) = Scene::with_backups(Some(json!([of_year(this_year() - 1, "proven")]))).await;
    let mut kanidm = scene.shelf.get(KANIDM).unwrap();
    kanidm["spec"].as_object_mut().unwrap().remove("backup");
    scene.shelf.put(KANIDM, kanidm);
    scene.pass(&life).await.unwrap();
    assert_eq!((scene.backups().0.as_str(), scene.status()["backup"].clone()), ("- -", Json::Null));
    assert_eq!(scene.asked(), 1);
    assert!(!life.clusters.ctx.metrics.encode().unwrap().contains("kaniop_backup_files{"));
}

#[tokio::test]
async fn a_wrong_schedule_is_refused_with_the_way_out_and_what_was_told_stays() {
    let (scene, life) = Scene::with_backups(Some(json!([of_year(this_year() - 1, "proven")]))).await;
    let before = scene.status()["backup"].clone();
    let mut kanidm = scene.shelf.get(KANIDM).unwrap();
    kanidm["spec"]["backup"]["schedule"] = json!("every night");
    scene.shelf.put(KANIDM, kanidm);
    scene.pass(&life).await.unwrap();
    let (verdict, message) = ready(&scene.shelf);
    assert_eq!(verdict, "False InvalidSpec");
    assert!(message.contains("spec.backup.schedule: 'every night' is not a schedule: it has 2 fields"), "{message}");
    assert_eq!((scene.backups().0.as_str(), scene.status()["backup"].clone()), ("Unknown InvalidSpec", before));
}

#[tokio::test]
async fn while_paused_the_node_is_not_asked() {
    let (scene, _) = Scene::with_backups(Some(json!([of_year(this_year() - 1, "proven")]))).await;
    let mut kanidm = scene.shelf.get(KANIDM).unwrap();
    kanidm["spec"]["paused"] = json!(true);
    scene.shelf.put(KANIDM, kanidm);
    let next = scene.begin().await;
    scene.pass(&next).await.unwrap();
    assert_eq!((scene.asked(), scene.backups().0.as_str()), (1, "Unknown Unknown"));
}
