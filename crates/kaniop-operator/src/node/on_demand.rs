//! `kaniop node backup NAME`: a backup on demand, by the server's own program beside the server, or on its volume while it is stopped.
//!
//! That program exits with 0 when it has written nothing, and a kill leaves a short file. So it writes under a hidden name, the file is proven, and only then gets
//! its final name, `on-demand-NAME.json.gz`. The server does not count that among the versions that it keeps: a backup before an upgrade is not
//! rotated away by the days after it, and many on demand do not rotate away the days before. Nothing here removes one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use kaniop_core::backup::{Artefact, Verdict};
use kaniop_kanidm::backup;
use kaniop_kanidm::node::{Answer, OnDemand};

use super::backups::{detached, lower_priority};
use super::proofs::{Places, is_open};

/// The server's program in its image.
const SERVER: &str = "/sbin/kanidmd";
/// What is left of an attempt that failed: one file at most, which the next one replaces.
const LEFT_OVER: &str = ".on-demand.left-over";

/// What is asked.
#[derive(Debug, clap::Args)]
pub struct Backup {
    /// Names the backup: lower-case letters, digits and '-'. Asked again under the same name, the same backup is told.
    #[arg(value_parser = name)]
    name: String,
    #[command(flatten)]
    places: Places,
    /// For how many seconds it is waited for; it goes on by itself.
    #[arg(long, default_value_t = 30)]
    patience: u64,
    /// The server's program.
    #[arg(long, default_value = SERVER)]
    server: PathBuf,
    /// Make it in this very process.
    #[arg(long, hide = true)]
    make: bool,
}

fn name(text: &str) -> Result<String, String> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let right = (1..=63).contains(&text.len()) && text.bytes().all(plain) && !text.starts_with('-');
    right.then(|| text.to_owned()).ok_or_else(|| "1 to 63 lower-case letters, digits and '-'".to_owned())
}

/// Answers.
///
/// # Errors
/// Why there is no backup, for people.
pub fn on_demand(asked: &Backup) -> Result<OnDemand, String> {
    if asked.make {
        let answer = make(asked).map_or_else(Answer::Error, Answer::Ok);
        // Whoever started this may have answered and gone.
        let _ = serde_json::to_string(&answer).map(|line| writeln!(io::stdout().lock(), "{line}"));
        return Ok(OnDemand::Running);
    }
    if let Some(made) = asked.made()?.filter(|made| !is_open(made)) {
        return Ok(OnDemand::Made(Box::new(made)));
    }
    let places = &asked.places;
    let words = ["backup", &asked.name, "--make", "--folder"].map(PathBuf::from).into_iter().chain([
        places.folder.clone(),
        PathBuf::from("--state"),
        places.state.clone(),
        PathBuf::from("--server"),
        asked.server.clone(),
    ]);
    let decode = |line: &str| serde_json::from_str::<Answer<Artefact>>(line).ok();
    match detached(words, Duration::from_secs(asked.patience), decode)?.pop() {
        Some(Answer::Ok(made)) => Ok(OnDemand::Made(Box::new(made))),
        Some(Answer::Error(why)) => Err(why),
        None => Ok(OnDemand::Running),
    }
}

impl Backup {
    /// The backup of this name, if there is one.
    fn made(&self) -> Result<Option<Artefact>, String> {
        let listing = self.places.listing(&self.places.proofs())?;
        Ok(listing.files.into_iter().find(|file| names(&self.name).contains(&file.file_name)))
    }
}

fn names(name: &str) -> [String; 2] {
    [format!("on-demand-{name}.json.gz"), format!("on-demand-{name}.json")]
}

/// Under the lock, so that a process that was started for the same name waits, and finds the backup.
fn make(asked: &Backup) -> Result<Artefact, String> {
    let Backup { places, name, .. } = asked;
    let told = |what: &str, error: &io::Error| format!("the backup {name} {what}: {error}");
    let lock = places.lock().ok_or_else(|| {
        format!(
            "the backup {name} cannot be made: {} cannot be written; see that the volume has room",
            places.state.display()
        )
    })?;
    lock.lock().map_err(|error| told("cannot be made, for the lock cannot be taken", &error))?;
    if let Some(made) = asked.made()? {
        return Ok(if is_open(&made) { prove(places, &made.file_name)? } else { made });
    }
    fs::create_dir_all(&places.folder).map_err(|error| told("has no folder", &error))?;
    let unfinished = places.folder.join(format!(".on-demand-{name}"));
    set_aside(places, &unfinished);
    let written = write(&asked.server, &unfinished).and_then(|()| File::open(&unfinished)?.sync_all());
    written.map_err(|error| told("was not written", &error))?;
    lower_priority();
    let compressed = backup::looks_compressed(&unfinished).map_err(|error| told("cannot be read", &error))?;
    let [gzip, plain] = names(name);
    let file_name = if compressed { gzip } else { plain };
    // The form is judged by the name, so it has the right ending already, and is still hidden.
    let hidden = places.folder.join(format!(".{file_name}"));
    set_aside(places, &hidden);
    fs::rename(&unfinished, &hidden).map_err(|error| told("cannot be named", &error))?;
    let found = backup::prove(&hidden, None).map_err(|error| told("is gone", &error))?;
    if found.verdict != Verdict::Proven {
        set_aside(places, &hidden);
        let detail = found.detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
        return Err(format!(
            "the backup {name} was written and {}{detail}; see that the volume has room",
            found.verdict.in_words()
        ));
    }
    let path = places.folder.join(&file_name);
    fs::rename(&hidden, &path)
        .and_then(|()| File::open(&places.folder)?.sync_all())
        .map_err(|error| told("cannot be named", &error))?;
    let found = Artefact { file_name, ..found };
    let mut proofs = places.proofs();
    proofs.add(&path, &found);
    // If it cannot be kept, it is read again when somebody asks.
    let _ = places.keep(&proofs);
    Ok(found)
}

fn prove(places: &Places, file_name: &str) -> Result<Artefact, String> {
    lower_priority();
    let path = places.folder.join(file_name);
    let found = backup::prove(&path, None).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let mut proofs = places.proofs();
    proofs.add(&path, &found);
    let _ = places.keep(&proofs);
    Ok(found)
}

/// What an attempt that was stopped left is in the way: the server's program never writes over a file.
fn set_aside(places: &Places, path: &Path) {
    // Nothing there, nothing to do; if it stays, the next step says so.
    let _ = fs::rename(path, places.folder.join(LEFT_OVER));
}

/// At this process's own priority: it takes the database's lock, for which the server may wait. Its exit code is no evidence and its words could quote its
/// configuration, so neither is looked at.
fn write(server: &Path, target: &Path) -> io::Result<()> {
    let mut command = Command::new(server);
    command.args(["scripting", "backup"]).arg(target).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
        .status()
        .map_err(|error| io::Error::new(error.kind(), format!("{} cannot be run: {error}", server.display())))?;
    match fs::metadata(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let why =
                "the server's program wrote nothing: its database is locked by somebody else, or the volume is full";
            Err(io::Error::new(io::ErrorKind::NotFound, why))
        }
        found => found.map(drop),
    }
}
