//! What every controller is given.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kaniop_api::Kanidm;
use kube::Client;
use kube::runtime::reflector::Store;

use crate::clock::Clock;
use crate::events::Events;
use crate::leader::Guard;
use crate::metrics::Metrics;
use crate::picture::Rules;
use crate::targets::Targets;

/// How this operator was started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Image of the operator itself, for the init container that brings the node helper.
    pub image: String,
    /// How often each server is looked at when nothing happens.
    pub interval: Duration,
    /// The one namespace to watch; all when absent.
    pub namespace: Option<String>,
    /// What fetching a picture keeps to.
    pub pictures: Rules,
}

/// What every controller is given.
#[derive(Clone)]
pub struct Context {
    /// The API server.
    pub client: Client,
    /// The time.
    pub clock: Clock,
    /// Whether we may act.
    pub guard: Guard,
    /// The servers that can be reached, each with its snapshot.
    pub targets: Arc<Targets>,
    /// Every Kanidm.
    pub kanidms: Store<Kanidm>,
    /// Every namespace (only our own in a namespaced installation).
    pub namespaces: Store<Namespace>,
    /// Events.
    pub events: Events,
    /// Metrics.
    pub metrics: Metrics,
    /// How this operator was started.
    pub options: Options,
}
