//! One run at a time may change the cluster.

use std::fs::{File, TryLockError};

use anyhow::{Context, Result};

use super::layout::LOCK;
use crate::report::note;

/// Held until dropped. The kernel frees it when its holder dies, however that happens.
pub(crate) struct Lock(#[expect(dead_code, reason = "dropping it frees the lock")] File);

/// Takes the lock; waits while another run holds it, and says so.
///
/// # Errors
/// When the lock's file cannot be made.
pub(crate) fn take() -> Result<Lock> {
    let file = File::create(LOCK).with_context(|| format!("create {LOCK}"))?;
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        note("another `cargo xtask` is changing the cluster: waiting for it");
        file.lock().with_context(|| format!("lock {LOCK}"))?;
    }
    Ok(Lock(file))
}
