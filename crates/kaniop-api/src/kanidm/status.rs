//! What the operator tells of a Kanidm.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::backup::BackupStatus;

/// What is known of a Kanidm. Every field is optional, so that an older status still reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KanidmStatus {
    /// `metadata.generation` that the conditions speak of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`, `Available`, `Initialized`, `Progressing`; `ReplicationHealthy` where there is something to replicate with, `BackupHealthy` where backups
    /// are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// Nodes that exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Nodes that serve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Nodes of the newest template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_replicas: Option<i32>,
    /// Nodes that do not serve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable_replicas: Option<i32>,
    /// "serving/wanted".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_column: Option<String>,
    /// Each node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_statuses: Option<Vec<ReplicaStatus>>,
    /// Secret with the passwords of the built-in administrators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// What runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionStatus>,
    /// UUID of the domain, as the server said it first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain_uuid: Option<String>,
    /// Pod of the primary, from when its domain is known: which one it is cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_node: Option<String>,
    /// What is known of the backups. Absent when none are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupStatus>,
}

/// One node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaStatus {
    /// Its pod.
    pub pod_name: String,
    /// The StatefulSet that it belongs to.
    pub statefulset_name: String,
    /// What is known of it.
    pub state: ReplicaState,
}

/// What is known of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ReplicaState {
    /// It serves.
    Ready,
    /// It does not serve (yet).
    #[default]
    Pending,
    /// Its replication certificate ends soon or has ended; it is renewed.
    CertificateExpiring,
    /// Its replication certificate is for another host, so peers refuse it; it is renewed.
    CertificateHostInvalid,
}

/// What runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionStatus {
    /// The image: `spec.image` once a pod has served with it, or the default as it was when this Kanidm was first seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Tag or digest of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_tag: Option<String>,
}
