//! Metrics in the OpenMetrics format, and who counts what.

mod backups;

use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

pub use backups::BackupFigures;
use kaniop_kanidm::{Operation, Outcome, Requests};

/// A pass of one kind that ended so.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct PassLabels {
    /// Kind of the object.
    pub kind: &'static str,
    /// `ok`, or the label of the error.
    pub outcome: &'static str,
}

/// A kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct KindLabels {
    /// Kind of the object.
    pub kind: &'static str,
}

/// What became of an Event.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct EventLabels {
    /// `published`, `failed` or `dropped`.
    pub outcome: &'static str,
}

/// Everything that the operator counts.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    passes: Family<PassLabels, Counter>,
    durations: Family<KindLabels, Histogram, fn() -> Histogram>,
    changes: Family<KindLabels, Counter>,
    events: Family<EventLabels, Counter>,
    events_waiting: Gauge,
    leader: Gauge,
    /// Requests to all Kanidm servers.
    pub requests: Arc<Requests>,
    /// Backups of every Kanidm.
    pub backups: BackupFigures,
}

impl Default for Metrics {
    fn default() -> Self {
        let passes = Family::<PassLabels, Counter>::default();
        let durations = Family::<KindLabels, Histogram, fn() -> Histogram>::new_with_constructor(histogram);
        let changes = Family::<KindLabels, Counter>::default();
        let events = Family::<EventLabels, Counter>::default();
        let (events_waiting, leader) = (Gauge::default(), Gauge::default());
        let requests = Arc::new(Requests::default());
        let mut registry = Registry::with_prefix("kaniop");
        registry.register("reconciliations", "Passes over objects, by how they ended", passes.clone());
        registry.register("reconcile_duration_seconds", "How long a pass took", durations.clone());
        registry.register("kanidm_changes", "Changes made on Kanidm servers", changes.clone());
        registry.register("events", "Events, by what became of them", events.clone());
        registry.register("events_waiting", "Events that wait to be published", events_waiting.clone());
        registry.register("leader", "1 while this operator holds the lease", leader.clone());
        registry.register_collector(Box::new(KanidmRequests(requests.clone())));
        let backups = BackupFigures::default();
        registry.register_collector(Box::new(backups.clone()));
        Self {
            registry: Arc::new(registry),
            passes,
            durations,
            changes,
            events,
            events_waiting,
            leader,
            requests,
            backups,
        }
    }
}

fn histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 4.0, 9))
}

impl Metrics {
    /// A pass ended.
    pub fn pass(&self, kind: &'static str, outcome: &'static str, seconds: f64) {
        self.passes.get_or_create(&PassLabels { kind, outcome }).inc();
        self.durations.get_or_create(&KindLabels { kind }).observe(seconds);
    }

    /// Something was changed on a Kanidm server for an object of this kind.
    pub fn changed(&self, kind: &'static str) {
        self.changes.get_or_create(&KindLabels { kind }).inc();
    }

    /// An Event waits to be published.
    pub fn event_waits(&self) {
        self.events_waiting.inc();
    }

    /// An Event that waited was published, or could not be.
    pub fn event_ended(&self, published: bool) {
        self.events_waiting.dec();
        self.events.get_or_create(&EventLabels { outcome: if published { "published" } else { "failed" } }).inc();
    }

    /// An Event found no room to wait.
    pub fn event_dropped(&self) {
        self.events.get_or_create(&EventLabels { outcome: "dropped" }).inc();
    }

    /// Whether the lease is ours.
    pub fn leading(&self, leading: bool) {
        self.leader.set(i64::from(leading));
    }

    /// Everything, as text.
    ///
    /// # Errors
    /// When a metric cannot be written as text: a defect.
    pub fn encode(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// Shows the client's own counters.
#[derive(Debug)]
struct KanidmRequests(Arc<Requests>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    operation: &'static str,
    outcome: &'static str,
}

impl Collector for KanidmRequests {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let help = "Requests to Kanidm servers, by operation and outcome";
        let mut family = encoder.encode_descriptor("kanidm_requests", help, None, MetricType::Counter)?;
        for operation in Operation::ALL {
            for outcome in Outcome::ALL {
                let labels = RequestLabels { operation: operation.as_str(), outcome: outcome.as_str() };
                ConstCounter::new(self.0.count(operation, outcome)).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_shown_with_its_prefix_and_labels() {
        let metrics = Metrics::default();
        metrics.pass("KanidmGroup", "ok", 0.01);
        metrics.leading(true);
        let text = metrics.encode().unwrap();
        for line in [
            r#"kaniop_reconciliations_total{kind="KanidmGroup",outcome="ok"} 1"#,
            "kaniop_leader 1",
            r#"kaniop_kanidm_requests_total{operation="list",outcome="done"} 0"#,
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
