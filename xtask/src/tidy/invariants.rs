//! The architecture's invariants I1 to I7 as rules; I8 is `gen`'s own test.
//!
//! They are judged by `cargo tree` and by words in the sources. A word can be hidden on purpose: these rules are for honest mistakes.

use std::process::Command;

use anyhow::Result;

use super::{Rule, Source};
use crate::command::output;
use crate::workspace::root;

pub(super) const RULES: &[Rule] = &[
    Rule { says: "I1 kaniop-api and kaniop-core do no IO", check: pure_dependencies },
    Rule { says: "I1 nothing in kaniop-core is async", check: core_is_not_async },
    Rule { says: "I2 kaniop-core asks neither clock nor environment nor chance", check: core_asks_nothing },
    Rule { says: "I3 only kaniop-kanidm speaks to Kanidm", check: only_one_speaks_to_kanidm },
    Rule { says: "I3 each effect is in one file", check: one_file_for_each_effect },
    Rule { says: "I4 plan and build cannot fail", check: plans_cannot_fail },
    Rule { says: "I5 no text for people is parsed", check: no_text_is_parsed },
    Rule { says: "I6 nothing waits inside a reconcile", check: nothing_waits },
    Rule { says: "I6 every reconcile has a deadline", check: reconciles_have_a_deadline },
    Rule { says: "I7 no effect destroys data", check: nothing_destroys_data },
];

/// Crates that do IO or wait for it.
const IO: &[&str] = &["tokio", "hyper", "reqwest", "rustls", "kube-client", "kube-runtime"];

fn pure_dependencies(_: &[Source]) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for package in ["kaniop-api", "kaniop-core"] {
        let mut tree = Command::new("cargo");
        tree.args(["tree", "--offline", "--package", package, "--edges=normal", "--prefix=none"]).current_dir(root());
        findings.extend(io_in(&output(&mut tree)?).into_iter().map(|name| format!("{package} depends on {name}")));
    }
    Ok(findings)
}

fn io_in(tree: &str) -> Vec<&'static str> {
    let names: Vec<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    IO.iter().copied().filter(|name| names.contains(name)).collect()
}

fn core_is_not_async(sources: &[Source]) -> Result<Vec<String>> {
    Ok(words(sources, "kaniop-core", &["async ", ".await"]))
}

fn core_asks_nothing(sources: &[Source]) -> Result<Vec<String>> {
    let asking = [
        "Timestamp::now",
        "Zoned::now",
        "SystemTime",
        "Instant",
        "env::",
        "new_v4",
        "now_v7",
        "rand::",
        "getrandom",
        "fs::",
        "std::net::",
        "process::",
        "thread::",
    ];
    Ok(words(sources, "kaniop-core", &asking))
}

fn only_one_speaks_to_kanidm(sources: &[Source]) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for package in ["kaniop-api", "kaniop-core", "kaniop-operator"] {
        findings.extend(words(sources, package, &["\"/v1/", "/scim/v1", "reqwest", "kanidmd.sock"]));
    }
    // The path of the socket is a setting of the server, which core renders.
    findings.retain(|finding| !(finding.contains("kaniop-core") && finding.contains("kanidmd.sock")));
    findings.retain(|finding| !(finding.starts_with(PICTURES) && finding.contains("reqwest")));
    Ok(findings)
}

/// Speaks HTTP to hosts that users name, and to no address inside the cluster: so not to Kanidm.
const PICTURES: &str = "crates/kaniop-operator/src/picture/";

/// Words that betray an effect, and the files of the operator that may have them.
const EFFECTS: &[(&str, &[&str])] = &[
    (".exec(", &["exec.rs"]),
    (".patch_status(", &["status.rs"]),
    (".replace_status(", &["status.rs"]),
    ("Patch::Apply", &["apply.rs", "status.rs"]),
    (".delete(", &["apply.rs"]),
    (".delete_collection(", &["apply.rs"]),
];

fn one_file_for_each_effect(sources: &[Source]) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.is_of("kaniop-operator")) {
        let code = source.code();
        let name = source.path.rsplit('/').next().unwrap_or_default();
        let misplaced = EFFECTS.iter().filter(|(word, files)| code.contains(word) && !files.contains(&name));
        findings.extend(
            misplaced.map(|(word, files)| {
                format!("{} has `{word}`, which belongs into {}", source.path, files.join(" or "))
            }),
        );
    }
    Ok(findings)
}

