//! What a walk really did to each leaf of the schema, told from the specs that it sent.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::schema::{Node, join};

/// What happened to a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    Set,
    Changed,
    Removed,
}

/// What happened, by leaf.
#[derive(Debug, Default)]
pub struct Record(BTreeMap<String, BTreeSet<Mark>>);

impl Record {
    /// Takes in a step from one spec to the next.
    pub fn take(&mut self, root: &Node, before: &Json, after: &Json) {
        let (before, after) = (flat(root, before), flat(root, after));
        for (place, (path, value)) in &after {
            match before.get(place) {
                None => self.mark(path, Mark::Set),
                Some((_, was)) if was != value => self.mark(path, Mark::Changed),
                Some(_) => {}
            }
        }
        for (path, _) in before.iter().filter(|(place, _)| !after.contains_key(*place)).map(|(_, seen)| seen) {
            self.mark(path, Mark::Removed);
        }
    }

    fn mark(&mut self, path: &str, mark: Mark) {
        self.0.entry(path.to_owned()).or_default().insert(mark);
    }

    /// Whether this ever happened to a leaf.
    pub fn has(&self, path: &str, mark: Mark) -> bool {
        self.0.get(path).is_some_and(|marks| marks.contains(&mark))
    }

    /// Adds what another walk did.
    pub fn merge(&mut self, other: Self) {
        for (path, marks) in other.0 {
            self.0.entry(path).or_default().extend(marks);
        }
    }
}

/// Every leaf of a spec by its place, with its path in the schema. An explicit null is no value.
fn flat<'s>(root: &Node, spec: &'s Json) -> BTreeMap<String, (String, &'s Json)> {
    fn collect<'s>(node: &Node, value: &'s Json, at: (&str, &str), into: &mut BTreeMap<String, (String, &'s Json)>) {
        let (place, path) = at;
        match node {
            _ if value.is_null() => {}
            Node::Leaf(_) => drop(into.insert(place.to_owned(), (path.to_owned(), value))),
            Node::Object(properties) => {
                for property in properties {
                    let name = &property.name;
                    collect(&property.node, &value[name], (&join(place, name), &join(path, name)), into);
                }
            }
            Node::List { item, .. } => {
                for (nth, value) in value.as_array().into_iter().flatten().enumerate() {
                    collect(item, value, (&format!("{place}[{nth}]"), &format!("{path}[]")), into);
                }
            }
            Node::Map { value: node, .. } => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    collect(node, value, (&format!("{place}{{{key}}}"), &format!("{path}{{}}")), into);
                }
            }
        }
    }
    let mut all = BTreeMap::new();
    collect(root, spec, ("", ""), &mut all);
    all
}
