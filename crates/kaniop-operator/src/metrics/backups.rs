//! What the backups of each Kanidm come to, as metrics. A Kanidm that is gone, or makes no backups any more, is in none: an alert on its age would never end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kaniop_core::backup::Figures;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::targets::ObjectKey;

/// The figures of every Kanidm that makes backups.
#[derive(Clone, Debug, Default)]
pub struct BackupFigures(Arc<Mutex<BTreeMap<(String, String), Figures>>>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    namespace: String,
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Files {
    namespace: String,
    name: String,
    verdict: &'static str,
}

impl BackupFigures {
    /// Takes new figures of one Kanidm, and forgets those that do not exist any more.
    pub(crate) fn tell(&self, key: &ObjectKey, figures: Option<Figures>, exists: impl Fn(&ObjectKey) -> bool) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = (key.namespace.clone(), key.name.clone());
        all.retain(|(namespace, name), _| {
            let other = ObjectKey { namespace: namespace.clone(), name: name.clone() };
            other == *key || exists(&other)
        });
        match figures {
            Some(figures) => drop(all.insert(own, figures)),
            None => drop(all.remove(&own)),
        }
    }

    /// Forgets one Kanidm.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        let own = (key.namespace.clone(), key.name.clone());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&own);
    }
}

impl Collector for BackupFigures {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let single = |figure: fn(&Figures) -> Option<i64>| {
            let of = |(namespace, name): &(String, String)| Of { namespace: namespace.clone(), name: name.clone() };
            all.iter().filter_map(move |(key, figures)| Some((of(key), figure(figures)?)))
        };
        let help = "When the newest proven backup was made";
        let mut family =
            encoder.encode_descriptor("backup_last_success_timestamp_seconds", help, None, MetricType::Gauge)?;
        for (labels, value) in single(|figures| figures.last_success) {
            ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
        }
        let help = "Size of the newest proven backup";
        let mut family = encoder.encode_descriptor("backup_last_size_bytes", help, None, MetricType::Gauge)?;
        for (labels, value) in single(|figures| figures.last_size) {
            ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
        }
        let help = "Files in the folder of backups, by what they prove";
        let mut family = encoder.encode_descriptor("backup_files", help, None, MetricType::Gauge)?;
        for ((namespace, name), figures) in all.iter() {
            for (verdict, count) in &figures.files {
                let labels = Files { namespace: namespace.clone(), name: name.clone(), verdict: verdict.as_str() };
                ConstGauge::new(i64::try_from(*count).unwrap_or(i64::MAX)).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
