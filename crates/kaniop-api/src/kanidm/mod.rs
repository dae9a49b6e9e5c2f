//! `Kanidm`: a Kanidm deployment.

use k8s_openapi::api::apps::v1::StatefulSetPersistentVolumeClaimRetentionPolicy;
use k8s_openapi::api::core::v1::{
    Container, EnvVar, HostAlias, LocalObjectReference, PodDNSConfig, PodSecurityContext, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::shared::{AdoptionPolicy, DeletionPolicy};

mod backup;
mod mail;
mod network;
mod nodes;
mod pod;
mod status;
mod storage;

pub use backup::{Backup, BackupFile, BackupStatus, LastBackup};
pub use mail::{DomainAppearance, MailCredentials, MailSender};
pub use network::{
    BackendTlsPolicyOptions, BackendTlsValidation, CaCertificateRef, GatewayOptions, IngressOptions, ParentRef,
    RegionIngressOptions, RouteRule, ServiceOptions, ServiceType, Toggle,
};
pub use nodes::{ExternalNode, NodeServices, ReplicaGroup, ReplicationType, Role};
pub use pod::{DnsPolicy, IpFamily, LogLevel, PodOptions, PullPolicy};
pub use status::{KanidmStatus, ReplicaState, ReplicaStatus, VersionStatus};
pub use storage::{ClaimTemplate, Storage};

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
    printcolumn = r#"{"name":"Last backup","type":"date","jsonPath":".status.backup.lastBackup.time","priority":1}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("self.domain == oldSelf.domain", "Domain cannot be changed."),
    validation = (
        "has(self.storage) && has(self.storage.volumeClaimTemplate) && !has(self.storage.emptyDir) && !has(self.storage.ephemeral) \
         || self.replicaGroups.map(g, g.replicas).sum() <= 1 && (!has(self.externalReplicationNodes) || self.externalReplicationNodes.size() == 0)",
        "Replication not available for ephemeral storage."
    ),
    validation = (
        "self.replicaGroups.filter(g, has(g.primaryNode) && g.primaryNode).size() \
         + (has(self.externalReplicationNodes) ? self.externalReplicationNodes.filter(n, has(n.automaticRefresh) && n.automaticRefresh).size() : 0) <= 1",
        "at most one replica group with primaryNode: true or external node with automaticRefresh: true"
    ),
    validation = (
        "!self.replicaGroups.exists(g, has(g.primaryNode) && g.primaryNode && has(g.role) && g.role == 'read_only_replica')",
        "primaryNode: true needs a role that takes writes"
    ),
    validation = (
        "!has(self.backup) || has(self.storage) && has(self.storage.volumeClaimTemplate) && !has(self.storage.emptyDir) && !has(self.storage.ephemeral)",
        "backup requires PVC-backed storage"
    ),
    validation = (
        "!has(self.backup) || self.replicaGroups.filter(g, has(g.primaryNode) && g.primaryNode).size() == 1",
        "backup requires exactly one primary replica group"
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
    /// Nodes of elsewhere that replicate with these. Joining one may replace the data of this Kanidm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub external_replication_nodes: Option<Vec<ExternalNode>>,
    /// Server image. Absent: the pinned release that this operator was made for, resolved once and kept in `status.version.image`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// Take any image, whatever release the database was left by. The server itself refuses what it cannot migrate.
    #[serde(default)]
    pub disable_upgrade_checks: bool,
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
    /// Volumes besides the operator's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub volumes: Option<Vec<Volume>>,
    /// Mounts of the server container besides the operator's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub volume_mounts: Option<Vec<VolumeMount>>,
    /// Containers: one named `kanidm` is merged over the server's (a JSON merge patch), others stand beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub containers: Option<Vec<Container>>,
    /// Init containers: one of the name of ours (`node`) is merged over it, others run after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub init_containers: Option<Vec<Container>>,
    /// What else the pods carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<PodOptions>,
    /// Where the pods resolve names; Kubernetes' own default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_policy: Option<DnsPolicy>,
    /// How the pods resolve names, besides `dnsPolicy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_config: Option<PodDNSConfig>,
    /// Lines for the pods' hosts file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub host_aliases: Option<Vec<HostAlias>>,
    /// Whether the pods use their machine's network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_network: Option<bool>,
    /// RuntimeClass of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub runtime_class_name: Option<String>,
    /// Whether the pods get a token for the Kubernetes API, which the server never needs; not when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automount_service_account_token: Option<bool>,
    /// Whether the pods get an environment variable for each Service; not when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_service_links: Option<bool>,
    /// Whether the pods use their machine's user namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_users: Option<bool>,
    /// Seconds that a new node must serve before it counts as available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 3600))]
    pub min_ready_seconds: Option<i32>,
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
    /// Backups that the primary's server makes by itself; none when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<Backup>,
    /// Secret with `tls.crt`, `tls.key` and, for a private authority, `ca.crt`; `<name>-tls` when absent. It may arrive late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub tls_secret_name: Option<String>,
    /// The Service that clients use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceOptions>,
    /// An Ingress for the domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<IngressOptions>,
    /// An Ingress for one region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region_ingress: Option<RegionIngressOptions>,
    /// A route of the Gateway API. Its kinds may be installed later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewayOptions>,
    /// Name of the LDAPS port (3636) of container and Service. No LDAP when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 15), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub ldap_port_name: Option<String>,
    /// Which addresses the server binds.
    #[serde(default)]
    pub ip_family: IpFamily,
    /// Whether a PodDisruptionBudget keeps all nodes but one; it does when there are several nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_disruption_budget: Option<Toggle>,
    /// Whether a NetworkPolicy lets only the server's own ports be reached, and only nodes reach the replication port; not when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_policy: Option<Toggle>,
    /// What people see when they log in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain_appearance: Option<DomainAppearance>,
    /// Kanidm's own program that sends mails; none when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mail_sender: Option<MailSender>,
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
