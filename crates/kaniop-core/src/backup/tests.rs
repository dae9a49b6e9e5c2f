//! What is said of backups, as tables over times; and what a spec may ask for.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kaniop_api::Kanidm;
use kaniop_api::kanidm::BackupStatus;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::cluster::validate;
use crate::condition::Truth;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap_or_else(|_| format!("{text}Z").parse().unwrap())
}

fn evidence(series: &str, domain: u128) -> Evidence {
    Evidence {
        series: series.to_owned(),
        domain: Uuid::from_u128(domain),
        server: Uuid::from_u128(9),
        entries: 42,
        newest_change: Timestamp::UNIX_EPOCH,
        keys: String::new(),
        sha256: String::new(),
        content_bytes: 1,
    }
}

/// A file of the schedule, named for this time and written within a second.
fn file(time: &str, verdict: Verdict) -> Artefact {
    let time = at(time);
    let evidence = match verdict {
        Verdict::Proven => Some(evidence("1.10", 7)),
        Verdict::OtherSeries => Some(evidence("1.9", 7)),
        Verdict::ForeignDomain => Some(evidence("1.10", 8)),
        _ => None,
    };
    Artefact {
        file_name: format!("backup-{time}.json.gz"),
        size_bytes: 1000,
        modified: time + SignedDuration::from_secs(1),
        verdict: if evidence.is_some() { Verdict::Proven } else { verdict },
        detail: None,
        evidence,
    }
}

/// A Kanidm that makes backups, over time.
struct Life {
    plan: BackupPlan,
    asked: Asked,
    told: Option<BackupStatus>,
}

impl Life {
    fn of(schedule: &str) -> Self {
        let plan = BackupPlan { schedule: Schedule::parse(schedule).unwrap(), versions: 7 };
        Self { plan, asked: Asked::default(), told: None }
    }

    /// Switched on at this time.
    fn since(schedule: &str, time: &str) -> Self {
        let mut life = Self::of(schedule);
        life.says(time);
        life
    }

    fn answer(&mut self, time: &str, files: &[Artefact]) -> &mut Self {
        self.asked = std::mem::take(&mut self.asked).answered(Listing { files: files.to_vec() }, &self.plan, at(time));
        self
    }

    /// The condition as `status reason`, and its message.
    fn says(&mut self, time: &str) -> (String, String) {
        let expected = Expected { domain: Some(Uuid::from_u128(7)), series: Some("1.10".to_owned()) };
        let seen = Seen {
            plan: &self.plan,
            pod: "idm-default-0",
            old: self.told.as_ref(),
            asked: &self.asked,
            expected: &expected,
        };
        let report = report(&seen, at(time));
        self.told.clone_from(&report.status);
        let statement = report.statement.unwrap();
        assert_eq!(statement.kind, "BackupHealthy");
        (format!("{} {}", statement.truth.as_str(), statement.reason), statement.message)
    }

    fn is_due(&self, time: &str) -> bool {
        is_due(&self.plan, &self.asked, at(time))
    }

    fn last(&self) -> Option<&str> {
        Some(self.told.as_ref()?.last_backup.as_ref()?.file_name.as_str())
    }
}

const ON: &str = "2030-01-01T12:00:00Z";

#[test]
fn one_missed_run_is_no_news_and_two_are() {
    use Verdict::Proven;
    let first = "2030-01-02T02:00:00.3Z";
    for (files, now, said) in [
        (vec![], "2030-01-01T12:00:05Z", "Unknown BackupPending"),
        (vec![], "2030-01-02T02:01:00Z", "Unknown BackupPending"),
        (vec![], "2030-01-03T02:00:59Z", "Unknown BackupPending"),
        (vec![], "2030-01-03T02:01:00Z", "False BackupMissed"),
        (vec![first], "2030-01-02T02:01:00Z", "True BackupProven"),
        (vec![first], "2030-01-03T02:01:00Z", "True BackupProven"),
        (vec![first], "2030-01-04T02:00:59Z", "True BackupProven"),
        (vec![first], "2030-01-04T02:01:00Z", "False BackupMissed"),
        (vec![first, "2030-01-04T02:00:01Z"], "2030-01-04T02:01:00Z", "True BackupProven"),
    ] {
        let mut life = Life::since("0 2 * * *", ON);
        let files: Vec<_> = files.iter().map(|time| file(time, Proven)).collect();
        let (verdict, message) = life.answer(now, &files).says(now);
        assert_eq!(verdict, said, "{now}: {files:?}: {message}");
    }
}

