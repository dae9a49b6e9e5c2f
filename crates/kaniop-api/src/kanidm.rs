//! `Kanidm`: a Kanidm deployment.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSetPersistentVolumeClaimRetentionPolicy;
use k8s_openapi::api::core::v1::{
    Affinity, EmptyDirVolumeSource, EnvVar, EphemeralVolumeSource, LocalObjectReference, PersistentVolumeClaimSpec,
    PodSecurityContext, ResourceRequirements, Toleration, TopologySpreadConstraint,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shared::{AdoptionPolicy, DeletionPolicy};

/// A Kanidm deployment: one domain, its server nodes and how they are reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "kaniop.rs",
    version = "v1beta1",
    kind = "Kanidm",
    plural = "kanidms",
    singular = "kanidm",
    shortname = "idm",
    category = "kaniop",
    namespaced,
    status = "KanidmStatus",
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9-]+$')").message("name must consist of lower-case letters, digits and '-'"),
    validation = Rule::new("self.metadata.name.size() <= 48").message("name must be at most 48 characters"),
    validation = Rule::new("self.spec.replicaGroups.all(g, self.metadata.name.size() + g.name.size() <= 51)")
        .message("name and the longest replica group name together must be at most 51 characters"),
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Replicas","type":"string","jsonPath":".status.replicaColumn"}"#,
    printcolumn = r#"{"name":"Version","type":"string","jsonPath":".status.version.imageTag"}"#,
    printcolumn = r#"{"name":"Domain","type":"string","jsonPath":".spec.domain"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Secret","type":"string","jsonPath":".status.secretName","priority":1}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("self.domain == oldSelf.domain", "Domain cannot be changed."),
    validation = (
        "has(self.storage) && has(self.storage.volumeClaimTemplate) && !has(self.storage.emptyDir) && !has(self.storage.ephemeral) || self.replicaGroups.map(g, g.replicas).sum() <= 1",
        "Replication not available for ephemeral storage."
    ),
    validation = ("self.replicaGroups.filter(g, has(g.primaryNode) && g.primaryNode).size() <= 1", "at most one replica group may have primaryNode: true"),
    validation = (
        "self.replicaGroups.size() == 1 && self.replicaGroups.map(g, g.replicas).sum() <= 1",
        "more than one node needs replication, which this release does not run yet: use one replica group with at most one replica"
    )
)]
pub struct KanidmSpec {
    /// DNS name of the identity domain, lower case. Cannot be changed: it is part of every credential.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub domain: String,
    /// URL that clients use, `https://<domain>` when absent. May have a port; its host must be the domain or below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^https://[^/?#\s]+/?$"))]
    pub origin: Option<String>,
    /// The server nodes, in groups that are configured alike.
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub replica_groups: Vec<ReplicaGroup>,
    /// Server image. Absent: the pinned release that this operator was made for, resolved once and kept in `status.version.image`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// How much the server logs.
    #[serde(default)]
    pub log_level: LogLevel,
    /// Name of the HTTPS port of container and Service.
    #[serde(default = "default_port_name")]
    #[schemars(length(min = 1, max = 15), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub port_name: String,
    /// When the kubelet pulls the image; Kubernetes' own default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<PullPolicy>,
    /// Secrets for pulling the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub image_pull_secrets: Option<Vec<LocalObjectReference>>,
    /// Environment of the server container, placed before the operator's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub env: Option<Vec<EnvVar>>,
    /// Namespaces whose KanidmGroups may use this Kanidm: absent, its own only; `{}`, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_namespace_selector: Option<LabelSelector>,
    /// Namespaces whose KanidmPersonAccounts may use this Kanidm: absent, its own only; `{}`, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person_namespace_selector: Option<LabelSelector>,
    /// Namespaces whose KanidmOAuth2Clients may use this Kanidm: absent, its own only; `{}`, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth2_client_namespace_selector: Option<LabelSelector>,
    /// Namespaces whose KanidmServiceAccounts may use this Kanidm: absent, its own only; `{}`, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_namespace_selector: Option<LabelSelector>,
    /// For identities that do not say it themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_defaults: Option<IdentityDefaults>,
    /// Other namespaces in which `adoptionPolicy: Adopt` counts: absent, none; `{}`, all. Whoever may adopt can take over any group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adoption_namespace_selector: Option<LabelSelector>,
    /// Where the database lives; an emptyDir when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
    /// Secret with `tls.crt`, `tls.key` and, for a private authority, `ca.crt`; `<name>-tls` when absent. It may arrive late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub tls_secret_name: Option<String>,
    /// The Service that clients use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceOptions>,
    /// Security context of the pods, instead of the hardened default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_context: Option<PodSecurityContext>,
    /// What becomes of the claims when the StatefulSet is deleted or scaled down; Kubernetes' own default (`Retain`) when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim_retention_policy: Option<StatefulSetPersistentVolumeClaimRetentionPolicy>,
    /// Reconcile nothing of this cluster and its identities, and say so in `Ready`.
    #[serde(default)]
    pub paused: bool,
}

fn default_port_name() -> String {
    "https".to_owned()
}

/// For identities that do not say it themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityDefaults {
    /// What to do when an entry of an object's name exists already; `Never` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adoption_policy: Option<AdoptionPolicy>,
    /// What becomes of an entry when its object is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
}

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

/// Where the database lives: the first of the three that is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// A volume that ends with the pod. For trying out only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_dir: Option<EmptyDirVolumeSource>,
    /// A generic ephemeral volume, which ends with the pod too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<EphemeralVolumeSource>,
    /// A claim for each node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_claim_template: Option<ClaimTemplate>,
}

/// A claim for each node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimTemplate {
    /// Labels and annotations of the claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<MetadataTemplate>,
    /// Their spec.
    pub spec: PersistentVolumeClaimSpec,
}

/// Labels and annotations for something that the operator makes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetadataTemplate {
    /// Annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
}

/// The Service that clients use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceOptions {
    /// Annotations of the Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Type of the Service, `ClusterIP` when absent.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<ServiceType>,
    /// Labels besides the operator's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_labels: Option<BTreeMap<String, String>>,
}

/// Types of Service that a Kanidm can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ServiceType {
    /// An address inside the cluster.
    ClusterIP,
    /// A port on every node.
    NodePort,
    /// An address from the cloud.
    LoadBalancer,
}

/// What is known of a Kanidm. Every field is optional, so that an older status still reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KanidmStatus {
    /// `metadata.generation` that the conditions speak of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`, `Available`, `Initialized`, `Progressing`.
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
