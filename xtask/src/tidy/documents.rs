//! Documents speak of what exists: commands, paths and links in them are looked up.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use anyhow::Result;
use clap::CommandFactory;
use kaniop_core::reason::Reason;

use super::{Rule, Source};

pub(super) const RULES: &[Rule] = &[
    Rule { says: "every make target named in a document exists", check: make_targets },
    Rule { says: "every xtask command named in a document exists", check: xtask_commands },
    Rule { says: "every link between documents leads somewhere", check: links },
    Rule { says: "every page of the book is in its summary", check: pages_are_listed },
    Rule { says: "every make target is one line and is in its help", check: makefile_is_thin },
    Rule { says: "every example is applied by a test", check: examples_are_tested },
    Rule { says: "every event that the operator tells of is explained, and no other", check: events_are_explained },
    Rule { says: "the recipe of a field is true: a text stands in three places", check: a_field_has_three_places },
];

/// An optional text of a person that was added by the recipe in ARCHITECTURE.md, and the three places that it stands in.
const FIELD: (&str, [&str; 3]) = (
    "legalname",
    [
        "crates/kaniop-api/src/person.rs",
        "crates/kaniop-core/src/identity/person.rs",
        "crates/kaniop-core/tests/goldens/KanidmPersonAccount/legalname.yaml",
    ],
);

/// The product knows the field where the recipe says, and nowhere else: its golden, and no other code than API and table.
fn a_field_has_three_places(sources: &[Source]) -> Result<Vec<String>> {
    let (field, places) = FIELD;
    let is_product = |source: &&Source| {
        let mut crates = ["kaniop-api", "kaniop-core", "kaniop-kanidm", "kaniop-operator"].into_iter();
        crates.any(|name| source.is_of(name))
    };
    let elsewhere = sources.iter().filter(is_product).filter(|source| source.code().contains(field));
    let elsewhere = elsewhere.filter(|source| !places.contains(&source.path.as_str()));
    let missing = places.into_iter().filter(|place| !text(sources, place).contains(field));
    Ok(elsewhere
        .map(|source| format!("{} knows {field} too", source.path))
        .chain(missing.map(|place| format!("{place} does not know {field}")))
        .collect())
}

fn documents(sources: &[Source]) -> impl Iterator<Item = &Source> {
    sources.iter().filter(|source| source.path.ends_with(".md"))
}

fn text<'a>(sources: &'a [Source], path: &str) -> &'a str {
    sources.iter().find(|source| source.path == path).map_or("", |source| source.text.as_str())
}

/// The words that follow `prefix` in code of a document: in backticks or in a block.
fn named_after(source: &Source, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_block = false;
    for line in source.text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        let spans: Vec<&str> = if in_block { vec![line.trim()] } else { line.split('`').skip(1).step_by(2).collect() };
        for span in spans {
            // Settings may stand before the command, as in `KANIDM_IMAGE=x make demo`.
            let starts = span.match_indices(prefix).filter(|(at, _)| *at == 0 || span.as_bytes()[at - 1] == b' ');
            let rest = starts.filter_map(|(at, _)| span[at + prefix.len()..].split_whitespace().next());
            found.extend(
                rest.filter(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-' || c == '2'))
                    .map(str::to_owned),
            );
        }
    }
    found
}

fn targets(makefile: &str) -> BTreeSet<&str> {
    makefile
        .lines()
        .filter(|line| !line.starts_with(['\t', '.', '#']))
        .filter_map(|line| line.split_once(':'))
        .map(|(name, _)| name)
        .collect()
}

fn make_targets(sources: &[Source]) -> Result<Vec<String>> {
    let targets = targets(text(sources, "Makefile"));
    let named =
        documents(sources).flat_map(|source| named_after(source, "make ").into_iter().map(move |name| (source, name)));
    Ok(named
        .filter(|(_, name)| !targets.contains(name.as_str()))
        .map(|(s, name)| format!("{}: make {name}", s.path))
        .collect())
}

