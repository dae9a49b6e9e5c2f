//! The images that the demo and the tests run: the operator, the development server, a busybox.
//! Decides what has to be built and loaded; `build` and `cluster` do it.

mod build;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

pub(crate) use build::{Built, file_name};
use build::{Recipe, build};

use crate::cluster::{Cluster, layout};
use crate::command::{interactive, output};
use crate::report::{note, phase};
use crate::tools::{self, Need};
use crate::workspace::{cargo_target, root};

/// The operator's image.
pub(crate) const OPERATOR: &str = "localhost/kaniop:dev";
/// The variable that names a Kanidm server image to use in place of the development server's.
pub(crate) const KANIDM_IMAGE: &str = "KANIDM_IMAGE";

/// The folder of the development server, a workspace of its own.
const DEVELOPMENT_SERVER: &str = "dev/kanidm";

/// The images to install with.
#[derive(Clone, Debug)]
pub(crate) struct Images {
    /// The operator, with the node helper in it.
    pub(crate) operator: String,
    /// A digest of all that went into it: its name is the same for every build.
    pub(crate) operator_digest: String,
    /// The Kanidm server.
    pub(crate) kanidm: String,
    /// The release after it, where it is the development server, which can play that.
    pub(crate) next: Option<String>,
}

/// Builds what has changed and loads what the cluster lacks.
///
/// # Errors
/// When a build fails, or the image that `KANIDM_IMAGE` names can neither be found nor pulled.
pub(crate) fn ensure(cluster: &Cluster) -> Result<Images> {
    if let Some(complaint) = tools::complaint(&tools::lacking(&[Need::Images, Need::Build])) {
        bail!(complaint);
    }
    let operator = phase("operator binary", operator_binary)?;
    let operator = Recipe {
        name: OPERATOR,
        containerfile: root().join("Containerfile"),
        files: vec![(operator, "kaniop")],
        arguments: vec![],
    };
    let operator = phase("operator image", || build(&operator))?;
    let operator_digest = operator.digest.clone();
    load(cluster, operator)?;
    let (kanidm, next) = match given_server() {
        Some(image) => (phase("Kanidm image", || cluster.ensure_image(&image)).map(|()| image)?, None),
        None => development_servers(cluster).map(|(server, next)| (server, Some(next)))?,
    };
    Ok(Images { operator: OPERATOR.to_owned(), operator_digest, kanidm, next })
}

/// Builds the image that holds every pod's network open and loads it into the development cluster,
/// which must run already.
///
/// # Errors
/// When it cannot be built or loaded.
pub(crate) fn ensure_busybox() -> Result<Built> {
    let binary = tools::locate("busybox").with_context(|| tools::missing("busybox"))?;
    let recipe = Recipe {
        name: layout::PAUSE_IMAGE,
        containerfile: root().join("dev/cluster/Containerfile.busybox"),
        files: vec![(binary, "busybox")],
        arguments: vec![],
    };
    let built = build(&recipe)?;
    crate::cluster::containerd::load(&built)?;
    Ok(built)
}

fn load(cluster: &Cluster, image: Built) -> Result<()> {
    if cluster.is_external() {
        note(format_args!("your cluster must get {} by itself, for instance by one of:", image.name));
        note(format_args!("  kind load image-archive {}", image.archive.display()));
        note(format_args!("  k3s ctr images import {}", image.archive.display()));
        return Ok(());
    }
    phase(&format!("load {}", image.name), || cluster.load_image(&image))
}

/// The server image that the user wants, if any.
fn given_server() -> Option<String> {
    std::env::var(KANIDM_IMAGE).ok().map(|image| image.trim().to_owned()).filter(|image| !image.is_empty())
}

/// Builds the operator as it is shipped.
///
/// # Errors
/// When it does not compile.
pub(crate) fn operator_binary() -> Result<PathBuf> {
    release_binary("kaniop-operator", "kaniop")
}

