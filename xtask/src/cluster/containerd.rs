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
    let full = full_name(image);
    if has(&full)? {
        return Ok(());
    }
    output(ctr().args(["images", "pull", &full]))
        .map(|_| ())
        .with_context(|| format!("{image} is not loaded in the cluster and cannot be pulled as {full}"))
}

/// Whether containerd has an image of this full name.
fn has(image: &str) -> Result<bool> {
    Ok(output(ctr().args(["images", "list", "--quiet"]))?.lines().any(|line| line == image))
}

/// The name with registry and tag that the kubelet makes of one without.
fn full_name(image: &str) -> String {
    let registry = image.split_once('/').is_some_and(|(first, _)| first == "localhost" || first.contains(['.', ':']));
    let place = match (registry, image.contains('/')) {
        (true, _) => "",
        (false, true) => "docker.io/",
        (false, false) => "docker.io/library/",
    };
    let named = image.rsplit('/').next().is_some_and(|last| last.contains([':', '@']));
    format!("{place}{image}{}", if named { "" } else { ":latest" })
}

fn ctr() -> Command {
    let mut command = Command::new("ctr");
    command.env("PATH", tools::search_path()).args(["--address", &layout::socket(), "--namespace", "k8s.io"]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_of_images_are_completed_as_the_kubelet_does() {
        for (short, full) in [
            ("localhost/kanidm-dev:1.7", "localhost/kanidm-dev:1.7"),
            ("kanidm/server:1.10.5", "docker.io/kanidm/server:1.10.5"),
            ("kanidm/server", "docker.io/kanidm/server:latest"),
            ("busybox", "docker.io/library/busybox:latest"),
            ("registry.example:5000/kanidm", "registry.example:5000/kanidm:latest"),
            ("example.org/kanidm@sha256:00", "example.org/kanidm@sha256:00"),
        ] {
            assert_eq!(full_name(short), full);
        }
    }
}
