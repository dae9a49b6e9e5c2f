//! Runs the gates in order, stops at the first that fails, and says how long each took.
//!
//! It decides the order and what runs where; each gate is cargo's or another task's own. What it starts it ends, whatever happens.
//! One build serves all: every call of cargo names the same packages and flags, so that nothing is compiled twice.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::command::{interactive, output};
use crate::report::duration;
use crate::workspace::{cargo_target, output_folder, root};
use crate::{apiserver, bench, chart, e2e, generate, images, interrupt, licences, setup};

/// A gate and what it is called.
struct Gate {
    name: &'static str,
    run: fn() -> Result<()>,
}

const fn gate(name: &'static str, run: fn() -> Result<()>) -> Gate {
    Gate { name, run }
}

/// What a fresh machine lacks; and whether the last gate could run, which nobody should learn only after half an hour.
const SETUP: &[Gate] = &[gate("set-up", || e2e::can_run().and_then(|()| setup::setup()))];

/// For daily work: no root, no cluster.
const QUICK: &[Gate] = &[
    gate("format", format),
    gate("generated files", || generate::run(true)),
    gate("clippy", clippy),
    gate("licences", licences::run),
    gate("unit, golden and property tests, invariants", unit),
];

/// What a cluster and root are needed for, after the quick gates.
const REST: &[Gate] = &[
    gate("chart", || chart::check(false)),
    gate("development server: clippy", dev_clippy),
    gate("development server: tests", dev_tests),
    gate("contract of the Kanidm client", contract),
    gate("tier 2: a real API server", tier2),
    gate("benchmark: everything can be measured", bench::short),
    gate("end to end on a cluster", e2e::run),
];

/// Every gate, the machine's set-up first.
///
/// # Errors
/// Of the first gate that fails, with its name.
pub(crate) fn all() -> Result<()> {
    let gates: Vec<_> = SETUP.iter().chain(QUICK).chain(REST).collect();
    run(&gates)
}

/// The quick gates.
///
/// # Errors
/// Of the first gate that fails, with its name.
pub(crate) fn quick() -> Result<()> {
    run(&QUICK.iter().collect::<Vec<_>>())
}

fn run(gates: &[&Gate]) -> Result<()> {
    interrupt::watch()?;
    let start = Instant::now();
    let mut taken = Vec::new();
    let mut failure = None;
    for gate in gates {
        println!("\n== {}", gate.name);
        let begin = Instant::now();
        let result = interrupt::check().and_then(|()| (gate.run)());
        taken.push((gate.name, begin.elapsed(), result.is_ok()));
        if let Err(error) = result {
            failure = Some(error.context(format!("gate \"{}\" failed", gate.name)));
            break;
        }
    }
    print!("{}", table(&taken, gates.len(), start.elapsed()));
    failure.map_or(Ok(()), Err)
}

/// One line for each gate that ran, and how many did not.
fn table(taken: &[(&str, Duration, bool)], planned: usize, total: Duration) -> String {
    let width = taken.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or_default().max("total".len());
    let line = |mark: char, name: &str, time: Duration| format!("  {mark} {name:width$}  {:>12}\n", duration(time));
    let mut text = "\n".to_owned();
    for (name, time, passed) in taken {
        text += &line(if *passed { '✓' } else { '✗' }, name, *time);
    }
    if taken.len() < planned {
        text += &format!("    {} not run\n", planned - taken.len());
    }
    text + &line(' ', "total", total)
}

fn format() -> Result<()> {
    for folder in [".", "dev/kanidm"] {
        interactive(cargo_in(folder).args(["fmt", "--all", "--check"])).context("run `cargo fmt` there, and again")?;
    }
    Ok(())
}

fn clippy() -> Result<()> {
    interactive(cargo_in(".").args(["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny=warnings"]))
}

fn unit() -> Result<()> {
    interactive(cargo_in(".").args(["test", "--workspace", "--locked"]))
}

