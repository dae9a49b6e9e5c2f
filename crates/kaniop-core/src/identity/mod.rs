//! Identities: one plan for every kind.
//!
//! A kind is a table of fields ([`IdentityKind::FIELDS`]); [`plan`] holds the table against the snapshot of the server and says what single request
//! makes the entry as the spec wants it. What the spec leaves out is never looked at and never written.

mod deletion;
mod group;
mod person;
pub mod posix;
mod report;
mod resolve;
mod validity;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use uuid::Uuid;

use self::resolve::Row;
pub use deletion::{Deletion, Obstacle, deletion};

pub use report::{Outcome, report};

use crate::condition::Statement;
use crate::entry::{Attr, Collection, Entry, Snapshot, Step, Value};
use crate::name::{GENERATIONS, Owner};
use crate::reason::Reason;

/// What a field wants of its attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing: the attribute is managed elsewhere.
    Unmanaged,
    /// This value; an empty list purges.
    Value(Value),
    /// Nothing: what is there is purged.
    Absent,
    /// References to exactly these entries, by name, SPN or UUID.
    Entries(Vec<String>),
    /// References to these entries at least; others stay.
    AtLeast(Vec<String>),
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

    /// A number, unmanaged when absent.
    #[must_use]
    pub fn int(number: Option<i64>) -> Self {
        number.map_or(Self::Unmanaged, |number| Self::Value(Value::Int(number)))
    }

    /// Purged when absent, instead of unmanaged.
    #[must_use]
    pub fn or_absent(self) -> Self {
        if self == Self::Unmanaged { Self::Absent } else { self }
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
    /// Class that the entry needs before it may have the attribute.
    pub class: Option<&'static str>,
    /// Whether the server takes the attribute at the creation already.
    pub at_creation: bool,
}

impl<S> Field<S> {
    /// A row.
    pub const fn new(name: &'static str, attr: Attr, want: fn(&S) -> Wanted) -> Self {
        Self { name, attr, want, class: None, at_creation: true }
    }

    /// The row of an attribute that the server's access rules let us change, but not give at the creation.
    pub const fn later(name: &'static str, attr: Attr, want: fn(&S) -> Wanted) -> Self {
        Self { name, attr, want, class: None, at_creation: false }
    }

    /// The row of an attribute that only entries of a class may have.
    pub const fn of_class(class: &'static str, name: &'static str, attr: Attr, want: fn(&S) -> Wanted) -> Self {
        Self { name, attr, want, class: Some(class), at_creation: false }
    }
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
    /// Classes that the spec asks for even where no attribute needs them.
    fn classes(_spec: &Self::Spec) -> Vec<&'static str> {
        Vec::new()
    }
}

/// What the operator itself put into sets that others write to as well: by field.
pub type Managed = BTreeMap<String, BTreeSet<Uuid>>;

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
    /// Whether the status of an older release, which pinned no UUID, says that the entry exists: then the entry of that name is ours.
    pub inherited: bool,
    /// Generations of our UUID that the server said were used up: deleted entries keep theirs for a week.
    pub spent: &'a BTreeSet<u32>,
    /// What we put into sets that others write to as well.
    pub managed: &'a Managed,
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
    /// What will be ours in shared sets once the step is carried out.
    pub managed: Managed,
}

/// Holds the spec against the snapshot. One request at a time: when it is carried out, the rest shows in the next plan.
#[must_use]
pub fn plan<K: IdentityKind>(want: &Desired<'_, K>, seen: &Snapshot) -> Plan {
    let mut plan = Plan::default();
    let wanted = resolve::rows::<K>(want.spec, seen, &mut plan.findings);
    let ours = own(want, seen);
    plan.managed = resolve::managed(&wanted, ours, want.managed);
    if let Some(other) = holder_of_the_name(&want.owner, ours, seen) {
        plan.entry = ours.map(|entry| entry.uuid);
        plan.findings.insert(0, taken(&want.owner, other));
        return plan;
    }
    match ours {
        Some(entry) => update::<K>(&mut plan, entry, want, &wanted),
        None => create::<K>(&mut plan, want, &wanted),
    }
    plan
}

/// The entry of this object: the pinned one, else any that carries a UUID derivable for this object, else the one that an older release made.
fn own<'s, K: IdentityKind>(want: &Desired<'_, K>, seen: &'s Snapshot) -> Option<&'s Entry> {
    let pinned = want.pinned.and_then(|uuid| seen.get(uuid));
    let derived = || want.owner.uuids().find_map(|uuid| seen.get(uuid));
    let inherited = || seen.find(want.owner.entry).filter(|entry| want.inherited && !entry.is_built_in());
    pinned.or_else(derived).or_else(inherited).filter(|entry| entry.collection == K::COLLECTION)
}

fn holder_of_the_name<'s>(owner: &Owner<'_>, ours: Option<&Entry>, seen: &'s Snapshot) -> Option<&'s Entry> {
    seen.find(owner.entry).filter(|entry| Some(entry.uuid) != ours.map(|entry| entry.uuid))
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

fn update<K: IdentityKind>(plan: &mut Plan, entry: &Entry, want: &Desired<'_, K>, wanted: &[Row<K::Spec>]) {
    plan.entry = Some(entry.uuid);
    let needed = K::classes(want.spec)
        .into_iter()
        .chain(wanted.iter().filter(|row| !row.is_absent()).filter_map(|row| row.field.class));
    if let Some(class) = needed.into_iter().find(|class| !entry.classes.contains(*class)) {
        plan.changes.push(class);
        plan.step = Some(Step::Extend { uuid: entry.uuid, collection: entry.collection, class });
        return;
    }
    let mut attrs = Vec::new();
    if !entry.name.eq_ignore_ascii_case(want.owner.entry) {
        plan.changes.push("name");
        attrs.push((Attr::NAME, Some(Value::Text(want.owner.entry.to_owned()))));
    }
    for row in wanted {
        if let Some(value) = row.change(entry) {
            plan.changes.push(row.field.name);
            attrs.push((row.field.attr, value));
        }
    }
    if !attrs.is_empty() {
        plan.step = Some(Step::Put { uuid: entry.uuid, attrs });
        return;
    }
    for row in wanted {
        if let Some(step) = row.adjustment(entry, want.managed) {
            plan.changes.push(row.field.name);
            plan.step = Some(step);
            return;
        }
    }
}

fn create<K: IdentityKind>(plan: &mut Plan, want: &Desired<'_, K>, wanted: &[Row<K::Spec>]) {
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
    for row in wanted.iter().filter(|row| row.field.at_creation) {
        if let Some(value) = row.first() {
            plan.changes.push(row.field.name);
            attrs.push((row.field.attr, value));
        }
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
