//! Which objects are behind our own writes. The answer to a write arrives before the watch tells of it: what is still seen in between was replaced by
//! ourselves, and a pass over it could only conclude what was concluded already, and be refused for it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::ResourceExt;

use super::{Managed, key};
use crate::targets::ObjectKey;

/// The versions of each object that our own writes have replaced, as long as no other was seen.
#[derive(Debug, Default)]
pub(super) struct Behind(Mutex<HashMap<ObjectKey, Vec<String>>>);

impl Behind {
    /// A write on this object made this version of it.
    pub(super) fn wrote<K: Managed>(&self, object: &K, made: Option<&str>) {
        if let Some(old) = object.resource_version().filter(|old| made.is_some_and(|made| made != old)) {
            self.lock().entry(key(object)).or_default().push(old);
        }
    }

    /// Whether a write of ours has replaced what this object shows. The watch brings what it was replaced by.
    pub(super) fn is<K: Managed>(&self, object: &K) -> bool {
        let (mut replaced, key) = (self.lock(), key(object));
        let version = object.resource_version();
        let is_behind =
            replaced.get(&key).is_some_and(|versions| versions.iter().any(|old| Some(old) == version.as_ref()));
        if !is_behind {
            replaced.remove(&key);
        }
        is_behind
    }

    /// The object is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Vec<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use kaniop_api::KanidmGroup;
    use serde_json::json;

    use super::*;

    fn group(version: &str) -> KanidmGroup {
        let object = json!({
            "metadata": {"name": "team", "namespace": "default", "resourceVersion": version},
            "spec": {"kanidmRef": {"name": "idm"}},
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn what_we_replaced_is_behind_until_something_else_was_seen() {
        let behind = Behind::default();
        assert!(!behind.is(&group("1")));
        behind.wrote(&group("1"), Some("2"));
        behind.wrote(&group("2"), Some("3"));
        assert!(behind.is(&group("1")) && behind.is(&group("2")) && behind.is(&group("1")));
        assert!(!behind.is(&group("3")));
        assert!(behind.lock().is_empty(), "nothing is kept for those that are at rest");
    }

    #[test]
    fn a_write_that_changed_nothing_puts_nobody_behind() {
        let behind = Behind::default();
        behind.wrote(&group("1"), Some("1"));
        behind.wrote(&group("1"), None);
        assert!(!behind.is(&group("1")));
    }
}
