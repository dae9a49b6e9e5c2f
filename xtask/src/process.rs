//! Starts components that outlive us, finds them again and ends them.
//!
//! A process is ours when its environment carries our mark. The kernel keeps that for each process,
//! so nothing can be stale: no file of process ids is written, a crash between starting a process
//! and recording it cannot orphan it, and a reused id is never taken for ours. Signals go through
//! a process handle that is opened before the mark is checked.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::command::not_started;
use crate::tools;

/// The environment variable that carries the mark.
const VARIABLE: &str = "KANIOP_DEV_COMPONENT";

/// How long the kernel may take to end a killed process before we give up on it.
const KILLED_ENDS_WITHIN: Duration = Duration::from_secs(10);

/// How long a process may be between two programs before we take it for one without environment.
const BETWEEN_PROGRAMS: Duration = Duration::from_millis(500);

/// How many looks in a row make us believe that a process has no environment.
const LOOKS: usize = 5;

/// More than all but the oddest environments, in bytes.
const ENVIRONMENT: usize = 256 * 1024;

/// Says whose a process is and what it runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mark {
    /// The cluster it belongs to: its folder of runtime files.
    pub(crate) owner: String,
    /// What it is, `etcd` for instance.
    pub(crate) component: String,
    /// A digest of all that shaped it; a different one means that it is out of date.
    pub(crate) stamp: String,
}

impl Mark {
    fn render(&self) -> String {
        format!("{}|{}|{}", self.component, self.stamp, self.owner)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '|').map(str::to_owned);
        Some(Self { component: parts.next()?, stamp: parts.next()?, owner: parts.next()? })
    }

    /// Finds the mark in the environment block of a process, as `/proc/<pid>/environ` has it.
    fn in_environment(block: &[u8]) -> Option<Self> {
        block.split(|byte| *byte == 0).find_map(|entry| {
            let value = std::str::from_utf8(entry).ok()?.strip_prefix(VARIABLE)?.strip_prefix('=')?;
            Self::parse(value)
        })
    }
}

/// A live process of ours.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) mark: Mark,
    /// The component itself, not one of the processes that it started.
    pub(crate) main: bool,
    handle: OwnedFd,
}

/// Starts `argv` in a session of its own, so that closing the terminal does not end it, with its
/// output going to `log`.
pub(crate) fn start(argv: &[String], mark: &Mark, log: &Path) -> Result<Child> {
    let output = File::create(log).with_context(|| format!("create {}", log.display()))?;
    Command::new("setsid")
        .args(argv)
        .env(VARIABLE, mark.render())
        .env("PATH", tools::search_path())
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .map_err(|e| not_started("setsid", e))
}

/// All live processes with `owner`'s mark.
pub(crate) fn find(owner: &str) -> Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("read /proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        found.extend(open(pid, owner));
    }
    let marked: Vec<(i32, String)> = found.iter().map(|p| (p.pid, p.mark.component.clone())).collect();
    for process in &mut found {
        let inherited =
            parent(process.pid).is_some_and(|parent| marked.contains(&(parent, process.mark.component.clone())));
        // A container's shim detaches from containerd, so its parent does not give it away.
        process.main = !inherited && !program(process.pid).starts_with("containerd-shim");
    }
    Ok(found)
}

/// Asks the processes to end, and kills those that have not after `grace`.
///
/// # Errors
/// When a killed process does not go away (it hangs in the kernel).
pub(crate) fn end(processes: &[Process], grace: Duration) -> Result<()> {
    if !grace.is_zero() {
        signal(processes, Signal::TERM);
        if all_gone(processes, grace)? {
            return Ok(());
        }
    }
    signal(processes, Signal::KILL);
    if all_gone(processes, KILLED_ENDS_WITHIN)? {
        return Ok(());
    }
    let names: Vec<_> = processes.iter().map(|p| format!("{} ({})", p.mark.component, p.pid)).collect();
    bail!("still running after SIGKILL, one of: {}", names.join(", "))
}