fn xtask_commands(sources: &[Source]) -> Result<Vec<String>> {
    let cli = crate::Arguments::command();
    let known: BTreeSet<_> = cli.get_subcommands().map(clap::Command::get_name).collect();
    let named = documents(sources)
        .flat_map(|source| named_after(source, "cargo xtask ").into_iter().map(move |name| (source, name)));
    Ok(named
        .filter(|(_, name)| !known.contains(name.as_str()))
        .map(|(s, name)| format!("{}: cargo xtask {name}", s.path))
        .collect())
}

fn links(sources: &[Source]) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for source in documents(sources) {
        for target in source.text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = target.split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
                continue;
            }
            let folder = Path::new(&source.path).parent().unwrap_or(Path::new(""));
            let wanted = flat(&folder.join(path));
            if !sources.iter().any(|source| Path::new(&source.path).starts_with(&wanted)) {
                findings.push(format!("{} links to {target}", source.path));
            }
        }
    }
    Ok(findings)
}

/// The path without `..`.
fn flat(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut flat, part| {
        match part {
            Component::ParentDir => drop(flat.pop()),
            Component::CurDir => {}
            part => flat.push(part),
        }
        flat
    })
}

fn pages_are_listed(sources: &[Source]) -> Result<Vec<String>> {
    let summary = text(sources, "docs/src/SUMMARY.md");
    let pages = documents(sources)
        .filter_map(|source| source.path.strip_prefix("docs/src/"))
        .filter(|page| *page != "SUMMARY.md");
    Ok(pages.filter(|page| !summary.contains(&format!("]({page})"))).map(|page| format!("docs/src/{page}")).collect())
}

fn makefile_is_thin(sources: &[Source]) -> Result<Vec<String>> {
    let makefile = text(sources, "Makefile");
    let mut findings = Vec::new();
    for line in makefile.lines().filter(|line| !line.starts_with(['\t', '.', '#']) && line.contains(':')) {
        if !line.contains("## ") {
            findings.push(format!("Makefile: {line} has no help"));
        }
    }
    let lines: Vec<_> = makefile.lines().collect();
    let doubled = lines.windows(2).filter(|pair| pair.iter().all(|line| line.starts_with('\t')));
    findings.extend(doubled.map(|pair| format!("Makefile: {} belongs into xtask", pair[1].trim())));
    Ok(findings)
}

fn examples_are_tested(sources: &[Source]) -> Result<Vec<String>> {
    let folders = sources.iter().filter_map(|source| source.path.strip_prefix("examples/")?.split('/').next());
    let folders: BTreeSet<_> = folders.filter(|name| !name.ends_with(".md")).collect();
    let tests: Vec<_> = sources.iter().filter(|source| source.path.starts_with("tests/") && source.is_rust()).collect();
    let untested =
        folders.into_iter().filter(|name| !tests.iter().any(|test| test.text.contains(&format!("examples/{name}"))));
    Ok(untested.map(|name| format!("examples/{name}")).collect())
}

/// Where events are explained.
const EVENTS: &str = "docs/src/reference/events.md";

/// The words of events are the texts of two or more capitalised parts in the files that tell of something. Reasons of `Ready` are told too; they have a
/// page of their own.
fn events_are_explained(sources: &[Source]) -> Result<Vec<String>> {
    let is_reason = |word: &str| Reason::ALL.iter().any(|(reason, _)| reason.as_str() == word);
    let telling = sources.iter().filter(|source| source.is_of("kaniop-operator")).map(Source::code);
    let telling = telling.filter(|code| code.contains("Notice {") || code.contains(".tell("));
    let told: BTreeSet<String> =
        telling.flat_map(|code| quoted(&code).map(str::to_owned).collect::<Vec<_>>()).collect();
    let rows = text(sources, EVENTS).lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let explained: BTreeSet<_> = rows.collect();
    let lacking = told.iter().filter(|word| is_event(word) && !is_reason(word) && !explained.contains(word.as_str()));
    let lacking = lacking.map(|word| format!("{EVENTS} lacks {word}"));
    let stale = explained.iter().filter(|word| !told.contains(**word));
    Ok(lacking.chain(stale.map(|word| format!("{EVENTS} has {word}, which is never told"))).collect())
}

