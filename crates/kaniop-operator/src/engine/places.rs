//! Room for passes over the objects of one Kanidm. Whoever finds none is put aside and comes back when there is some.
//!
//! A pass that waits for its turn at a server is a future all the same, and the controller polls each of them whenever any one wakes: with
//! thousands that wait it does nothing else. So only a few wait there, for each Kanidm by itself, and the others wait as mere names.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::runtime::reflector::{ObjectRef, Store};
use tokio::sync::mpsc;

use super::{Managed, kanidm_key};
use crate::targets::ObjectKey;

/// Passes under way over the objects of one kind and Kanidm: several times those that have a turn at its server, for one that comes back takes
/// a moment to do so.
const EACH: usize = 32;

/// The rooms of all Kanidms.
pub(super) struct Places<K: Managed> {
    rooms: Mutex<HashMap<ObjectKey, Room<K>>>,
    back: mpsc::UnboundedSender<ObjectRef<K>>,
    store: Store<K>,
}

struct Room<K: Managed> {
    taken: usize,
    /// Who waits, the longest first, each once.
    aside: VecDeque<ObjectRef<K>>,
    known: HashSet<ObjectRef<K>>,
}

/// A place, until it is dropped.
pub(super) struct Place<'a, K: Managed> {
    places: &'a Places<K>,
    kanidm: ObjectKey,
}

impl<K: Managed> Places<K> {
    /// Empty rooms for these objects, and who comes back from being put aside.
    pub(super) fn new(store: Store<K>) -> (Self, mpsc::UnboundedReceiver<ObjectRef<K>>) {
        let (back, comes_back) = mpsc::unbounded_channel();
        (Self { rooms: Mutex::default(), back, store }, comes_back)
    }

    /// A place for this object; without one it is put aside.
    pub(super) fn take(&self, object: &K) -> Option<Place<'_, K>> {
        let kanidm = kanidm_key(object);
        let mut rooms = self.lock();
        let room = rooms.entry(kanidm.clone()).or_insert_with(Room::empty);
        if room.taken < EACH {
            room.taken += 1;
            return Some(Place { places: self, kanidm });
        }
        let object = ObjectRef::from_obj(object);
        if room.known.insert(object.clone()) {
            room.aside.push_back(object);
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Room<K>>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Managed> Room<K> {
    fn empty() -> Self {
        Self { taken: 0, aside: VecDeque::new(), known: HashSet::new() }
    }
}

impl<K: Managed> Drop for Place<'_, K> {
    fn drop(&mut self) {
        let mut rooms = self.places.lock();
        let Some(room) = rooms.get_mut(&self.kanidm) else { return };
        room.taken -= 1;
        while let Some(next) = room.aside.pop_front() {
            room.known.remove(&next);
            // One that is gone would use no place, and nobody would come after it.
            if self.places.store.get(&next).is_some() {
                // Nobody takes them back any more when the operator ends.
                let _ = self.places.back.send(next);
                return;
            }
        }
        if room.taken == 0 {
            rooms.remove(&self.kanidm);
        }
    }
}

#[cfg(test)]
mod tests {
    use kaniop_api::KanidmGroup;
    use kube::runtime::reflector;
    use kube::runtime::watcher::Event;
    use serde_json::json;

    use super::*;

    fn group(kanidm: &str, number: usize) -> KanidmGroup {
        let object = json!({
            "metadata": {"name": format!("{kanidm}-{number}"), "namespace": "default"},
            "spec": {"kanidmRef": {"name": kanidm}},
        });
        serde_json::from_value(object).unwrap()
    }

    fn store(groups: &[KanidmGroup]) -> (Store<KanidmGroup>, reflector::store::Writer<KanidmGroup>) {
        let (store, mut writer) = reflector::store();
        groups.iter().for_each(|group| writer.apply_watcher_event(&Event::Apply(group.clone())));
        (store, writer)
    }

    #[test]
    fn a_full_room_keeps_nobody_out_of_another() {
        let (places, _back) = Places::new(store(&[]).0);
        let taken: Vec<_> = (0..EACH).map(|number| places.take(&group("dead", number)).unwrap()).collect();
        assert!(places.take(&group("dead", EACH)).is_none());
        assert!(places.take(&group("healthy", 0)).is_some());
        drop(taken);
        assert!(places.lock().is_empty(), "nothing is kept of an empty room");
    }

    #[test]
    fn whoever_was_put_aside_comes_back_once_and_in_order_and_those_that_are_gone_do_not() {
        let late: Vec<_> = [100, 101, 102].map(|number| group("idm", number)).into();
        let (store, _writer) = store(&[late[0].clone(), late[2].clone()]);
        let (places, mut back) = Places::new(store);
        let mut taken: Vec<_> = (0..EACH).map(|number| places.take(&group("idm", number)).unwrap()).collect();
        for nth in [0, 1, 0, 2] {
            assert!(places.take(&late[nth]).is_none());
        }
        taken.pop();
        assert_eq!(back.try_recv().unwrap().name, "idm-100");
        assert!(back.is_empty(), "one place, one object");
        taken.pop();
        assert_eq!(back.try_recv().unwrap().name, "idm-102");
        drop(taken);
        assert!(back.is_empty() && places.lock().is_empty());
    }
}
