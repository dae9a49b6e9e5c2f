//! Acting on a plan: one request after the other, each planned on the answer to the last, until nothing is left or the server says no.

use std::sync::Arc;
use std::time::Duration;

use kaniop_core::entry::{Snapshot, Step};
use kaniop_core::identity::{self, Finding, Plan};
use kaniop_kanidm::Error as KanidmError;

use super::assess::{Progress, Usable, desired, owner};
use super::{Engine, Managed, key};
use crate::error::Error;
use crate::events::Notice;

/// What came of acting on a plan.
pub(super) struct Acted {
    pub(super) plan: Plan,
    /// The server after what was done to it.
    pub(super) snapshot: Option<Arc<Snapshot>>,
    pub(super) failure: Option<KanidmError>,
    /// Values that the server refused, each by itself.
    pub(super) refused: Vec<Finding>,
    /// How long what is left has to wait.
    pub(super) wait: Option<Duration>,
}

impl Progress {
    /// The plan failed: what it would have made ours is not ours.
    fn ended(self, mut plan: Plan, snapshot: Option<Arc<Snapshot>>, failure: KanidmError) -> Acted {
        plan.managed = self.managed;
        Acted { plan, snapshot, failure: Some(failure), refused: Vec::new(), wait: None }
    }
}

impl<K: Managed> Engine<K> {
    /// Carries out the plan, and what shows after each request, until nothing is left or the server does not do as asked.
    pub(super) async fn act(&self, object: &K, mut plan: Plan, usable: &Usable) -> Result<Acted, Error> {
        let mut progress = Progress::of(object);
        let mut snapshot = None;
        let (mut sent, mut findings, mut bare) = (Vec::<Step>::new(), Vec::new(), None);
        let mut wait = None;
        while wait.is_none()
            && let Some(step) = bare.take().or(plan.step.clone()).filter(|step| !plan.pin && !is_spent(step, &sent))
        {
            self.pace.given(&key(object), object.meta().generation, &plan, self.ctx.clock.elapsed());
            // Right before the effect, or a leader paused here would still send what it was about to send.
            self.ctx.guard.check()?;
            match usable.target.execute(&step).await {
                Ok(_) => {
                    self.announce(object, &step, &plan.changes);
                    progress.managed = plan.managed;
                }
                Err(KanidmError::UuidTaken) if matches!(step, Step::Create { .. }) => {
                    let uuid = plan.entry.unwrap_or_default();
                    match usable.target.read(uuid).await {
                        Ok(Some(_)) => {}
                        Ok(None) => {
                            let generation = owner(object).generation_of(uuid);
                            progress.spent.extend(generation);
                        }
                        Err(error) => return Ok(progress.ended(plan, snapshot, error)),
                    }
                }
                Err(error) if is_refusal(&error) && step.bare().is_some_and(|bare| !sent.contains(&bare)) => {
                    // One of many values is refused: the entry comes first, and then each value by itself.
                    bare = step.bare();
                    sent.push(step);
                    continue;
                }
                Err(error) if is_refusal(&error) && may_be_split(&step) => {
                    let refused = self.apart(object, &step, &plan.changes, usable).await?;
                    sent.extend(refused.iter().map(|(step, _)| step.clone()));
                    findings.extend(refused.into_iter().map(|(_, finding)| finding));
                }
                Err(error) => return Ok(progress.ended(plan, snapshot, error)),
            }
            sent.push(step);
            snapshot = usable.target.snapshot().ok();
            let want = desired(object, &progress, usable.policies);
            plan = identity::plan::<K>(&want, snapshot.as_ref().unwrap_or(&usable.snapshot));
            wait = self.held_back(object, &plan);
        }
        if wait.is_some() {
            // What it would have made ours is not ours yet.
            plan.managed = progress.managed;
        }
        Ok(Acted { plan, snapshot, failure: None, refused: findings, wait })
    }

    /// How long what this plan would do has to wait.
    pub(super) fn held_back(&self, object: &K, plan: &Plan) -> Option<Duration> {
        plan.step.as_ref().filter(|_| !plan.pin)?;
        self.pace.wait(&key(object), object.meta().generation, plan, self.ctx.clock.elapsed())
    }

    /// How long it is until an object that was given a part is looked at for more.
    pub(super) fn rest(&self, object: &K) -> Option<Duration> {
        self.pace.rest(&key(object), object.meta().generation, self.ctx.clock.elapsed())
    }

    /// Sends what was refused together one by one, so that one value that the server refuses keeps no other from its place. Returns what was refused.
    async fn apart(
        &self,
        object: &K,
        step: &Step,
        fields: &[&'static str],
        usable: &Usable,
    ) -> Result<Vec<(Step, Finding)>, Error> {
        let mut refused = Vec::new();
        for (field, step) in fields.iter().zip(step.parts()) {
            self.ctx.guard.check()?;
            match usable.target.execute(&step).await {
                Ok(_) => self.announce(object, &step, &[field]),
                Err(error) => {
                    let finding = Finding { reason: error.reason(), message: format!("{field}: {error}") };
                    refused.push((step, finding));
                }
            }
        }
        Ok(refused)
    }

    fn announce(&self, object: &K, step: &Step, changes: &[&'static str]) {
        let fields = changes.join(", ");
        let in_sync = object
            .identity_status()
            .is_some_and(|status| status.ready == Some(true) && status.observed_generation == object.meta().generation);
        let (reason, note) = match step {
            Step::Create { .. } | Step::CreateProvisional { .. } if was_there(object) => (
                "EntryRecreated",
                "the entry was gone from the server and was made anew: credentials, the numbers that the server chose and all \
                 that the spec does not name are lost"
                    .to_owned(),
            ),
            Step::Create { uuid, .. } => ("EntryCreated", format!("created with UUID {uuid}")),
            Step::CreateProvisional { name, .. } => {
                ("EntryCreated", format!("created as {name}, which is its name until its UUID is known"))
            }
            Step::Put { .. } | Step::Adjust { .. } if in_sync => {
                ("DriftRepaired", format!("changed behind our back and set again: {fields}"))
            }
            Step::Put { .. } | Step::Adjust { .. } | Step::Extend { .. } => ("EntryUpdated", format!("set: {fields}")),
            Step::Delete { uuid } => ("EntryDeleted", format!("deleted, UUID {uuid}")),
        };
        tracing::info!(reason, note, "changed on the server");
        self.ctx.metrics.changed(K::KIND);
        let notice = Notice { warning: reason == "EntryRecreated", reason: reason.to_owned(), note };
        self.ctx.events.tell(object.object_ref(&()), notice);
    }

    pub(super) fn announce_deletion(&self, object: &K, step: &Step) {
        self.announce(object, step, &[]);
    }
}

/// Whether the status says that the object had an entry.
fn was_there<K: Managed>(object: &K) -> bool {
    object.identity_status().is_some_and(|status| status.uuid.is_some())
}

/// Whether the server says no to what is asked, which asking again does not change.
fn is_refusal(error: &KanidmError) -> bool {
    matches!(
        error,
        KanidmError::InvalidValue { .. }
            | KanidmError::AccessDenied
            | KanidmError::UnknownReference
            | KanidmError::Conflict { .. }
            | KanidmError::TooLarge
    )
}

/// Whether this was sent already, as a whole or value by value.
fn is_spent(step: &Step, sent: &[Step]) -> bool {
    let parts = step.parts();
    sent.contains(step) || !parts.is_empty() && parts.iter().all(|part| sent.contains(part))
}

fn may_be_split(step: &Step) -> bool {
    step.parts().len() > 1
}
