//! The server nodes: groups of our own, and those of elsewhere that replicate with them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, ResourceRequirements, SecretKeySelector, Toleration, TopologySpreadConstraint,
};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nodes that are configured alike: one StatefulSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaGroup {
    /// Name of the group, part of the pods' names.
    #[schemars(length(min = 1, max = 50), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Number of nodes.
    #[schemars(range(min = 0, max = 100))]
    pub replicas: i32,
    /// What the nodes serve.
    #[serde(default)]
    pub role: Role,
    /// Node 0 of this group is the primary: the one that the operator and all other nodes turn to.
    #[serde(default)]
    pub primary_node: bool,
    /// A Service with an address of its own for each node, for replication with nodes of elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services: Option<NodeServices>,
    /// Annotations of the StatefulSet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stateful_set_annotations: Option<BTreeMap<String, String>>,
    /// Resources of the server container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Labels of the nodes that the pods may run on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Affinity of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// Tolerations of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Toleration>>,
    /// How the pods spread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology_spread_constraints: Option<Vec<TopologySpreadConstraint>>,
}

/// What a node serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Everything.
    #[default]
    WriteReplica,
    /// Everything but the web pages.
    WriteReplicaNoUi,
    /// Meant for reading; the server itself does not refuse writes.
    ReadOnlyReplica,
}

/// One Service of type LoadBalancer for each node of a group. In the texts `{replica_index}`, `{pod_name}` and `{domain}` stand for the node's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeServices {
    /// Annotations of each Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations_template: Option<BTreeMap<String, String>>,
    /// Name by which nodes of elsewhere reach the node, for example `{pod_name}.{domain}`. Absent: the name in the cluster's DNS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub replication_hostname_template: Option<String>,
    /// Labels besides the operator's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_labels: Option<BTreeMap<String, String>>,
}

/// A node of elsewhere that replicates with the nodes of this Kanidm. Joining it may replace the data of this Kanidm by that of the node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "!has(self.automaticRefresh) || !self.automaticRefresh || !has(self.type) || self.type != 'allow-pull'",
    "automaticRefresh is only possible for mutual-pull and pull."
))]
pub struct ExternalNode {
    /// Name in this list.
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// DNS name of the node; an address is refused by the server.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?$"))]
    pub hostname: String,
    /// Its replication port.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// Its replication certificate, base64url of DER as its server shows it, in a Secret of the Kanidm's namespace.
    pub certificate: SecretKeySelector,
    /// Who copies from whom.
    #[serde(default, rename = "type")]
    pub type_: ReplicationType,
    /// Whether this Kanidm may replace its whole data by the node's.
    #[serde(default)]
    pub automatic_refresh: bool,
}

/// Who copies from whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReplicationType {
    /// Both from each other.
    #[default]
    MutualPull,
    /// The node from us.
    AllowPull,
    /// We from the node.
    Pull,
}
