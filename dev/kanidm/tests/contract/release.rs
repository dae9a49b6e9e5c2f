//! Playing another release: what it tells, what it keeps, and which steps it refuses.

use std::process::Command;

use serde_json::json;

use crate::backup::read;
use crate::support::{BINARY, Server, Site, ask, connect, entry};

const VARIABLE: &str = "KANIDM_DEV_VERSION";

fn start(site: Site, version: &str) -> Server {
    site.start_with(|command: &mut Command| {
        command.env(VARIABLE, version);
    })
}

/// Runs a command as that release; gives its exit code and what it printed.
fn run(site: &Site, version: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let output = site.command(arguments).env(VARIABLE, version).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

fn level(server: &Server) -> serde_json::Value {
    ask(&mut connect(server), &json!("DomainShow"))["DomainShow"]["domain_info"]["level"].clone()
}

#[test]
fn the_version_is_told_wherever_the_real_server_tells_it() {
    let version = |value: &str| {
        let output = Command::new(BINARY).arg("version").env(VARIABLE, value).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(version(""), (Some(0), "kanidmd 1.7.4 dev\n".to_owned()));
    assert_eq!(version("1.8.5"), (Some(0), "kanidmd 1.8.5 dev\n".to_owned()));
    assert_eq!(version("1.10.5").0, Some(1), "a release that the engine cannot play is refused, not pretended");
}

#[tokio::test]
async fn a_new_server_of_the_next_release_serves_replicates_and_backs_up_like_any_other() {
    let server = start(Site::new(), "1.8.1");
    assert_eq!(level(&server), json!(12));
    let check = ask(&mut connect(&server), &json!("DomainUpgradeCheck"));
    assert_eq!(check["DomainUpgradeCheck"]["report"]["upgrade_level"], json!(13));
    let token = server.session("idm_admin").await;
    server.must(reqwest::Method::POST, "/v1/person", &token, entry(&[("name", "anna"), ("displayname", "A")])).await;
    let answer = server.client.get(server.url("/v1/self")).bearer_auth(&token).send().await.unwrap();
    assert_eq!(answer.headers()["x-kanidm-version"], "1.8.1");

    let target = server.site.path("backup.json.gz");
    let path = target.display().to_string();
    assert_eq!(run(&server.site, "1.8.1", &["scripting", "backup", &path]).0, Some(0));
    let content = read(&target).unwrap();
    assert_eq!(content["version"], json!("1.8"));
    let (_, _, site) = server.stop();
    assert_eq!(run(&site, "1.8.1", &["database", "verify"]).0, Some(0));

    // A patch release reads it, the release before does not.
    let (code, said) = run(&site, "1.7.4", &["database", "restore", &path]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("DB0001MismatchedRestoreVersion"), "{said}");
    let (code, said) = run(&site, "1.8.2", &["database", "restore", &path]);
    assert!(code == Some(0) && said.contains("Restore Success!"), "{said}");
    assert_eq!(level(&start(site, "1.8.2")), json!(12));
}

#[tokio::test]
async fn one_step_up_migrates_and_a_step_down_or_a_skip_changes_nothing() {
    let server = start(Site::new(), "1.6.4");
    assert_eq!(level(&server), json!(10));
    let token = server.session("idm_admin").await;
    server.must(reqwest::Method::POST, "/v1/person", &token, entry(&[("name", "anna"), ("displayname", "A")])).await;
    let (_, _, site) = server.stop();

    let (code, said) = run(&site, "1.8.0", &["server"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("MG0008SkipUpgradeAttempted"), "{said}");

    let mut site = site;
    for (version, wanted) in [("1.6.5", 10), ("1.7.4", 11), ("1.8.0", 12)] {
        let server = start(site, version);
        assert_eq!(level(&server), json!(wanted), "{version}");
        let token = server.session("idm_admin").await;
        assert!(!server.get("/v1/person/anna", &token).await.1.is_null(), "{version}");
        site = server.stop().2;
    }

    let (code, said) = run(&site, "1.7.4", &["server"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("MG0010DowngradeNotAllowed"), "{said}");
    let (code, said) = run(&site, "1.7.4", &["configtest"]);
    assert_eq!(code, Some(0), "configtest does not tell: {said}");
    assert_eq!(run(&site, "1.8.0", &["database", "verify"]).0, Some(0));
    assert_eq!(level(&start(site, "1.8.3")), json!(12));
}