/// Lints by building: clippy stands in for the compiler where the crate is our own. `cargo clippy` would check every dependency a second time,
/// and the engine's are many.
fn dev_clippy() -> Result<()> {
    let mut build = cargo_in("dev/kanidm");
    build.args(["test", "--locked", "--no-run"]);
    // As `cargo clippy` itself hands its arguments on.
    build.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver").env("CLIPPY_ARGS", "--deny=warnings__CLIPPY_HACKERY__");
    interactive(&mut build)
}

fn dev_tests() -> Result<()> {
    interactive(cargo_in("dev/kanidm").args(["test", "--locked"]))
}

/// The client's suite on a server as a process: on the one that `KANIDMD` names, or the development server.
fn contract() -> Result<()> {
    let server = match std::env::var_os("KANIDMD") {
        Some(path) => PathBuf::from(path),
        None => images::development_binary(images::Profile::Debug)?,
    };
    let mut suite = cargo_in(".");
    suite
        .args(["test", "--workspace", "--locked", "--test", "contract", "--", "--include-ignored"])
        .env("KANIDMD", server);
    interactive(&mut suite)
}

fn tier2() -> Result<()> {
    let suite = executable("tier2")?;
    let operator = cargo_target().join("debug/kaniop");
    interactive(cargo_in(".").args(["build", "--workspace", "--locked", "--bin", "kaniop"]))?;
    let logs = output_folder("test-logs")?;
    let words = [
        "env".to_owned(),
        format!("KANIOP_BINARY={}", operator.display()),
        format!("KANIOP_LOGS={}", logs.display()),
        suite.display().to_string(),
        "--include-ignored".to_owned(),
    ];
    if apiserver::beside(&words)? != 0 {
        bail!("logs of the operator are in {}", logs.display());
    }
    Ok(())
}

/// The test binary `name` of this workspace, built as all other tests are.
///
/// # Errors
/// When it does not compile or there is none.
pub(crate) fn executable(name: &str) -> Result<PathBuf> {
    let mut build = cargo_in(".");
    build.args([
        "test",
        "--workspace",
        "--locked",
        "--no-run",
        "--message-format=json-render-diagnostics",
        "--test",
        name,
    ]);
    let messages = output(&mut build)?;
    let found = messages.lines().filter_map(|line| executable_in(line, name)).next_back();
    found.with_context(|| format!("cargo built no test of the name {name}"))
}

fn executable_in(message: &str, name: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let target = message.get("target")?;
    (target.get("name")? == name && target.get("kind")?.get(0)? == "test").then_some(())?;
    Some(Path::new(message.get("executable")?.as_str()?).to_owned())
}

fn cargo_in(folder: &str) -> Command {
    let mut cargo = images::cargo();
    cargo.current_dir(root().join(folder));
    cargo
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_what_ran_what_failed_and_what_did_not_run() {
        let taken = [("format", Duration::from_millis(1200), true), ("clippy", Duration::from_secs(100), false)];
        let text = table(&taken, 5, Duration::from_secs(101));
        assert!(text.contains("✓ format"), "{text}");
        assert!(text.contains("✗ clippy    1 min 40 s"), "{text}");
        assert!(text.contains("3 not run"), "{text}");
        assert!(text.contains("total     1 min 41 s"), "{text}");
    }

    #[test]
    fn the_first_gate_that_fails_ends_the_run_and_is_named() {
        fn fails() -> Result<()> {
            bail!("broken")
        }
        fn unreachable() -> Result<()> {
            panic!("ran after a failure")
        }
        let error = run(&[&gate("fine", || Ok(())), &gate("second", fails), &gate("third", unreachable)]).unwrap_err();
        assert_eq!(format!("{error:#}"), "gate \"second\" failed: broken");
    }

    #[test]
    fn a_test_binary_is_found_in_what_cargo_says() {
        let line = r#"{"reason":"compiler-artifact","target":{"kind":["test"],"name":"e2e"},"executable":"/t/e2e-1"}"#;
        assert_eq!(executable_in(line, "e2e"), Some("/t/e2e-1".into()));
        assert_eq!(executable_in(line, "tier2"), None);
        assert_eq!(executable_in("{\"reason\":\"build-finished\"}", "e2e"), None);
    }
}
