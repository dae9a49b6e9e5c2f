//! Installs what a fresh Debian machine lacks and builds the cluster's binaries.

use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};

use crate::command::output;
use crate::report::{note, phase, say};
use crate::tools::{self, Need, Tool};
use crate::{cluster, gobuild};

/// What apt-get prints when no mirror can be reached.
const UNREACHABLE: &[&str] = &[
    "Temporary failure resolving",
    "Could not resolve",
    "Could not connect",
    "Unable to connect",
    "Connection timed out",
];

/// Makes the machine ready. Doing it again takes a moment and changes nothing.
///
/// # Errors
/// In one line when it takes root, an apt-get, a network or a Go that is not there.
pub(crate) fn setup() -> Result<()> {
    say("setup");
    let lacking = tools::lacking(&[Need::Cluster, Need::Images, Need::Build]);
    if lacking.is_empty() {
        note("no package is missing");
    } else {
        install(&lacking)?;
    }
    gobuild::binaries()?;
    Ok(())
}

fn install(lacking: &[&Tool]) -> Result<()> {
    let packages = tools::packages(lacking);
    cluster::require_root(&format!("installing packages ({})", packages.join(" ")))?;
    if tools::locate("apt-get").is_none() {
        let complaint = tools::complaint(lacking).unwrap_or_default();
        bail!("this is not a Debian system, install by your own package manager what is {complaint}");
    }
    // Lists that could not be fetched (all, or those of one source of the user's) matter only when
    // the packages cannot be installed without them.
    let lists = phase("package lists", || apt(&["update"]));
    let installed = phase(&format!("install {}", packages.join(" ")), || {
        apt(&[&["install", "--yes", "--no-install-recommends"], packages.as_slice()].concat())
    });
    if let Err(error) = installed {
        return Err(lists.err().unwrap_or(error));
    }
    match tools::complaint(&tools::lacking(&[Need::Cluster, Need::Images, Need::Build])) {
        Some(complaint) => bail!("after installing still {complaint}"),
        None => Ok(()),
    }
}

fn apt(arguments: &[&str]) -> Result<()> {
    let mut apt = Command::new("apt-get");
    // --quiet twice: only errors are said. Errors of `update` are mere warnings unless asked for.
    apt.args(["-qq", "-o", "APT::Update::Error-Mode=any"]).args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    output(&mut apt).map(|_| ()).map_err(|e| unreachable(&e.to_string()).unwrap_or(e)).context("apt-get")
}

/// The one line for a mirror that cannot be reached, if that is what `said` is about.
fn unreachable(said: &str) -> Option<anyhow::Error> {
    let line = said.lines().find(|line| UNREACHABLE.iter().any(|mark| line.contains(mark)))?;
    Some(anyhow!("cannot reach a Debian package mirror: {}", line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreachable_mirror_is_one_line() {
        let said = "apt-get failed:\n    E: Failed to fetch x  Temporary failure resolving 'deb.example'\n    E: more";
        let text = unreachable(said).unwrap().to_string();
        assert!(text.contains("package mirror") && !text.contains('\n'), "{text}");
        assert!(unreachable("apt-get failed:\n    E: Unable to locate package x").is_none());
    }
}
