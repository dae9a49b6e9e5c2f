//! Publishes what is queued, warnings first. The same again is one more of a series; another note under the same reason is an Event of its own.

use std::collections::HashMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::sync::{mpsc, watch};

use super::Told;
use super::pace::Pace;
use crate::clock::Clock;
use crate::metrics::Metrics;

/// What the Events say of who tells.
const CONTROLLER: &str = "kaniop";
/// How many are remembered, so that the same again is counted; more than that only cost an Event each.
const REMEMBERED: usize = 1024;
/// For how long they are.
const SERIES: SignedDuration = SignedDuration::from_mins(6);
/// How long publishing one may take.
const LIMIT: Duration = Duration::from_secs(10);
/// Longest name of an Event without what makes it unique.
const LONGEST_NAME: usize = 253 - 17;

/// UID of an object, and a reason.
type Subject = (Option<String>, String);

/// What was published last of an object under one reason.
struct Published {
    name: String,
    note: String,
    count: i32,
    at: Timestamp,
}

/// Publishes what is queued.
pub struct Publisher {
    client: Client,
    instance: String,
    warnings: mpsc::Receiver<Told>,
    normal: mpsc::Receiver<Told>,
    published: HashMap<Subject, Published>,
    pace: Pace,
    clock: Clock,
    metrics: Metrics,
}

impl Publisher {
    pub(super) fn new(
        client: Client,
        instance: String,
        (warnings, normal): (mpsc::Receiver<Told>, mpsc::Receiver<Told>),
        (clock, metrics): (Clock, Metrics),
    ) -> Self {
        let published = HashMap::new();
        Self { client, instance, warnings, normal, published, pace: Pace::default(), clock, metrics }
    }

