//! Builds what is measured and runs the benchmark beside an API server of its own. What is measured, and what it should be, is the
//! benchmark's own (`tests/bench`).

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::command::interactive;
use crate::images::{self, Profile};
use crate::report::phase;
use crate::workspace::{cargo_target, output_folder, root};
use crate::{apiserver, interrupt};

/// How it is run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Small numbers and debug builds, in a minute or two: shows that everything can be measured, not how fast anything is
    #[arg(long)]
    short: bool,
    /// Only these measurements, by their letters: `b,f`
    #[arg(long)]
    only: Option<String>,
}

/// The programs of a run.
struct Programs {
    bench: PathBuf,
    operator: PathBuf,
    server: PathBuf,
}

/// Runs it as asked.
///
/// # Errors
/// When something does not build or cannot be measured. A bar that is missed is no error.
pub(crate) fn run(options: &Options) -> Result<()> {
    interrupt::watch()?;
    let programs = if options.short { debug()? } else { release()? };
    let folder = output_folder("bench")?;
    let mut words = vec![programs.bench.display().to_string()];
    for (name, path) in [("operator", &programs.operator), ("server", &programs.server), ("output", &folder)] {
        words.extend([format!("--{name}"), path.display().to_string()]);
    }
    words.extend(options.short.then(|| "--short".to_owned()));
    words.extend(options.only.iter().map(|only| format!("--only={only}")));
    if apiserver::beside(&words)? != 0 {
        bail!("not everything could be measured; logs are in {}", folder.join("logs").display());
    }
    Ok(())
}

/// A gate: the harness works.
///
/// # Errors
/// As [`run`].
pub(crate) fn short() -> Result<()> {
    run(&Options { short: true, only: None })
}

/// What the tests have built already, but for the benchmark itself.
fn debug() -> Result<Programs> {
    let mut build = images::cargo();
    build.args(["build", "--workspace", "--locked", "--bin", "kaniop", "--bin", "kaniop-bench"]).current_dir(root());
    interactive(&mut build)?;
    let built = |name: &str| cargo_target().join("debug").join(name);
    Ok(Programs {
        bench: built("kaniop-bench"),
        operator: built("kaniop"),
        server: images::development_binary(Profile::Debug)?,
    })
}

/// What users get, and a server that is as fast as it can be.
fn release() -> Result<Programs> {
    Ok(Programs {
        bench: phase("benchmark", || images::release_binary("kaniop-bench", "kaniop-bench"))?,
        operator: phase("operator binary", images::operator_binary)?,
        server: phase("development server", || images::development_binary(Profile::Release))?,
    })
}
