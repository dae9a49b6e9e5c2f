//! One pass over one object: assess, act, report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kaniop_api::IdentityStatus;
use kaniop_api::shared::{ImageStatus, Told};
use kaniop_core::condition;
use kaniop_core::entry::{Entry, Snapshot, Value};
use kaniop_core::identity::{self, Finding, Outcome, Plan};
use kaniop_core::reason::Reason;
use kaniop_kanidm::{Class, Error as KanidmError};
use kube::runtime::controller::Action;
use uuid::Uuid;

use super::assess::{Assessment, Progress, Usable};
use super::credentials::{Credentials, Done, LABELS, credential_as_before};
use super::picture::Picture;
use super::{Engine, Managed, kanidm_key, key};
use crate::error::Error;
use crate::events::Notice;
use crate::retry::LONGEST;
use crate::status;

/// Timers reach no further: dates may be centuries away.
const FURTHEST: Duration = Duration::from_secs(24 * 3600);

/// What an object has beside its entry's attributes.
#[derive(Default)]
pub(super) struct Extras {
    pub(super) credentials: Credentials,
    /// The picture that we put on the server.
    pub(super) image: Option<ImageStatus>,
    /// What we put there that the server does not show as it was given.
    pub(super) attestation_ca_list: Option<Told>,
}

/// How far what is beside the attributes was brought.
enum Gathered {
    /// As far as it could be.
    All,
    /// Nothing was done yet: this status is to be written before.
    Before(Box<IdentityStatus>),
    /// The server did not do it.
    Failed(KanidmError),
}

impl Extras {
    /// What the status says of them, until more is known.
    fn of<K: Managed>(object: &K) -> Self {
        let status = object.identity_status().cloned().unwrap_or_default();
        let credentials = Credentials::as_before(object);
        Self { credentials, image: status.image, attestation_ca_list: status.attestation_ca_list }
    }

    fn take(&mut self, picture: Picture) {
        self.image = picture.status;
        self.credentials.findings.extend(picture.finding);
        self.credentials.due = self.credentials.due.into_iter().chain(picture.due).min();
    }
}

impl<K: Managed> Engine<K> {
    pub(super) async fn pass(&self, object: Arc<K>) -> Result<Action, Error> {
        if self.behind.is(object.as_ref()) {
            return Ok(Action::await_change());
        }
        if object.meta().deletion_timestamp.is_some() {
            return self.remove(object).await;
        }
        match self.assess(&object) {
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
            (Assessment::Early, _) => {
                self.settle(&object, Assessment::Early);
                Ok(Action::await_change())
            }
            (Assessment::Planned(plan), Some(usable)) => self.carry_out(object, plan, usable).await,
            (Assessment::Planned(_), None) => Err(Error::Bug("a plan without a server".to_owned())),
        }
    }