#[test]
fn a_file_that_proves_nothing_is_never_the_last_backup() {
    let good = file("2030-01-02T02:00:00Z", Verdict::Proven);
    for verdict in Verdict::ALL.into_iter().filter(|verdict| *verdict != Verdict::Proven) {
        let mut life = Life::since("0 2 * * *", ON);
        let newer = file("2030-01-03T02:00:00Z", verdict);
        let now = "2030-01-03T02:01:00Z";
        let (said, message) = life.answer(now, &[good.clone(), newer.clone()]).says(now);
        assert_eq!(life.last(), Some(good.file_name.as_str()), "{verdict:?}");
        let expected = match verdict {
            // Nothing is known to be wrong.
            Verdict::Pending | Verdict::Growing | Verdict::OtherSeries => "True BackupProven",
            _ => "False BackupInvalid",
        };
        assert_eq!(said, expected, "{verdict:?}: {message}");
        if expected.starts_with("False") {
            assert!(message.contains(&newer.file_name) && message.contains(verdict.in_words()), "{message}");
        }
    }
}

#[test]
fn files_that_stay_pending_or_growing_count_as_missed_runs_in_the_end() {
    for verdict in [Verdict::Pending, Verdict::Growing] {
        let mut life = Life::since("0 2 * * *", ON);
        let files = ["2030-01-02T02:00:00Z", "2030-01-03T02:00:00Z"].map(|time| file(time, verdict));
        assert_eq!(life.answer("2030-01-03T02:01:00Z", &files).says("2030-01-03T02:01:00Z").0, "False BackupMissed");
    }
}

#[test]
fn after_an_upgrade_the_old_series_backups_are_whole_and_not_the_last_one() {
    let mut life = Life::since("0 2 * * *", ON);
    let now = "2030-01-02T12:00:00Z";
    let (said, message) = life.answer(now, &[file("2030-01-02T02:00:00Z", Verdict::OtherSeries)]).says(now);
    assert_eq!((said.as_str(), life.last()), ("Unknown BackupPending", None), "{message}");
    assert!(message.contains("another release series"), "{message}");
    let now = "2030-01-04T02:01:00Z";
    let said = life.answer(now, &[file("2030-01-02T02:00:00Z", Verdict::OtherSeries)]).says(now).0;
    assert_eq!(said, "False BackupMissed");
}

#[test]
fn only_files_of_the_schedule_answer_its_runs() {
    let mut copy = file("2030-01-02T02:00:00Z", Verdict::Proven);
    copy.file_name = "copy.json.gz".to_owned();
    let mut on_demand = file("2030-01-03T02:00:00Z", Verdict::Proven);
    on_demand.file_name = "on-demand-before-upgrade.json.gz".to_owned();
    let mut life = Life::since("0 2 * * *", ON);
    let now = "2030-01-03T02:01:00Z";
    assert_eq!(life.answer(now, &[copy, on_demand]).says(now).0, "False BackupMissed");
    let files = life.told.as_ref().unwrap().files.as_ref().unwrap();
    assert_eq!((life.last(), files.len()), (None, 2), "they are told all the same");
}

#[test]
fn a_name_that_claims_to_be_newer_than_its_bytes_is_not_believed() {
    let mut life = Life::since("0 2 * * *", ON);
    let mut forged = file("2030-01-04T02:00:00Z", Verdict::Proven);
    forged.modified = at("2030-01-02T02:00:00Z");
    let now = "2030-01-04T02:01:00Z";
    assert_eq!(life.answer(now, &[forged]).says(now).0, "False BackupMissed");
    let future = file("2040-01-01T02:00:00Z", Verdict::Proven);
    assert_eq!(life.answer(now, &[future]).says(now).0, "False BackupMissed");
    assert_eq!(life.last(), None);
}

