//! Identities: one plan for every kind.
//!
//! A kind is a table of fields ([`IdentityKind::FIELDS`]); [`plan`] holds the table against the snapshot of the server and says what single request
//! makes the entry as the spec wants it. What the spec leaves out is never looked at and never written.

pub mod credential;
mod deletion;
mod field;
mod group;
mod oauth2;
mod ownership;
mod person;
pub mod posix;
mod report;
pub mod reset;
mod resolve;
mod service_account;
mod validity;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use kaniop_api::person::ResetDelivery;
use kaniop_api::shared::DeletionPolicy;
use uuid::Uuid;

use self::resolve::Row;
pub use deletion::{Deletion, Obstacle, deletion};
pub use field::{Field, Wanted};
pub use group::CA_LIST;
pub use oauth2::IMAGE;
pub use ownership::{Adoption, has_entry};
pub use report::{Outcome, report};
pub use service_account::password_secret;

use crate::condition::Statement;
use crate::entry::{Attr, Collection, Entry, Newcomer, Shape, Snapshot, Step, Value};
use crate::name::{GENERATIONS, OPERATOR_ACCOUNT, Owner};
use crate::reason::Reason;

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
    /// Attributes that no plan writes, but whose change somebody has to hear of.
    const WATCHED: &'static [Attr] = &[];
    /// The object's spec.
    fn spec(&self) -> &Self::Spec;
    /// Classes that the spec asks for even where no attribute needs them.
    fn classes(_spec: &Self::Spec) -> Vec<&'static str> {
        Vec::new()
    }
    /// The Secrets with credentials that an object is to have.
    fn secrets(_owner: &Owner<'_>, _spec: &Self::Spec) -> Vec<credential::Wanted> {
        Vec::new()
    }
    /// URL of the entry's picture, where the kind has pictures.
    fn image(_spec: &Self::Spec) -> Option<&str> {
        None
    }
    /// A value of [`CA_LIST`] that the server does not show as it was given, where the spec has one.
    fn untold(_spec: &Self::Spec) -> Option<&str> {
        None
    }
    /// How the holder of an account sets a first credential, where the kind has that.
    fn first_credential(_spec: &Self::Spec) -> Option<FirstCredential> {
        None
    }
    /// Whether an entry that was there before is one that the spec can be true of.
    fn may_be(_spec: &Self::Spec, _entry: &Entry) -> bool {
        true
    }
    /// What keeps the operator from seeing and changing the attributes that only an entry's managers see, if anything does.
    fn not_manager(_spec: &Self::Spec, _seen: &Snapshot) -> Option<Finding> {
        None
    }
    /// What is created, where the server creates such entries in a way of their own; `None` while something that it needs does not exist.
    fn newcomer(_spec: &Self::Spec, _seen: &Snapshot) -> Option<Newcomer> {
        None
    }
}

/// Who may change an entry.
pub(crate) const MANAGED_BY: Attr = Attr::new("entry_managed_by", Shape::Reference);

/// How the holder of an account sets a first credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstCredential {
    /// Where the link goes.
    pub delivery: ResetDelivery,
    /// How long it works.
    pub ttl: Duration,
}

/// What the operator itself put into sets that others write to as well: by field.
pub type Managed = BTreeMap<String, BTreeSet<Uuid>>;

/// Every attribute that any kind governs or watches: what a snapshot is asked for.
#[must_use]
pub fn attributes() -> Vec<Attr> {
    fn of<K: IdentityKind>(into: &mut BTreeMap<&'static str, Attr>) {
        let fields = K::FIELDS.iter().map(|field| field.attr);
        into.extend(fields.chain(K::WATCHED.iter().copied()).map(|attr| (attr.name, attr)));
    }
    let mut all = BTreeMap::new();
    of::<kaniop_api::KanidmPersonAccount>(&mut all);
    of::<kaniop_api::KanidmGroup>(&mut all);
    of::<kaniop_api::KanidmOAuth2Client>(&mut all);
    of::<kaniop_api::KanidmServiceAccount>(&mut all);
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
    /// Whether the pinned entry was there before this object.
    pub adopted: bool,
    /// Whether the status of an older release, which pinned no UUID, says that the entry exists: then the entry of that name is ours.
    pub inherited: bool,
    /// Whether an entry that was there before may be taken over.
    pub adoption: Adoption,
    /// What becomes of the entry in the end, where that was said.
    pub deletion: Option<DeletionPolicy>,
    /// Generations of our UUID that the server said were used up: deleted entries keep theirs for a week.
    pub spent: &'a BTreeSet<u32>,
    /// What we put into sets that others write to as well.
    pub managed: &'a Managed,
}

