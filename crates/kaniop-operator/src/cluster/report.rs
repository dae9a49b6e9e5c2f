//! Tells what a pass found: the status, and an Event when `Ready` turns for the worse.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kaniop_api::Kanidm;
use kaniop_api::kanidm::KanidmStatus;
use kaniop_core::cluster::ValidatedCluster;
use kaniop_core::cluster::status::{CERTIFICATES_VALID, TlsSeen, World, status};
use kaniop_core::condition::{self, Statement, Truth};
use kaniop_core::reason::Reason;
use kaniop_kanidm::Class;
use kube::Resource;

use super::Clusters;
use crate::error::Error;
use crate::events::Notice;

/// A condition that is told by an Event of its own: which, when, and as what.
type Told = (&'static str, fn(&Condition) -> bool, &'static str);

/// Conditions that are told by Events. Whatever else is wrong with a certificate, `Ready` tells.
const TOLD: [Told; 2] = [
    ("UpgradeBlocked", |condition| condition.status == "True", "UpgradeBlocked"),
    (CERTIFICATES_VALID, |condition| condition.reason == "CertificateExpiring", "CertificateExpiring"),
];

impl Clusters {
    /// Writes the status of this world, if it is another one than before.
    pub(super) async fn report(&self, world: &World<'_>, now: Timestamp) -> Result<(), Error> {
        let old = world.kanidm.status.as_ref();
        let new = status(world, now);
        let written = crate::status::write(&self.ctx, world.kanidm, old, &new).await?.is_some();
        let (before, after) = (old.and_then(ready), ready(&new));
        if let Some(after) = after.filter(|after| written && is_worse(before, after)) {
            self.tell(world.kanidm, true, event_reason(&after.reason), &after.message);
        }
        for (kind, is_told, event) in TOLD {
            let found = |status: &KanidmStatus| {
                let found = status.conditions.iter().flatten().find(|condition| condition.type_ == kind);
                found.filter(|condition| is_told(condition)).cloned()
            };
            let before = old.and_then(found).map(|condition| condition.reason);
            if let Some(after) = found(&new).filter(|after| written && before.as_ref() != Some(&after.reason)) {
                self.tell(world.kanidm, true, event, &after.message);
            }
        }
        Ok(())
    }

    /// Counts until when the certificate is good.
    pub(super) fn count_certificate(&self, cluster: &ValidatedCluster, tls: &TlsSeen) {
        let end = if let TlsSeen::Usable(usable) = tls { Some(usable.not_after.as_second()) } else { None };
        let counted = end.map(|end| (cluster.tls_secret.clone(), end));
        self.ctx.metrics.certificate(&cluster.namespace, &cluster.name, counted);
    }

    /// Tells of a pass that failed: nobody can say whether the Kanidm is Ready, and all else stays as it was told last.
    pub(super) async fn report_failure(&self, kanidm: &Kanidm, error: &Error) -> Result<(), Error> {
        if matches!(error, Error::NotLeader) {
            // Whoever leads now tells what is to be told.
            return Ok(());
        }
        let old = kanidm.status.as_ref();
        let before = old.and_then(ready);
        let stated = Statement::new("Ready", Truth::Unknown, reason(error), format!("The last pass failed: {error}."));
        let conditions = old.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let mut after = condition::after(conditions, &[stated], kanidm.metadata.generation, self.ctx.clock.now());
        let Some(ready) = after.first().cloned() else { return Ok(()) };
        // Texts of errors may differ each time (ports, durations), and each writing wakes the loop: it would never wait.
        let verdict =
            |condition: &Condition| (condition.status.clone(), condition.reason.clone(), condition.observed_generation);
        if before.map(verdict) == Some(verdict(&ready)) {
            return Ok(());
        }
        after.extend(conditions.iter().filter(|condition| condition.type_ != ready.type_).cloned());
        after.sort_by(|a, b| a.type_.cmp(&b.type_));
        let new = KanidmStatus { conditions: Some(after), ..old.cloned().unwrap_or_default() };
        let written = crate::status::write(&self.ctx, kanidm, old, &new).await?.is_some();
        if written && is_worse(before, &ready) {
            self.tell(kanidm, true, event_reason(&ready.reason), &ready.message);
        }
        Ok(())
    }

    pub(super) fn tell(&self, kanidm: &Kanidm, warning: bool, reason: &str, note: &str) {
        let notice = Notice { warning, reason: reason.to_owned(), note: note.to_owned() };
        self.ctx.events.tell(kanidm.object_ref(&()), notice);
    }
}

/// The word for an error that ended a pass.
fn reason(error: &Error) -> Reason {
    match (error, error.class()) {
        (Error::Kanidm(error), _) => error.reason(),
        (_, Class::Retry) => Reason::ConnectionFailed,
        (_, Class::Blocked | Class::Bug) => Reason::InternalError,
    }
}

fn ready(status: &KanidmStatus) -> Option<&Condition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == "Ready")
}

/// Whether somebody should hear of it: another verdict than before that is not merely a server on its way up, or as the user asked for it.
fn is_worse(before: Option<&Condition>, after: &Condition) -> bool {
    // The last one is told by its own condition.
    let expected = ["PodsNotReady", "Bootstrapping", "ScaledToZero", "Paused", "Unknown", "UpgradeBlocked"];
    let same = before.is_some_and(|before| (&before.status, &before.reason) == (&after.status, &after.reason));
    after.status != "True" && !same && !expected.contains(&after.reason.as_str())
}

/// Scripts written for older releases match on these.
fn event_reason(reason: &str) -> &str {
    match reason {
        "AccessDenied" | "ConnectionFailed" | "CertificateInvalid" | "LoginFailed" => "KanidmClientError",
        "InternalError" => "KanidmError",
        "UnsupportedVersion" => "VersionIncompatible",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    fn condition(status: &str, reason: &str) -> Condition {
        Condition {
            type_: "Ready".to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: String::new(),
            observed_generation: None,
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
        }
    }

    #[test]
    fn only_a_turn_for_the_worse_is_told_and_only_once() {
        let (ready, broken) = (condition("True", "Ready"), condition("Unknown", "ConnectionFailed"));
        assert!(is_worse(Some(&ready), &broken));
        assert!(!is_worse(Some(&broken), &broken));
        assert!(!is_worse(Some(&broken), &ready));
        assert!(is_worse(Some(&broken), &condition("False", "CertificateInvalid")));
        assert!(is_worse(None, &condition("False", "TlsSecretMissing")));
        assert!(!is_worse(None, &condition("False", "Bootstrapping")));
    }
}
