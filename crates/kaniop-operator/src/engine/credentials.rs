//! Credentials of one object: its Secrets are brought to hold what the server takes, as `kaniop_core::identity::credential` and `reset` decide.
//!
//! A credential goes from the server's answer into its Secret and nowhere else.

mod bearer;
mod link;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, OwnerReference};
use kaniop_api::IdentityStatus;
use kaniop_core::condition::{Statement, Truth};
use kaniop_core::entry::{Entry, Snapshot};
use kaniop_core::identity::credential::{self, Holder, Wanted};
use kaniop_core::identity::{Finding, reset};
use kaniop_core::reason::Reason;
use kaniop_kanidm::Error as KanidmError;
use kube::api::Api;

use super::assess::{Usable, owner};
use super::{Engine, Managed};
use crate::apply::{self, Applied};
use crate::error::Error;
use crate::events::Notice;

/// In `status.managed`: labels of the API tokens that we issue.
pub(super) const LABELS: &str = "apiTokens";

/// What came of the credentials of an object.
#[derive(Debug, Default)]
pub(super) struct Credentials {
    pub(super) statement: Option<Statement>,
    pub(super) findings: Vec<Finding>,
    /// After how long they are to be looked at again.
    pub(super) due: Option<Duration>,
    pub(super) secret_name: Option<String>,
    /// Labels of the tokens that are ours.
    pub(super) labels: Option<Vec<String>>,
}

impl Credentials {
    /// What the status says of them: it holds until they were looked at, or what is ours would be forgotten.
    pub(super) fn as_before<K: Managed>(object: &K) -> Self {
        let Some(status) = object.identity_status() else { return Self::default() };
        let labels: Vec<_> = bearer::issued(object).into_iter().collect();
        Self {
            statement: credential_as_before(status.conditions.as_deref().unwrap_or_default()),
            secret_name: status.secret_name.clone(),
            labels: Some(labels).filter(|labels| !labels.is_empty()),
            ..Self::default()
        }
    }
}

/// How far the credentials were brought.
pub(super) enum Done {
    /// Nothing was done yet: this status is to be written before.
    Before(IdentityStatus),
    /// All that could be.
    All(Credentials),
    /// The server did not do it.
    Failed(KanidmError),
}

/// Either side's way to say no.
enum Stop {
    Kanidm(KanidmError),
    Kubernetes(Error),
}

impl From<KanidmError> for Stop {
    fn from(error: KanidmError) -> Self {
        Self::Kanidm(error)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Kubernetes(error)
    }
}

impl From<kube::Error> for Stop {
    fn from(error: kube::Error) -> Self {
        Self::Kubernetes(error.into())
    }
}

/// What the passes over one object's credentials have in common.
struct Scene<'a, K> {
    object: &'a K,
    entry: &'a Entry,
    usable: &'a Usable,
    holder: Holder,
    owner: apply::Owner<'a>,
    now: Timestamp,
}

impl<K: Managed> Engine<K> {
    /// Brings every Secret of the object to hold the right credential.
    pub(super) async fn credentials(
        &self,
        object: &K,
        entry: &Entry,
        snapshot: &Snapshot,
        usable: &Usable,
    ) -> Result<Done, Error> {
        let Some(manager) = K::MANAGER else { return Ok(Done::All(Credentials::default())) };
        if K::not_manager(object.spec(), snapshot).is_some() {
            return Ok(Done::All(Credentials::as_before(object)));
        }
        let wanted = K::secrets(&owner(object), object.spec());
        let findings: Vec<_> =
            credential::doubled(&wanted).into_iter().chain(wanted.iter().find_map(Wanted::template_conflict)).collect();
        if !findings.is_empty() {
            let statement = Some(statement(&findings));
            return Ok(Done::All(Credentials { statement, findings, ..Credentials::as_before(object) }));
        }
        if let Some(status) = bearer::labels_to_come(object, &wanted) {
            return Ok(Done::Before(status));
        }
        let reference =
            OwnerReference { block_owner_deletion: Some(true), ..object.controller_owner_ref(&()).unwrap_or_default() };
        let owner = apply::Owner {
            namespace: object.meta().namespace.as_deref().unwrap_or_default(),
            name: object.meta().name.as_deref().unwrap_or_default(),
            uid: object.meta().uid.as_deref().unwrap_or_default(),
        };
        let holder = Holder {
            namespace: owner.namespace.to_owned(),
            manager: manager.to_owned(),
            owner: reference,
            entry: entry.uuid,
        };
        let scene = Scene { object, entry, usable, holder, owner, now: self.ctx.clock.now() };
        let done = match K::first_credential(object.spec()) {
            Some(first) => self.first_credential(&scene, first, snapshot.has_credential(entry.uuid)).await,
            None => self.secrets(&scene, &wanted).await,
        };
        match done {
            Ok(credentials) => Ok(Done::All(credentials)),
            Err(Stop::Kanidm(error)) => Ok(Done::Failed(error)),
            Err(Stop::Kubernetes(error)) => Err(error),
        }
    }

    /// The Secret of this name, `None` when there is none; `Err` when it is somebody else's.
    async fn stored(&self, scene: &Scene<'_, K>, name: &str) -> Result<Result<Option<Secret>, Finding>, Stop> {
        let api: Api<Secret> = Api::namespaced(self.ctx.client.clone(), scene.owner.namespace);
        let Some(secret) = api.get_opt(name).await? else { return Ok(Ok(None)) };
        if apply::is_controlled_by(&secret.metadata, scene.owner.uid) {
            return Ok(Ok(Some(secret)));
        }
        let message = format!(
            "Secret '{name}' exists and is not controlled by this object, so it is left alone. Delete or rename it"
        );
        Ok(Err(Finding { reason: Reason::NameConflict, message }))
    }

    fn tell(&self, object: &K, reason: &str, note: &str) {
        tracing::info!(reason, note, "credentials");
        let notice = Notice { warning: false, reason: reason.to_owned(), note: note.to_owned() };
        self.ctx.events.tell(object.object_ref(&()), notice);
    }
}

/// Why a Secret could not be written, if it could not.
pub(super) fn refusal(applied: Applied) -> Option<Finding> {
    match applied {
        Applied::Unchanged | Applied::Written => None,
        Applied::Ending => Some(Finding {
            reason: Reason::NameConflict,
            message: "the Secret is being deleted; it is made anew when it is gone".to_owned(),
        }),
        Applied::Conflict(message) => Some(Finding { reason: Reason::NameConflict, message }),
        Applied::Refused(message) => Some(Finding { reason: Reason::InvalidSpec, message }),
    }
}

fn statement(findings: &[Finding]) -> Statement {
    match findings.first() {
        Some(finding) => Statement::new(reset::CONDITION, false, finding.reason, finding.message.clone()),
        None => Statement::new(reset::CONDITION, true, Reason::Ready, "every Secret holds what the server takes"),
    }
}

/// What was said of credentials before, as nobody can say now.
pub(super) fn credential_as_before(before: &[Condition]) -> Option<Statement> {
    let said = before.iter().find(|condition| condition.type_ == reset::CONDITION)?;
    let reason = Reason::ALL.iter().map(|(reason, _)| *reason).find(|reason| reason.as_str() == said.reason)?;
    let truth = match said.status.as_str() {
        "True" => Truth::True,
        "False" => Truth::False,
        _ => Truth::Unknown,
    };
    Some(Statement::new(reset::CONDITION, truth, reason, said.message.clone()))
}