#[test]
fn a_node_that_cannot_be_asked_leaves_what_was_told_and_is_unknown() {
    let mut life = Life::since("0 2 * * *", ON);
    let good = file("2030-01-02T02:00:00Z", Verdict::Proven);
    life.answer("2030-01-02T02:01:00Z", std::slice::from_ref(&good)).says("2030-01-02T02:01:00Z");
    let before = life.told.clone();
    // The next life of the operator knows the status only.
    life.asked = Asked::default();
    let (said, message) = life.says("2030-01-02T09:00:00Z");
    assert_eq!(said, "Unknown Unknown");
    assert!(message.contains("until pod 'idm-default-0' has started"), "{message}");
    life.asked = Asked::default().failed("no such process".to_owned(), at("2030-01-02T09:00:00Z"));
    assert!(life.says("2030-01-02T09:00:01Z").1.contains("could not be asked: no such process"));
    assert_eq!(life.told, before);
    life.answer("2030-01-02T09:01:00Z", std::slice::from_ref(&good));
    assert_eq!(life.says("2030-01-02T09:01:00Z").0, "True BackupProven");
    life.asked = std::mem::take(&mut life.asked).unreachable();
    assert_eq!(life.says("2030-01-03T02:01:00Z").0, "Unknown Unknown");
    assert_eq!(life.last(), Some(good.file_name.as_str()));
}

#[test]
fn another_schedule_expects_nothing_of_the_time_before_it() {
    let mut life = Life::since("0 2 * * SUN", ON);
    let weekly = file("2030-01-06T02:00:00Z", Verdict::Proven);
    life.answer("2030-01-06T02:01:00Z", std::slice::from_ref(&weekly)).says("2030-01-06T02:01:00Z");
    life.plan.schedule = Schedule::parse("@hourly").unwrap();
    let files = std::slice::from_ref(&weekly);
    assert_eq!(life.answer("2030-01-09T10:30:00Z", files).says("2030-01-09T10:30:00Z").0, "True BackupProven");
    assert_eq!(life.answer("2030-01-09T11:01:00Z", files).says("2030-01-09T11:01:00Z").0, "True BackupProven");
    assert_eq!(life.answer("2030-01-09T12:01:00Z", files).says("2030-01-09T12:01:00Z").0, "False BackupMissed");
}

#[test]
fn it_is_asked_at_the_start_and_then_after_each_run_only() {
    let mut life = Life::of("0 2 * * *");
    assert!(life.is_due(ON));
    let first = file("2030-01-02T02:00:00.2Z", Verdict::Proven);
    life.answer(ON, &[]);
    for (now, due) in [
        ("2030-01-01T12:01:00Z", false),
        ("2030-01-02T01:59:59Z", false),
        ("2030-01-02T02:00:59Z", false),
        ("2030-01-02T02:01:00Z", true),
        ("2030-01-05T00:00:00Z", true),
    ] {
        assert_eq!(life.is_due(now), due, "{now}");
    }
    life.answer("2030-01-02T02:01:00Z", &[first]);
    assert!(!life.is_due("2030-01-02T23:00:00Z") && life.is_due("2030-01-03T02:01:00Z"));
}

#[test]
fn while_something_is_open_it_is_asked_again_less_and_less_often() {
    let open = [
        vec![file("2030-01-02T02:00:00Z", Verdict::Pending)],
        vec![file("2030-01-02T02:00:00Z", Verdict::Growing)],
        vec![file("2030-01-01T02:00:00Z", Verdict::Proven)],
        vec![],
    ];
    for files in open {
        let mut life = Life::of("0 2 * * *");
        life.answer(ON, &[]);
        let (mut now, mut waits) = (at("2030-01-02T02:01:00Z"), Vec::new());
        for _ in 0..9 {
            life.answer(&now.to_string(), &files);
            let wait =
                (1..).find(|wait| is_due(&life.plan, &life.asked, now + SignedDuration::from_secs(*wait))).unwrap();
            waits.push(wait);
            now += SignedDuration::from_secs(wait);
        }
        assert_eq!(waits, [45, 90, 180, 360, 720, 1440, 2880, 3600, 3600], "{files:?}");
    }
    let mut life = Life::of("0 2 * * *");
    life.asked = life.asked.failed("no".to_owned(), at(ON));
    assert!(!life.is_due("2030-01-01T12:00:44Z") && life.is_due("2030-01-01T12:00:45Z"));
}