    async fn carry_out(&self, object: Arc<K>, plan: Plan, usable: Usable) -> Result<Action, Error> {
        let holds_on = plan.entry.is_some() || plan.step.is_some();
        let Some(object) = self.with_finalizer(object, holds_on).await? else {
            // Its watch event is on the way.
            return Ok(Action::await_change());
        };
        if let Some(wait) = self.held_back(&object, &plan) {
            return Ok(Action::requeue(wait));
        }
        if let Some(status) = additions_to_come(object.as_ref(), &plan) {
            self.write_status(&object, &status).await?;
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
        let mut extras = Extras::of(object.as_ref());
        if let (Some(entry), None) = (entry, &failure) {
            let (gathered, how) = self.extras(&object, entry, snapshot, &usable).await?;
            extras = gathered;
            match how {
                Gathered::All => {}
                Gathered::Failed(error) => failure = Some(error),
                Gathered::Before(status) => {
                    self.write_status(&object, &status).await?;
                    return Ok(Action::await_change());
                }
            }
        }
        plan.findings.append(&mut extras.credentials.findings);
        let Some(error) = failure else {
            let blocked = plan.step.is_some() || !plan.findings.is_empty();
            let due = self.report(&object, &Outcome::Answered { entry, plan: &plan }, &extras).await?;
            self.retry.reset(&key(object.as_ref()));
            let recheck = acted.wait.or_else(|| blocked.then(|| self.rest(&object).unwrap_or(LONGEST)));
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

    /// Brings what an object has beside its entry's attributes where it should be: credentials first, for people wait for them.
    async fn extras(
        &self,
        object: &K,
        entry: &Entry,
        snapshot: &Snapshot,
        usable: &Usable,
    ) -> Result<(Extras, Gathered), Error> {
        let mut extras = Extras::of(object);
        match self.credentials(object, entry, snapshot, usable).await? {
            Done::Before(status) => return Ok((extras, Gathered::Before(Box::new(status)))),
            Done::All(done) => extras.credentials = done,
            Done::Failed(error) => return Ok((extras, Gathered::Failed(error))),
        }
        match self.picture(object, entry, usable).await? {
            Ok(picture) => extras.take(picture),
            Err(error) => return Ok((extras, Gathered::Failed(error))),
        }
        match self.untold(object, entry, usable).await? {
            Ok((told, finding)) => {
                extras.attestation_ca_list = told;
                extras.credentials.findings.extend(finding);
                Ok((extras, Gathered::All))
            }
            Err(error) => Ok((extras, Gathered::Failed(error))),
        }
    }

    /// Makes the status name the entry, before anything is done to it that would hide whose it is.
    async fn pin(&self, object: &K, plan: &Plan) -> Result<(), Error> {
        let mut status = object.identity_status().cloned().unwrap_or_default();
        status.uuid = plan.entry.map(|uuid| uuid.to_string());
        status.adopted = plan.adopted.then_some(true);
        if self.write_status(object, &status).await? && plan.adopted {
            let note =
                format!("the entry was there before and is taken over, UUID {}", status.uuid.unwrap_or_default());
            let notice = Notice { warning: false, reason: "EntryAdopted".to_owned(), note };
            self.ctx.events.tell(object.object_ref(&()), notice);
        }
        Ok(())
    }

    /// Returns whether anything was written.
    async fn write_status(&self, object: &K, status: &IdentityStatus) -> Result<bool, Error> {
        let made = status::write(&self.ctx, object, object.identity_status(), status).await?;
        self.behind.wrote(object, made.as_deref());
        Ok(made.is_some())
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
        let kept = Extras::of(object);
        let told = if answered { extras } else { &kept };
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
            attestation_ca_list: told.attestation_ca_list.clone(),
            image: told.image.clone(),
            managed: managed.filter(|managed| !managed.is_empty()),
            conditions: Some(conditions.clone()),
        };
        if self.write_status(object, &new).await? {
            self.tell_of_a_turn(object, before, ready);
        }
        Ok(due)
    }

    /// An Event when `Ready` turns for the worse.
    fn tell_of_a_turn(&self, object: &K, before: &[Condition], ready: Option<&Condition>) {
        let seen = before.iter().find(|condition| condition.type_ == "Ready");
        let Some(ready) = ready.filter(|ready| ready.status != "True") else { return };
        if seen.is_some_and(|seen| (&seen.status, &seen.reason) == (&ready.status, &ready.reason)) {
            return;
        }
        let notice = Notice {
            warning: !WAITS.iter().any(|waits| waits.as_str() == ready.reason),
            reason: event_reason(&ready.reason),
            note: ready.message.clone(),
        };
        self.ctx.events.tell(object.object_ref(&()), notice);
    }
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

/// The status with everything that the plan adds to sets that others write to as well, where it lacks some: should the answer be lost, it is known to
/// be ours, and is removed again when it is not wanted any more.
fn additions_to_come<K: Managed>(object: &K, plan: &Plan) -> Option<IdentityStatus> {
    let known = Progress::of(object).managed;
    let is_known =
        |field: &String, uuids: &BTreeSet<Uuid>| known.get(field).is_some_and(|known| uuids.is_subset(known));
    if plan.step.is_none() || plan.managed.iter().all(|(field, uuids)| is_known(field, uuids)) {
        return None;
    }
    let mut status = object.identity_status().cloned().unwrap_or_default();
    let managed = status.managed.get_or_insert_default();
    for (field, uuids) in &plan.managed {
        let all = known.get(field).into_iter().flatten().chain(uuids).map(ToString::to_string).collect::<BTreeSet<_>>();
        managed.insert(field.clone(), all.into_iter().collect());
    }
    Some(status)
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

/// The refusal in the words of the spec.
fn refused(finding: &Finding, plan: &Plan) -> Finding {
    let fields =
        if plan.changes.is_empty() { String::new() } else { format!(" (asked for: {})", plan.changes.join(", ")) };
    Finding { reason: finding.reason, message: format!("{}{fields}", finding.message) }
}
