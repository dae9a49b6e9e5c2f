//! Tells what the demo and the end-to-end tests made on a cluster from what is somebody else's, by a label that is set when a thing is made.
//! Deleting a definition deletes every object of its kind, with a Kanidm its servers: nothing without the label is ever changed or removed.
//! It decides and looks; it deletes nothing itself.

use std::fmt;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::command::output;

/// Label on all that we make and that holds other things: definitions and namespaces.
const LABEL: &str = "kaniop.rs/made-by";
/// Its value.
const VALUE: &str = "cargo-xtask";
/// What the names of all of Kaniop's definitions end with, of any version.
const GROUP: &str = ".kaniop.rs";

/// What a [`Thing`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A CustomResourceDefinition of Kaniop's group.
    Definition,
    /// A namespace that we use, with all that is in it: a Helm release is its namespace's.
    Namespace,
}

/// Something on the cluster that has a name which we use too.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Thing {
    kind: Kind,
    name: String,
    ours: bool,
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Definition => "CustomResourceDefinition",
            Kind::Namespace => "Namespace",
        };
        write!(f, "{kind} {}", self.name)
    }
}

/// Marks an object as made by us.
pub(crate) fn mark(mut object: Value) -> Value {
    object["metadata"]["labels"][LABEL] = VALUE.into();
    object
}

/// Kaniop's definitions on the cluster, of any version, and those of `namespaces` that exist.
///
/// # Errors
/// When the cluster does not say: then nothing may be taken for ours, or for absent.
pub(crate) fn look(cluster: &Cluster, namespaces: &[&str]) -> Result<Vec<Thing>> {
    let list = |kind| {
        let columns = format!(
            r#"jsonpath={{range .items[*]}}{{.metadata.name}} {{.metadata.labels.{}}}{{"\n"}}{{end}}"#,
            LABEL.replace('.', r"\.")
        );
        output(&mut cluster.kubectl(["get", kind, "-o", columns.as_str()]))
    };
    let mut things = parse(Kind::Definition, &list("customresourcedefinitions")?, |name| name.ends_with(GROUP));
    things.extend(parse(Kind::Namespace, &list("namespaces")?, |name| namespaces.contains(&name)));
    Ok(things)
}

/// Reads lines of a name and, if there is one, the label's value.
fn parse(kind: Kind, listed: &str, relevant: impl Fn(&str) -> bool) -> Vec<Thing> {
    let lines = listed.lines().map(|line| line.trim().split_once(' ').unwrap_or((line.trim(), "")));
    let things = lines.filter(|(name, _)| relevant(name));
    things.map(|(name, value)| Thing { kind, name: name.to_owned(), ours: value.trim() == VALUE }).collect()
}

/// Whether all of them are ours.
pub(crate) fn all_ours(things: &[Thing]) -> bool {
    things.iter().all(|thing| thing.ours)
}

/// Fails when something is there that is not ours.
///
/// # Errors
/// Names all of it in one line.
pub(crate) fn refuse_others(things: &[Thing]) -> Result<()> {
    if all_ours(things) {
        return Ok(());
    }
    bail!(
        "somebody else's Kaniop, or what is left of one, is on this cluster; nothing was changed. Remove it, or use another cluster. \
         In the way, for want of the label {LABEL}={VALUE}: {}",
        names(things.iter().filter(|thing| !thing.ours))
    )
}

/// Fails when anything is there, ours or not.
///
/// # Errors
/// As [`refuse_others`], or with what is left of our own.
pub(crate) fn refuse_all(things: &[Thing]) -> Result<()> {
    refuse_others(things)?;
    if things.is_empty() {
        return Ok(());
    }
    bail!("the demo, or what is left of it, is on this cluster: remove it first (`make demo-down`): {}", names(things))
}

/// Names of those of a kind that may be deleted.
pub(crate) fn ours(things: &[Thing], kind: Kind) -> Vec<&str> {
    things.iter().filter(|thing| thing.ours && thing.kind == kind).map(|thing| thing.name.as_str()).collect()
}

/// Those that were not there before.
pub(crate) fn since(mut things: Vec<Thing>, before: &[Thing]) -> Vec<Thing> {
    things.retain(|thing| !before.iter().any(|old| (old.kind, &old.name) == (thing.kind, &thing.name)));
    things
}

/// What is left alone, for people; nothing when all of it is ours.
pub(crate) fn spared(things: &[Thing]) -> Option<String> {
    (!all_ours(things)).then(|| names(things.iter().filter(|thing| !thing.ours)))
}

fn names<'a>(things: impl IntoIterator<Item = &'a Thing>) -> String {
    things.into_iter().map(Thing::to_string).collect::<Vec<_>>().join(", ")
}