#[test]
fn at_rest_nothing_new_is_said() {
    let mut life = Life::since("*/15 * * * *", ON);
    let files: Vec<_> = (0..30)
        .map(|nth| {
            let time = at("2030-01-01T12:15:00.123456789Z") + SignedDuration::from_mins(15 * nth);
            file(&time.to_string(), Verdict::Proven)
        })
        .collect();
    let first = life.answer("2030-01-01T19:31:00Z", &files).says("2030-01-01T19:31:00Z");
    let told = life.told.clone().unwrap();
    let newest = told.last_backup.as_ref().unwrap();
    assert_eq!(
        (newest.file_name.as_str(), newest.entries, newest.series.as_str(), newest.time.0.to_string().as_str()),
        ("backup-2030-01-01T19:30:00.123456789Z.json.gz", 42, "1.10", "2030-01-01T19:30:00Z")
    );
    assert_eq!(told.next_due_time.as_ref().unwrap().0, at("2030-01-01T19:45:00Z"));
    assert_eq!(told.files.as_ref().unwrap().len(), 20);
    assert_eq!(told.files.as_ref().unwrap()[0].file_name, newest.file_name);
    let as_stored: BackupStatus = serde_json::from_str(&serde_json::to_string(&told).unwrap()).unwrap();
    assert_eq!(as_stored, told, "nothing of a time is lost on the way");
    for now in ["2030-01-01T19:31:59Z", "2030-01-01T19:45:30Z", "2030-01-01T19:45:59Z"] {
        assert_eq!((life.says(now), life.told.clone()), (first.clone(), Some(told.clone())), "{now}");
    }
}

#[test]
fn a_missed_run_is_named_and_the_message_stays_the_same_while_more_are_missed() {
    let mut life = Life::since("0 * * * *", ON);
    let files = [file("2030-01-01T13:00:00Z", Verdict::Proven)];
    let (_, message) = life.answer("2030-01-01T15:01:00Z", &files).says("2030-01-01T15:01:00Z");
    assert!(message.contains("2030-01-01T14:00:00Z and 2030-01-01T15:00:00Z"), "{message}");
    assert_eq!(life.answer("2030-01-01T18:01:00Z", &files).says("2030-01-01T18:01:00Z").1, message);
}

#[test]
fn figures_count_every_verdict_and_age_is_that_of_the_proven_file() {
    let life = Life::since("0 2 * * *", ON);
    let files = vec![file("2030-01-02T02:00:00Z", Verdict::Proven), file("2030-01-03T02:00:00Z", Verdict::Truncated)];
    let asked = Asked::default().answered(Listing { files }, &life.plan, at("2030-01-03T02:01:00Z"));
    let expected = Expected::default();
    let seen = Seen { plan: &life.plan, pod: "p", old: life.told.as_ref(), asked: &asked, expected: &expected };
    let figures = report(&seen, at("2030-01-03T02:01:00Z")).figures.unwrap();
    assert_eq!(figures.last_success, Some(at("2030-01-02T02:00:00Z").as_second()));
    assert_eq!(figures.last_size, Some(1000));
    let some: BTreeMap<_, _> = figures.files.iter().filter(|(_, count)| **count > 0).collect();
    assert_eq!(some, BTreeMap::from([(&Verdict::Proven, &1), (&Verdict::Truncated, &1)]));
    assert_eq!(figures.files.len(), Verdict::ALL.len());
}

#[test]
fn a_schedule_is_what_the_server_takes() {
    for (text, next) in [
        ("0 2 * * *", "2030-01-02T02:00:00Z"),
        ("*/10 * * * *", "2030-01-01T12:10:00Z"),
        ("0 2 * * SUN", "2030-01-06T02:00:00Z"),
        // The server counts from Sunday.
        ("0 2 * * 1", "2030-01-06T02:00:00Z"),
        ("0 0 29 2 *", "2032-02-29T00:00:00Z"),
        ("@daily", "2030-01-02T00:00:00Z"),
        ("30 0 2 * * * *", "2030-01-02T02:00:30Z"),
        (" 0 2 * * * ", "2030-01-02T02:00:00Z"),
    ] {
        assert_eq!(Schedule::parse(text).unwrap().next(at(ON)), Some(at(next)), "{text}");
    }
    for (text, said) in [
        ("", "cannot be empty"),
        ("  ", "cannot be empty"),
        ("0 2 * *", "it has 4 fields"),
        ("0 0 2 * * *", "it has 6 fields"),
        ("@reboot", "it has 1 fields"),
        ("60 2 * * *", "a value that it cannot have"),
        ("0 2 * * MOON", "a value that it cannot have"),
        ("0 2 * * 0", "a value that it cannot have"),
        ("0 0 31 2 *", "there is no such day"),
    ] {
        let why = Schedule::parse(text).unwrap_err();
        assert!(why.contains(said), "{text}: {why}");
        assert!(text.trim().is_empty() || why.contains("such as '0 2 * * *'"), "{why}");
    }
}