    /// Publishes at its pace, from when `stopping` turns true without any, and ends when nobody is left who could tell more.
    pub async fn run(mut self, mut stopping: watch::Receiver<bool>) {
        while let Some(told) = self.next().await {
            let wait = self.pace.wait(self.clock.elapsed());
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                // An error means that the process is ending, too.
                _ = stopping.wait_for(|stop| *stop) => {}
            }
            self.publish(told).await;
        }
    }

    async fn next(&mut self) -> Option<Told> {
        tokio::select! {
            biased;
            Some(told) = self.warnings.recv() => Some(told),
            Some(told) = self.normal.recv() => Some(told),
            else => None,
        }
    }

    /// Publishes what is queued now.
    #[cfg(test)]
    pub(crate) async fn drain(&mut self) {
        while let Ok(told) = self.warnings.try_recv().or_else(|_| self.normal.try_recv()) {
            self.publish(told).await;
        }
    }

    /// An Event that cannot be published is logged and forgotten.
    async fn publish(&mut self, told: Told) {
        let reason = told.notice.reason.clone();
        let sent = tokio::time::timeout(LIMIT, self.send(told)).await;
        self.metrics.event_ended(matches!(sent, Ok(Ok(()))));
        match sent {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, reason, "an event could not be published"),
            Err(_) => tracing::warn!(reason, "an event could not be published in time"),
        }
    }

    async fn send(&mut self, told: Told) -> Result<(), kube::Error> {
        let namespace = told.about.namespace.as_deref().unwrap_or("default");
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let subject = (told.about.uid.clone(), told.notice.reason.clone());
        let is_same = |last: &&mut Published| last.note == told.notice.note && last.at + SERIES > told.at;
        if let Some(last) = self.published.get_mut(&subject).filter(is_same) {
            let series = EventSeries { count: last.count + 1, last_observed_time: MicroTime(told.at) };
            match api.patch(&last.name, &PatchParams::default(), &Patch::Merge(json!({ "series": series }))).await {
                Ok(_) => {
                    (last.count, last.at) = (series.count, told.at);
                    return Ok(());
                }
                // Gone meanwhile: this one begins anew.
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        let event = event(&told, &self.instance);
        api.create(&PostParams::default(), &event).await?;
        let name = event.metadata.name.unwrap_or_default();
        self.remember(subject, Published { name, note: told.notice.note, count: 1, at: told.at });
        Ok(())
    }

    fn remember(&mut self, subject: Subject, published: Published) {
        if self.published.len() >= REMEMBERED {
            self.published.retain(|_, last| last.at + SERIES > published.at);
        }
        if self.published.len() >= REMEMBERED {
            self.published.clear();
        }
        self.published.insert(subject, published);
    }
}

/// The Event, dated when it happened and not when it is published.
fn event(told: &Told, instance: &str) -> Event {
    let about = told.about.name.as_deref().unwrap_or(CONTROLLER);
    let about = about.get(..LONGEST_NAME).unwrap_or(about).trim_end_matches(['.', '-']);
    Event {
        action: Some("Reconcile".to_owned()),
        event_time: Some(MicroTime(told.at)),
        metadata: ObjectMeta {
            name: Some(format!("{about}.{:x}", told.at.as_nanosecond())),
            namespace: told.about.namespace.clone(),
            ..ObjectMeta::default()
        },
        note: Some(told.notice.note.clone()),
        reason: Some(told.notice.reason.clone()),
        regarding: Some(told.about.clone()),
        reporting_controller: Some(CONTROLLER.to_owned()),
        reporting_instance: Some(instance.to_owned()),
        type_: Some(if told.notice.warning { "Warning" } else { "Normal" }.to_owned()),
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ObjectReference;

    use super::*;
    use crate::events::{Events, Notice};
    use crate::scenario::shelf::Shelf;

    fn scene() -> (Shelf, Events, Publisher) {
        let shelf = Shelf::default();
        let (events, publisher) = Events::new(shelf.client(), "me".to_owned(), Clock::start(), Metrics::default());
        (shelf, events, publisher)
    }

    fn about(name: &str) -> ObjectReference {
        ObjectReference {
            name: Some(name.to_owned()),
            namespace: Some("default".to_owned()),
            uid: Some(format!("uid-of-{name}")),
            resource_version: Some("7".to_owned()),
            ..ObjectReference::default()
        }
    }

    fn notice(warning: bool, reason: &str, note: &str) -> Notice {
        Notice { warning, reason: reason.to_owned(), note: note.to_owned() }
    }

    fn counted(metrics: &Metrics, outcome: &str) -> u64 {
        let line = format!("kaniop_events_total{{outcome=\"{outcome}\"}} ");
        let text = metrics.encode().unwrap();
        text.lines().find_map(|found| found.strip_prefix(&line)?.parse().ok()).unwrap_or(0)
    }

    #[tokio::test]
    async fn the_same_again_is_counted_and_another_note_is_told_by_itself() {
        let (shelf, events, mut publisher) = scene();
        for note in ["a", "a", "a", "b"] {
            events.tell(about("x"), notice(false, "DriftRepaired", note));
        }
        events.tell(about("y"), notice(false, "DriftRepaired", "a"));
        publisher.drain().await;
        let told = shelf.held.lock().unwrap().told.clone();
        let series: Vec<_> = told.iter().map(|event| event["series"]["count"].as_i64()).collect();
        assert_eq!(series, [None, Some(2), Some(3), None, None], "{told:?}");
        assert!(told[0]["regarding"]["resourceVersion"].is_null(), "{}", told[0]);
        assert_eq!(told[0]["reportingController"], "kaniop");
    }

    #[tokio::test]
    async fn a_warning_overtakes_what_is_merely_told() {
        let (shelf, events, mut publisher) = scene();
        events.tell(about("x"), notice(false, "EntryCreated", ""));
        events.tell(about("x"), notice(true, "Conflict", ""));
        publisher.drain().await;
        assert_eq!(shelf.held.lock().unwrap().events, ["Conflict", "EntryCreated"]);
    }

    #[tokio::test]
    async fn what_finds_no_room_is_dropped_and_counted_and_warnings_have_room_of_their_own() {
        let (shelf, events, mut publisher) = scene();
        for number in 0..=super::super::QUEUED {
            events.tell(about(&number.to_string()), notice(false, "EntryCreated", ""));
        }
        events.tell(about("x"), notice(true, "Conflict", ""));
        publisher.drain().await;
        assert_eq!(shelf.held.lock().unwrap().events.len(), super::super::QUEUED + 1);
        assert_eq!(counted(&publisher.metrics, "dropped"), 1);
        assert_eq!(counted(&publisher.metrics, "published"), 8193);
    }

    #[tokio::test]
    async fn many_are_told_at_a_pace_and_the_rest_at_once_when_the_operator_ends() {
        let (shelf, events, publisher) = scene();
        let (stop, stopping) = watch::channel(false);
        // At its pace, this would take minutes.
        for number in 0..5000 {
            events.tell(about(&number.to_string()), notice(false, "EntryCreated", ""));
        }
        let clock = Clock::start();
        let running = tokio::spawn(publisher.run(stopping));
        while shelf.held.lock().unwrap().told.len() < 55 {
            tokio::task::yield_now().await;
        }
        assert!(clock.elapsed() >= Duration::from_millis(100), "{:?}", clock.elapsed());
        drop(events);
        stop.send_replace(true);
        tokio::time::timeout(Duration::from_secs(60), running).await.unwrap().unwrap();
        assert_eq!(shelf.held.lock().unwrap().told.len(), 5000);
    }

    #[test]
    fn an_event_is_dated_when_it_happened_and_its_name_is_never_too_long() {
        let at: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let told = Told { about: about(&"x".repeat(253)), notice: notice(true, "Conflict", "n"), at };
        let event = event(&told, "me");
        assert_eq!(event.event_time, Some(MicroTime(at)));
        assert_eq!(event.metadata.name.unwrap().len(), 253);
    }
}
