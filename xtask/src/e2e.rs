//! The end-to-end tests: brings a cluster up, installs the operator as users get it but with a short interval, runs the tests where the
//! cluster's addresses are reachable, and removes what it made. What the tests show is theirs to decide.

use std::process::Command;

use anyhow::{Context, Result};

use crate::cluster::Cluster;
use crate::command::{interactive, output};
use crate::images::{self, Images};
use crate::report::{note, phase};
use crate::{install, interrupt, ownership, test};

/// The operator's interval in seconds: short, so that "within one interval" does not take long to show.
const INTERVAL: u32 = 5;

/// How the tests are run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Leave cluster and operator up afterwards, and take them as they are when they are up already
    #[arg(long)]
    keep: bool,
    /// Words for the test program: parts of names of tests, for instance
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Runs all of them and leaves nothing behind.
///
/// # Errors
/// When a test fails; logs and descriptions are kept below `target/logs/e2e`.
pub(crate) fn run() -> Result<()> {
    with(&Options { keep: false, words: Vec::new() })
}

/// Whether [`run`] would find what it needs, before anything is done.
///
/// # Errors
/// In one line when it would not.
pub(crate) fn can_run() -> Result<()> {
    let cluster = Cluster::from_env()?;
    let _ours = install::claim(&cluster)?;
    if install::answers(&cluster) { must_be_unused(&cluster) } else { Ok(()) }
}

/// Runs them as asked.
///
/// # Errors
/// As [`run`].
pub(crate) fn with(options: &Options) -> Result<()> {
    interrupt::watch()?;
    let cluster = Cluster::from_env()?;
    let _ours = install::claim(&cluster)?;
    let suite = phase("test program", || test::executable("e2e"))?;
    let (is_new, was_up) = (cluster.is_new(), install::answers(&cluster));
    if was_up && !options.keep {
        must_be_unused(&cluster)?;
    }
    let prepared = prepare(&cluster, options.keep);
    // What was there before this run is not taken away because this run could not begin.
    let has_begun = is_new || prepared.is_ok();
    let result = prepared.and_then(|images| {
        install::install(&cluster, &images, Some(INTERVAL))?;
        let mut tests = cluster.in_network(&suite.to_string_lossy());
        tests.args(["--include-ignored", "--test-threads=1"]).args(&options.words);
        settings(&mut tests, &images);
        interactive(&mut tests)
    });
    if result.is_err() {
        let spaces = namespaces(&cluster);
        install::explain(&cluster, &spaces.iter().map(String::as_str).collect::<Vec<_>>(), "e2e");
    }
    if options.keep {
        note("cluster and operator stay up");
        return result;
    }
    // The tests' own failure says more than one of cleaning up.
    let cleaned = if has_begun && !is_new { clean(&cluster) } else { Ok(()) };
    // Found absent, stopped with its data, or running: so it is left.
    let ended = if was_up { Ok(()) } else { cluster.down(!is_new) };
    result.and(cleaned.and(ended).context("clean up after the tests"))
}

/// Everything that comes before something is installed.
fn prepare(cluster: &Cluster, takes_what_is_there: bool) -> Result<Images> {
    cluster.up()?;
    interrupt::check()?;
    // A cluster that was stopped may have come back with something.
    if !takes_what_is_there {
        must_be_unused(cluster)?;
    }
    let images = images::ensure(cluster)?;
    interrupt::check()?;
    Ok(images)
}

/// The tests' own namespaces.
fn namespaces(cluster: &Cluster) -> Vec<String> {
    let names = ["get", "namespace", "-l", "kaniop.rs/e2e=true", "-o", "jsonpath={.items[*].metadata.name}"];
    let listed = output(&mut cluster.kubectl(names)).unwrap_or_default();
    listed.split_whitespace().map(str::to_owned).collect()
}

fn settings(tests: &mut Command, images: &Images) {
    tests.env("KANIOP_NAMESPACE", install::NAMESPACE);
    tests.env("KANIOP_KANIDM_IMAGE", &images.kanidm);
    tests.env("KANIOP_KANIDM_NEXT_IMAGE", images.next.as_deref().unwrap_or_default());
    tests.env("KANIOP_INTERVAL", INTERVAL.to_string());
}

/// The tests must not take over what a person, or the demo, has running.
fn must_be_unused(cluster: &Cluster) -> Result<()> {
    ownership::refuse_all(&ownership::look(cluster, &[install::NAMESPACE])?)
        .context("the cluster is in use (`cargo xtask e2e --keep` takes what the demo made as it is)")
}

fn clean(cluster: &Cluster) -> Result<()> {
    phase("remove the tests' namespaces", || {
        let marked = ["delete", "namespace", "-l", "kaniop.rs/e2e=true", "--timeout=8m"];
        output(&mut cluster.kubectl(marked)).map(drop)
    })?;
    install::uninstall(cluster)
}
