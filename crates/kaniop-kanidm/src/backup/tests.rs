//! Files as servers leave them, and as they become when something goes wrong.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use kaniop_core::backup::Expected;
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;

const GZ: &str = "backup-2030-01-01T02:00:00.5Z.json.gz";
const PLAIN: &str = "backup-2030-01-01T02:00:00.5Z.json";
const SECRET: &str = "MHcCAQEEIsecret";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The verdict on this content, as on a file that nobody writes any more.
    fn judge(&self, name: &str, content: &[u8]) -> Artefact {
        fs::write(self.path(name), content).unwrap();
        let found = prove(&self.path(name), None).unwrap();
        assert!(!format!("{found:?}").contains(SECRET), "{found:?}");
        assert_eq!(found.verdict == Verdict::Proven, found.evidence.is_some());
        found
    }
}

fn backup(entries: usize) -> Value {
    let entry = |nth: usize| {
        json!({"ent": {"V3": {"changestate": {"V1Live": {"at": nth, "changes": {}}}, "attrs": {
            "name": {"N8": [format!("person-{nth:05}-\u{e9}\u{1f980}\\\"")]}, "password": {"CR": SECRET}, "empty": [], "float": 1.5e-3
        }}}})
    };
    json!({
        "version": "1.10",
        "db_s_uuid": Uuid::from_u128(1),
        "db_d_uuid": Uuid::from_u128(2),
        "db_ts_max": {"secs": 1_893_463_200, "nanos": 7},
        "keyhandles": {"replication": {"X509Key": {"private": SECRET, "x509": [1, 2, 3]}}, "other": {"a": null, "b": true}},
        "repl_meta": {"V1": {"ruv": [{"t": 1, "s": Uuid::from_u128(1)}]}},
        "entries": (0..entries).map(entry).collect::<Vec<_>>(),
    })
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn with(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut backup = backup(3);
    change(&mut backup);
    gzip(backup.to_string().as_bytes())
}

#[test]
fn a_whole_backup_is_proven_and_says_what_is_in_it() {
    let folder = Folder::new();
    let content = backup(1000).to_string();
    for (name, file) in [(GZ, gzip(content.as_bytes())), (PLAIN, content.clone().into_bytes())] {
        let found = folder.judge(name, &file);
        let evidence = found.evidence.clone().unwrap();
        assert_eq!((evidence.series.as_str(), evidence.entries), ("1.10", 1000), "{name}");
        assert_eq!((evidence.server, evidence.domain), (Uuid::from_u128(1), Uuid::from_u128(2)));
        assert_eq!(evidence.newest_change.to_string(), "2030-01-01T02:00:00.000000007Z");
        assert_eq!((evidence.content_bytes, found.size_bytes), (content.len() as u64, file.len() as u64));
        assert_eq!(evidence.sha256, stream::hex(&<sha2::Sha256 as sha2::Digest>::digest(&file)));
        assert_eq!(found.scheduled().unwrap().to_string(), "2030-01-01T02:00:00.5Z");
        assert_eq!(found.time(), found.modified, "a name from the future is not believed");
    }
}

#[test]
fn keys_are_compared_whatever_their_order_and_tell_when_they_differ() {
    let folder = Folder::new();
    let keys = |text: &str| {
        let mut backup = backup(1);
        backup["keyhandles"] = json!("KEYS");
        let text = backup.to_string().replace("\"KEYS\"", text);
        folder.judge(PLAIN, text.as_bytes()).evidence.unwrap().keys
    };
    let one = keys(r#"{"a": {"x": 1, "y": [1, 2]}, "b": "k"}"#);
    assert_eq!(one, keys(r#"{"b":"k","a":{"y":[1,2],"x":1}}"#));
    for other in [
        r#"{"a": {"x": 1, "y": [2, 1]}, "b": "k"}"#,
        r#"{"a": {"x": "1", "y": [1, 2]}, "b": "k"}"#,
        r#"{"a": {"x": 1}, "b": "k"}"#,
        "{}",
    ] {
        assert_ne!(one, keys(other), "{other}");
    }
}

#[test]
fn a_file_that_ends_too_early_is_never_proven_wherever_it_ends() {
    let folder = Folder::new();
    let content = backup(40).to_string().into_bytes();
    for (name, file) in [(GZ, gzip(&content)), (PLAIN, content)] {
        for end in (1..file.len()).step_by(1 + file.len() / 400).chain(file.len().saturating_sub(12)..file.len()) {
            assert_eq!(
                folder.judge(name, &file[..end]).verdict,
                Verdict::Truncated,
                "{name} at {end} of {}",
                file.len()
            );
        }
        assert_eq!(folder.judge(name, &[]).verdict, Verdict::Empty);
    }
}

#[test]
fn a_flipped_bit_of_a_compressed_file_is_never_proven() {
    let folder = Folder::new();
    let file = gzip(backup(40).to_string().as_bytes());
    for place in 0..file.len() {
        // The header's time, flags of the compressor and system are covered by no checksum, and say nothing.
        if (4..10).contains(&place) {
            continue;
        }
        let mut damaged = file.clone();
        damaged[place] ^= 1 << (place % 8);
        let found = folder.judge(GZ, &damaged);
        let told = [Verdict::CorruptGzip, Verdict::Truncated].contains(&found.verdict);
        assert!(told, "byte {place} of {}: {found:?}", file.len());
    }
}

#[test]
fn a_checksum_goes_before_what_the_content_looks_like() {
    let folder = Folder::new();
    let mut damaged = gzip(b"{\"version\": 7");
    let last = damaged.len() - 5;
    damaged[last] ^= 1;
    assert_eq!(folder.judge(GZ, &damaged).verdict, Verdict::CorruptGzip);
    let mut followed = gzip(backup(1).to_string().as_bytes());
    followed.push(0);
    assert_eq!(folder.judge(GZ, &followed).verdict, Verdict::CorruptGzip);
}

#[test]
fn a_name_that_says_another_form_than_the_content_has_is_told_as_the_server_would_read_it() {
    let folder = Folder::new();
    let content = backup(1).to_string();
    let found = folder.judge(PLAIN, &gzip(content.as_bytes()));
    assert_eq!((found.verdict, found.detail.unwrap().contains("is compressed")), (Verdict::NotJson, true));
    let found = folder.judge(GZ, content.as_bytes());
    assert_eq!((found.verdict, found.detail.unwrap().contains("not compressed")), (Verdict::CorruptGzip, true));
}

#[test]
fn what_is_no_json_is_told_apart_from_what_is_no_backup() {
    let folder = Folder::new();
    for (content, verdict) in [
        (&b"hello"[..], Verdict::NotJson),
        (b"{\"version\": \"1.10\",}", Verdict::NotJson),
        (format!("{} x", backup(1)).as_bytes(), Verdict::NotJson),
        (b"[]", Verdict::NotABackup),
        (b"{}", Verdict::NotABackup),
        (b"7", Verdict::NotABackup),
        (b"{\"a\": \"\xff\"}", Verdict::NotABackup),
    ] {
        assert_eq!(folder.judge(PLAIN, content).verdict, verdict, "{:?}", String::from_utf8_lossy(content));
        assert_eq!(folder.judge(GZ, &gzip(content)).verdict, verdict, "{:?}", String::from_utf8_lossy(content));
    }
}

#[test]
fn every_member_that_a_server_reads_must_be_there_once_and_of_its_kind() {
    let folder = Folder::new();
    let members = ["version", "db_s_uuid", "db_d_uuid", "db_ts_max", "keyhandles", "repl_meta", "entries"];
    for member in members {
        let missing = with(|backup| drop(backup.as_object_mut().unwrap().remove(member)));
        assert_eq!(folder.judge(GZ, &missing).verdict, Verdict::NotABackup, "without {member}");
        for value in [json!(null), json!(7), json!("1"), json!(SECRET), json!([7]), json!([[]])] {
            if member == "keyhandles" {
                continue;
            }
            let wrong = with(|backup| backup[member] = value.clone());
            assert_eq!(folder.judge(GZ, &wrong).verdict, Verdict::NotABackup, "{member}: {value}");
        }
        let twice = backup(1).to_string().replacen('{', &format!("{{\"{member}\":{},", backup(1)[member]), 1);
        assert_eq!(folder.judge(PLAIN, twice.as_bytes()).verdict, Verdict::NotABackup, "{member} twice");
    }
    let more = with(|backup| backup["something_of_a_later_release"] = json!([1, {"a": "b"}]));
    assert_eq!(folder.judge(GZ, &more).verdict, Verdict::Proven);
}

#[test]
fn another_domain_or_series_is_told_when_they_are_known() {
    let folder = Folder::new();
    let found = folder.judge(GZ, &with(|_| {}));
    let expected = |domain: u128, series: &str| Expected {
        domain: Some(Uuid::from_u128(domain)),
        series: Some(series.to_owned()),
    };
    for (expected, verdict) in [
        (Expected::default(), Verdict::Proven),
        (expected(2, "1.10"), Verdict::Proven),
        (expected(3, "1.10"), Verdict::ForeignDomain),
        (expected(3, "1.9"), Verdict::ForeignDomain),
        (expected(2, "1.1"), Verdict::OtherSeries),
    ] {
        assert_eq!(found.judged(&expected), verdict, "{expected:?}");
    }
}

#[test]
fn a_short_file_that_was_just_changed_is_perhaps_being_written() {
    let folder = Folder::new();
    let file = gzip(backup(3).to_string().as_bytes());
    for (content, later) in
        [(&file[..file.len() / 2], Verdict::Truncated), (&[], Verdict::Empty), (&file, Verdict::Proven)]
    {
        let modified = folder.judge(GZ, content).modified;
        let at = |seconds: i64| {
            prove(&folder.path(GZ), Some(modified + SignedDuration::from_secs(seconds))).unwrap().verdict
        };
        assert_eq!(at(10), if later == Verdict::Proven { later } else { Verdict::Growing });
        assert_eq!(at(121), later);
    }
}

/// A stream that lets the file grow while it is read.
#[test]
fn a_file_that_grows_while_it_is_read_is_not_proven_even_if_what_was_read_is_whole() {
    let folder = Folder::new();
    let path = folder.path(GZ);
    let file = gzip(backup(20_000).to_string().as_bytes());
    fs::write(&path, &file).unwrap();
    let (begin, began) = std::sync::mpsc::channel();
    let (writer, stop) = (path.clone(), std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let stopped = stop.clone();
    let grows = std::thread::spawn(move || {
        let mut file = fs::OpenOptions::new().append(true).open(writer).unwrap();
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            file.write_all(b"x").unwrap();
            let _ = begin.send(());
        }
    });
    began.recv().unwrap();
    let found = prove(&path, None).unwrap();
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    grows.join().unwrap();
    assert_eq!((found.verdict, found.evidence), (Verdict::Growing, None));
}

#[test]
fn nothing_long_is_held() {
    let folder = Folder::new();
    let long = "x".repeat(1 << 20);
    for member in ["version", "db_s_uuid", "db_ts_max"] {
        let found = folder.judge(GZ, &with(|backup| backup[member] = json!(long)));
        assert_eq!(found.verdict, Verdict::NotABackup, "{member}");
    }
    let key = with(|backup| backup[&long] = json!(1));
    assert_eq!(folder.judge(GZ, &key).verdict, Verdict::NotABackup);
    let keys = with(|backup| backup["keyhandles"]["long"] = json!(long.repeat(8)));
    assert_eq!(folder.judge(GZ, &keys).verdict, Verdict::NotABackup);
    let entry = with(|backup| backup["entries"][0]["ent"] = json!(long.repeat(8)));
    assert_eq!(folder.judge(GZ, &entry).verdict, Verdict::Proven, "what is passed over may be long");
}

#[test]
fn a_folder_and_a_link_are_no_backup() {
    let folder = Folder::new();
    fs::create_dir(folder.path("backup-folder.json")).unwrap();
    fs::write(folder.path(PLAIN), backup(1).to_string()).unwrap();
    std::os::unix::fs::symlink(folder.path(PLAIN), folder.path("backup-link.json")).unwrap();
    for name in ["backup-folder.json", "backup-link.json", "backup-nothing.json"] {
        assert!(prove(&folder.path(name), None).is_err(), "{name}");
    }
}
