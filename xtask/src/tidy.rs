//! The rules that no compiler checks: the invariants of ARCHITECTURE.md, the style of the sources, the truth of the documents.
//!
//! Each rule is a function from the checkout's text to findings; `cargo xtask tidy` runs them all, the tests run each by its name
//! and show with a bad sample that it can fail. Nothing here changes a file.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::output;
use crate::report::note;
use crate::workspace::root;

mod documents;
mod invariants;
mod style;

/// A file of the checkout.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Path below the root, with `/`.
    path: String,
    text: String,
}

impl Source {
    /// The text before the module of tests, if there is one in this file.
    fn without_tests(&self) -> &str {
        let starts = self.text.match_indices("\n#[cfg(test)]\nmod ").map(|(at, _)| at);
        let inline = |at: &usize| self.text[at + 1..].lines().nth(1).is_some_and(|line| line.ends_with('{'));
        starts.into_iter().find(inline).map_or(self.text.as_str(), |at| &self.text[..at])
    }

    /// What is compiled into the product: no comments, no tests.
    fn code(&self) -> String {
        let lines = self.without_tests().lines().filter(|line| !line.trim_start().starts_with("//"));
        lines
            .map(|line| line.split(" // ").next().unwrap_or_default())
            .fold(String::new(), |all, line| all + line + "\n")
    }

    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Tests, and the worlds in memory that they play in.
    fn is_test(&self) -> bool {
        let folder =
            self.path.starts_with("tests/") || self.path.contains("/tests/") || self.path.contains("/scenario/");
        folder || self.path.ends_with("/tests.rs")
    }

    /// Whether this is a source file of the product in the folder `crates/NAME/src`.
    fn is_of(&self, name: &str) -> bool {
        self.is_rust()
            && !self.is_test()
            && self
                .path
                .strip_prefix("crates/")
                .and_then(|p| p.strip_prefix(name))
                .is_some_and(|p| p.starts_with("/src/"))
    }
}

/// One rule: what it says, and who breaks it.
pub(crate) struct Rule {
    /// The rule as a sentence.
    says: &'static str,
    /// Findings, each naming the file.
    check: fn(&[Source]) -> Result<Vec<String>>,
}

/// Runs every rule.
///
/// # Errors
/// With all findings of all rules.
pub(crate) fn run() -> Result<()> {
    let sources = checkout()?;
    let mut findings = Vec::new();
    let rules = [invariants::RULES, style::RULES, documents::RULES].concat();
    for rule in &rules {
        findings.extend((rule.check)(&sources)?.into_iter().map(|finding| format!("{}: {finding}", rule.says)));
    }
    for long in style::long(&sources) {
        note(long);
    }
    if !findings.is_empty() {
        bail!("{} findings\n  {}", findings.len(), findings.join("\n  "));
    }
    note(format!("{} rules, {} files", rules.len(), sources.len()));
    Ok(())
}

impl Clone for Rule {
    fn clone(&self) -> Self {
        Self { says: self.says, check: self.check }
    }
}

/// Every text file that is, or is about to be, in git.
pub(crate) fn checkout() -> Result<Vec<Source>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]).current_dir(root());
    let listed = output(&mut git).context("the rules are about the files that git knows")?;
    let mut sources = Vec::new();
    for path in listed.lines() {
        // A file that was removed but not committed as removed is listed still; a binary one has no text.
        if let Ok(text) = fs::read_to_string(root().join(path)) {
            sources.push(Source { path: path.to_owned(), text });
        }
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files of the checkout break none of the rules whose sentence starts like this.
    pub(super) fn holds(rules: &[Rule], says: &str) {
        let rule = rules.iter().find(|rule| rule.says.starts_with(says)).expect("a rule of this name");
        let findings = (rule.check)(&checkout().unwrap()).unwrap();
        assert!(findings.is_empty(), "{}:\n  {}", rule.says, findings.join("\n  "));
    }

    /// A checkout of this one file.
    pub(super) fn sample(path: &str, text: &str) -> Vec<Source> {
        vec![Source { path: path.to_owned(), text: text.to_owned() }]
    }

    #[test]
    fn code_is_without_comments_and_tests() {
        let text = "//! async\nfn a() {} // async\n/// async\nfn b() {}\n\n#[cfg(test)]\nmod tests {\n    async fn c() {}\n}\n";
        let code = sample("x.rs", text)[0].code();
        assert!(code.contains("fn a") && code.contains("fn b") && !code.contains("async"), "{code}");
        let elsewhere =
            "#![allow(x)]\n#[cfg(test)]\nmod tests;\nfn a() {}\n\n#[cfg(test)]\nmod more {\n    fn b() {}\n}\n";
        let code = sample("x.rs", elsewhere)[0].code();
        assert!(code.contains("fn a") && !code.contains("fn b"), "{code}");
    }

    #[test]
    fn the_checkout_holds_this_file_but_nothing_that_is_built() {
        let sources = checkout().unwrap();
        assert!(sources.iter().any(|source| source.path == "xtask/src/tidy.rs"));
        assert!(!sources.iter().any(|source| source.path.starts_with("target/")));
    }
}
