//! One pass over one object: assess, act, report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kaniop_api::IdentityStatus;
use kaniop_api::shared::ImageStatus;
use kaniop_core::condition;
use kaniop_core::entry::{Entry, Snapshot, Step, Value};
use kaniop_core::identity::{self, Finding, Outcome, Plan};
use kaniop_core::reason::Reason;
use kaniop_kanidm::{Class, Error as KanidmError};
use kube::runtime::controller::Action;
use uuid::Uuid;

use super::assess::{Assessment, Progress, Usable, desired, owner};
use super::claims::claim;
use super::credentials::{Credentials, Done, LABELS, credential_as_before};
use super::picture::Picture;
use super::{Engine, Managed, kanidm_key, key};
use crate::error::Error;
use crate::events::Notice;
use crate::retry::LONGEST;
use crate::status;

/// Timers reach no further: dates may be centuries away.
const FURTHEST: Duration = Duration::from_secs(24 * 3600);

/// What came of acting on a plan.
struct Acted {
    plan: Plan,
    snapshot: Option<Arc<Snapshot>>,
    failure: Option<KanidmError>,
    /// Values that the server refused, each by itself.
    refused: Vec<Finding>,
}

/// What an object has beside its entry's attributes.
#[derive(Default)]
pub(super) struct Extras {
    pub(super) credentials: Credentials,
    /// The picture that we put on the server.
    pub(super) image: Option<ImageStatus>,
}

impl Extras {
    fn take(&mut self, picture: Picture) {
        self.image = picture.status;
        self.credentials.findings.extend(picture.finding);
        self.credentials.due = self.credentials.due.into_iter().chain(picture.due).min();
    }
}

impl Progress {
    /// The plan failed: what it would have made ours is not ours.
    fn ended(self, mut plan: Plan, snapshot: Option<Arc<Snapshot>>, failure: KanidmError) -> Acted {
        plan.managed = self.managed;
        Acted { plan, snapshot, failure: Some(failure), refused: Vec::new() }
    }
}

impl<K: Managed> Engine<K> {
    pub(super) async fn pass(&self, object: Arc<K>) -> Result<Action, Error> {
        if object.meta().deletion_timestamp.is_some() {
            return self.remove(object).await;
        }
        let rivals = self.store.state_filter(|other| claim(other) == claim(object.as_ref()));
        match self.assess(&object, &self.claims(&rivals)) {
            (Assessment::Refused(finding), _) => {
                self.settle(&object, Assessment::Refused(finding.clone()));
                self.report(&object, &Outcome::Refused(&finding), &Extras::default()).await?;
                Ok(Action::await_change())
            }
            (Assessment::Unknown(finding), _) => {
                self.settle(&object, Assessment::Unknown(finding.clone()));
                self.report(&object, &Outcome::Unknown(&finding), &Extras::default()).await?;
                Ok(Action::await_change())
            }
            (Assessment::Planned(plan), Some(usable)) => self.carry_out(object, plan, usable).await,
            (Assessment::Planned(_), None) => Err(Error::Bug("a plan without a server".to_owned())),
        }
    }

