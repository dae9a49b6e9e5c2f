//! Lets a run that is interrupted (Ctrl-C, SIGTERM, a closed terminal) clean up after itself. A
//! second signal ends it at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on a first signal is only noted, for [`check`] to find. May be called again.
///
/// # Errors
/// When the handlers cannot be installed.
pub(crate) fn watch() -> Result<()> {
    let noted = Arc::new(AtomicBool::new(false));
    if INTERRUPTED.set(Arc::clone(&noted)).is_err() {
        return Ok(()); // watched already: a second pair of handlers would take one signal for two
    }
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&noted))?;
        flag::register(signal, Arc::clone(&noted))?;
    }
    Ok(())
}

/// Fails when a signal has been noted.
///
/// # Errors
/// "interrupted", then.
pub(crate) fn check() -> Result<()> {
    if INTERRUPTED.get().is_some_and(|noted| noted.load(Ordering::Relaxed)) {
        bail!("interrupted");
    }
    Ok(())
}
