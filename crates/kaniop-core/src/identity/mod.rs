//! Identities: one plan for every kind.
//!
//! A kind is a table of fields ([`IdentityKind::FIELDS`]); [`plan`] holds the table against the snapshot of the server and says what single request
//! makes the entry as the spec wants it. What the spec leaves out is never looked at and never written.

mod deletion;
mod group;
mod person;
mod report;
mod validity;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use uuid::Uuid;

pub use deletion::{Deletion, Obstacle, deletion};
pub use report::{Outcome, report};

use crate::condition::Statement;
use crate::entry::{Attr, Collection, Entry, Shape, Snapshot, Step, Value};
use crate::name::{GENERATIONS, Owner};
use crate::reason::Reason;

/// What a field wants of its attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing: the attribute is managed elsewhere.
    Unmanaged,
    /// This value; an empty list purges.
    Value(Value),
    /// References to these entries, by name, SPN or UUID.
    Entries(Vec<String>),
}

impl Wanted {
    /// A text, unmanaged when absent.
    #[must_use]
    pub fn text(text: Option<&String>) -> Self {
        text.map_or(Self::Unmanaged, |text| Self::Value(Value::Text(text.clone())))
    }

    /// Mail addresses, unmanaged when absent.
    #[must_use]
    pub fn mails(mails: Option<&[String]>) -> Self {
        mails.map_or(Self::Unmanaged, |mails| Self::Value(Value::Mails(mails.to_vec())))
    }

    /// A point in time, unmanaged when absent.
    #[must_use]
    pub fn time(time: Option<&Time>) -> Self {
        time.map_or(Self::Unmanaged, |time| Self::Value(Value::Time(time.0)))
    }

    /// References, unmanaged when absent.
    #[must_use]
    pub fn entries(ids: Option<&[String]>) -> Self {
        ids.map_or(Self::Unmanaged, |ids| Self::Entries(ids.to_vec()))
    }
}

/// One row of a kind's table.
#[derive(Debug)]
pub struct Field<S> {
    /// Path in the spec, for messages.
    pub name: &'static str,
    /// The attribute that it governs.
    pub attr: Attr,
    /// What the spec wants of it.
    pub want: fn(&S) -> Wanted,
}

/// A kind of identity: all that the one engine needs to know of it.
pub trait IdentityKind {
    /// Type of the spec.
    type Spec: 'static;
    /// Kind in the API.
    const KIND: &'static str;
    /// Collection on the server.
    const COLLECTION: Collection;
    /// The table.
    const FIELDS: &'static [Field<Self::Spec>];
    /// The object's spec.
    fn spec(&self) -> &Self::Spec;
}

/// Every attribute that any kind governs: what a snapshot is asked for.
#[must_use]
pub fn attributes() -> Vec<Attr> {
    fn of<K: IdentityKind>(into: &mut BTreeMap<&'static str, Attr>) {
        into.extend(K::FIELDS.iter().map(|field| (field.attr.name, field.attr)));
    }
    let mut all = BTreeMap::new();
    of::<kaniop_api::KanidmPersonAccount>(&mut all);
    of::<kaniop_api::KanidmGroup>(&mut all);
    all.into_values().collect()
}

/// What one object wants of the server.
#[derive(Debug)]
pub struct Desired<'a, K: IdentityKind> {
    /// Whose entry it is.
    pub owner: Owner<'a>,
    /// The spec.
    pub spec: &'a K::Spec,
    /// UUID of the entry, where the status has pinned one.
    pub pinned: Option<Uuid>,
    /// Generations of our UUID that the server said were used up: deleted entries keep theirs for a week.
    pub spent: &'a BTreeSet<u32>,
}

/// Something that the user has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The reason for the conditions.
    pub reason: Reason,
    /// What it is and what to do.
    pub message: String,
}

/// What to do for one object, and what is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The entry that is ours: the one found, or the one to be created.
    pub entry: Option<Uuid>,
    /// The one request to send; `None` when the entry is as the spec wants it, as far as it can be.
    pub step: Option<Step>,
    /// Paths of the fields that differ.
    pub changes: Vec<&'static str>,
    /// What keeps the entry from being all that the spec wants.
    pub findings: Vec<Finding>,
}

/// Holds the spec against the snapshot.
#[must_use]
pub fn plan<K: IdentityKind>(want: &Desired<'_, K>, seen: &Snapshot) -> Plan {
    let mut plan = Plan::default();
    let wanted = resolved::<K>(want.spec, seen, &mut plan.findings);
    if let Some(other) = holder_of_the_name(want, seen) {
        plan.entry = own(want, seen).map(|entry| entry.uuid);
        plan.findings.insert(0, taken(&want.owner, other));
        return plan;
    }
    match own(want, seen) {
        Some(entry) => update(&mut plan, entry, &want.owner, wanted),
        None => create::<K>(&mut plan, want, wanted),
    }
    plan
}

