//! What one object's situation is, from memory alone: may it use its Kanidm, can the server be asked, and what does the plan say.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kaniop_api::shared::{AdoptionPolicy, DeletionPolicy};
use kaniop_api::{IdentityStatus, Kanidm};
use kaniop_core::entry::Snapshot;
use kaniop_core::identity::{self, Adoption, Desired, Finding, Managed, Obstacle, Plan};
use kaniop_core::name::Owner;
use kaniop_core::reason::Reason;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use kube::runtime::reflector::ObjectRef;
use uuid::Uuid;

use super::{Engine, kanidm_key};
use crate::targets::{Target, Unusable};

/// One object's situation.
#[derive(Clone, Debug)]
pub(super) enum Assessment {
    /// Nothing can be done before somebody changes something.
    Refused(Finding),
    /// The server cannot be asked now.
    Unknown(Finding),
    /// The operator has just begun and knows nothing of the server yet: whatever was said of the object last holds until it does.
    Early,
    /// The server's snapshot says this.
    Planned(Plan),
}

impl Assessment {
    /// Whether something that the object refers to was not there.
    pub(super) fn waits(&self) -> bool {
        let Self::Planned(plan) = self else { return false };
        plan.findings.iter().any(|finding| finding.reason == Reason::ReferenceNotFound)
    }

    /// Whether a pass on either would conclude the same. The texts of an outage may vary without anything having changed.
    pub(super) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Refused(a), Self::Refused(b)) | (Self::Unknown(a), Self::Unknown(b)) => a.reason == b.reason,
            (Self::Planned(a), Self::Planned(b)) => a == b,
            (Self::Early, Self::Early) => true,
            _ => false,
        }
    }
}

/// The server that an object may use, with its snapshot.
pub(super) struct Usable {
    pub(super) target: Arc<Target>,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) policies: Policies,
}

/// What was said, by the object or for it, of entries that exist already and of its own entry in the end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policies {
    pub(super) adoption: Adoption,
    pub(super) deletion: Option<DeletionPolicy>,
}

/// Why an object cannot use its server: what to say, and what that means for a deletion.
pub(super) struct Barred {
    pub(super) finding: Finding,
    pub(super) obstacle: Obstacle,
    /// Whether that is only because nobody has looked yet.
    early: bool,
}

impl<K: super::Managed> Engine<K> {
    /// The situation, with the server to act on if there is something to do.
    pub(super) fn assess(&self, object: &K) -> (Assessment, Option<Usable>) {
        match self.server(object) {
            Ok(_) if let Some(conflict) = self.conflict(object) => (Assessment::Refused(conflict), None),
            Err(barred) if barred.early => (Assessment::Early, None),
            Err(barred) if matches!(barred.obstacle, Obstacle::Unreachable(_)) => {
                (Assessment::Unknown(barred.finding), None)
            }
            Err(barred) => (Assessment::Refused(barred.finding), None),
            Ok(usable) => {
                let progress = Progress::of(object);
                let plan = identity::plan::<K>(&desired(object, &progress, usable.policies), &usable.snapshot);
                (Assessment::Planned(plan), Some(usable))
            }
        }
    }

    /// The server that this object may use now. The selector is checked before any credential is touched.
    pub(super) fn server(&self, object: &K) -> Result<Usable, Barred> {
        let key = kanidm_key(object);
        let found = self.ctx.kanidms.get(&ObjectRef::new(&key.name).within(&key.namespace));
        let Some(kanidm) = found.filter(|kanidm| kanidm.metadata.deletion_timestamp.is_none()) else {
            let message = format!("there is no Kanidm {key}; this object is reconciled as soon as there is");
            return Err(barred(Reason::KanidmNotFound, message, Obstacle::KanidmGone));
        };
        if !self.selected(object, &kanidm) {
            let message = format!(
                "the Kanidm {key} does not select the namespace {:?} for {} objects: see its namespace selectors",
                object.namespace().unwrap_or_default(),
                K::KIND
            );
            return Err(barred(Reason::NamespaceNotSelected, message, Obstacle::NotSelected));
        }
        if kanidm.spec.paused {
            let message = format!("the Kanidm {key} is paused");
            return Err(barred(Reason::Paused, message, Obstacle::Paused));
        }
        let Some(target) = self.ctx.targets.get(&key) else {
            let message = format!("the Kanidm {key} is not Ready: see its conditions");
            let early = !self.ctx.targets.is_judged(&key);
            return Err(Barred { early, ..unreachable(Reason::KanidmNotReady, message) });
        };
        match target.snapshot() {
            Ok(snapshot) => Ok(Usable { target, snapshot, policies: self.policies(object, &kanidm) }),
            Err(Unusable::NotRead) => {
                let message = format!("the entries of the Kanidm {key} have not been read yet");
                Err(Barred { early: true, ..unreachable(Reason::KanidmNotReady, message) })
            }
            Err(Unusable::Fails(error)) => Err(match not_ready(&kanidm) {
                // It knows better why.
                Some(why) => unreachable(
                    Reason::KanidmNotReady,
                    format!("the Kanidm {key} is not Ready ({why}): see its conditions"),
                ),
                None => unreachable(error.reason(), format!("Kanidm {key}: {error}")),
            }),
        }
    }

