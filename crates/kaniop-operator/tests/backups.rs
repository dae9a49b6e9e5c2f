//! `kaniop node backups` and `kaniop node backup`, as processes: the program itself beside a folder of files, and a script in the server's place.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set its scene has failed")]

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

const NAME: &str = "backup-2025-01-01T02:00:00.5Z.json.gz";
const OLDER: &str = "backup-2024-01-01T02:00:00Z.json.gz";

struct Site(tempfile::TempDir);

fn content(entries: usize) -> Vec<u8> {
    let uuid = "00000000-0000-0000-0000-00000000000a";
    let backup = json!({
        "version": "1.10", "db_s_uuid": uuid, "db_d_uuid": uuid, "db_ts_max": {"secs": 1, "nanos": 0},
        "keyhandles": {"replication": "s3cret"}, "repl_meta": {"V1": {"ruv": []}},
        "entries": (0..entries).map(|nth| json!({"ent": {"V3": {"attrs": {"name": format!("person-{nth}")}}}})).collect::<Vec<_>>(),
    });
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(backup.to_string().as_bytes()).unwrap();
    encoder.finish().unwrap()
}

impl Site {
    fn new() -> Self {
        let site = Self(tempfile::tempdir().unwrap());
        fs::create_dir(site.path("backups")).unwrap();
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.path("backups").join(name);
        fs::write(&path, content).unwrap();
        // Long ago: a short file is not being written any more.
        File::options()
            .append(true)
            .open(&path)
            .unwrap()
            .set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1_800_000_000))
            .unwrap();
        path
    }

    fn ask(&self, words: &[&str]) -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kaniop"));
        command
            .arg("node")
            .args(words)
            .arg("--folder")
            .arg(self.path("backups"))
            .arg("--state")
            .arg(self.path("state"));
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.contains("s3cret"), "{text}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
    }

    /// Each file with its verdict, as the helper tells them.
    fn verdicts(&self, patience: &str) -> Vec<(String, String)> {
        let told = self.ask(&["backups", "--patience", patience]);
        let files = told["ok"]["files"].as_array().unwrap_or_else(|| panic!("{told}"));
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        files.iter().map(|file| (text(&file["fileName"]), text(&file["verdict"]))).collect()
    }

    /// A program in the server's place.
    fn server(&self, script: &str) -> String {
        let path = self.path("kanidmd");
        fs::write(&path, format!("#!/bin/sh\necho x >> {}\n{script}\n", self.path("runs").display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.path("runs")).unwrap_or_default().lines().count()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("backups")).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn eventually(mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !condition() {
        assert!(Instant::now() < deadline, "it does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn told(name: &str, verdict: &str) -> (String, String) {
    (name.to_owned(), verdict.to_owned())
}

#[test]
fn without_a_folder_there_are_no_backups() {
    let site = Site::new();
    fs::remove_dir(site.path("backups")).unwrap();
    assert_eq!(site.ask(&["backups"]), json!({"ok": {"files": []}}));
}

#[test]
fn every_file_is_told_with_what_it_proves_the_newest_first_and_hidden_ones_are_not() {
    let site = Site::new();
    let whole = content(100);
    site.put(NAME, &whole);
    site.put(OLDER, &whole[..whole.len() / 2]);
    site.put(".on-demand-x", b"half");
    fs::create_dir(site.path("backups/folder")).unwrap();
    assert_eq!(site.verdicts("60"), [told(NAME, "proven"), told(OLDER, "truncated")]);
    let told = site.ask(&["backups"]);
    let evidence = &told["ok"]["files"][0]["evidence"];
    assert_eq!((&evidence["entries"], &evidence["series"]), (&json!(100), &json!("1.10")));
}

#[test]
fn what_was_proven_is_not_read_again_until_it_is_touched() {
    let site = Site::new();
    let path = site.put(NAME, &content(10));
    assert_eq!(site.verdicts("60"), [told(NAME, "proven")]);
    // Without any patience, only what is known can be told.
    assert_eq!(site.verdicts("0"), [told(NAME, "proven")]);
    // Same name, same size, same time of change: the system knows all the same.
    let mut damaged = content(10);
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xff;
    site.put(NAME, &damaged);
    assert_ne!(site.verdicts("60"), [told(NAME, "proven")]);
    fs::rename(&path, site.path("backups").join(OLDER)).unwrap();
    assert_ne!(site.verdicts("60"), [told(OLDER, "proven")]);
}

#[test]
fn a_file_that_takes_longer_than_the_patience_is_pending_and_proven_by_somebody_who_stays() {
    let site = Site::new();
    site.put(NAME, &content(200_000));
    assert_eq!(site.verdicts("0"), [told(NAME, "pending")]);
    eventually(|| site.verdicts("0") == [told(NAME, "proven")]);
}

#[test]
fn where_proofs_cannot_be_kept_they_are_told_all_the_same() {
    let site = Site::new();
    site.put(NAME, &content(10));
    fs::write(site.path("state"), "no folder").unwrap();
    for _ in 0..2 {
        assert_eq!(site.verdicts("60"), [told(NAME, "proven")]);
    }
}

#[test]
fn kept_proofs_that_cannot_be_read_prove_nothing() {
    let site = Site::new();
    site.put(NAME, &content(10)[..40]);
    fs::create_dir(site.path("state")).unwrap();
    for kept in
        ["", "{", r#"{"backup-2025-01-01T02:00:00.5Z.json.gz": {"stamp": {}, "artefact": {"verdict": "proven"}}}"#]
    {
        fs::write(site.path("state/backups.json"), kept).unwrap();
        assert_eq!(site.verdicts("60"), [told(NAME, "truncated")], "{kept}");
    }
}

#[test]
fn a_backup_on_demand_is_proven_before_it_has_its_name_and_made_once() {
    let site = Site::new();
    fs::write(site.path("whole"), content(50)).unwrap();
    let server =
        site.server(&format!("test \"$1 $2\" = 'scripting backup' && cp {} \"$3\"", site.path("whole").display()));
    for _ in 0..2 {
        let told = site.ask(&["backup", "before-upgrade", "--patience", "60", "--server", &server]);
        let made = &told["ok"]["made"];
        assert_eq!(
            (&made["fileName"], &made["verdict"]),
            (&json!("on-demand-before-upgrade.json.gz"), &json!("proven")),
            "{told}"
        );
        assert_eq!(made["evidence"]["entries"], 50);
    }
    assert_eq!((site.runs(), site.names()), (1, vec!["on-demand-before-upgrade.json.gz".to_owned()]));
    assert_eq!(site.verdicts("0"), [told("on-demand-before-upgrade.json.gz", "proven")], "it is known");
}

#[test]
fn a_program_that_exits_well_without_a_file_or_with_half_of_one_made_no_backup() {
    let site = Site::new();
    fs::write(site.path("half"), &content(50)[..60]).unwrap();
    let half = format!("cp {} \"$3\"", site.path("half").display());
    for (script, said) in [
        ("true", "wrote nothing"),
        (half.as_str(), "ends too early"),
        ("touch \"$3\"", "is empty"),
        ("printf '{}' > \"$3\"", "no backup"),
    ] {
        let server = site.server(script);
        let told = site.ask(&["backup", "x", "--patience", "60", "--server", &server]);
        let why = told["error"].as_str().unwrap_or_else(|| panic!("{told}"));
        assert!(why.contains(said), "{script}: {why}");
        assert!(site.names().iter().all(|name| name == ".on-demand.left-over"), "{:?}", site.names());
    }
    let told = site.ask(&["backup", "x", "--patience", "60", "--server", "/nonexistent/kanidmd"]);
    assert!(told["error"].as_str().unwrap().contains("cannot be run"), "{told}");
}

#[test]
fn what_a_killed_attempt_left_is_no_backup_and_not_in_the_way_of_the_next() {
    let site = Site::new();
    fs::write(site.path("plain"), "{}").unwrap();
    for left in [".on-demand-x", ".on-demand-x.json.gz"] {
        site.put(left, b"half");
    }
    fs::write(site.path("whole"), content(5)).unwrap();
    let server = site.server(&format!("test ! -e \"$3\" && cp {} \"$3\"", site.path("whole").display()));
    let told = site.ask(&["backup", "x", "--patience", "60", "--server", &server]);
    assert_eq!(told["ok"]["made"]["verdict"], "proven", "{told}");
    assert_eq!(site.names(), [".on-demand.left-over", "on-demand-x.json.gz"]);
}

#[test]
fn a_slow_backup_is_running_until_it_is_made_and_nobody_makes_it_twice() {
    let site = Site::new();
    fs::write(site.path("whole"), content(5)).unwrap();
    let (go, whole) = (site.path("go"), site.path("whole"));
    let server =
        site.server(&format!("until test -e {}; do sleep 0.05; done; cp {} \"$3\"", go.display(), whole.display()));
    let ask = || site.ask(&["backup", "x", "--patience", "0", "--server", &server]);
    assert_eq!(ask(), json!({"ok": "running"}));
    eventually(|| site.runs() == 1);
    assert_eq!(ask(), json!({"ok": "running"}));
    fs::write(&go, "").unwrap();
    eventually(|| ask()["ok"]["made"]["verdict"] == "proven");
    assert_eq!(site.runs(), 1);
}

#[test]
fn a_name_that_leads_elsewhere_is_refused() {
    let site = Site::new();
    for name in ["../x", "a/b", "", "-x", "A", ".", &"a".repeat(64)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kaniop"));
        let status = command
            .args(["node", "backup", "--folder"])
            .arg(site.path("backups"))
            .arg("--")
            .arg(name)
            .output()
            .unwrap()
            .status;
        assert_eq!(status.code(), Some(2), "{name}");
    }
    assert_eq!(site.names(), Vec::<String>::new());
}
