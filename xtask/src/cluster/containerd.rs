//! Images in the development cluster's containerd. Pulling goes through the machine's own network,
//! for the cluster has no way out.

use std::process::Command;

use anyhow::{Context, Result};

use super::layout;
use crate::command::output;
use crate::images::{Built, file_name};
use crate::{tools, workspace};

/// Loads a built image, unless this very build is loaded already.
///
/// # Errors
/// When containerd refuses it, or does not run.
pub(crate) fn load(image: &Built) -> Result<()> {
    let record = layout::data("images").join(file_name(&image.name));
    if workspace::holds(&record, &image.digest) && has(&image.name)? {
        return Ok(());
    }
    output(ctr().args(["images", "import"]).arg(&image.archive)).with_context(|| format!("load {}", image.name))?;
    workspace::write(&record, &image.digest)
}

/// Makes sure that a named image is there, pulling it if it is not.
///
/// # Errors
/// When it can be neither found nor pulled.
pub(crate) fn ensure(image: &str) -> Result<()> {
    if has(image)? {
        return Ok(());
    }
    output(ctr().args(["images", "pull", image])).map(|_| ()).with_context(|| {
        format!("{image} is not loaded and cannot be pulled; its full name with registry and tag is needed")
    })
}

/// Whether containerd has an image of this name.
///
/// # Errors
/// When containerd does not answer.
pub(crate) fn has(image: &str) -> Result<bool> {
    Ok(output(ctr().args(["images", "list", "--quiet"]))?.lines().any(|line| line == image))
}

fn ctr() -> Command {
    let mut command = Command::new("ctr");
    command.env("PATH", tools::search_path()).args(["--address", &layout::socket(), "--namespace", "k8s.io"]);
    command
}