    /// What to say when somebody else who may use the Kanidm stands for the object's entry.
    fn conflict(&self, object: &K) -> Option<Finding> {
        let rivals = self.claims.rivals(object).into_iter();
        let held = rivals.filter_map(|key| self.store.get(&ObjectRef::new(&key.name).within(&key.namespace)));
        let may = |other: &Arc<K>| {
            let key = kanidm_key(other.as_ref());
            let kanidm = self.ctx.kanidms.get(&ObjectRef::new(&key.name).within(&key.namespace));
            kanidm.is_some_and(|kanidm| self.selected(other, &kanidm))
        };
        let age = |object: &K| {
            // Whoever has an entry keeps it, whatever becomes of the other.
            let has_none = object.identity_status().is_none_or(|status| status.uuid.is_none());
            (has_none, object.meta().creation_timestamp.clone(), super::key(object))
        };
        let oldest = held.filter(may).map(|other| age(&other)).min().filter(|oldest| *oldest < age(object))?;
        Some(Finding {
            reason: Reason::Conflict,
            message: format!(
                "{} {} is older, or has the entry already, and stands for the same one: this object touches nothing. Delete one of them, or give this one another name",
                K::KIND,
                oldest.2
            ),
        })
    }

    fn selected(&self, object: &K, kanidm: &Kanidm) -> bool {
        self.within(object, kanidm, K::selector(kanidm))
    }

    /// Whether an object is in the Kanidm's own namespace or in one that is selected.
    fn within(&self, object: &K, kanidm: &Kanidm, selector: Option<&LabelSelector>) -> bool {
        let namespace = object.namespace().unwrap_or_default();
        if kanidm.namespace().as_ref() == Some(&namespace) {
            return true;
        }
        let Some(Ok(selector)) = selector.cloned().map(Selector::try_from) else { return false };
        let found = self.ctx.namespaces.get(&ObjectRef::new(&namespace));
        found.is_some_and(|namespace| selector.matches(namespace.labels()))
    }

    fn policies(&self, object: &K, kanidm: &Kanidm) -> Policies {
        let (adoption, deletion) = object.policies();
        let defaults = kanidm.spec.identity_defaults.clone().unwrap_or_default();
        let granted = || self.within(object, kanidm, kanidm.spec.adoption_namespace_selector.as_ref());
        let adoption = match adoption.or(defaults.adoption_policy) {
            Some(AdoptionPolicy::Adopt) if granted() => Adoption::Granted,
            Some(AdoptionPolicy::Adopt) => Adoption::NotGranted,
            Some(AdoptionPolicy::Never) | None => Adoption::NotAsked,
        };
        Policies { adoption, deletion: deletion.or(defaults.deletion_policy) }
    }
}

/// Why a Kanidm says itself that it is not Ready.
fn not_ready(kanidm: &Kanidm) -> Option<&str> {
    let mut conditions = kanidm.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions.find(|condition| condition.type_ == "Ready")?;
    (ready.status == "False").then_some(ready.reason.as_str())
}

fn barred(reason: Reason, message: String, obstacle: Obstacle) -> Barred {
    Barred { finding: Finding { reason, message }, obstacle, early: false }
}

fn unreachable(reason: Reason, message: String) -> Barred {
    barred(reason, message.clone(), Obstacle::Unreachable(message))
}

/// What a pass has found out so far that neither the object nor the snapshot knows.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Generations of our UUID that are used up.
    pub(super) spent: BTreeSet<u32>,
    /// What is ours in sets that others write to as well.
    pub(super) managed: Managed,
}

impl Progress {
    /// As the object's status has it.
    pub(super) fn of<K: super::Managed>(object: &K) -> Self {
        let managed = object.identity_status().and_then(|status| status.managed.as_ref());
        let uuids = |texts: &Vec<String>| texts.iter().filter_map(|text| Uuid::parse_str(text).ok()).collect();
        let managed = managed.into_iter().flatten().map(|(field, texts)| (field.clone(), uuids(texts))).collect();
        Self { spent: BTreeSet::new(), managed }
    }
}

/// The object as the owner of an entry.
pub(super) fn owner<K: super::Managed>(object: &K) -> Owner<'_> {
    let meta = object.meta();
    let name = meta.name.as_deref().unwrap_or_default();
    Owner {
        kind: K::KIND,
        namespace: meta.namespace.as_deref().unwrap_or_default(),
        name,
        entry: object.kanidm_name().unwrap_or(name),
    }
}

/// What an object wants of the server.
pub(super) fn desired<'a, K: super::Managed>(
    object: &'a K,
    progress: &'a Progress,
    policies: Policies,
) -> Desired<'a, K> {
    let status = object.identity_status();
    Desired {
        owner: owner(object),
        spec: object.spec(),
        pinned: status.and_then(|status| status.uuid.as_deref()).and_then(|uuid| Uuid::parse_str(uuid).ok()),
        adopted: status.is_some_and(|status| status.adopted == Some(true)),
        adoption: policies.adoption,
        deletion: policies.deletion,
        inherited: status.is_some_and(|status| status.uuid.is_none() && exists(status)),
        spent: &progress.spent,
        managed: &progress.managed,
    }
}

fn exists(status: &IdentityStatus) -> bool {
    let conditions = status.conditions.iter().flatten();
    conditions.into_iter().any(|condition| condition.type_ == "Exists" && condition.status == "True")
}
