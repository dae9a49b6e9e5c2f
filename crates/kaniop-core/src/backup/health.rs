//! What is said of the backups, and when there may be something new to say.
//!
//! A run of the schedule is answered by a whole file that is not older than the run. Two runs without one in a row make `BackupHealthy` False: one alone may be
//! the server's own doing, which drops its next run whenever it reloads its certificate. Nothing that is said has `now` in it, so that nothing
//! is written while nothing happens.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kaniop_api::kanidm::{BackupFile, BackupStatus, KanidmSpec, KanidmStatus, LastBackup};

use super::{Artefact, BackupPlan, Expected, Figures, Listing, Verdict};
use crate::condition::{Statement, Truth};
use crate::reason::Reason;

/// Type of the condition.
const HEALTHY: &str = "BackupHealthy";
/// How long after a run its file is looked for: most are written in a second.
const SETTLE: SignedDuration = SignedDuration::from_secs(60);
/// How soon is asked again while something is open, at first and at last: each time takes twice as long.
const AGAIN: [SignedDuration; 2] = [SignedDuration::from_secs(45), SignedDuration::from_secs(3600)];
/// How far clocks may differ before a file is from the future, and then it is no evidence of anything.
const SKEW: SignedDuration = SignedDuration::from_mins(10);
/// Most files that are told.
const TOLD: usize = 20;
/// Runs without a whole file that make the backups unhealthy.
const MISSED: usize = 2;

/// What was asked of the node so far. All of it can be lost at the cost of asking once more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The last answer, and when it came.
    answer: Option<(Timestamp, Listing)>,
    /// When there was the first answer: without any file, what was due before is not looked for.
    first: Option<Timestamp>,
    /// When it was asked last, with an answer or without.
    last: Option<Timestamp>,
    /// Why there was no answer then.
    failure: Option<String>,
    /// How often in a row something stayed open.
    tries: u32,
}

/// What the report is made from.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// What is asked for.
    pub plan: &'a BackupPlan,
    /// Name of the primary's pod.
    pub pod: &'a str,
    /// What was told before.
    pub old: Option<&'a BackupStatus>,
    /// What the node said.
    pub asked: &'a Asked,
    /// What a backup must be to be of use.
    pub expected: &'a Expected,
}

/// What there is to say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// For the status.
    pub status: Option<BackupStatus>,
    /// For its conditions.
    pub statement: Option<Statement>,
    /// For the metrics.
    pub figures: Option<Figures>,
}

impl Report {
    /// For a spec that cannot be carried out: what was told of backups stays, and nobody can say more.
    #[must_use]
    pub fn not_judged(spec: &KanidmSpec, old: Option<&KanidmStatus>) -> Self {
        if spec.backup.is_none() {
            return Self::default();
        }
        let message = "The spec cannot be carried out, so the backups are not judged.";
        Self {
            status: old.and_then(|old| old.backup.clone()),
            statement: Some(Statement::new(HEALTHY, Truth::Unknown, Reason::InvalidSpec, message)),
            figures: None,
        }
    }
}

impl Asked {
    /// After an answer.
    #[must_use]
    pub fn answered(self, listing: Listing, plan: &BackupPlan, now: Timestamp) -> Self {
        let newest = listing.files.iter().filter_map(Artefact::scheduled).max();
        let first = self.first.unwrap_or(now);
        let late = plan.schedule.next(newest.unwrap_or(first)).is_some_and(|due| due <= now - SETTLE);
        let open = late || listing.files.iter().any(|file| file.verdict.is_open());
        let tries = if open { self.tries + 1 } else { 0 };
        Self { answer: Some((now, listing)), first: Some(first), last: Some(now), failure: None, tries }
    }

    /// After a question without an answer.
    #[must_use]
    pub fn failed(self, why: String, now: Timestamp) -> Self {
        Self { last: Some(now), failure: Some(why), tries: self.tries + 1, ..self }
    }

    /// There was nobody to ask, although there may be something new. It is asked as soon as there is.
    #[must_use]
    pub fn unreachable(self) -> Self {
        Self { failure: Some("it has not started".to_owned()), ..self }
    }
}

/// Whether the node could have something new to tell.
#[must_use]
pub fn is_due(plan: &BackupPlan, asked: &Asked, now: Timestamp) -> bool {
    let Some(last) = asked.last else { return true };
    let [first, longest] = AGAIN;
    let wait = first.checked_mul(1_i32 << asked.tries.saturating_sub(1).min(10)).unwrap_or(longest).min(longest);
    let again = asked.tries > 0 && now >= last + wait;
    again || plan.schedule.next(last - SETTLE).is_some_and(|due| now >= due + SETTLE)
}

/// What there is to say now.
#[must_use]
pub fn report(seen: &Seen<'_>, now: Timestamp) -> Report {
    let schedule = seen.plan.schedule.as_str();
    let known = seen.old.filter(|old| old.schedule.as_deref() == Some(schedule));
    let since = known.and_then(|old| old.since.as_ref()).map_or_else(|| whole(now), |since| since.0);
    let old = seen.old.cloned().unwrap_or_default();
    let mut status = BackupStatus {
        schedule: Some(schedule.to_owned()),
        since: Some(Time(since)),
        next_due_time: known
            .and_then(|old| old.next_due_time.clone())
            .or_else(|| seen.plan.schedule.next(now).map(Time)),
        ..old
    };
    let Some((answered, listing)) = &seen.asked.answer else {
        let statement = Some(unanswered(seen));
        return Report { figures: Some(Figures::of_status(&status)), status: Some(status), statement };
    };
    let files = Files::of(listing, seen.expected, *answered);
    status.next_due_time = seen.plan.schedule.next(*answered).map(Time);
    status.last_backup = files.good(&[Verdict::Proven]).and_then(last_backup);
    status.files = Some(files.0.iter().take(TOLD).map(|(file, verdict)| told(file, *verdict)).collect());
    let statement =
        if seen.asked.failure.is_some() { unanswered(seen) } else { judged(seen, &files, since, *answered) };
    let figures = Figures::of_files(&status, files.0.iter().map(|(_, verdict)| *verdict));
    Report { figures: Some(figures), status: Some(status), statement: Some(statement) }
}