fn plans_cannot_fail(sources: &[Source]) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.is_of("kaniop-core")) {
        let code = source.code();
        for name in ["plan", "build"] {
            for rest in [format!("fn {name}("), format!("fn {name}<")]
                .iter()
                .flat_map(|start| code.split(start.as_str()).skip(1))
            {
                let signature = rest.split('{').next().unwrap_or_default();
                let answer = signature.rsplit("->").next().unwrap_or_default();
                if answer.contains("Result<") || answer.contains("Option<") {
                    findings.push(format!("{}: {name} returns{answer}", source.path));
                }
            }
        }
    }
    Ok(findings)
}

/// Texts that are looked for all the same: the server has no other word for it, and a miss is the conservative path.
const NO_OTHER_WORD: &[&str] = &["Uuid duplicate"];

fn no_text_is_parsed(sources: &[Source]) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for manifest in
        sources.iter().filter(|source| source.path.starts_with("crates/") && source.path.ends_with("/Cargo.toml"))
    {
        if manifest.text.lines().any(|line| line.starts_with("regex")) {
            findings.push(format!("{} depends on regex", manifest.path));
        }
    }
    for source in sources.iter().filter(|source| source.is_of("kaniop-kanidm") || source.is_of("kaniop-operator")) {
        let code = source.code();
        for search in
            [".contains(\"", ".starts_with(\"", ".ends_with(\"", ".find(\"", ".split_once(\"", ".strip_prefix(\""]
        {
            let literals = code.split(search).skip(1).filter_map(|rest| rest.split('"').next());
            // Text for people has blanks in it; names, paths and codes have none.
            let human = literals.filter(|text| text.contains(' ') && !NO_OTHER_WORD.contains(text));
            findings.extend(human.map(|text| format!("{} looks for {text:?}", source.path)));
        }
    }
    Ok(findings)
}

/// Files whose loops are not reconciles: start and end of the process, the lease, the refreshing of snapshots, the publishing of Events, and
/// the node helper, which runs in the pod.
const MAY_WAIT: &[&str] =
    &["src/leader.rs ", "src/run.rs ", "src/targets/looks.rs ", "src/events/publisher.rs ", "src/node/"];

fn nothing_waits(sources: &[Source]) -> Result<Vec<String>> {
    let found = words(sources, "kaniop-operator", &["sleep(", "sleep_until(", "await_condition(", "interval("]);
    Ok(found.into_iter().filter(|finding| !MAY_WAIT.iter().any(|file| finding.contains(file))).collect())
}

fn reconciles_have_a_deadline(sources: &[Source]) -> Result<Vec<String>> {
    let operator: Vec<_> = sources.iter().filter(|source| source.is_of("kaniop-operator")).collect();
    let folder = |source: &Source| source.path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let limited = |source: &Source| source.code().contains("timeout(DEADLINE");
    let mut findings = Vec::new();
    for source in operator.iter().filter(|source| source.code().contains("Controller::new(")) {
        // A controller's passes may be in another file of the same module.
        if !operator.iter().any(|other| folder(other) == folder(source) && limited(other)) {
            findings.push(format!("{} runs a controller whose passes have none", source.path));
        }
    }
    Ok(findings)
}

/// There is no restore yet, so nothing at all may delete a volume's claim.
fn nothing_destroys_data(sources: &[Source]) -> Result<Vec<String>> {
    let claims = kaniop_core::rbac::RULES.iter().filter(|rule| rule.resources.contains(&"persistentvolumeclaims"));
    let granted = claims.filter(|rule| rule.verbs.iter().any(|verb| verb.starts_with("delete")));
    let mut findings: Vec<_> = granted.map(|rule| format!("the role may delete claims: {}", rule.why)).collect();
    findings.extend(words(sources, "kaniop-operator", &["delete_collection", "remove_dir_all", "remove_file"]));
    Ok(findings)
}

