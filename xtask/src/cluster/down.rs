//! Takes the cluster down. It ends only what carries the cluster's mark or runs in its control
//! group, and deletes only the cluster's own folders.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::layout::{DATA, RUN};
use super::{cgroup, components, leftovers, lock, network};
use crate::process::{self, Process};
use crate::report::{note, phase};

/// How long pods get to end by themselves when their data is kept.
const POD_GRACE: Duration = Duration::from_secs(10);
/// How long databases get to close when they are kept.
const DATABASE_GRACE: Duration = Duration::from_secs(10);
/// Data on its way out.
const DISCARDED: &str = "/var/lib/kaniop-dev.discarded";

/// Takes everything down that an earlier run left, in whatever state. With `keep_data` the cluster
/// comes back with its objects and volumes, as after a reboot.
///
/// # Errors
/// When something cannot be ended or unmounted; then no data is deleted.
pub(crate) fn down(keep_data: bool) -> Result<()> {
    super::require_root_or_external()?;
    let _lock = lock::take()?;
    take_down(keep_data)
}

/// Completes a `down` that was interrupted while it deleted data.
///
/// # Errors
/// When something cannot be deleted.
pub(crate) fn finish_interrupted() -> Result<()> {
    leftovers::delete(DISCARDED)
}

/// [`down`] for a caller that holds the lock.
///
/// # Errors
/// As [`down`].
pub(crate) fn take_down(keep_data: bool) -> Result<()> {
    phase("pods", || {
        // Without its kubelet a pod that ends is not started again.
        end(|process| process.mark.component == "kubelet", false)?;
        cgroup::end_all(if keep_data { POD_GRACE } else { Duration::ZERO })
    })?;
    phase("components", || end(|_| true, keep_data))?;
    phase("network and mounts", || {
        leftovers::remove_shim_sockets();
        leftovers::unmount_all()?;
        network::remove()?;
        cgroup::remove()?;
        leftovers::remove_traces()
    })?;
    leftovers::delete(RUN)?;
    if keep_data {
        note(format_args!("data is kept in {DATA}"));
        return Ok(());
    }
    phase("data", discard)
}

/// Data goes at once and as a whole, so that nothing is ever started on a part of it.
fn discard() -> Result<()> {
    finish_interrupted()?;
    if Path::new(DATA).exists() {
        fs::rename(DATA, DISCARDED).with_context(|| format!("discard {DATA}"))?;
    }
    finish_interrupted()
}

/// Ends the chosen processes of the cluster; databases get time to close if their data is wanted.
/// The stateless ones come first, for an API server without etcd would wait for it rather than end,
/// and what the components themselves started comes last.
///
/// # Errors
/// When one of them cannot be ended.
pub(crate) fn end(chosen: impl Fn(&Process) -> bool, wanted: bool) -> Result<()> {
    let step = |which: fn(&Process) -> bool, grace| {
        let mut processes = process::find(RUN)?;
        processes.retain(|process| chosen(process) && which(process));
        process::end(&processes, grace)
    };
    step(|process| process.main && !has_database(process), Duration::ZERO)?;
    step(|process| process.main, if wanted { DATABASE_GRACE } else { Duration::ZERO })?;
    step(|process| !process.main, Duration::ZERO)
}

fn has_database(process: &Process) -> bool {
    components::DATABASES.contains(&process.mark.component.as_str())
}