/// The first process of one of these names that sees the same files as we do and is not `owner`'s.
/// Those inside of containers see others.
///
/// # Errors
/// When the processes cannot be listed.
pub(crate) fn foreign(names: &[&str], owner: &str) -> Result<Option<String>> {
    let files = fs::read_link("/proc/self/ns/mnt").context("read our own namespace")?;
    for entry in fs::read_dir("/proc").context("read /proc")? {
        let folder = entry?.path();
        let name = fs::read_to_string(folder.join("comm")).unwrap_or_default().trim_end().to_owned();
        if !names.contains(&name.as_str()) || !fs::read_link(folder.join("ns/mnt")).is_ok_and(|found| found == files) {
            continue;
        }
        let pid = folder.file_name().and_then(|name| name.to_str()?.parse().ok());
        let mark = pid.and_then(environment).and_then(|block| Mark::in_environment(&block));
        if mark.is_none_or(|mark| mark.owner != owner) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Opens a handle first and reads the mark after it: the handle then is of the marked process.
fn open(pid: i32, owner: &str) -> Option<Process> {
    Mark::in_environment(&environment(pid)?)?;
    let handle = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    let mark = Mark::in_environment(&environment(pid)?).filter(|mark| mark.owner == owner)?;
    Some(Process { pid, mark, main: true, handle })
}

/// The environment of a live process. While a process replaces its program (each of ours does so a
/// few times when it starts) the kernel shows none for a moment, so that is believed only after
/// several looks.
fn environment(pid: i32) -> Option<Vec<u8>> {
    let start = Instant::now();
    let mut empty = 0;
    loop {
        let block = read_at_once(&format!("/proc/{pid}/environ")).ok()?;
        // Without a program it is a kernel thread, or dead.
        if block.is_empty() && fs::read_link(format!("/proc/{pid}/exe")).is_err() {
            return None;
        }
        empty = if has_none(pid) { empty + 1 } else { 0 };
        if !block.is_empty() || empty == LOOKS || start.elapsed() > BETWEEN_PROGRAMS {
            return Some(block);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// One call of the kernel shows one state; a second might show the next program's.
fn read_at_once(file: &str) -> io::Result<Vec<u8>> {
    let mut block = vec![0; ENVIRONMENT];
    let length = File::open(file)?.read(&mut block)?;
    block.truncate(length);
    Ok(block)
}

/// Whether a process looks as if it had no environment: a place for it, of no length.
fn has_none(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    environment_place(&stat).is_none_or(|(start, end)| start == end && end != 0)
}

/// Where the environment starts and ends: the 50th and 51st field of a process's `stat`.
fn environment_place(stat: &str) -> Option<(u64, u64)> {
    let mut fields = after_name(stat)?.skip(47);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// The fields of a process's `stat` from the third on. The second is the program's name in
/// parentheses, which may itself hold any character.
fn after_name(stat: &str) -> Option<impl Iterator<Item = &str>> {
    Some(stat.rsplit_once(')')?.1.split_whitespace())
}

fn signal(processes: &[Process], signal: Signal) {
    for process in processes {
        // The only failure is that it has ended, which is what we want.
        let _ = pidfd_send_signal(&process.handle, signal);
    }
}

fn all_gone(processes: &[Process], within: Duration) -> Result<bool> {
    let deadline = Instant::now() + within;
    for process in processes {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).context("deadline")?;
        let mut handles = [PollFd::new(&process.handle, PollFlags::IN)];
        if poll(&mut handles, Some(&timeout))? == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

fn parent(pid: i32) -> Option<i32> {
    after_name(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?.nth(1)?.parse().ok()
}

fn program(pid: i32) -> String {
    let file = fs::read_link(format!("/proc/{pid}/exe")).ok();
    file.and_then(|file| file.file_name().map(|name| name.to_string_lossy().into_owned())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(owner: &str) -> Mark {
        Mark { owner: owner.to_owned(), component: "sleeper".to_owned(), stamp: "1".to_owned() }
    }

    fn start_in(folder: &Path, script: &str) -> (Mark, Child) {
        let mark = mark(&folder.to_string_lossy());
        let argv = ["sh", "-c", script].map(str::to_owned);
        let child = start(&argv, &mark, &folder.join("log")).unwrap();
        (mark, child)
    }

    #[test]
    fn a_mark_survives_the_environment_block() {
        let block = format!("A=1\0{VARIABLE}={}\0B=2\0", mark("/run/x|y").render());
        assert_eq!(Mark::in_environment(block.as_bytes()), Some(mark("/run/x|y")));
        assert_eq!(Mark::in_environment(b"A=1\0KANIOP_DEV_COMPONENTS=a|b|c\0"), None);
    }

    #[test]
    fn a_started_process_is_found_by_its_owner_only_and_ended() {
        let folder = tempfile::tempdir().unwrap();
        let (mark, mut child) = start_in(folder.path(), "sleep 600 & wait");
        let found = find(&mark.owner).unwrap();
        let main: Vec<_> = found.iter().filter(|p| p.main).collect();
        assert_eq!(main.len(), 1);
        assert_eq!(main[0].pid, i32::try_from(child.id()).unwrap());
        assert!(find("/run/someone-else").unwrap().is_empty());
        end(&found, Duration::from_secs(5)).unwrap();
        child.wait().unwrap();
        let rest = find(&mark.owner).unwrap();
        end(&rest, Duration::ZERO).unwrap();
        assert!(find(&mark.owner).unwrap().is_empty());
    }

    #[test]
    fn a_program_of_another_owner_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("kaniop-node");
        fs::copy(tools::locate("sleep").unwrap(), &program).unwrap();
        let mark = mark(&folder.path().to_string_lossy());
        let argv = [program.to_string_lossy().into_owned(), "600".to_owned()];
        let mut child = start(&argv, &mark, &folder.path().join("log")).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while foreign(&["kaniop-node"], "/run/other").unwrap().is_none() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(foreign(&["kaniop-node"], "/run/other").unwrap().as_deref(), Some("kaniop-node"));
        assert_eq!(foreign(&["kaniop-node"], &mark.owner).unwrap(), None);
        end(&find(&mark.owner).unwrap(), Duration::ZERO).unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_that_ignores_the_request_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let (mark, mut child) = start_in(folder.path(), "trap '' TERM; echo ready; while :; do sleep 0.1; done");
        let deadline = Instant::now() + Duration::from_secs(10);
        while fs::read_to_string(folder.path().join("log")).unwrap().is_empty() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        end(&find(&mark.owner).unwrap(), Duration::from_millis(300)).unwrap();
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_process_that_replaces_its_program_again_and_again_is_never_missed() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("again");
        fs::write(&script, "#!/bin/sh\n[ $1 = 0 ] && exec sleep 600\nexec \"$0\" $(($1 - 1))\n").unwrap();
        fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let mark = mark(&folder.path().to_string_lossy());
        let argv = [script.to_string_lossy().into_owned(), "300".to_owned()];
        let mut child = start(&argv, &mark, &folder.path().join("log")).unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let mut looks = 0;
        while program(pid) != "sleep" {
            assert!(child.try_wait().unwrap().is_none(), "the script has failed");
            assert!(open(pid, &mark.owner).is_some(), "missed after {looks} looks");
            looks += 1;
        }
        end(&find(&mark.owner).unwrap(), Duration::ZERO).unwrap();
        child.wait().unwrap();
        assert!(looks > 0);
    }

    #[test]
    fn the_place_of_the_environment_is_read_past_any_name() {
        let fields: Vec<String> = (3..=52).map(|number| number.to_string()).collect();
        let stat = format!("1 (a) b) (c) {}", fields.join(" "));
        assert_eq!(environment_place(&stat), Some((50, 51)));
        assert_eq!(environment_place("1 (short) S 1"), None);
    }

    #[test]
    fn a_reused_process_id_is_not_taken_for_ours() {
        let mine = i32::try_from(std::process::id()).unwrap();
        assert!(open(mine, "/run/kaniop-dev").is_none());
    }
}
