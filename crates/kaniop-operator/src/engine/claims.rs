//! Which object stands for an entry, where several of one kind name the same one: the one that has it, else the oldest. The others touch nothing.
//!
//! It is an index that follows the watch of the objects: a pass that looked through all of them would take longer the more there are.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::ResourceExt;
use kube::runtime::watcher::Event;

use super::{Managed, kanidm_key, key};
use crate::targets::ObjectKey;

/// The entry that an object names: the Kanidm, and the entry's name in lower case.
type Claim = (ObjectKey, String);
/// Nearly every claim is that of one object, so the objects of one are a list.
type Index = HashMap<Claim, Vec<ObjectKey>>;

/// The objects of each claim.
#[derive(Debug, Default)]
pub(super) struct Claims(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    now: Index,
    /// What a watch that begins anew has told so far.
    begun: Option<Index>,
}

/// The entry that an object names.
fn claim<K: Managed>(object: &K) -> Claim {
    let name = object.kanidm_name().map_or_else(|| object.name_any(), str::to_owned);
    (kanidm_key(object), name.to_lowercase())
}

impl Claims {
    /// Takes in what a watch tells.
    pub(super) fn follow<K: Managed>(&self, event: &Event<K>) {
        let mut known = self.lock();
        match event {
            Event::Init => known.begun = Some(Index::default()),
            Event::InitApply(object) => {
                insert(&mut known.now, object);
                insert(known.begun.get_or_insert_default(), object);
            }
            Event::InitDone => {
                if let Some(begun) = known.begun.take() {
                    known.now = begun;
                }
            }
            Event::Apply(object) => insert(&mut known.now, object),
            Event::Delete(object) => {
                let claim = claim(object);
                if let Some(objects) = known.now.get_mut(&claim) {
                    let gone = key(object);
                    objects.retain(|other| *other != gone);
                    if objects.is_empty() {
                        known.now.remove(&claim);
                    }
                }
            }
        }
    }

    /// The other objects that name the entry of this one.
    pub(super) fn rivals<K: Managed>(&self, object: &K) -> Vec<ObjectKey> {
        let me = key(object);
        let known = self.lock();
        known.now.get(&claim(object)).into_iter().flatten().filter(|other| **other != me).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn insert<K: Managed>(index: &mut Index, object: &K) {
    let key = key(object);
    let objects = index.entry(claim(object)).or_insert_with(|| Vec::with_capacity(1));
    if !objects.contains(&key) {
        objects.push(key);
    }
}

#[cfg(test)]
mod tests {
    use kaniop_api::KanidmGroup;
    use serde_json::json;

    use super::*;

    fn group(name: &str, entry: Option<&str>) -> KanidmGroup {
        let object = json!({
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"kanidmRef": {"name": "idm"}, "kanidmName": entry},
        });
        serde_json::from_value(object).unwrap()
    }

    fn names(claims: &Claims, object: &KanidmGroup) -> Vec<String> {
        claims.rivals(object).into_iter().map(|key| key.name).collect()
    }

    #[test]
    fn rivals_are_those_that_name_the_same_entry_whatever_the_case() {
        let claims = Claims::default();
        let (team, other, same) = (group("team", None), group("other", None), group("same", Some("Team")));
        for object in [&team, &other, &same] {
            claims.follow(&Event::Apply(object.clone()));
            claims.follow(&Event::Apply(object.clone()));
        }
        assert_eq!((names(&claims, &team), names(&claims, &same)), (vec!["same".to_owned()], vec!["team".to_owned()]));
        assert!(claims.rivals(&other).is_empty());
        claims.follow(&Event::Delete(same));
        assert!(claims.rivals(&team).is_empty());
    }

    #[test]
    fn a_watch_that_begins_anew_forgets_who_went_meanwhile_and_nobody_before() {
        let claims = Claims::default();
        let (team, gone) = (group("team", None), group("gone", Some("team")));
        claims.follow(&Event::Apply(gone));
        claims.follow::<KanidmGroup>(&Event::Init);
        claims.follow(&Event::InitApply(team.clone()));
        assert_eq!(names(&claims, &team), ["gone"]);
        claims.follow::<KanidmGroup>(&Event::InitDone);
        assert!(claims.rivals(&team).is_empty());
    }
}
