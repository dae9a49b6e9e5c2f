//! What each managed field comes to: references resolved in the snapshot, and how that differs from an entry.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::field::ByGroup;
use super::{Field, Finding, IdentityKind, Managed, Wanted};
use crate::entry::{Claim, Entry, Shape, Snapshot, Step, Value};
use crate::name::{OPERATOR_ACCOUNT, OPERATOR_GROUPS};
use crate::reason::Reason;

/// A managed field with what it comes to.
pub(super) struct Row<S: 'static> {
    pub(super) field: &'static Field<S>,
    goal: Goal,
}

enum Goal {
    Exactly(Value),
    Absent,
    AtLeast(BTreeSet<Uuid>),
}

impl<S> Row<S> {
    /// Whether the attribute is to be unset: no class is needed for that.
    pub(super) fn is_absent(&self) -> bool {
        matches!(self.goal, Goal::Absent)
    }

    /// What to write of it at the creation of the entry.
    pub(super) fn first(&self) -> Option<Value> {
        match &self.goal {
            Goal::Exactly(value) => Some(value.clone()).filter(|value| !value.is_empty()),
            Goal::AtLeast(uuids) => Some(Value::References(uuids.clone())).filter(|value| !value.is_empty()),
            Goal::Absent => None,
        }
    }

    /// What to set (`Some`) or purge (`None`), if anything.
    pub(super) fn change(&self, entry: &Entry) -> Option<Option<Value>> {
        let seen = entry.attrs.get(self.field.attr.name);
        match &self.goal {
            Goal::Exactly(value) => {
                let as_wanted = seen.map_or_else(|| value.is_empty(), |seen| seen.same(value));
                (!as_wanted).then(|| Some(value.clone()).filter(|value| !value.is_empty()))
            }
            Goal::Absent => seen.map(|_| None),
            Goal::AtLeast(_) => None,
        }
    }

    /// The request that brings a shared set where it should be, if it is not.
    pub(super) fn adjustment(&self, entry: &Entry, managed: &Managed) -> Option<Step> {
        let Goal::AtLeast(wanted) = &self.goal else { return None };
        let seen = references(entry, self.field.attr.name);
        let ours = managed.get(self.field.name).cloned().unwrap_or_default();
        let add: BTreeSet<_> = wanted.difference(&seen).copied().collect();
        let remove: BTreeSet<_> = ours.intersection(&seen).filter(|uuid| !wanted.contains(uuid)).copied().collect();
        let (uuid, collection, attr) = (entry.uuid, entry.collection, self.field.attr);
        (!add.is_empty() || !remove.is_empty()).then_some(Step::Adjust { uuid, collection, attr, add, remove })
    }
}

fn references(entry: &Entry, attr: &str) -> BTreeSet<Uuid> {
    match entry.attrs.get(attr) {
        Some(Value::References(seen)) => seen.clone(),
        _ => BTreeSet::new(),
    }
}

/// What is ours in shared sets: what was ours and is still wanted, what is to be added, and what is still to be removed, which nothing else remembers.
pub(super) fn managed<S>(rows: &[Row<S>], entry: Option<&Entry>, before: &Managed) -> Managed {
    let shared = rows.iter().filter_map(|row| match &row.goal {
        Goal::AtLeast(wanted) => Some((row.field, wanted)),
        _ => None,
    });
    let ours = shared.map(|(field, wanted)| {
        let seen = entry.map(|entry| references(entry, field.attr.name)).unwrap_or_default();
        let was = before.get(field.name).cloned().unwrap_or_default();
        let left = was.intersection(&seen).filter(|uuid| !wanted.contains(uuid));
        let is = wanted.iter().filter(|uuid| was.contains(uuid) || !seen.contains(uuid)).chain(left);
        (field.name.to_owned(), is.copied().collect())
    });
    ours.filter(|(_, ours): &(_, BTreeSet<_>)| !ours.is_empty()).collect()
}

