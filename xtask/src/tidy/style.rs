//! How sources look: what rustfmt and clippy cannot say.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::Result;

use super::{Rule, Source};
use crate::command::output;
use crate::workspace::root;

pub(super) const RULES: &[Rule] = &[
    Rule { says: "no source file is longer than 400 lines without its tests", check: short },
    Rule { says: "every module says first what it does", check: described },
    Rule { says: "modules are named for what they do", check: named },
    Rule { says: "nothing tells of the machine or the tracker it was made with", check: portable },
    Rule { says: "the chart has the workspace's version", check: one_version },
    Rule { says: "programs and tests are built from the same dependencies", check: one_build },
];

const GATE: usize = 400;
const GOAL: usize = 300;

fn short(sources: &[Source]) -> Result<Vec<String>> {
    Ok(longer_than(sources, GATE))
}

/// Files that are longer than they should be, but not beyond the gate.
pub(super) fn long(sources: &[Source]) -> Vec<String> {
    longer_than(sources, GOAL)
}

fn longer_than(sources: &[Source], limit: usize) -> Vec<String> {
    let product = sources.iter().filter(|source| source.is_rust() && !source.is_test());
    let lengths = product.map(|source| (source, source.without_tests().lines().count()));
    lengths
        .filter(|(_, lines)| *lines > limit)
        .map(|(source, lines)| format!("{} has {lines} lines without tests", source.path))
        .collect()
}

fn described(sources: &[Source]) -> Result<Vec<String>> {
    // `tests.rs` says it by its name.
    let rust = sources.iter().filter(|source| source.is_rust() && !source.path.ends_with("/tests.rs"));
    Ok(rust
        .filter(|source| !source.text.starts_with("//!"))
        .map(|source| format!("{} does not start with `//!`", source.path))
        .collect())
}

/// Names that say nothing: whatever they hold has a better one.
const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helper", "helpers", "manager", "handler", "misc"];

fn named(sources: &[Source]) -> Result<Vec<String>> {
    let rust = sources.iter().filter(|source| source.is_rust());
    let parts = rust.flat_map(|source| source.path.trim_end_matches(".rs").split('/').map(move |part| (source, part)));
    Ok(parts
        .filter(|(_, part)| EMPTY_NAMES.contains(part))
        .map(|(source, part)| format!("{}: {part:?} says nothing", source.path))
        .collect())
}

/// Beginnings of paths that exist on one machine only.
const PRIVATE_PATHS: &[&str] = &["/work/", "/root/", "../shared"];

fn portable(sources: &[Source]) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    // This file has to name them, and lock files hold hashes that look like anything.
    for source in sources
        .iter()
        .filter(|s| s.path != "xtask/src/tidy/style.rs" && !s.path.ends_with(".lock") && !s.path.ends_with(".sum"))
    {
        for (number, line) in source.text.lines().enumerate() {
            let private = PRIVATE_PATHS.iter().find(|path| line.contains(**path)).map(|path| (*path).to_owned());
            let found = private.or_else(|| issue_number(line));
            findings.extend(found.map(|found| format!("{}:{} has {found}", source.path, number + 1)));
        }
    }
    Ok(findings)
}

/// `#12` as a word of its own.
fn issue_number(line: &str) -> Option<String> {
    let words = line.split(|c: char| c.is_whitespace() || "()[],.;:".contains(c));
    let mut numbered = words
        .filter(|word| word.strip_prefix('#').is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit())));
    numbered.next().map(str::to_owned)
}

fn one_version(sources: &[Source]) -> Result<Vec<String>> {
    let text = |path: &str| sources.iter().find(|source| source.path == path).map_or("", |source| source.text.as_str());
    let workspace =
        text("Cargo.toml").lines().find_map(|line| line.strip_prefix("version = ")).map(|v| v.trim_matches('"'));
    let chart = text("charts/kaniop/Chart.yaml");
    let differ = ["version: ", "appVersion: "].into_iter().filter(|key| {
        let value = chart.lines().find_map(|line| line.strip_prefix(key));
        value.map(|v| v.trim_matches('"')) != workspace
    });
    Ok(differ.map(|key| format!("charts/kaniop/Chart.yaml: {key}is not {}", workspace.unwrap_or("(none)"))).collect())
}