    async fn carry_out(&self, object: Arc<K>, plan: Plan, usable: Usable) -> Result<Action, Error> {
        if (plan.entry.is_some() || plan.step.is_some()) && self.add_finalizer(&object).await? {
            // The object's own change brings it here again.
            return Ok(Action::await_change());
        }
        let acted = self.act(&object, plan, &usable).await?;
        if acted.plan.pin {
            self.pin(&object, &acted.plan).await?;
            return Ok(Action::await_change());
        }
        let snapshot = acted.snapshot.as_ref().unwrap_or(&usable.snapshot);
        let entry = acted.plan.entry.and_then(|uuid| snapshot.get(uuid));
        self.settle(&object, Assessment::Planned(acted.plan.clone()));
        let (mut plan, mut failure) = (acted.plan.clone(), acted.failure);
        // Only after it was noted what was planned: no look at the server will ever find these again.
        plan.findings.splice(0..0, acted.refused);
        let mut extras =
            Extras { image: object.identity_status().and_then(|status| status.image.clone()), ..Extras::default() };
        if let (Some(entry), None) = (entry, &failure) {
            match self.credentials(&object, entry, snapshot, &usable).await? {
                Done::Before(status) => {
                    status::write(&self.ctx, object.as_ref(), object.identity_status(), &status).await?;
                    return Ok(Action::await_change());
                }
                Done::All(done) => extras.credentials = done,
                Done::Failed(error) => failure = Some(error),
            }
        }
        if let (Some(entry), None) = (entry, &failure) {
            match self.picture(&object, entry, &usable).await? {
                Ok(picture) => extras.take(picture),
                Err(error) => failure = Some(error),
            }
        }
        plan.findings.append(&mut extras.credentials.findings);
        let Some(error) = failure else {
            let blocked = plan.step.is_some() || !plan.findings.is_empty();
            let due = self.report(&object, &Outcome::Answered { entry, plan: &plan }, &extras).await?;
            self.retry.reset(&key(object.as_ref()));
            let recheck = blocked.then_some(LONGEST);
            let next = due.into_iter().chain(recheck).chain(extras.credentials.due).min();
            return Ok(next.map_or_else(Action::await_change, |after| Action::requeue(after.min(FURTHEST))));
        };
        let finding = Finding { reason: error.reason(), message: error.to_string() };
        if error.class() == Class::Bug && said_before(object.as_ref(), "False", finding.reason) {
            // The text has an id of the operation, which is another one each time.
            return Ok(Action::requeue(LONGEST));
        }
        if error.class() == Class::Retry {
            // So that the next look at the server wakes it, however long its own wait has become.
            self.settle(&object, Assessment::Unknown(finding.clone()));
            self.report(&object, &Outcome::Unknown(&finding), &extras).await?;
            return Ok(Action::requeue(self.retry.next(key(object.as_ref()))));
        }
        plan.findings.insert(0, refused(&finding, &plan));
        self.report(&object, &Outcome::Answered { entry, plan: &plan }, &extras).await?;
        Ok(Action::requeue(LONGEST))
    }

    /// Makes the status name the entry, before anything is done to it that would hide whose it is.
    async fn pin(&self, object: &K, plan: &Plan) -> Result<(), Error> {
        let old = object.identity_status();
        let mut status = old.cloned().unwrap_or_default();
        status.uuid = plan.entry.map(|uuid| uuid.to_string());
        status.adopted = plan.adopted.then_some(true);
        if status::write(&self.ctx, object, old, &status).await? && plan.adopted {
            let note =
                format!("the entry was there before and is taken over, UUID {}", status.uuid.unwrap_or_default());
            let notice = Notice { warning: false, reason: "EntryAdopted".to_owned(), note };
            self.ctx.events.publish(&object.object_ref(&()), notice).await;
        }
        Ok(())
    }

    /// Carries out the plan, and what shows after each request, until nothing is left or the server does not do as asked.
    async fn act(&self, object: &K, mut plan: Plan, usable: &Usable) -> Result<Acted, Error> {
        let mut progress = Progress::of(object);
        let mut snapshot = None;
        let (mut sent, mut findings, mut bare) = (Vec::<Step>::new(), Vec::new(), None);
        while let Some(step) = bare.take().or(plan.step.clone()).filter(|step| !plan.pin && !is_spent(step, &sent)) {
            // Right before the effect, or a leader paused here would still send what it was about to send.
            self.ctx.guard.check()?;
            match usable.target.execute(&step).await {
                Ok(_) => {
                    self.announce(object, &step, &plan.changes).await;
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
        }
        Ok(Acted { plan, snapshot, failure: None, refused: findings })
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
                Ok(_) => self.announce(object, &step, &[field]).await,
                Err(error) => {
                    let finding = Finding { reason: error.reason(), message: format!("{field}: {error}") };
                    refused.push((step, finding));
                }
            }
        }
        Ok(refused)
    }