/// Builds a program of a package as it is shipped, static and optimised.
///
/// # Errors
/// When it does not compile.
pub(crate) fn release_binary(package: &str, program: &str) -> Result<PathBuf> {
    let target = host_target()?;
    let mut cargo = cargo();
    cargo.args(["build", "--release", "--locked", "--package", package, "--target", &target]).current_dir(root());
    // Static, so that it runs FROM scratch. With --target the flags do not reach build scripts and
    // macros, which cannot be linked so.
    cargo.env("RUSTFLAGS", "-C target-feature=+crt-static");
    interactive(&mut cargo).with_context(|| format!("build {program}"))?;
    Ok(cargo_target().join(target).join("release").join(program))
}

/// The development server as it is, and as it plays the release after that.
fn development_servers(cluster: &Cluster) -> Result<(String, String)> {
    let source = root().join(DEVELOPMENT_SERVER);
    let binary = phase("development server", || development_binary(Profile::Debug))?;
    let image = |series: &str, arguments: Vec<String>| -> Result<String> {
        let name = format!("localhost/kanidm-dev:{series}");
        let files = vec![(binary.clone(), "kanidmd")];
        let recipe = Recipe { name: &name, containerfile: source.join("Containerfile"), files, arguments };
        load(cluster, phase(&format!("development server image {series}"), || build(&recipe))?)?;
        Ok(name)
    };
    let own = series(&source)?;
    let next = series_after(&own).with_context(|| format!("{own} has no number to go on from"))?;
    Ok((image(&own, vec![])?, image(&next, vec![format!("VERSION={next}.0")])?))
}

fn series_after(series: &str) -> Option<String> {
    let (major, minor) = series.split_once('.')?;
    Some(format!("{major}.{}", minor.parse::<u32>().ok()? + 1))
}

/// How the development server is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// As its own tests run it.
    Debug,
    /// Optimised: for measurements only, for it takes minutes to build.
    Release,
}

/// Builds the development server's binary, static and stripped.
///
/// # Errors
/// When it does not compile.
pub(crate) fn development_binary(profile: Profile) -> Result<PathBuf> {
    let source = root().join(DEVELOPMENT_SERVER);
    let mut cargo = cargo();
    // Its own .cargo/config.toml says how it is linked; flags from outside would replace that.
    cargo.args(["build", "--locked", "--bin", "kanidmd"]).current_dir(&source).env_remove("RUSTFLAGS");
    let built = match profile {
        Profile::Debug => "debug/kanidmd",
        Profile::Release => {
            cargo.arg("--release");
            "release/kanidmd"
        }
    };
    interactive(&mut cargo).with_context(|| format!("build the development server in {DEVELOPMENT_SERVER}"))?;
    let folder =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| source.join("target"), |folder| source.join(folder));
    Ok(folder.join(host_target()?).join(built))
}

/// The series (major and minor number) of the development server: it is what an operator reads a
/// server's version from.
fn series(source: &Path) -> Result<String> {
    let file = source.join("Cargo.toml");
    let text = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    series_of(&text).with_context(|| format!("{} has no package version of the form 1.2.3", file.display()))
}

fn series_of(manifest: &str) -> Option<String> {
    let manifest: toml::Table = toml::from_str(manifest).ok()?;
    let mut numbers = manifest.get("package")?.get("version")?.as_str()?.split('.');
    Some(format!("{}.{}", numbers.next()?, numbers.next()?))
}

fn host_target() -> Result<String> {
    let said = output(Command::new("rustc").arg("-vV"))?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not tell its host target")?.to_owned())
}

/// The cargo that runs us, without what it tells us about ourselves.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CARGO_PKG_") || name == "CARGO_MANIFEST_DIR" {
            command.env_remove(name);
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_is_the_first_two_numbers() {
        assert_eq!(series_of("[package]\nversion = \"1.7.4\"\n").as_deref(), Some("1.7"));
        assert_eq!(series_of("[package]\nname = \"x\"\n"), None);
        assert_eq!(series_after("1.9").as_deref(), Some("1.10"));
    }
}
