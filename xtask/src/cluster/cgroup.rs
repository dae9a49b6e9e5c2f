//! The control group that all pods of the cluster are below. It is ours alone, so whatever runs in
//! it belongs to the cluster and may be ended.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::layout::CGROUP;

/// Controllers that the kubelet insists on, where the unified hierarchy has them.
const CONTROLLERS: [&str; 5] = ["cpu", "cpuset", "hugetlb", "memory", "pids"];

/// Makes the group in every hierarchy that the kernel has mounted.
///
/// # Errors
/// When there is no hierarchy, or it is read-only (inside of an unprivileged container).
pub(crate) fn ensure() -> Result<()> {
    let roots = roots()?;
    if roots.is_empty() {
        bail!("no control groups are mounted below /sys/fs/cgroup: the kubelet cannot run here");
    }
    for root in roots {
        delegate(&root)?;
        let group = root.join(CGROUP);
        fs::create_dir_all(&group).with_context(|| format!("create the control group {}", group.display()))?;
    }
    Ok(())
}

/// Ends every process in the group: asked first when there is a `grace`, then killed.
///
/// # Errors
/// When a killed process does not go away.
pub(crate) fn end_all(grace: Duration) -> Result<()> {
    if !grace.is_zero() && empty_within(Signal::TERM, false, grace)? {
        return Ok(());
    }
    if !empty_within(Signal::KILL, true, Duration::from_secs(10))? {
        bail!("processes of pods are still running after SIGKILL: {:?}", members()?);
    }
    Ok(())
}

/// Removes the group with all that are below it. They must be empty.
///
/// # Errors
/// When one of them is in use.
pub(crate) fn remove() -> Result<()> {
    for root in roots()? {
        let group = root.join(CGROUP);
        if group.exists() {
            remove_tree(&group).with_context(|| format!("remove the control group {}", group.display()))?;
        }
    }
    Ok(())
}

/// Sends `signal` once, or again and again (a pod may be forking), until the group is empty.
fn empty_within(signal: Signal, repeat: bool, limit: Duration) -> Result<bool> {
    let deadline = Instant::now() + limit;
    let mut send = true;
    loop {
        let members = members()?;
        if members.is_empty() {
            return Ok(true);
        }
        if Instant::now() > deadline {
            return Ok(false);
        }
        for pid in members.into_iter().filter_map(Pid::from_raw).filter(|_| send) {
            // It may have ended since; the next look tells.
            let _ = kill_process(pid, signal);
        }
        send = repeat;
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn members() -> Result<Vec<i32>> {
    let mut all = Vec::new();
    for root in roots()? {
        collect(&root.join(CGROUP), &mut all);
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// Groups vanish while we look, so what cannot be read is skipped.
fn collect(group: &Path, into: &mut Vec<i32>) {
    let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    // 0 stands for a process outside of our own process namespace, which cannot be of a pod of ours.
    into.extend(listed.lines().filter_map(|line| line.parse::<i32>().ok()).filter(|pid| *pid != 0));
    for child in children(group) {
        collect(&child, into);
    }
}

fn remove_tree(group: &Path) -> Result<()> {
    for child in children(group) {
        remove_tree(&child)?;
    }
    // A group whose last process has just ended may stay busy for a moment.
    let deadline = Instant::now() + Duration::from_secs(5);
    while let Err(e) = fs::remove_dir(group) {
        if Instant::now() > deadline {
            return Err(e.into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn children(group: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|t| t.is_dir())).map(|entry| entry.path()).collect()
}

/// Hands the controllers of a unified hierarchy down to its groups. Those of version 1 are there
/// by themselves.
fn delegate(root: &Path) -> Result<()> {
    let Ok(offered) = fs::read_to_string(root.join("cgroup.controllers")) else { return Ok(()) };
    for controller in offered.split_whitespace().filter(|name| CONTROLLERS.contains(name)) {
        let file = root.join("cgroup.subtree_control");
        fs::write(&file, format!("+{controller}"))
            .with_context(|| format!("hand the controller {controller} to the cluster's control group"))?;
    }
    Ok(())
}

fn roots() -> Result<Vec<PathBuf>> {
    let mounts = fs::read_to_string("/proc/self/mounts").context("read the table of mounts")?;
    Ok(hierarchies(&mounts))
}

/// The control group hierarchies in a table of mounts.
fn hierarchies(mounts: &str) -> Vec<PathBuf> {
    let fields = mounts.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let groups = fields.filter(|f| f.len() > 2 && matches!(f[2], "cgroup" | "cgroup2"));
    groups.map(|f| PathBuf::from(f[1])).filter(|path| path.starts_with("/sys/fs/cgroup")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_hierarchies_are_found() {
        let v1 = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n";
        assert_eq!(hierarchies(v1), [PathBuf::from("/sys/fs/cgroup/memory")]);
        let v2 = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\nproc /proc proc rw 0 0\n";
        assert_eq!(hierarchies(v2), [PathBuf::from("/sys/fs/cgroup")]);
        assert!(hierarchies("cgroup /mnt/x/memory cgroup rw 0 0\nshort\n").is_empty());
    }

    #[test]
    fn members_of_nested_groups_are_collected() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("kubepods/pod1")).unwrap();
        fs::write(root.path().join("cgroup.procs"), "").unwrap();
        fs::write(root.path().join("kubepods/pod1/cgroup.procs"), "41\n42\n0\n").unwrap();
        let mut found = Vec::new();
        collect(root.path(), &mut found);
        assert_eq!(found, [41, 42]);
    }
}
