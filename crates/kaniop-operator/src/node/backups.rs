//! `kaniop node backups`: every file of the folder of backups, and what it proves.
//!
//! Reading a file takes as long as it is big, and whoever asks does not wait that long. So a process of its own reads, at the lowest priority, and goes on
//! when the one that was asked has to answer; what is not read by then is told as pending, and known to whoever asks next. One that is left behind belongs to
//! the server's process in the end, which does not collect it: a line in the pod's table of processes for each file that took too long.

use std::fs::TryLockError;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use kaniop_core::backup::{Artefact, Listing, Verdict};
use kaniop_kanidm::backup;

use super::proofs::{Places, is_open};
use crate::clock::Clock;

/// The lowest priority for processor and disk.
const LOWEST: i32 = 19;

/// What is asked.
#[derive(Debug, clap::Args)]
pub struct Backups {
    #[command(flatten)]
    places: Places,
    /// For how many seconds files are waited for that nobody has read yet.
    #[arg(long, default_value_t = 30)]
    patience: u64,
    /// Read them in this very process, and print each when it is read.
    #[arg(long, hide = true)]
    read: bool,
}

/// Answers.
///
/// # Errors
/// When the folder cannot be listed.
pub fn backups(asked: &Backups) -> Result<Listing, String> {
    let places = &asked.places;
    if asked.read {
        let printing = |artefact: &Artefact| {
            // Whoever started this may have answered and gone.
            let _ = serde_json::to_string(artefact).map(|line| writeln!(std::io::stdout().lock(), "{line}"));
        };
        return read(places, printing);
    }
    let listing = places.listing(&places.proofs())?;
    if !listing.files.iter().any(is_open) {
        return Ok(listing);
    }
    let words = ["backups", "--read", "--folder"].map(PathBuf::from);
    let words = words.into_iter().chain([places.folder.clone(), PathBuf::from("--state"), places.state.clone()]);
    let told =
        detached(words, Duration::from_secs(asked.patience), |line| serde_json::from_str::<Artefact>(line).ok())?;
    let mut listing = places.listing(&places.proofs())?;
    for file in &mut listing.files {
        // Where proofs cannot be kept, for instance on a full volume, this is all that tells.
        let fresh = told.iter().find(|told| told.file_name == file.file_name && told.modified == file.modified);
        if let Some(fresh) = fresh.filter(|_| file.verdict == Verdict::Pending) {
            *file = fresh.clone();
        }
    }
    Ok(listing)
}

/// Reads what nobody has read, the newest first, unless another process is about it.
fn read(places: &Places, tell: impl Fn(&Artefact)) -> Result<Listing, String> {
    let lock = places.lock();
    if let Some(Err(TryLockError::WouldBlock)) = lock.as_ref().map(std::fs::File::try_lock) {
        return places.listing(&places.proofs());
    }
    lower_priority();
    let clock = Clock::start();
    let mut proofs = places.proofs();
    let listing = places.listing(&proofs)?;
    proofs.retain(&listing);
    for file in listing.files.iter().filter(|file| is_open(file)) {
        let path = places.folder.join(&file.file_name);
        // A file that is gone was removed by the server meanwhile.
        let Ok(found) = backup::prove(&path, Some(clock.now())) else { continue };
        proofs.add(&path, &found);
        // Whoever waits is told even if it cannot be kept.
        let _ = places.keep(&proofs);
        tell(&found);
    }
    places.listing(&proofs)
}

/// For this process from now on; it is not raised again. A refusal leaves it as it is.
pub fn lower_priority() {
    let _ = rustix::process::nice(LOWEST);
}

/// Starts this program anew, apart from this process, and waits for what it prints, line by line, until it ends or the time is over. Then it goes on by
/// itself.
///
/// # Errors
/// When it cannot be started.
pub fn detached<T: Send + 'static>(
    words: impl IntoIterator<Item = PathBuf>,
    patience: Duration,
    decode: impl Fn(&str) -> Option<T> + Send + 'static,
) -> Result<Vec<T>, String> {
    let mut child = start(words).map_err(|error| format!("this program cannot start itself anew: {error}"))?;
    let stdout = child.stdout.take();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let lines = stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines());
        for line in lines.map_while(Result::ok) {
            if decode(&line).is_some_and(|line| tell.send(line).is_err()) {
                return;
            }
        }
    });
    let (clock, mut lines) = (Clock::start(), Vec::new());
    loop {
        match told.recv_timeout(patience.saturating_sub(clock.elapsed())) {
            Ok(line) => lines.push(line),
            Err(mpsc::RecvTimeoutError::Timeout) => return Ok(lines),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    // It has closed its output, so it is at its end.
    let _ = child.wait();
    Ok(lines)
}

/// With none of this process's own streams, or whoever started this one would wait for the end of that one.
fn start(words: impl IntoIterator<Item = PathBuf>) -> std::io::Result<Child> {
    use std::os::unix::process::CommandExt;
    Command::new(std::env::current_exe()?)
        .arg("node")
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}