/// Something of ours, and the same with something of somebody else's.
#[cfg(test)]
pub(crate) fn examples() -> (Vec<Thing>, Vec<Thing>) {
    let seen = |listed| parse(Kind::Definition, listed, |_| true);
    (seen("kanidms.kaniop.rs cargo-xtask\n"), seen("kanidms.kaniop.rs cargo-xtask\nkanidmgroups.kaniop.rs \n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// As `look` reads it.
    fn seen(definitions: &str, namespaces: &str) -> Vec<Thing> {
        let mut things = parse(Kind::Definition, definitions, |name| name.ends_with(GROUP));
        things.extend(parse(Kind::Namespace, namespaces, |name| ["kaniop-system", "quickstart"].contains(&name)));
        things
    }

    #[test]
    fn an_empty_cluster_is_gone_on_with_and_nothing_of_it_is_deleted() {
        let things = seen("certificates.cert-manager.io \n", "default \nkube-system \n");
        assert_eq!(things, []);
        refuse_others(&things).unwrap();
        refuse_all(&things).unwrap();
        assert_eq!(spared(&things), None);
    }

    #[test]
    fn our_own_is_gone_on_with_and_deleted_and_is_in_the_way_of_the_tests() {
        let things = seen("kanidms.kaniop.rs cargo-xtask\n", "kaniop-system cargo-xtask\nquickstart cargo-xtask\n");
        refuse_others(&things).unwrap();
        assert_eq!(ours(&things, Kind::Definition), ["kanidms.kaniop.rs"]);
        assert_eq!(ours(&things, Kind::Namespace), ["kaniop-system", "quickstart"]);
        assert_eq!(spared(&things), None);
        assert!(refuse_all(&things).unwrap_err().to_string().contains("make demo-down"));
    }

    #[test]
    fn each_thing_without_the_label_is_refused_by_name_and_never_deleted() {
        let cases = [
            ("kanidms.kaniop.rs \n", "", "CustomResourceDefinition kanidms.kaniop.rs"),
            ("kanidmoauth2clients.kaniop.rs\n", "", "CustomResourceDefinition kanidmoauth2clients.kaniop.rs"),
            ("", "kaniop-system \n", "Namespace kaniop-system"),
            ("", "quickstart \n", "Namespace quickstart"),
            ("", "quickstart somebody\n", "Namespace quickstart"),
            ("", "quickstart cargo-xtask-not\n", "Namespace quickstart"),
        ];
        for (definitions, namespaces, name) in cases {
            let things = seen(definitions, namespaces);
            for error in [refuse_others(&things).unwrap_err(), refuse_all(&things).unwrap_err()] {
                assert!(error.to_string().contains(name), "{error}");
            }
            assert_eq!(ours(&things, Kind::Definition), Vec::<&str>::new());
            assert_eq!(ours(&things, Kind::Namespace), Vec::<&str>::new());
            assert_eq!(spared(&things).as_deref(), Some(name));
        }
    }

    #[test]
    fn beside_somebody_elses_only_our_own_is_deleted() {
        let things = seen(
            "kanidms.kaniop.rs \nkanidmgroups.kaniop.rs cargo-xtask\n",
            "kaniop-system \nquickstart cargo-xtask\n",
        );
        assert_eq!(ours(&things, Kind::Definition), ["kanidmgroups.kaniop.rs"]);
        assert_eq!(ours(&things, Kind::Namespace), ["quickstart"]);
        let error = refuse_others(&things).unwrap_err().to_string();
        assert!(!error.contains("quickstart") && !error.contains("kanidmgroups"), "{error}");
    }

    #[test]
    fn what_was_there_before_is_not_new_whoever_made_it() {
        let before = seen("kanidms.kaniop.rs cargo-xtask\n", "kaniop-system \n");
        let after = seen(
            "kanidms.kaniop.rs cargo-xtask\nkanidmgroups.kaniop.rs cargo-xtask\n",
            "kaniop-system cargo-xtask\nquickstart cargo-xtask\n",
        );
        let new = since(after, &before);
        assert_eq!(ours(&new, Kind::Definition), ["kanidmgroups.kaniop.rs"]);
        assert_eq!(ours(&new, Kind::Namespace), ["quickstart"]);
    }

    #[test]
    fn a_marked_object_keeps_its_own_labels() {
        let marked = mark(json!({"metadata": {"name": "x", "labels": {"a": "b"}}}));
        assert_eq!(marked["metadata"]["labels"], json!({"a": "b", LABEL: VALUE}));
        assert_eq!(mark(json!({"metadata": {"name": "x"}}))["metadata"]["labels"][LABEL], VALUE);
    }
}
