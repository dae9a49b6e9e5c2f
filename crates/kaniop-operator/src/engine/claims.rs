//! Which object stands for an entry, where several of one kind name the same one: the one that has it, else the oldest. The others touch nothing.

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kaniop_core::identity::Finding;
use kaniop_core::reason::Reason;
use kube::ResourceExt;

use super::{Managed, kanidm_key, key};
use crate::targets::ObjectKey;

/// The entry that an object names: the Kanidm, and the entry's name in lower case.
type Claim = (ObjectKey, String);

/// The oldest object of each claim.
#[derive(Debug, Default)]
pub(super) struct Claims {
    oldest: HashMap<Claim, (bool, Option<Time>, ObjectKey)>,
}

/// The entry that an object names.
pub(super) fn claim<K: Managed>(object: &K) -> Claim {
    let name = object.kanidm_name().map_or_else(|| object.name_any(), str::to_owned);
    (kanidm_key(object), name.to_lowercase())
}

impl Claims {
    /// The claims of these objects, as far as each may use its Kanidm at all.
    pub(super) fn of<K: Managed>(objects: &[Arc<K>], may: impl Fn(&K) -> bool) -> Self {
        let mut claims = Self::default();
        for object in objects.iter().filter(|object| may(object)) {
            // Whoever has an entry keeps it, whatever becomes of the other.
            let has_none = object.identity_status().is_none_or(|status| status.uuid.is_none());
            let age = (has_none, object.meta().creation_timestamp.clone(), key(object.as_ref()));
            let oldest = claims.oldest.entry(claim(object.as_ref())).or_insert_with(|| age.clone());
            if age < *oldest {
                *oldest = age;
            }
        }
        claims
    }

    /// What to say when somebody older stands for the object's entry.
    pub(super) fn conflict<K: Managed>(&self, object: &K) -> Option<Finding> {
        let (.., winner) = self.oldest.get(&claim(object)).filter(|(.., winner)| *winner != key(object))?;
        Some(Finding {
            reason: Reason::Conflict,
            message: format!(
                "{} {winner} is older, or has the entry already, and stands for the same one: this object touches nothing. Delete one of them, or give this one another name",
                K::KIND
            ),
        })
    }
}
