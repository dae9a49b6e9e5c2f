//! Events: what a person sees under `kubectl describe`. Published on transitions only; never with a secret in them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};

/// Publishes Events under the operator's name.
#[derive(Clone)]
pub struct Events {
    client: Client,
    reporter: Reporter,
    told: Arc<Mutex<HashMap<Subject, Told>>>,
}

/// UID of an object, and a reason.
type Subject = (Option<String>, String);

/// What was told last of an object under one reason.
#[derive(Clone)]
struct Told {
    note: String,
    /// A recorder counts what it has told as one series, with the note of the first.
    recorder: Recorder,
}

/// How many are remembered, at some 4 KiB each; more than that only cost an Event each.
const REMEMBERED: usize = 1024;

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
        let reporter = Reporter { controller: "kaniop".to_owned(), instance: Some(instance) };
        Self { client, reporter, told: Arc::default() }
    }

    /// The same again is one more of a series; another note under the same reason is an Event of its own.
    fn recorder(&self, about: &ObjectReference, event: &Event) -> Recorder {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= REMEMBERED {
            told.clear();
        }
        let note = event.note.clone().unwrap_or_default();
        let fresh = || Told { note: note.clone(), recorder: Recorder::new(self.client.clone(), self.reporter.clone()) };
        let last = told.entry((about.uid.clone(), event.reason.clone())).or_insert_with(fresh);
        if last.note != note {
            *last = fresh();
        }
        last.recorder.clone()
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
        if let Err(error) = self.recorder(about, &event).publish(&event, about).await {
            tracing::warn!(%error, reason = event.reason, "an event could not be published");
        }
    }
}
