//! Tells what a pass found: the status, and an Event when `Ready` turns for the worse.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kaniop_api::Kanidm;
use kaniop_api::kanidm::KanidmStatus;
use kaniop_core::cluster::status::{World, status};
use kube::Resource;

use super::Clusters;
use crate::error::Error;
use crate::events::Notice;

impl Clusters {
    /// Writes the status of this world, if it is another one than before.
    pub(super) async fn report(&self, world: &World<'_>, now: Timestamp) -> Result<(), Error> {
        let old = world.kanidm.status.as_ref();
        let new = status(world, now);
        let written = crate::status::write(&self.ctx, world.kanidm, old, &new).await?;
        let (before, after) = (old.and_then(ready), ready(&new));
        if let Some(after) = after.filter(|after| written && is_worse(before, after)) {
            self.tell(world.kanidm, true, event_reason(&after.reason), &after.message).await;
        }
        Ok(())
    }

    pub(super) async fn tell(&self, kanidm: &Kanidm, warning: bool, reason: &str, note: &str) {
        let notice = Notice { warning, reason: reason.to_owned(), note: note.to_owned() };
        self.ctx.events.publish(&kanidm.object_ref(&()), notice).await;
    }
}

fn ready(status: &KanidmStatus) -> Option<&Condition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == "Ready")
}

/// Whether somebody should hear of it: another verdict than before that is not merely a server on its way up, or as the user asked for it.
fn is_worse(before: Option<&Condition>, after: &Condition) -> bool {
    let expected = ["PodsNotReady", "Bootstrapping", "ScaledToZero", "Paused", "Unknown"];
    let same = before.is_some_and(|before| (&before.status, &before.reason) == (&after.status, &after.reason));
    after.status != "True" && !same && !expected.contains(&after.reason.as_str())
}

/// Scripts written for older releases match on these two.
fn event_reason(reason: &str) -> &str {
    match reason {
        "AccessDenied" | "ConnectionFailed" | "CertificateInvalid" | "LoginFailed" => "KanidmClientError",
        "InternalError" => "KanidmError",
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
