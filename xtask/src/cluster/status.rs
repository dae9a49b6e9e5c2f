//! Says how the development cluster is. It changes nothing.

use anyhow::{Result, bail};

use super::layout::{self, RUN};
use super::{components, up};
use crate::command::output;
use crate::process;
use crate::report::{note, say};

/// Prints each component and the node.
///
/// # Errors
/// When the cluster is not wholly up, so that scripts can ask.
pub(crate) fn status() -> Result<()> {
    super::require_root_or_external()?;
    let live = process::find(RUN)?;
    let mut absent = Vec::new();
    for component in components::all(true) {
        match live.iter().find(|process| process.main && process.mark.component == component.name) {
            Some(process) => say(format_args!("  ✓ {:20} pid {}", component.name, process.pid)),
            None => absent.push(component.name),
        }
    }
    if live.is_empty() {
        bail!("the cluster is down; `cargo xtask cluster up` brings it up");
    }
    for name in &absent {
        say(format_args!("  ✗ {name:20} not running, log: {}", layout::place().log(name).display()));
    }
    if !absent.is_empty() {
        bail!("the cluster is only partly up; `cargo xtask cluster up` repairs it");
    }
    say(output(&mut up::kubectl(&["get", "nodes,storageclasses"]))?.trim_end());
    note(super::ACCESS);
    Ok(())
}