fn unanswered(seen: &Seen<'_>) -> Statement {
    let message = match &seen.asked.failure {
        Some(why) => format!("Nobody can say how the backups are: pod '{}' could not be asked: {why}.", seen.pod),
        None => format!("Nobody can say how the backups are until pod '{}' has started.", seen.pod),
    };
    Statement::new(HEALTHY, Truth::Unknown, Reason::Unknown, message)
}

/// What the files say. `since`: when runs began to be expected; `answered`: when the files were looked at.
fn judged(seen: &Seen<'_>, files: &Files<'_>, since: Timestamp, answered: Timestamp) -> Statement {
    let pod = seen.pod;
    let scheduled = files.scheduled().find(|(_, verdict)| !verdict.is_open());
    if let Some((file, verdict)) = scheduled.filter(|(_, verdict)| !is_whole(*verdict)) {
        let detail = file.detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default();
        let message = format!(
            "The newest backup '{}' {}{detail}. See that the volume has room, and what the log of pod '{pod}' says of it.",
            file.file_name,
            verdict.in_words()
        );
        return Statement::new(HEALTHY, false, Reason::BackupInvalid, message);
    }
    let good = files.good(&[Verdict::Proven, Verdict::OtherSeries]);
    let base = good.map_or(since, |file| file.time().max(since));
    let missed: Vec<_> =
        seen.plan.schedule.after(base).take_while(|due| *due <= answered - SETTLE).take(MISSED).collect();
    if let [first, second] = missed.as_slice() {
        let message = format!(
            "The runs due at {first} and {second} left no whole backup{}. The log of pod '{pod}' says why.",
            good.map(|file| format!("; the newest is '{}'", file.file_name)).unwrap_or_default()
        );
        return Statement::new(HEALTHY, false, Reason::BackupMissed, message);
    }
    match (good, files.good(&[Verdict::Proven])) {
        (_, Some(file)) => {
            let entries = file.evidence.as_ref().map_or(0, |evidence| evidence.entries);
            let message = format!("Backup '{}' was read as a whole: {entries} entries.", file.file_name);
            Statement::new(HEALTHY, true, Reason::BackupProven, message)
        }
        (Some(file), None) => {
            let message = format!("The newest backup '{}' {}.", file.file_name, Verdict::OtherSeries.in_words());
            Statement::new(HEALTHY, Truth::Unknown, Reason::BackupPending, message)
        }
        (None, None) => {
            let first = seen.plan.schedule.next(since);
            let first = first.map_or_else(|| "never".to_owned(), |due| format!("at {due}"));
            let message = format!("There is no backup yet: the first run is due {first}.");
            Statement::new(HEALTHY, Truth::Unknown, Reason::BackupPending, message)
        }
    }
}

/// Whether it shows that a run succeeded, be it of use here or not.
const fn is_whole(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Proven | Verdict::OtherSeries)
}

/// The files with what they are worth here, the newest first.
struct Files<'a>(Vec<(&'a Artefact, Verdict)>);

impl<'a> Files<'a> {
    /// Files from the future are left out: they would be the newest for good.
    fn of(listing: &'a Listing, expected: &Expected, answered: Timestamp) -> Self {
        let past = |file: &&Artefact| file.time() <= answered + SKEW;
        let mut files: Vec<_> = listing.files.iter().filter(past).map(|file| (file, file.judged(expected))).collect();
        files.sort_by(|(a, _), (b, _)| b.time().cmp(&a.time()).then_with(|| b.file_name.cmp(&a.file_name)));
        Self(files)
    }

    fn scheduled(&self) -> impl Iterator<Item = (&'a Artefact, Verdict)> + '_ {
        self.0.iter().copied().filter(|(file, _)| file.scheduled().is_some())
    }

    /// The newest of the schedule that is one of these.
    fn good(&self, verdicts: &[Verdict]) -> Option<&'a Artefact> {
        self.scheduled().find(|(_, verdict)| verdicts.contains(verdict)).map(|(file, _)| file)
    }
}

fn last_backup(file: &Artefact) -> Option<LastBackup> {
    let evidence = file.evidence.as_ref()?;
    Some(LastBackup {
        file_name: file.file_name.clone(),
        time: Time(whole(file.time())),
        size_bytes: number(file.size_bytes),
        entries: number(evidence.entries),
        series: evidence.series.clone(),
    })
}

fn told(file: &Artefact, verdict: Verdict) -> BackupFile {
    BackupFile {
        file_name: file.file_name.clone(),
        time: Time(whole(file.time())),
        size_bytes: number(file.size_bytes),
        verdict: verdict.as_str().to_owned(),
    }
}

/// Times are told in whole seconds, as Kubernetes keeps them: a fraction that is lost on the way would be another status each time.
fn whole(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
