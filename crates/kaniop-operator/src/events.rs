//! Events: what a person sees under `kubectl describe`. Published on transitions only; never with a secret in them.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};

/// Publishes Events under the operator's name.
#[derive(Clone)]
pub struct Events {
    recorder: Recorder,
}

/// What happened, for one object.
#[derive(Clone, Debug)]
pub struct Notice {
    /// Whether somebody should look.
    pub warning: bool,
    /// CamelCase word that scripts match on.
    pub reason: String,
    /// For people.
    pub note: String,
}

/// Longest note that the API takes, in bytes.
const LONGEST_NOTE: usize = 1024;

impl Events {
    /// Events reported by this pod.
    #[must_use]
    pub fn new(client: Client, instance: String) -> Self {
        Self { recorder: Recorder::new(client, Reporter { controller: "kaniop".to_owned(), instance: Some(instance) }) }
    }

    /// Publishes. An Event that cannot be published is logged and forgotten: it must not hold up the work that it tells of.
    pub async fn publish(&self, about: &ObjectReference, notice: Notice) {
        let mut note = notice.note;
        let end = (0..=LONGEST_NOTE.min(note.len())).rev().find(|end| note.is_char_boundary(*end)).unwrap_or(0);
        note.truncate(end);
        let event = Event {
            type_: if notice.warning { EventType::Warning } else { EventType::Normal },
            reason: notice.reason,
            note: Some(note),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, about).await {
            tracing::warn!(%error, reason = event.reason, "an event could not be published");
        }
    }
}
