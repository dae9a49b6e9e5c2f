//! The timed backup of a running server.
//!
//! A reload makes it drop its next slot: with a daily schedule and a daily reload there is never a backup. That is
//! how servers after 1.7 behave, and an operator has to live with it.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use chrono::Utc;
use cron::Schedule;
use kanidmd_lib::prelude::QueryServerTransaction;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::sync::broadcast;

use super::write::{BackupError, Dump};
use crate::config::{Compression, OnlineBackup};
use crate::server::Running;

/// Why a schedule was refused.
#[derive(Debug, thiserror::Error)]
#[error("online_backup.schedule {schedule:?} is not a schedule: {reason}")]
pub struct ScheduleError {
    schedule: String,
    reason: String,
}

/// A timer that has not begun.
pub struct Timer {
    schedule: Schedule,
    plan: OnlineBackup,
}

/// Five fields (minute … weekday), seven (second … year), or `@hourly`, `@daily`, `@weekly`; all in UTC.
fn parse(text: &str) -> Result<Schedule, ScheduleError> {
    let refuse = |reason: String| ScheduleError { schedule: text.to_owned(), reason };
    let full = match text.split_whitespace().count() {
        1 if text.starts_with('@') => text.to_owned(),
        5 => format!("0 {text} *"),
        7 => text.to_owned(),
        count => return Err(refuse(format!("it has {count} fields, not 5 or 7"))),
    };
    Schedule::from_str(&full).map_err(|e| refuse(e.to_string()))
}

impl Timer {
    /// Reads the schedule.
    ///
    /// # Errors
    /// When it is none.
    pub fn new(plan: OnlineBackup) -> Result<Self, ScheduleError> {
        Ok(Self { schedule: parse(&plan.schedule)?, plan })
    }

    /// Makes backups until the task is aborted.
    pub async fn run(self, running: Arc<Running>, mut reloads: broadcast::Receiver<()>) {
        // The first backup may be long after, and somebody may look before.
        if let Err(error) = std::fs::create_dir_all(&self.plan.path) {
            tracing::error!(path = %self.plan.path.display(), %error, "the folder of backups cannot be made");
        }
        for slot in self.schedule.upcoming(Utc) {
            let wait = (slot - Utc::now()).to_std().unwrap_or_default();
            tracing::info!(next = %slot, path = %self.plan.path.display(), "the next online backup is planned");
            tokio::select! {
                () = tokio::time::sleep(wait) => self.make(&running).await,
                reload = reloads.recv() => if reload.is_err() { return },
            }
        }
    }

    async fn make(&self, running: &Running) {
        match make_one(running, &self.plan).await {
            Ok(name) => {
                tracing::info!(name, "online backup created");
                if let Err(error) = retain(&self.plan.path, self.plan.versions) {
                    tracing::error!(%error, "old backups could not be removed");
                }
            }
            Err(error) => tracing::error!(%error, "the online backup failed"),
        }
    }
}

async fn make_one(running: &Running, plan: &OnlineBackup) -> Result<String, BackupError> {
    let name = file_name(OffsetDateTime::now_utc(), plan.compression)?;
    let mut transaction = running.engine.idms().proxy_read().await?;
    let dump = Dump::take(transaction.qs_read.get_be_txn())?;
    drop(transaction);
    dump.write_new(&plan.path.join(&name), plan.compression)?;
    Ok(name)
}

fn file_name(now: OffsetDateTime, compression: Compression) -> Result<String, BackupError> {
    let stamp = now.format(&Rfc3339).map_err(std::io::Error::other)?;
    Ok(match compression {
        Compression::Gzip => format!("backup-{stamp}.json.gz"),
        Compression::None => format!("backup-{stamp}.json"),
    })
}

/// Whether a file counts as a version; a half-written one does.
fn is_backup(name: &str) -> bool {
    name.strip_prefix("backup-")
        .and_then(|rest| rest.strip_suffix(".json.gz").or_else(|| rest.strip_suffix(".json")))
        .is_some_and(|stamp| OffsetDateTime::parse(stamp, &Rfc3339).is_ok())
}

/// Removes all but the newest `versions` files, judged by name alone.
fn retain(folder: &Path, versions: usize) -> std::io::Result<()> {
    let mut names: Vec<String> = std::fs::read_dir(folder)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| is_backup(name))
        .collect();
    names.sort();
    let surplus = names.len().saturating_sub(versions);
    names.iter().take(surplus).try_for_each(|name| std::fs::remove_file(folder.join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_have_five_or_seven_fields_or_a_name() {
        for (text, accepted) in [
            ("0 22 * * *", true),
            ("*/30 * * * * * *", true),
            ("@hourly", true),
            ("@daily", true),
            ("@weekly", true),
            ("* * * * * *", false),
            ("", false),
            ("every day", false),
            ("99 * * * *", false),
        ] {
            assert_eq!(parse(text).is_ok(), accepted, "{text:?}");
        }
    }

    #[test]
    fn retention_counts_both_forms_and_half_written_files_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let keep =
            ["backup-2026-01-03T00:00:00.5Z.json.gz", "backup-2026-01-02T00:00:00Z.json", "backup-old.json", "notes"];
        let drop = ["backup-2026-01-01T00:00:00.123Z.json.gz"];
        for name in keep.iter().chain(&drop) {
            std::fs::write(folder.path().join(name), "half").unwrap();
        }
        retain(folder.path(), 2).unwrap();
        assert!(keep.iter().all(|name| folder.path().join(name).exists()));
        assert!(!drop.iter().any(|name| folder.path().join(name).exists()));
    }
}
