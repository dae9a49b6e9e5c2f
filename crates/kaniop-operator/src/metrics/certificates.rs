//! Until when the certificates of the Kanidms are good.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// By namespace and name of a Kanidm: its Secret, and when the certificate in it ends.
type Ends = BTreeMap<(String, String), (String, i64)>;

/// What is known of the Kanidms' certificates.
#[derive(Clone, Debug, Default)]
pub(super) struct Certificates(Arc<Mutex<Ends>>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    namespace: String,
    name: String,
    secret: String,
}

impl Certificates {
    /// Notes what is known of a Kanidm now.
    pub(super) fn set(&self, namespace: &str, name: &str, end: Option<(String, i64)>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (namespace.to_owned(), name.to_owned());
        match end {
            Some(end) => drop(known.insert(key, end)),
            None => drop(known.remove(&key)),
        }
    }
}

impl Collector for Certificates {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let help = "When the certificate of a Kanidm ends, in seconds since 1970";
        let mut family =
            encoder.encode_descriptor("certificate_not_after", help, Some(&Unit::Seconds), MetricType::Gauge)?;
        for ((namespace, name), (secret, end)) in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let labels = Labels { namespace: namespace.clone(), name: name.clone(), secret: secret.clone() };
            ConstGauge::new(*end).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
