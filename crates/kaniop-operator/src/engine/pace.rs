//! How soon an object may be written again while what it refers to is still being made. Each member that comes would otherwise be a change of
//! its group, and each change another status: with many people and groups at once, most of all writes. When the last one has come, nothing is
//! held back any more.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kaniop_core::identity::Plan;
use kaniop_core::reason::Reason;

use crate::targets::ObjectKey;

/// How long an object that was given a part of what it refers to waits for more, if not for all the rest.
const PAUSE: Duration = Duration::from_secs(20);

/// What objects were given when only a part of what they refer to was there.
#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<HashMap<ObjectKey, Part>>);

#[derive(Debug)]
struct Part {
    generation: Option<i64>,
    /// Time since the process began.
    at: Duration,
    /// The fields that were written since.
    fields: BTreeSet<&'static str>,
}

impl Pace {
    /// How long this plan has to wait. What the user has changed never waits, nor does a field that was not written just before.
    pub(super) fn wait(
        &self,
        key: &ObjectKey,
        generation: Option<i64>,
        plan: &Plan,
        now: Duration,
    ) -> Option<Duration> {
        let parts = self.lock();
        let last = parts.get(key).filter(|last| is_part(plan) && last.is_recent(generation, now))?;
        let again = plan.changes.iter().all(|field| last.fields.contains(field));
        again.then(|| last.at + PAUSE - now)
    }

    /// How long it is until an object that was given a part is looked at for more.
    pub(super) fn rest(&self, key: &ObjectKey, generation: Option<i64>, now: Duration) -> Option<Duration> {
        let parts = self.lock();
        let last = parts.get(key).filter(|last| last.is_recent(generation, now))?;
        Some(last.at + PAUSE - now)
    }

    /// This plan is carried out now.
    pub(super) fn given(&self, key: &ObjectKey, generation: Option<i64>, plan: &Plan, now: Duration) {
        let mut parts = self.lock();
        if !is_part(plan) {
            parts.remove(key);
            return;
        }
        let fields = plan.changes.iter().copied();
        match parts.get_mut(key).filter(|last| last.is_recent(generation, now)) {
            Some(last) => last.fields.extend(fields),
            None => drop(parts.insert(key.clone(), Part { generation, at: now, fields: fields.collect() })),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Part>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }
}

impl Part {
    fn is_recent(&self, generation: Option<i64>, now: Duration) -> bool {
        self.generation == generation && now < self.at + PAUSE
    }
}

/// Whether something that the object refers to is not there.
fn is_part(plan: &Plan) -> bool {
    plan.findings.iter().any(|finding| finding.reason == Reason::ReferenceNotFound)
}

#[cfg(test)]
mod tests {
    use kaniop_core::identity::Finding;

    use super::*;

    fn key() -> ObjectKey {
        ObjectKey { namespace: "default".to_owned(), name: "team".to_owned() }
    }

    fn partial(changes: &[&'static str]) -> Plan {
        let finding = Finding { reason: Reason::ReferenceNotFound, message: "alice is not there".to_owned() };
        Plan { findings: vec![finding], changes: changes.to_vec(), ..Plan::default() }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Carries out the plan of an object of this generation unless it has to wait.
    fn turn(pace: &Pace, generation: i64, plan: &Plan, seconds: u64) -> Option<Duration> {
        let wait = pace.wait(&key(), Some(generation), plan, at(seconds));
        if wait.is_none() {
            pace.given(&key(), Some(generation), plan, at(seconds));
        }
        wait
    }

    #[test]
    fn parts_are_written_at_most_once_in_a_while_and_the_whole_at_once() {
        let pace = Pace::default();
        assert_eq!(turn(&pace, 1, &partial(&["description", "members"]), 100), None);
        assert_eq!(turn(&pace, 1, &partial(&["members"]), 103), Some(at(17)));
        assert_eq!((pace.rest(&key(), Some(1), at(103)), pace.rest(&key(), Some(2), at(103))), (Some(at(17)), None));
        assert_eq!(turn(&pace, 1, &Plan::default(), 104), None);
        assert_eq!(turn(&pace, 1, &partial(&["members"]), 105), None, "it was whole in between");
        assert_eq!(turn(&pace, 1, &partial(&["members"]), 125), None);
        assert_eq!(turn(&pace, 1, &partial(&["members"]), 126), Some(at(19)));
    }

    #[test]
    fn neither_another_field_nor_what_the_user_changes_waits() {
        let pace = Pace::default();
        assert_eq!(turn(&pace, 1, &partial(&["members"]), 100), None);
        assert_eq!(turn(&pace, 1, &partial(&["accountPolicy.privilegeExpiry"]), 101), None);
        assert_eq!(turn(&pace, 1, &partial(&["members"]), 102), Some(at(18)));
        assert_eq!(turn(&pace, 2, &partial(&["members"]), 103), None);
        assert_eq!(turn(&pace, 2, &partial(&["members"]), 104), Some(at(19)));
    }
}
