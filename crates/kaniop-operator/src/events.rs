//! Events: what a person sees under `kubectl describe`. Told on transitions only; never with a secret in them.
//!
//! Whoever tells one does not wait: it is queued, and a task of its own publishes what is queued, at a pace that leaves the API server to those who
//! work. So many changes at once do not pay for being told of. Events are no promise: when a queue is full, what comes is dropped and counted.

mod pace;
mod publisher;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use tokio::sync::mpsc;

pub use self::publisher::Publisher;
use crate::clock::Clock;
use crate::metrics::Metrics;

/// How many may wait, at some 600 bytes each: as many as come about when thousands of objects are created at once.
const QUEUED: usize = 8192;
/// How many may wait that somebody should look at. They go first, and have room of their own.
const WARNINGS_QUEUED: usize = 1024;
/// Longest note that the API takes, in bytes.
const LONGEST_NOTE: usize = 1024;

/// Takes Events to be published under the operator's name.
#[derive(Clone)]
pub struct Events {
    normal: mpsc::Sender<Told>,
    warnings: mpsc::Sender<Told>,
    clock: Clock,
    metrics: Metrics,
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

/// What happened to which object, and when.
#[derive(Debug)]
struct Told {
    about: ObjectReference,
    notice: Notice,
    at: Timestamp,
}

impl Events {
    /// Events reported by this pod, and who publishes them.
    #[must_use]
    pub fn new(client: Client, instance: String, clock: Clock, metrics: Metrics) -> (Self, Publisher) {
        let (normal, queued) = mpsc::channel(QUEUED);
        let (warnings, warnings_queued) = mpsc::channel(WARNINGS_QUEUED);
        let publisher = Publisher::new(client, instance, (warnings_queued, queued), (clock, metrics.clone()));
        (Self { normal, warnings, clock, metrics }, publisher)
    }

    /// Has an Event published soon. It must not hold up the work that it tells of: what finds no room is forgotten.
    pub fn tell(&self, about: ObjectReference, mut notice: Notice) {
        let end = (0..=LONGEST_NOTE.min(notice.note.len())).rev().find(|end| notice.note.is_char_boundary(*end));
        notice.note.truncate(end.unwrap_or(0));
        let queue = if notice.warning { &self.warnings } else { &self.normal };
        // The version is that of a moment: with it, a repetition would look like another object.
        let about = ObjectReference { resource_version: None, ..about };
        match queue.try_send(Told { about, notice, at: self.clock.now() }) {
            Ok(()) => self.metrics.event_waits(),
            Err(error) => {
                self.metrics.event_dropped();
                tracing::debug!(%error, "an event was dropped");
            }
        }
    }
}
