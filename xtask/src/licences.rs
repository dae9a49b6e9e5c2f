//! Checks licences, banned crates and sources of all dependencies against deny.toml, offline.
//!
//! The file is in cargo-deny's format and that tool would do as well; it takes longer to build than the rest of the checks to run.
//! What this does not know of the format it refuses, so that no setting is silently without effect. Advisories are not checked.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use spdx::{Expression, Licensee, ParseMode};

use crate::command::output;
use crate::report::note;
use crate::workspace::root;

/// Every workspace with its own lock file.
const WORKSPACES: &[&str] = &[".", "dev/kanidm"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Policy {
    graph: Graph,
    licenses: Licences,
    bans: Bans,
    #[expect(dead_code, reason = "only to be refused when it says something else")]
    sources: Sources,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Licences {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
    #[serde(default)]
    clarify: Vec<Clarification>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

/// What a crate's licence is when its manifest does not say so.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Clarification {
    #[serde(rename = "crate")]
    name: String,
    expression: String,
    #[expect(dead_code, reason = "only to be refused when it says something else")]
    license_files: [(); 0],
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Bans {
    #[expect(dead_code, reason = "only to be refused when it says something else")]
    multiple_versions: Allow,
    #[expect(dead_code, reason = "only to be refused when it says something else")]
    wildcards: Allow,
    #[serde(default)]
    deny: Vec<Ban>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Sources {
    #[expect(dead_code, reason = "only to be refused when it says something else")]
    unknown_registry: Deny,
    #[expect(dead_code, reason = "only to be refused when it says something else")]
    unknown_git: Deny,
}

/// The one value of a setting that this check can honour.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Allow {
    Allow,
}

/// The one value of a setting that this check can honour.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Deny {
    Deny,
}

/// What is judged of a dependency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Dependency {
    name: String,
    version: String,
    /// Where it comes from, when that is not crates.io.
    elsewhere: Option<String>,
    licence: String,
}

/// Checks every workspace.
///
/// # Errors
/// With every finding at once.
pub(crate) fn run() -> Result<()> {
    let mut findings = Vec::new();
    for folder in WORKSPACES {
        let policy = read(&root().join(folder).join("deny.toml"))?;
        let used = used(&root().join(folder), &policy)?;
        note(format!("{}: {} crates", if *folder == "." { "workspace" } else { folder }, used.len()));
        findings.extend(used.iter().flat_map(|dependency| judge(&policy, dependency)));
        findings.extend(idle(&policy, &used));
    }
    if !findings.is_empty() {
        bail!("{}", findings.join("\n"));
    }
    Ok(())
}

fn read(file: &Path) -> Result<Policy> {
    let text = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
    toml::from_str(&text)
        .with_context(|| format!("{} has something that `cargo xtask licences` does not check", file.display()))
}

/// The crates that are really built; a lock file names optional ones too.
fn used(folder: &Path, policy: &Policy) -> Result<BTreeSet<Dependency>> {
    let mut used = BTreeSet::new();
    for target in &policy.graph.targets {
        let mut tree = Command::new("cargo");
        tree.args([
            "tree",
            "--locked",
            "--workspace",
            "--edges=normal,build,dev",
            "--prefix=none",
            "--format={p}|{l}|",
        ]);
        let listed = output(tree.arg(format!("--target={target}")).current_dir(folder))?;
        used.extend(listed.lines().filter_map(|line| parse(line, &root())));
    }
    Ok(used)
}

/// `name vVERSION[ (proc-macro)][ (SOURCE)]|LICENCE|`, which `cargo tree` prints. Our own crates have a folder as source.
fn parse(line: &str, root: &Path) -> Option<Dependency> {
    let (package, rest) = line.split_once('|')?;
    let (licence, _) = rest.split_once('|')?;
    let mut words = package.splitn(3, ' ');
    let (name, version, rest) = (words.next()?, words.next()?, words.next().unwrap_or_default());
    let source = rest.replace("(proc-macro)", "").trim().trim_matches(['(', ')']).to_owned();
    if Path::new(&source).starts_with(root) {
        return None;
    }
    Some(Dependency {
        name: name.to_owned(),
        version: version.to_owned(),
        elsewhere: (!source.is_empty()).then_some(source),
        licence: licence.to_owned(),
    })
}

fn judge(policy: &Policy, dependency: &Dependency) -> Vec<String> {
    let Dependency { name, version, elsewhere, .. } = dependency;
    let mut findings = Vec::new();
    if let Some(ban) = policy.bans.deny.iter().find(|ban| ban.name == *name) {
        findings.push(format!(
            "{name} {version} is banned: {} (`cargo tree --invert {name}` shows who wants it)",
            ban.reason
        ));
    }
    if let Some(source) = elsewhere {
        findings.push(format!("{name} {version} comes from {source}: only crates.io is allowed"));
    }
    findings.extend(licence(&policy.licenses, dependency).err().map(|why| format!("{name} {version}: {why}")));
    findings
}

fn licence(licences: &Licences, dependency: &Dependency) -> Result<()> {
    let clarified = licences.clarify.iter().find(|clarification| clarification.name == dependency.name);
    let text = clarified.map_or(&dependency.licence, |clarification| &clarification.expression);
    if text.is_empty() {
        bail!("no licence is declared");
    }
    let own = licences.exceptions.iter().filter(|exception| exception.name == dependency.name).flat_map(|e| &e.allow);
    let allowed = licences
        .allow
        .iter()
        .chain(own)
        .map(|name| Licensee::parse(name).map_err(|e| anyhow!("{name:?}: {}", e.reason)));
    let allowed = allowed.collect::<Result<Vec<_>>>()?;
    let expression =
        Expression::parse_mode(text, ParseMode::LAX).map_err(|e| anyhow!("licence {text:?}: {}", e.reason))?;
    if !expression.evaluate(|required| allowed.iter().any(|licensee| licensee.satisfies(required))) {
        bail!("licence {text:?} is not allowed by deny.toml");
    }
    Ok(())
}

/// An exception that nothing needs is a hole for later.
fn idle(policy: &Policy, used: &BTreeSet<Dependency>) -> Vec<String> {
    let exceptions = policy.licenses.exceptions.iter().map(|exception| &exception.name);
    let special = exceptions.chain(policy.licenses.clarify.iter().map(|clarification| &clarification.name));
    let idle = special.filter(|name| !used.iter().any(|dependency| dependency.name == **name));
    idle.map(|name| format!("deny.toml has a line for {name}, which is not used any more")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Policy {
        read(&root().join("deny.toml")).unwrap()
    }

    fn sample(name: &str, licence: &str) -> Dependency {
        parse(&format!("{name} v1.0.0|{licence}|"), Path::new("/here")).unwrap()
    }

    #[test]
    fn a_banned_crate_is_refused_with_the_reason() {
        let found = judge(&policy(), &sample("openssl", "Apache-2.0"));
        assert!(found[0].contains("one TLS stack"), "{found:?}");
    }

    #[test]
    fn a_licence_that_is_not_listed_is_refused() {
        for licence in ["GPL-3.0-only", "MIT AND AGPL-3.0-only", "nonsense(", ""] {
            assert_eq!(judge(&policy(), &sample("x", licence)).len(), 1, "{licence:?}");
        }
    }

    #[test]
    fn a_choice_of_licences_is_fine_when_one_of_them_is_allowed() {
        for licence in [
            "GPL-3.0-only OR MIT",
            "MIT/Apache-2.0",
            "Apache-2.0 WITH LLVM-exception",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
        ] {
            assert_eq!(judge(&policy(), &sample("x", licence)), Vec::<String>::new(), "{licence}");
        }
    }

    #[test]
    fn an_exception_is_for_its_crate_alone_and_must_be_needed() {
        assert_eq!(judge(&policy(), &sample("webpki-roots", "CDLA-Permissive-2.0")), Vec::<String>::new());
        assert_eq!(judge(&policy(), &sample("other", "CDLA-Permissive-2.0")).len(), 1);
        assert_eq!(idle(&policy(), &BTreeSet::new()).len(), policy().licenses.exceptions.len());
    }

    #[test]
    fn a_crate_from_elsewhere_is_refused() {
        let line = "x v1.0.0 (proc-macro) (https://example.com/x?rev=1#12345678)|MIT| (*)";
        let found = judge(&policy(), &parse(line, Path::new("/here")).unwrap());
        assert!(found[0].contains("only crates.io"), "{found:?}");
    }

    #[test]
    fn our_own_crates_are_not_judged() {
        assert_eq!(parse("kaniop-api v1.0.0 (/here/crates/kaniop-api)|Apache-2.0|", Path::new("/here")), None);
        assert_eq!(sample("x", "MIT").elsewhere, None);
    }

    #[test]
    fn a_setting_that_would_have_no_effect_is_refused() {
        let text = fs::read_to_string(root().join("deny.toml")).unwrap();
        for change in [
            ("multiple-versions = \"allow\"", "multiple-versions = \"deny\""),
            ("[sources]", "[advisories]\n[sources]"),
        ] {
            assert!(toml::from_str::<Policy>(&text.replace(change.0, change.1)).is_err(), "{change:?}");
        }
    }
}