fn quoted(code: &str) -> impl Iterator<Item = &str> {
    code.lines().flat_map(|line| line.split('"').skip(1).step_by(2))
}

fn is_event(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.chars().all(|c| c.is_ascii_alphabetic())
        && word.chars().filter(char::is_ascii_uppercase).count() > 1
}

#[cfg(test)]
mod tests {
    use super::super::tests::{holds, sample};
    use super::*;

    fn with(extra: (&str, &str), path: &str, text: &str) -> Vec<Source> {
        [sample(extra.0, extra.1), sample(path, text)].concat()
    }

    #[test]
    fn documents_name_only_make_targets_that_exist() {
        holds(RULES, "every make target named");
        let makefile = ("Makefile", "test: ## tests\n\tcargo xtask test\n");
        for text in ["run `make tests`", "```sh\nmake tests\n```", "`IMAGE=x make tests`"] {
            assert_eq!(make_targets(&with(makefile, "README.md", text)).unwrap(), ["README.md: make tests"], "{text}");
        }
        assert_eq!(make_targets(&with(makefile, "README.md", "we make changes; run `make test`")).unwrap().len(), 0);
    }

    #[test]
    fn documents_name_only_xtask_commands_that_exist() {
        holds(RULES, "every xtask command");
        assert_eq!(xtask_commands(&sample("README.md", "`cargo xtask fly`")).unwrap(), ["README.md: cargo xtask fly"]);
        assert_eq!(xtask_commands(&sample("README.md", "`cargo xtask gen --check`")).unwrap().len(), 0);
    }

    #[test]
    fn the_recipe_of_a_field_is_true() {
        holds(RULES, "the recipe of a field");
        let strayed = a_field_has_three_places(&sample("crates/kaniop-operator/src/a.rs", "\"legalname\"")).unwrap();
        assert_eq!(strayed.len(), 4, "{strayed:?}");
    }

    #[test]
    fn events_are_explained_and_explained_ones_are_told() {
        holds(RULES, "every event");
        let page = (EVENTS, "| reason | |\n|---|---|\n| `EntryCreated` | x |\n| `EntryGone` | x |\n");
        let code = "self.tell(\"EntryCreated\", \"EntryExists is a reason\");\nself.tell(\"EntryMoved\", \"Moved\");\nif x == \"EntryExists\" {}";
        assert_eq!(
            events_are_explained(&with(page, "crates/kaniop-operator/src/a.rs", code)).unwrap(),
            [format!("{EVENTS} lacks EntryMoved"), format!("{EVENTS} has EntryGone, which is never told")]
        );
        let silent = with((EVENTS, ""), "crates/kaniop-operator/src/a.rs", "\"RecoverAccount\"");
        assert_eq!(events_are_explained(&silent).unwrap().len(), 0);
    }

    #[test]
    fn links_lead_to_files() {
        holds(RULES, "every link");
        let other = ("docs/src/b.md", "");
        assert_eq!(
            links(&with(other, "docs/src/a.md", "[b](b.md#x) [c](../../docs/src/b.md) [d](https://x)")).unwrap().len(),
            0
        );
        assert_eq!(links(&with(other, "docs/src/a.md", "[b](gone.md)")).unwrap().len(), 1);
    }

    #[test]
    fn pages_are_in_the_summary() {
        holds(RULES, "every page");
        let summary = ("docs/src/SUMMARY.md", "- [A](a.md)\n");
        assert_eq!(pages_are_listed(&with(summary, "docs/src/b.md", "")).unwrap(), ["docs/src/b.md"]);
    }

    #[test]
    fn make_targets_are_one_line_with_help() {
        holds(RULES, "every make target is");
        assert_eq!(makefile_is_thin(&sample("Makefile", "a: ## help\n\tone\n\ttwo\nb:\n\tone\n")).unwrap().len(), 2);
    }

    #[test]
    fn examples_are_applied_by_tests() {
        holds(RULES, "every example");
        assert_eq!(examples_are_tested(&sample("examples/new/a.yaml", "")).unwrap(), ["examples/new"]);
    }
}