    async fn announce(&self, object: &K, step: &Step, changes: &[&'static str]) {
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
        self.ctx.events.publish(&object.object_ref(&()), notice).await;
    }

    pub(super) async fn announce_deletion(&self, object: &K, step: &Step) {
        self.announce(object, step, &[]).await;
    }

    pub(super) fn settle(&self, object: &K, assessment: Assessment) {
        self.settled().insert(key(object), assessment);
    }

    /// Writes the status, and tells of a turn for the worse. Returns after how long the status has to be looked at anew.
    pub(super) async fn report(
        &self,
        object: &K,
        outcome: &Outcome<'_>,
        extras: &Extras,
    ) -> Result<Option<Duration>, Error> {
        let credentials = &extras.credentials;
        if let Outcome::Unknown(finding) = outcome
            && said_before(object, "Unknown", finding.reason)
        {
            // Texts of an outage may differ each time, and each writing would bring the object here again at once.
            return Ok(None);
        }
        let old = object.identity_status();
        let now = self.ctx.clock.now();
        let (mut stated, due) = identity::report::<K>(outcome, now);
        let before = old.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let answered = matches!(outcome, Outcome::Answered { .. });
        stated.extend(
            credentials.statement.clone().or_else(|| if answered { None } else { credential_as_before(before) }),
        );
        let conditions = condition::after(before, &stated, object.meta().generation, now);
        let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
        let entry = match outcome {
            Outcome::Answered { entry: Some(entry), .. } => Some(entry.uuid.to_string()),
            _ => old.and_then(|status| status.uuid.clone()),
        };
        let (gid, managed) = match outcome {
            Outcome::Answered { entry, plan } => (entry.and_then(gid), Some(managed(plan, credentials))),
            _ => (old.and_then(|status| status.gid), old.and_then(|status| status.managed.clone())),
        };
        let adopted = match outcome {
            Outcome::Answered { plan, .. } => plan.adopted.then_some(true),
            _ => old.and_then(|status| status.adopted),
        };
        let new = IdentityStatus {
            observed_generation: object.meta().generation,
            ready: ready.map(|ready| ready.status == "True"),
            kanidm_ref: Some(kanidm_key(object).to_string()),
            uuid: entry,
            adopted,
            gid,
            secret_name: if answered {
                credentials.secret_name.clone()
            } else {
                old.and_then(|old| old.secret_name.clone())
            },
            image: if answered { extras.image.clone() } else { old.and_then(|old| old.image.clone()) },
            managed: managed.filter(|managed| !managed.is_empty()),
            conditions: Some(conditions.clone()),
        };
        let written = status::write(&self.ctx, object, old, &new).await?;
        let seen = before.iter().find(|condition| condition.type_ == "Ready");
        if let Some(ready) = ready.filter(|ready| written && ready.status != "True")
            && seen.is_none_or(|seen| (&seen.status, &seen.reason) != (&ready.status, &ready.reason))
        {
            let notice = Notice {
                warning: !WAITS.iter().any(|waits| waits.as_str() == ready.reason),
                reason: event_reason(&ready.reason),
                note: ready.message.clone(),
            };
            self.ctx.events.publish(&object.object_ref(&()), notice).await;
        }
        Ok(due)
    }
}

/// Whether the status says that the object had an entry.
fn was_there<K: Managed>(object: &K) -> bool {
    object.identity_status().is_some_and(|status| status.uuid.is_some())
}

/// Whether `Ready` of this very spec has this status and reason already.
fn said_before<K: Managed>(object: &K, truth: &str, reason: Reason) -> bool {
    let conditions = object.identity_status().into_iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| {
        condition.type_ == "Ready"
            && condition.status == truth
            && condition.reason == reason.as_str()
            && condition.observed_generation == object.meta().generation
    })
}

fn gid(entry: &Entry) -> Option<i64> {
    match entry.attrs.get(identity::posix::GID.name) {
        Some(Value::Int(gid)) => Some(*gid),
        _ => None,
    }
}

fn managed(plan: &Plan, credentials: &Credentials) -> BTreeMap<String, Vec<String>> {
    let texts = |uuids: &BTreeSet<Uuid>| uuids.iter().map(ToString::to_string).collect();
    let sets = plan.managed.iter().map(|(field, uuids)| (field.clone(), texts(uuids)));
    sets.chain(credentials.labels.clone().map(|labels| (LABELS.to_owned(), labels))).collect()
}

/// Waiting is no fault: nobody has to look.
const WAITS: [Reason; 3] = [Reason::KanidmNotReady, Reason::Paused, Reason::ReferenceNotFound];

/// Scripts written for older releases match on these two.
fn event_reason(reason: &str) -> String {
    match reason {
        "NamespaceNotSelected" => "ResourceNotWatched".to_owned(),
        "AccessDenied" | "InvalidValue" | "ConnectionFailed" | "CertificateInvalid" | "LoginFailed" => {
            "KanidmClientError".to_owned()
        }
        other => other.to_owned(),
    }
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

/// The refusal in the words of the spec.
fn refused(finding: &Finding, plan: &Plan) -> Finding {
    let fields =
        if plan.changes.is_empty() { String::new() } else { format!(" (asked for: {})", plan.changes.join(", ")) };
    Finding { reason: finding.reason, message: format!("{}{fields}", finding.message) }
}