/// The entry of this object: the pinned one, else any that carries a UUID derivable for this object.
fn own<'s, K: IdentityKind>(want: &Desired<'_, K>, seen: &'s Snapshot) -> Option<&'s Entry> {
    let pinned = want.pinned.and_then(|uuid| seen.get(uuid));
    pinned.or_else(|| want.owner.uuids().find_map(|uuid| seen.get(uuid))).filter(|entry| entry.collection == K::COLLECTION)
}

fn holder_of_the_name<'s, K: IdentityKind>(want: &Desired<'_, K>, seen: &'s Snapshot) -> Option<&'s Entry> {
    let ours = own(want, seen).map(|entry| entry.uuid);
    seen.find(want.owner.entry).filter(|entry| Some(entry.uuid) != ours)
}

fn taken(owner: &Owner<'_>, other: &Entry) -> Finding {
    Finding {
        reason: Reason::EntryExists,
        message: format!(
            "a {} named {:?} exists on the server (UUID {}) and was not created by this object: it is left alone. \
             Rename this object, set kanidmName, or delete that entry",
            other.collection.class().replace('_', " "),
            owner.entry,
            other.uuid
        ),
    }
}

type Row = (&'static str, Attr, Value);

/// The managed fields with references resolved. A reference that nobody answers to is a finding; the others count.
fn resolved<K: IdentityKind>(spec: &K::Spec, seen: &Snapshot, findings: &mut Vec<Finding>) -> Vec<Row> {
    let mut rows = Vec::new();
    for field in K::FIELDS {
        match (field.want)(spec) {
            Wanted::Unmanaged => {}
            Wanted::Value(value) => rows.push((field.name, field.attr, value)),
            Wanted::Entries(ids) => {
                let (found, missing): (Vec<_>, Vec<_>) =
                    ids.iter().map(|id| (id, seen.find(id))).partition(|(_, entry)| entry.is_some());
                if !missing.is_empty() {
                    findings.push(not_found(field.name, missing.into_iter().map(|(id, _)| id.as_str()).collect()));
                }
                let found: BTreeSet<_> = found.into_iter().filter_map(|(_, entry)| entry).map(|entry| entry.uuid).collect();
                if field.attr.shape == Shape::References || !found.is_empty() {
                    rows.push((field.name, field.attr, Value::References(found)));
                }
            }
        }
    }
    rows
}

/// How many names a message lists at most.
const NAMES_SHOWN: usize = 5;

fn not_found(field: &str, mut missing: Vec<&str>) -> Finding {
    missing.sort_unstable();
    let more = missing.len().saturating_sub(NAMES_SHOWN);
    missing.truncate(NAMES_SHOWN);
    let names = missing.join(", ");
    let tail = if more == 0 { String::new() } else { format!(" and {more} more") };
    Finding {
        reason: Reason::ReferenceNotFound,
        message: format!("{field}: not on the server: {names}{tail}. It is set as soon as it exists"),
    }
}

fn update(plan: &mut Plan, entry: &Entry, owner: &Owner<'_>, wanted: Vec<Row>) {
    let mut attrs = Vec::new();
    if !entry.name.eq_ignore_ascii_case(owner.entry) {
        plan.changes.push("name");
        attrs.push((Attr::NAME, Some(Value::Text(owner.entry.to_owned()))));
    }
    for (name, attr, value) in wanted {
        let as_wanted = match entry.attrs.get(attr.name) {
            Some(seen) => seen.same(&value),
            None => value.is_empty(),
        };
        if !as_wanted {
            plan.changes.push(name);
            attrs.push((attr, Some(value).filter(|value| !value.is_empty())));
        }
    }
    plan.entry = Some(entry.uuid);
    plan.step = (!attrs.is_empty()).then_some(Step::Put { uuid: entry.uuid, attrs });
}

fn create<K: IdentityKind>(plan: &mut Plan, want: &Desired<'_, K>, wanted: Vec<Row>) {
    let Some(generation) = (0..GENERATIONS).find(|generation| !want.spent.contains(generation)) else {
        plan.findings.push(Finding {
            reason: Reason::NameConflict,
            message: format!(
                "{GENERATIONS} entries of this object were deleted within a week and the server keeps their UUIDs: wait, or rename the object"
            ),
        });
        return;
    };
    let uuid = want.owner.uuid(generation);
    let mut attrs = vec![(Attr::NAME, Value::Text(want.owner.entry.to_owned()))];
    for (name, attr, value) in wanted.into_iter().filter(|(_, _, value)| !value.is_empty()) {
        plan.changes.push(name);
        attrs.push((attr, value));
    }
    plan.entry = Some(uuid);
    plan.step = Some(Step::Create { collection: K::COLLECTION, uuid, attrs });
}

/// What can be said of the entry itself, and after how long it has to be said anew.
#[must_use]
pub fn facts<K: IdentityKind>(entry: &Entry, now: Timestamp) -> (Vec<Statement>, Option<Duration>) {
    match K::COLLECTION {
        Collection::Person | Collection::ServiceAccount => {
            let (statement, after) = validity::validity(entry, now);
            (vec![statement], after)
        }
        Collection::Group => (Vec::new(), None),
    }
}

#[cfg(test)]
mod tests;