/// What a step removes from a shared set is not ours any more.
pub(super) fn forget(managed: &mut Managed, field: &str, step: &Step) {
    if let (Some(ours), Step::Adjust { remove, .. }) = (managed.get_mut(field), step) {
        ours.retain(|uuid| !remove.contains(uuid));
        managed.retain(|_, ours| !ours.is_empty());
    }
}

/// The managed fields with references resolved. A reference that nobody answers to is a finding; the others count.
pub(super) fn rows<K: IdentityKind>(
    spec: &K::Spec,
    seen: &Snapshot,
    ours: Option<&Entry>,
    findings: &mut Vec<Finding>,
) -> Vec<Row<K::Spec>> {
    let mut rows = Vec::new();
    for field in K::FIELDS {
        let mut resolver = Resolver { field: field.name, seen, missing: Vec::new() };
        let goal = resolver.goal((field.want)(spec), field.attr.shape, findings);
        if !resolver.missing.is_empty() {
            findings.push(not_found(field.name, resolver.missing));
        }
        if let Some(mut goal) = goal {
            goal.keep_the_operator(field.attr.name, ours, seen);
            rows.push(Row { field, goal });
        }
    }
    rows
}

struct Resolver<'s> {
    field: &'static str,
    seen: &'s Snapshot,
    /// Names that nobody answers to.
    missing: Vec<String>,
}

impl Resolver<'_> {
    fn goal(&mut self, wanted: Wanted, shape: Shape, findings: &mut Vec<Finding>) -> Option<Goal> {
        Some(match wanted {
            Wanted::Unmanaged | Wanted::Elsewhere => return None,
            Wanted::Invalid(why) => {
                findings.push(Finding { reason: Reason::InvalidValue, message: format!("{}: {why}", self.field) });
                return None;
            }
            Wanted::Value(value) => Goal::Exactly(value),
            Wanted::Absent => Goal::Absent,
            Wanted::AtLeast(ids) => Goal::AtLeast(self.all(&ids)),
            Wanted::Entries(ids) => {
                let found = self.all(&ids);
                if shape == Shape::Reference && found.is_empty() {
                    return None;
                }
                Goal::Exactly(Value::References(found))
            }
            Wanted::Scopes(rows) => Goal::Exactly(Value::Scopes(self.by_group(rows))),
            Wanted::Claims(claims) => {
                let claims = claims.into_iter().map(|(name, join, rows)| {
                    let values = self.by_group(rows);
                    (name, Claim { join, values })
                });
                Goal::Exactly(Value::Claims(claims.filter(|(_, claim)| !claim.values.is_empty()).collect()))
            }
        })
    }

    fn all(&mut self, ids: &[String]) -> BTreeSet<Uuid> {
        ids.iter().filter_map(|id| self.one(id)).collect()
    }

    fn by_group(&mut self, rows: ByGroup) -> BTreeMap<Uuid, BTreeSet<String>> {
        let mut found = BTreeMap::<_, BTreeSet<String>>::new();
        for (group, values) in rows {
            if let Some(uuid) = self.one(&group) {
                // Name and SPN of one group are the same group.
                found.entry(uuid).or_default().extend(values);
            }
        }
        found
    }

    fn one(&mut self, id: &str) -> Option<Uuid> {
        let found = self.seen.find(id).map(|entry| entry.uuid);
        if found.is_none() && !self.missing.iter().any(|missing| missing == id) {
            self.missing.push(id.to_owned());
        }
        found
    }
}

impl Goal {
    /// No group that gives the operator its rights may lose it as a member: nothing could be repaired any more.
    fn keep_the_operator(&mut self, attr: &str, ours: Option<&Entry>, seen: &Snapshot) {
        let is_ours = ours.is_some_and(|entry| entry.is_built_in() && OPERATOR_GROUPS.contains(&entry.name.as_str()));
        if let (Self::Exactly(Value::References(members)), true, "member") = (self, is_ours, attr) {
            members.extend(seen.find(OPERATOR_ACCOUNT).map(|operator| operator.uuid));
        }
    }
}

/// How many names a message lists at most.
const NAMES_SHOWN: usize = 5;

fn not_found(field: &str, mut missing: Vec<String>) -> Finding {
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
