//! Backups: by the timer, and on demand beside a live server.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Site, eventually};

pub fn read(path: &Path) -> Option<Value> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).ok()?).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn backups(site: &Site) -> Vec<PathBuf> {
    // The server makes the folder when it has started.
    let mut files: Vec<PathBuf> = std::fs::read_dir(site.path("backups"))
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("backup-"))
        .collect();
    files.sort();
    files
}

fn every_second(site: &Site, versions: usize) {
    let folder = site.path("backups");
    site.configure(&format!(
        "[online_backup]\npath = \"{}\"\nschedule = \"* * * * * * *\"\nversions = {versions}",
        folder.display()
    ));
}

#[test]
fn the_timer_writes_compressed_backups_and_keeps_only_the_newest() {
    let site = Site::new();
    every_second(&site, 2);
    let server = site.start();
    let oldest = {
        assert!(eventually(|| !backups(&server.site).is_empty()));
        backups(&server.site)[0].clone()
    };
    assert!(eventually(|| !oldest.exists()), "retention removes the oldest");
    let (_, _, site) = server.stop();

    let files = backups(&site);
    assert!((2..=3).contains(&files.len()), "{files:?}");
    let newest = files.first().unwrap();
    assert!(newest.to_string_lossy().ends_with("Z.json.gz"), "{newest:?}");
    assert_eq!(std::fs::metadata(newest).unwrap().permissions().mode() & 0o777, 0o640);
    let content = read(newest).unwrap();
    assert_eq!(content["version"], json!("1.7"));
    for key in ["db_s_uuid", "db_d_uuid", "db_ts_max", "keyhandles", "repl_meta", "entries"] {
        assert!(!content[key].is_null(), "{key}");
    }
    assert!(content["entries"].as_array().unwrap().len() > 100);
}

#[test]
fn a_reload_makes_the_timer_drop_its_next_slot() {
    let site = Site::new();
    every_second(&site, 50);
    let server = site.start();
    assert!(eventually(|| !backups(&server.site).is_empty()));
    // Each reload takes one slot out of a schedule of one a second: thirty of them push the next backup far away.
    for _ in 0..30 {
        assert_eq!(server.site.scripting(&["reload"]).0["status"], "ok");
    }
    let planned: Vec<String> = server
        .log()
        .lines()
        .filter(|line| line.contains("the next online backup is planned"))
        .map(str::to_owned)
        .collect();
    assert!(planned.len() >= 30, "{planned:#?}");
    let before = backups(&server.site).len();
    assert!(!eventually_within_two_slots(|| backups(&server.site).len() > before), "two slots passed without a backup");
}

/// Two slots of the schedule; what has not happened by then was dropped.
fn eventually_within_two_slots(mut condition: impl FnMut() -> bool) -> bool {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(2);
    while std::time::Instant::now() < deadline {
        if condition() {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    false
}

#[test]
fn a_backup_beside_a_live_server_is_whole_and_never_overwrites() {
    let server = Site::new().start();
    let target = server.site.path("mine.json.gz");
    let text = target.display().to_string();

    let output = server.site.run(&["scripting", "backup", &text]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b""[..]));
    let content = read(&target).unwrap();
    assert!(content["entries"].as_array().unwrap().len() > 80);

    std::fs::write(&target, "precious").unwrap();
    let output = server.site.run(&["scripting", "backup", &text]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b""[..]));
    assert_eq!(std::fs::read(&target).unwrap(), b"precious");

    let output = server.site.run(&["scripting", "backup", "/nowhere/at/all.json.gz"]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b""[..]));

    let output = server.site.run(&["scripting", "backup"]);
    let mut json = String::new();
    flate2::read::GzDecoder::new(output.stdout.as_slice()).read_to_string(&mut json).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["db_d_uuid"], content["db_d_uuid"]);
    assert_eq!(server.site.scripting(&["recover-account", "admin"]).0["status"], "ok", "the server still writes");
}

#[test]
fn without_a_database_no_backup_is_made_up() {
    let site = Site::new();
    let target = site.path("mine.json.gz");
    for command in ["scripting", "database"] {
        assert_eq!(site.run(&[command, "backup", &target.display().to_string()]).status.code(), Some(0));
    }
    assert!(!target.exists() && !site.path("kanidm.db").exists());
}