/// What only tests ask of a shared dependency makes cargo build it, and all that depends on it, twice: minutes.
fn one_build(_: &[Source]) -> Result<Vec<String>> {
    let tree = |edges: &str| -> Result<String> {
        let mut tree = Command::new("cargo");
        tree.args([
            "tree",
            "--offline",
            "--workspace",
            "--prefix=none",
            "--format={p} {f}",
            &format!("--edges={edges}"),
        ]);
        output(tree.current_dir(root()))
    };
    Ok(built_twice(&tree("normal,build")?, &tree("normal,build,dev")?))
}

fn built_twice(programs: &str, tests: &str) -> Vec<String> {
    let lines =
        |tree| -> BTreeSet<String> { str::lines(tree).map(|line| line.trim_end_matches(" (*)").to_owned()).collect() };
    let differ = lines(programs).difference(&lines(tests)).cloned().collect::<Vec<_>>();
    differ
        .into_iter()
        .map(|line| format!("{line}: tests want more features of it; ask for them in tests/e2e/Cargo.toml too"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{holds, sample};
    use super::*;

    #[test]
    fn files_are_short_enough_to_be_read_at_once() {
        holds(RULES, "no source file");
        let long = "a\n".repeat(401);
        assert_eq!(short(&sample("crates/a/src/a.rs", &long)).unwrap().len(), 1);
        assert_eq!(
            short(&sample("crates/a/src/a.rs", &format!("fn a() {{}}\n\n#[cfg(test)]\nmod tests {{\n{long}}}")))
                .unwrap()
                .len(),
            0
        );
    }

    #[test]
    fn every_module_begins_with_what_it_does() {
        holds(RULES, "every module");
        assert_eq!(described(&sample("a.rs", "use std::fs;\n")).unwrap().len(), 1);
    }

    #[test]
    fn no_module_has_an_empty_name() {
        holds(RULES, "modules");
        assert_eq!(named(&sample("crates/a/src/util.rs", "")).unwrap().len(), 1);
        assert_eq!(named(&sample("crates/a/src/common/b.rs", "")).unwrap().len(), 1);
        assert_eq!(named(&sample("crates/a/src/utility_poles.rs", "")).unwrap().len(), 0);
    }

    #[test]
    fn nothing_names_a_machine_or_an_issue() {
        holds(RULES, "nothing tells");
        for line in ["see /root/notes", "as told in #12.", "(#3)", "../shared/x"] {
            assert_eq!(portable(&sample("a.md", line)).unwrap().len(), 1, "{line}");
        }
        for line in ["# Heading", "color: #123abc", "#[test]", "a#1b"] {
            assert_eq!(portable(&sample("a.md", line)).unwrap().len(), 0, "{line}");
        }
    }

    #[test]
    fn chart_and_workspace_have_one_version() {
        holds(RULES, "the chart");
        let mut sources = sample("Cargo.toml", "[workspace.package]\nversion = \"1.0.0\"\n");
        sources.extend(sample("charts/kaniop/Chart.yaml", "version: 1.0.0\nappVersion: 0.9.0\n"));
        assert_eq!(one_version(&sources).unwrap(), ["charts/kaniop/Chart.yaml: appVersion: is not 1.0.0"]);
    }

    #[test]
    fn nothing_is_compiled_twice_because_tests_want_more_of_it() {
        holds(RULES, "programs and tests");
        let found = built_twice("a v1 x\nb v1 x\n", "a v1 x (*)\nb v1 x,y\nc v1\n");
        assert!(found.len() == 1 && found[0].starts_with("b v1 x"), "{found:?}");
    }
}