impl<'a, K: IdentityKind> Desired<'a, K> {
    /// What an object without any history wants.
    #[must_use]
    pub fn first(owner: Owner<'a>, spec: &'a K::Spec) -> Self {
        static NOTHING: Managed = Managed::new();
        static NONE: BTreeSet<u32> = BTreeSet::new();
        Self {
            owner,
            spec,
            pinned: None,
            adopted: false,
            inherited: false,
            adoption: Adoption::NotAsked,
            deletion: None,
            spent: &NONE,
            managed: &NOTHING,
        }
    }
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
    /// Whether that entry was there before this object.
    pub adopted: bool,
    /// Whether the status has to name the entry before the step is sent: nothing else would tell afterwards whose it is.
    pub pin: bool,
    /// The one request to send; `None` when the entry is as the spec wants it, as far as it can be.
    pub step: Option<Step>,
    /// Paths of the fields that differ.
    pub changes: Vec<&'static str>,
    /// What keeps the entry from being all that the spec wants.
    pub findings: Vec<Finding>,
    /// What will be ours in shared sets once the step is carried out.
    pub managed: Managed,
    /// The attributes that somebody has to hear of, as they are.
    pub watched: BTreeMap<&'static str, Value>,
}

/// Holds the spec against the snapshot. One request at a time: when it is carried out, the rest shows in the next plan.
#[must_use]
pub fn plan<K: IdentityKind>(want: &Desired<'_, K>, seen: &Snapshot) -> Plan {
    let mut plan = Plan::default();
    if let Some(finding) = ownership::impossible(&want.owner) {
        plan.findings.push(finding);
        return plan;
    }
    let ours = ownership::own(want, seen);
    let entry = ours.as_ref().map(|own| own.entry);
    let wanted = resolve::rows::<K>(want.spec, seen, entry, &mut plan.findings);
    plan.managed = resolve::managed(&wanted, entry, want.managed);
    plan.entry = entry.map(|entry| entry.uuid);
    plan.adopted = ours.as_ref().is_some_and(|own| own.adopted);
    if let Some(other) = ownership::holder_of_the_name(&want.owner, entry, seen) {
        plan.findings.insert(0, ownership::taken(want, other));
        return plan;
    }
    let Some(own) = ours else {
        create::<K>(&mut plan, want, seen, &wanted);
        return plan;
    };
    plan.pin = own.needs_pin && want.pinned != Some(own.entry.uuid);
    let watched = K::WATCHED.iter().filter_map(|attr| Some((attr.name, own.entry.attrs.get(attr.name)?.clone())));
    plan.watched = watched.collect();
    if K::first_credential(want.spec).is_some() {
        plan.watched.insert("credential", Value::Bool(seen.has_credential(own.entry.uuid)));
    }
    let stranger = K::not_manager(want.spec, seen);
    // Who becomes its manager sees and may set the rest only when that is done.
    let all = stranger.is_none() && manages(own.entry, seen);
    let wanted: Vec<_> = wanted.into_iter().filter(|row| all || !row.field.for_managers).collect();
    plan.findings.extend(stranger);
    update::<K>(&mut plan, own.entry, want, &wanted);
    plan
}

/// Whether the operator is among an entry's managers, as far as anybody can tell.
fn manages(entry: &Entry, seen: &Snapshot) -> bool {
    seen.find(OPERATOR_ACCOUNT).is_none_or(|operator| match entry.attrs.get(MANAGED_BY.name) {
        Some(Value::References(managers)) => managers.iter().any(|manager| seen.is_within(operator.uuid, *manager)),
        _ => false,
    })
}

fn update<K: IdentityKind>(plan: &mut Plan, entry: &Entry, want: &Desired<'_, K>, wanted: &[Row<K::Spec>]) {
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
            resolve::forget(&mut plan.managed, row.field.name, &step);
            plan.step = Some(step);
            return;
        }
    }
}

fn create<K: IdentityKind>(plan: &mut Plan, want: &Desired<'_, K>, seen: &Snapshot, wanted: &[Row<K::Spec>]) {
    if K::COLLECTION.draws_uuids() {
        plan.step = K::newcomer(want.spec, seen)
            .map(|newcomer| Step::CreateProvisional { name: want.owner.provisional(), newcomer });
        return;
    }
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
        Collection::Group | Collection::OAuth2Client => (Vec::new(), None),
    }
}

#[cfg(test)]
mod tests;
