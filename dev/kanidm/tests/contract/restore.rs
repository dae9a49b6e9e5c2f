//! `database restore` and `database verify`, and exit codes that say little.

use std::io::Write;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::backup::read;
use crate::support::{Server, Site, entry};

fn backup(server: &Server, name: &str) -> String {
    let target = server.site.path(name).display().to_string();
    server.site.run(&["scripting", "backup", &target]);
    target
}

fn offline_backup(site: &Site, name: &str) -> Value {
    let target = site.path(name);
    assert_eq!(site.run(&["scripting", "backup", &target.display().to_string()]).status.code(), Some(0));
    read(&target).unwrap()
}

fn restore(site: &Site, backup: &str) -> Output {
    site.run(&["database", "restore", backup])
}

fn has_success_line(output: &Output) -> bool {
    String::from_utf8_lossy(&output.stdout).contains("Restore Success!")
}

/// Exit code, and whether it says that it passed.
fn verify(site: &Site) -> (Option<i32>, bool) {
    let output = site.run(&["database", "verify"]);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).contains("Verification passed!"))
}

fn wipe(site: &Site) {
    for name in ["kanidm.db", "kanidm.db-wal", "kanidm.db-shm"] {
        let _ = std::fs::remove_file(site.path(name));
    }
}

/// A stopped server that has the person `anna`, and a backup from before `bert`.
async fn two_people() -> (Site, String) {
    let server = Site::new().start();
    let token = server.session("idm_admin").await;
    server.must(reqwest::Method::POST, "/v1/person", &token, entry(&[("name", "anna"), ("displayname", "A")])).await;
    // What this server adds to the engine's schema has to survive as well.
    let client = entry(&[
        ("name", "shop"),
        ("displayname", "Shop"),
        ("oauth2_rs_origin_landing", "https://shop.example.com"),
        ("oauth2_refresh_token_expiry", "600"),
    ]);
    server.must(reqwest::Method::POST, "/v1/oauth2/_basic", &token, client).await;
    let path = backup(&server, "backup.json.gz");
    server.must(reqwest::Method::POST, "/v1/person", &token, entry(&[("name", "bert"), ("displayname", "B")])).await;
    (server.stop().2, path)
}

async fn people(server: &Server) -> Vec<bool> {
    let token = server.session("idm_admin").await;
    let mut found = Vec::new();
    for name in ["anna", "bert"] {
        found.push(!server.get(&format!("/v1/person/{name}"), &token).await.1.is_null());
    }
    found
}

#[tokio::test]
async fn a_restore_brings_back_what_was_backed_up_and_nothing_else() {
    for onto_an_empty_path in [false, true] {
        let (site, path) = two_people().await;
        if onto_an_empty_path {
            wipe(&site);
        }
        let output = restore(&site, &path);
        assert_eq!((output.status.code(), has_success_line(&output)), (Some(0), true));
        assert_eq!(verify(&site), (Some(0), true));

        // The positive proof: a backup of what was restored.
        let (wanted, found) = (read(Path::new(&path)).unwrap(), offline_backup(&site, "proof.json.gz"));
        for key in ["version", "db_s_uuid", "db_d_uuid", "keyhandles"] {
            assert_eq!(wanted[key], found[key], "{key}");
        }
        assert_eq!(wanted["entries"].as_array().unwrap().len(), found["entries"].as_array().unwrap().len());

        let server = site.start();
        assert_eq!(people(&server).await, [true, false]);
        let token = server.session("idm_admin").await;
        let (_, client) = server.get("/v1/oauth2/shop", &token).await;
        assert_eq!(client["attrs"]["oauth2_refresh_token_expiry"], json!(["600"]), "{client}");
    }
}

#[tokio::test]
async fn a_backup_that_is_none_is_refused_with_1_and_the_old_content_stays() {
    let (site, path) = two_people().await;
    let whole = std::fs::read(&path).unwrap();
    let content = read(Path::new(&path)).unwrap();
    let mut other = content.clone();
    other["version"] = json!("1.10");
    let mut nameless = content;
    nameless.as_object_mut().unwrap().remove("version");
    for (name, bytes) in [
        ("bad.json", b"{\"version\": ".to_vec()),
        ("no.json", b"[]".to_vec()),
        ("truncated.json.gz", whole[..whole.len() / 2].to_vec()),
        ("compressed.json", whole.clone()),
        ("plain.json.gz", serde_json::to_vec(&other).unwrap()),
        ("other.json", serde_json::to_vec(&other).unwrap()),
        ("nameless.json", serde_json::to_vec(&nameless).unwrap()),
    ] {
        std::fs::File::create(site.path(name)).unwrap().write_all(&bytes).unwrap();
        let output = restore(&site, &site.path(name).display().to_string());
        assert_eq!((output.status.code(), has_success_line(&output)), (Some(1), false), "{name}");
    }
    assert_eq!(people(&site.start()).await, [true, true]);
}

#[tokio::test]
async fn a_restore_that_did_nothing_exits_0() {
    let (site, path) = two_people().await;
    let output = restore(&site, "/nowhere/backup.json.gz");
    assert_eq!((output.status.code(), has_success_line(&output)), (Some(0), false));
    assert_eq!(verify(&site), (Some(0), true));

    wipe(&site);
    std::fs::write(site.path("kanidm.db"), "this is not a database, and long enough to be read as one").unwrap();
    let before = std::fs::read(site.path("kanidm.db")).unwrap();
    let output = restore(&site, &path);
    assert_eq!((output.status.code(), has_success_line(&output)), (Some(0), false));
    assert_eq!(std::fs::read(site.path("kanidm.db")).unwrap(), before, "it is not touched");
    assert_eq!(verify(&site), (Some(0), false), "nor does verify tell by its exit code");
}

#[tokio::test]
async fn a_restore_that_cannot_start_afterwards_says_success_all_the_same() {
    let (site, path) = two_people().await;
    wipe(&site);
    let output = site
        .command(&["database", "restore", &path])
        .envs([("KANIDM_DOMAIN", "other.example.org"), ("KANIDM_ORIGIN", "https://other.example.org")])
        .output()
        .unwrap();
    assert_eq!((output.status.code(), has_success_line(&output)), (Some(0), true));
    assert!(String::from_utf8_lossy(&output.stdout).contains("cannot be started"));
    assert_eq!(people(&site.start()).await, [true, false], "the content was restored");
}

#[tokio::test]
async fn verify_exits_1_when_the_database_disagrees_with_itself() {
    let (site, path) = two_people().await;
    // A member that no entry is.
    let mut content = read(Path::new(&path)).unwrap();
    let text = serde_json::to_string(&content).unwrap();
    let anna = content["entries"].as_array().unwrap().iter().position(|e| e.to_string().contains("\"anna\"")).unwrap();
    content["entries"].as_array_mut().unwrap().remove(anna);
    assert_ne!(text, serde_json::to_string(&content).unwrap());
    std::fs::write(site.path("holed.json"), serde_json::to_vec(&content).unwrap()).unwrap();
    wipe(&site);
    restore(&site, &site.path("holed.json").display().to_string());
    assert_eq!(verify(&site), (Some(1), false));
}

#[test]
fn without_a_database_verify_exits_0_and_makes_none() {
    let site = Site::new();
    assert_eq!(verify(&site), (Some(0), false));
    assert!(!site.path("kanidm.db").exists());
}
