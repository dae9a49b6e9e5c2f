//! Whose an entry is: which one belongs to an object, and what is left alone.

use super::{Desired, Finding, IdentityKind};
use uuid::Uuid;

use crate::entry::{Entry, Snapshot};
use crate::name::{OPERATOR_ACCOUNT, Owner};
use crate::reason::Reason;

/// Whether an entry that was there before may be taken over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Adoption {
    /// Nobody asked for it.
    #[default]
    NotAsked,
    /// The object asks for it, and the Kanidm does not let its namespace.
    NotGranted,
    /// It may.
    Granted,
}

/// The entry of an object.
pub(super) struct Own<'s> {
    pub(super) entry: &'s Entry,
    /// Whether it was there before the object.
    pub(super) adopted: bool,
    /// Whether only the status can tell whose it is.
    pub(super) needs_pin: bool,
}

/// The entry of this object: the pinned one, else any that carries a UUID or a provisional name derivable for this object, else the one that an
/// older release made, else one that may be taken over.
pub(super) fn own<'s, K: IdentityKind>(want: &Desired<'_, K>, seen: &'s Snapshot) -> Option<Own<'s>> {
    let made = made(want, seen);
    made.or_else(|| {
        let entry = by_name::<K>(want, seen).filter(|entry| K::may_be(want.spec, entry))?;
        (want.adoption == Adoption::Granted).then_some(Own { entry, adopted: true, needs_pin: true })
    })
}

/// The same without taking anything over now: what a deletion may touch.
pub(super) fn made<'s, K: IdentityKind>(want: &Desired<'_, K>, seen: &'s Snapshot) -> Option<Own<'s>> {
    let of_kind = |entry: &&Entry| entry.collection == K::COLLECTION && !is_operators(entry);
    let pinned = want.pinned.and_then(|uuid| seen.get(uuid)).filter(of_kind);
    if let Some(entry) = pinned {
        return Some(Own { entry, adopted: want.adopted, needs_pin: want.adopted || K::COLLECTION.draws_uuids() });
    }
    let derived = want.owner.uuids().find_map(|uuid| seen.get(uuid)).filter(of_kind);
    if let Some(entry) = derived {
        return Some(Own { entry, adopted: false, needs_pin: false });
    }
    let provisional = K::COLLECTION.draws_uuids().then(|| seen.find(&want.owner.provisional())).flatten();
    let inherited = || by_name::<K>(want, seen).filter(|entry| want.inherited && !entry.is_built_in());
    let entry = provisional.filter(of_kind).or_else(inherited)?;
    Some(Own { entry, adopted: false, needs_pin: true })
}

/// Whether an entry is ours already, nothing being taken over for it.
#[must_use]
pub fn has_entry<K: IdentityKind>(want: &Desired<'_, K>, seen: &Snapshot) -> bool {
    made(want, seen).is_some()
}

/// What is wrong with the name of an entry, if no object may have it: provisional names would be taken for another object's entry, and what is no
/// name but an SPN or a UUID leads to an entry of another name.
pub(super) fn impossible(owner: &Owner<'_>) -> Option<Finding> {
    let is_hex = |rest: &str| rest.len() == 32 && rest.bytes().all(|byte| byte.is_ascii_hexdigit());
    let name = owner.entry.to_lowercase();
    let why = if name.strip_prefix("kaniop-").is_some_and(is_hex) {
        "is a name that the operator gives entries until it knows their UUID"
    } else if name.contains('@') || Uuid::parse_str(&name).is_ok() {
        "is no name: neither an SPN nor a UUID can be one"
    } else {
        return None;
    };
    let message =
        format!("{:?} {why}. Delete this object and make it anew under another name or kanidmName", owner.entry);
    Some(Finding { reason: Reason::InvalidValue, message })
}

fn by_name<'s, K: IdentityKind>(want: &Desired<'_, K>, seen: &'s Snapshot) -> Option<&'s Entry> {
    seen.find(want.owner.entry).filter(|entry| entry.collection == K::COLLECTION && !is_operators(entry))
}

/// The operator's own account is nobody else's: whoever had it would have every identity.
fn is_operators(entry: &Entry) -> bool {
    entry.name == OPERATOR_ACCOUNT
}

pub(super) fn holder_of_the_name<'s>(owner: &Owner<'_>, ours: Option<&Entry>, seen: &'s Snapshot) -> Option<&'s Entry> {
    seen.find(owner.entry).filter(|entry| Some(entry.uuid) != ours.map(|entry| entry.uuid))
}

pub(super) fn taken<K: IdentityKind>(want: &Desired<'_, K>, other: &Entry) -> Finding {
    let way_out = match want.adoption {
        _ if is_operators(other) => "It is the operator's own. Delete this object and make it anew under another name",
        _ if other.collection != K::COLLECTION || !K::may_be(want.spec, other) => {
            "Delete this object and make it anew under another name or kanidmName"
        }
        Adoption::NotGranted => {
            "adoptionPolicy: Adopt does not count in this namespace: the Kanidm's adoptionNamespaceSelector does not select it"
        }
        Adoption::NotAsked | Adoption::Granted => {
            "Set adoptionPolicy: Adopt to take it over, or delete this object and make it anew under another name or kanidmName"
        }
    };
    Finding {
        reason: Reason::EntryExists,
        message: format!(
            "a {} named {:?} exists on the server (UUID {}) and was not created by this object: it is left alone. {way_out}",
            other.collection.noun(),
            want.owner.entry,
            other.uuid
        ),
    }
}
