//! What users may add to the pods, and their settings.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much the server logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Everything, internals included.
    Trace,
    /// For finding faults.
    Debug,
    /// For daily use.
    #[default]
    Info,
}

/// When the kubelet pulls an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PullPolicy {
    /// At every start.
    Always,
    /// When it is not there yet.
    IfNotPresent,
    /// Never.
    Never,
}

/// Which addresses the server binds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IpFamily {
    /// All IPv4 addresses.
    #[default]
    Ipv4,
    /// All IPv6 addresses, and IPv4 ones where the machine maps them.
    Ipv6,
}

/// Where the pods resolve names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DnsPolicy {
    /// In the cluster, and what it does not know elsewhere.
    ClusterFirst,
    /// The same for pods in their machine's network.
    ClusterFirstWithHostNet,
    /// As their machine does.
    Default,
    /// Only as `dnsConfig` says.
    None,
}

/// What else the pods carry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodOptions {
    /// Annotations of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Labels of the pods besides the operator's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// PriorityClass of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub priority_class_name: Option<String>,
    /// Seconds that a server has to stop cleanly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86400))]
    pub termination_grace_period_seconds: Option<i64>,
}