/// Which product files of a crate have one of these words.
fn words(sources: &[Source], package: &str, words: &[&str]) -> Vec<String> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.is_of(package)) {
        let code = source.code();
        findings.extend(
            words.iter().filter(|word| code.contains(**word)).map(|word| format!("{} has `{word}`", source.path)),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tests::{holds, sample};
    use super::*;

    fn breaks(check: fn(&[Source]) -> Result<Vec<String>>, path: &str, text: &str) {
        assert_eq!(check(&sample(path, text)).unwrap().len(), 1, "{text}");
        let outside = path.replace("crates/", "elsewhere/");
        assert_eq!(check(&sample(&outside, text)).unwrap().len(), 0, "{outside} is none of this rule's business");
    }

    #[test]
    fn api_and_core_depend_on_nothing_that_does_io() {
        holds(RULES, "I1 kaniop-api and");
        assert_eq!(io_in("kaniop-core v1\nserde v1\nkube-client v5.0.0\ntokio-util v1\n"), ["kube-client"]);
    }

    #[test]
    fn core_is_never_async() {
        holds(RULES, "I1 nothing");
        breaks(core_is_not_async, "crates/kaniop-core/src/a.rs", "pub async fn a() {}");
    }

    #[test]
    fn core_takes_time_names_and_chance_as_arguments() {
        holds(RULES, "I2");
        breaks(core_asks_nothing, "crates/kaniop-core/src/a.rs", "fn a() -> Timestamp { Timestamp::now() }");
        breaks(core_asks_nothing, "crates/kaniop-core/src/a.rs", "fn a() { std::env::var(\"A\"); }");
    }

    #[test]
    fn only_the_client_crate_speaks_to_kanidm() {
        holds(RULES, "I3 only");
        breaks(only_one_speaks_to_kanidm, "crates/kaniop-operator/src/a.rs", "get(\"/v1/person\")");
        breaks(only_one_speaks_to_kanidm, "crates/kaniop-operator/src/a.rs", "use reqwest::Client;");
        breaks(only_one_speaks_to_kanidm, "crates/kaniop-operator/src/picture/a.rs", "get(\"/v1/person\")");
        let picture = sample("crates/kaniop-operator/src/picture/a.rs", "use reqwest::Client;");
        assert_eq!(only_one_speaks_to_kanidm(&picture).unwrap().len(), 0);
    }

    #[test]
    fn exec_status_and_children_each_have_one_file() {
        holds(RULES, "I3 each");
        breaks(one_file_for_each_effect, "crates/kaniop-operator/src/engine.rs", "api.patch_status(name, &p, &patch)");
        assert_eq!(
            one_file_for_each_effect(&sample("crates/kaniop-operator/src/apply.rs", "api.delete(name)")).unwrap().len(),
            0
        );
    }

    #[test]
    fn plans_and_builds_cannot_fail() {
        holds(RULES, "I4");
        breaks(plans_cannot_fail, "crates/kaniop-core/src/a.rs", "pub fn plan<K: Kind>(w: &W) -> Result<Plan, E> {");
        let fine = sample(
            "crates/kaniop-core/src/a.rs",
            "pub fn plan(want: Option<&W>) -> Plan {\n}\nfn other() -> Result<(), E> {}",
        );
        assert_eq!(plans_cannot_fail(&fine).unwrap().len(), 0);
    }

    #[test]
    fn nothing_that_a_server_says_to_people_is_parsed() {
        holds(RULES, "I5");
        breaks(no_text_is_parsed, "crates/kaniop-kanidm/src/a.rs", "if out.contains(\"Restore Success!\") {}");
        breaks(no_text_is_parsed, "crates/kaniop-kanidm/Cargo.toml", "[dependencies]\nregex = \"1\"\n");
    }

    #[test]
    fn no_reconcile_waits() {
        holds(RULES, "I6 nothing");
        breaks(nothing_waits, "crates/kaniop-operator/src/engine.rs", "tokio::time::sleep(SECOND).await;");
    }

    #[test]
    fn every_reconcile_has_a_deadline() {
        holds(RULES, "I6 every");
        breaks(
            reconciles_have_a_deadline,
            "crates/kaniop-operator/src/a.rs",
            "Controller::new(api, config).run(a, b, c)",
        );
    }

    #[test]
    fn no_effect_destroys_data() {
        holds(RULES, "I7");
        breaks(nothing_destroys_data, "crates/kaniop-operator/src/a.rs", "api.delete_collection(&d, &l)");
    }
}