fn kanidm(backup: &str, storage: &str, primary: bool) -> Kanidm {
    let yaml = format!(
        "{{apiVersion: kaniop.rs/v1beta1, kind: Kanidm, metadata: {{name: idm, namespace: default, uid: u}}, spec: {{domain: idm.example.com, \
         replicaGroups: [{{name: default, replicas: 1, primaryNode: {primary}}}], storage: {storage}, backup: {backup}}}}}"
    );
    serde_norway::from_str(&yaml).unwrap()
}

const CLAIM: &str =
    "{volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}";

#[test]
fn a_backup_that_cannot_be_made_is_refused_by_field() {
    for (backup, storage, primary, said) in [
        ("{schedule: '0 2 * *'}", CLAIM, true, "spec.backup.schedule: '0 2 * *' is not a schedule"),
        ("{schedule: '@daily', versions: 0}", CLAIM, true, "spec.backup.versions: backup.versions must be greater"),
        ("{schedule: '@daily'}", "{emptyDir: {}}", true, "spec.backup: backup requires PVC-backed storage"),
        ("{schedule: '@daily'}", CLAIM, false, "spec.backup: backup requires exactly one primary replica group"),
    ] {
        let refusals = validate(&kanidm(backup, storage, primary)).unwrap_err();
        assert_eq!(refusals.len(), 1, "{refusals:?}");
        assert!(refusals[0].to_string().starts_with(said), "{refusals:?}");
    }
    assert!(validate(&kanidm("null", "{emptyDir: {}}", false)).unwrap().backup.is_none());
}

#[test]
fn the_primary_alone_is_told_to_make_backups() {
    let cluster = validate(&kanidm("{schedule: '0 2 * * *'}", CLAIM, true)).unwrap();
    let table = toml::to_string(&online_backup(&cluster, "idm-default-0").unwrap()).unwrap();
    assert_eq!(table, "path = \"/data/backups\"\nschedule = \"0 2 * * *\"\nversions = 7\n");
    assert_eq!(online_backup(&cluster, "idm-default-1"), None);
    let off = validate(&kanidm("null", CLAIM, true)).unwrap();
    assert_eq!(online_backup(&off, "idm-default-0"), None);
}

#[test]
fn a_wrong_spec_keeps_what_was_told_and_says_that_nobody_judges() {
    let mut kanidm = kanidm("{schedule: 'x'}", CLAIM, true);
    let told = BackupStatus { schedule: Some("0 2 * * *".to_owned()), ..BackupStatus::default() };
    kanidm.status = Some(kaniop_api::kanidm::KanidmStatus { backup: Some(told.clone()), ..Default::default() });
    let report = Report::not_judged(&kanidm.spec, kanidm.status.as_ref());
    assert_eq!((report.status, report.statement.unwrap().truth), (Some(told), Truth::Unknown));
    kanidm.spec.backup = None;
    assert_eq!(Report::not_judged(&kanidm.spec, kanidm.status.as_ref()), Report::default());
}

proptest! {
    #[test]
    fn whatever_the_files_are_the_last_backup_is_proven_and_true_means_that_it_is_recent(
        files in prop::collection::vec((0_i64..200, 0..Verdict::ALL.len()), 0..12), asked in 1_i64..200
    ) {
        let mut life = Life::since("0 * * * *", ON);
        let begin = at(ON);
        let now = begin + SignedDuration::from_hours(asked);
        let files: Vec<_> = files
            .into_iter()
            .map(|(hour, verdict)| file(&(begin + SignedDuration::from_hours(hour)).to_string(), Verdict::ALL[verdict]))
            .collect();
        let said = life.answer(&now.to_string(), &files).says(&now.to_string()).0;
        let last = life.told.as_ref().unwrap().last_backup.clone();
        if let Some(last) = &last {
            let found = files.iter().find(|file| file.file_name == last.file_name && file.verdict == Verdict::Proven);
            prop_assert!(found.is_some());
        }
        if said.starts_with("True") {
            let shown = files.iter().filter(|file| file.evidence.as_ref().is_some_and(|e| e.domain == Uuid::from_u128(7)));
            let newest = shown.map(Artefact::time).filter(|time| *time <= now + SignedDuration::from_mins(10)).max().unwrap();
            prop_assert!(last.is_some() && now.duration_since(newest) < SignedDuration::from_mins(121), "{said} {newest} {now}");
        }
    }
}
