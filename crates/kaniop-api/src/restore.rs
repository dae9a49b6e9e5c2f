//! `KanidmRestore`: putting the database of a Kanidm back to one of its backups.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// On a Kanidm: UID of the restore that has claimed it. While it stands, nothing but that restore changes the cluster or its identities.
pub const CLAIM: &str = "kanidm.kaniop.rs/restore-in-progress";
/// On a claimed Kanidm: which of its servers may run, as in [`Servers`]; none when absent.
pub const CLAIM_SERVERS: &str = "kanidm.kaniop.rs/restore-servers";
/// On a KanidmRestore that failed after it had begun to change the database: a reason, in words, to let the Kanidm go all the same.
pub const FORCE_RELEASE: &str = "restore.kaniop.rs/force-release";
/// Keeps a KanidmRestore until its end leaves nothing half done.
pub const FINALIZER: &str = "kanidmrestores.kaniop.rs/finalizer";

/// Puts the database of a Kanidm back to one of its backups: destructive, once, and never undone by deleting this object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "kaniop.rs",
    version = "v1beta1",
    kind = "KanidmRestore",
    plural = "kanidmrestores",
    singular = "kanidmrestore",
    shortname = "idmrestore",
    category = "kaniop",
    namespaced,
    status = "KanidmRestoreStatus",
    printcolumn = r#"{"name":"Target","type":"string","jsonPath":".spec.targetRef.name"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.message"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("self == oldSelf", "KanidmRestore spec is immutable"))]
pub struct KanidmRestoreSpec {
    /// The Kanidm, in the same namespace.
    pub target_ref: TargetRef,
    /// Where the backup is.
    pub source: RestoreSource,
    /// Image of the server that wrote the backup, by exact tag or digest: a backup is read only by a server of its own minor release.
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = (
        "self.contains('@') || (self.matches(':[A-Za-z0-9_][A-Za-z0-9._-]*$') && !self.endsWith(':latest'))",
        "restoreImage needs an exact tag or a digest, not 'latest'"
    ))]
    pub restore_image: String,
}

/// Which Kanidm, and that it is still the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetRef {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its `metadata.uid`: another Kanidm that is created under the same name is never touched.
    #[schemars(length(min = 1, max = 64))]
    pub uid: String,
}

/// Where the backup is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreSource {
    /// On the volume of the primary.
    pub local: LocalSource,
}

/// A backup on the volume of the primary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalSource {
    /// Name of the file in `/data/backups`, without any folder.
    #[schemars(length(min = 1, max = 255))]
    #[x_kube(validation = (
        "!self.contains('/') && self != '.' && self != '..'",
        "fileName must be the plain name of a file in /data/backups"
    ))]
    pub file_name: String,
}

/// How far a restore is. Phases move along the list, or to `Failed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Not looked at yet.
    #[default]
    Pending,
    /// Everything that can be checked without an outage is checked; nothing is touched.
    Validating,
    /// The servers are stopped and the file is proven once more. A failure up to here is undone.
    Quiescing,
    /// The database is being replaced. From here on a failure leaves the Kanidm offline.
    RestoringPrimary,
    /// The restored database is compared with the backup.
    Verifying,
    /// The other nodes' databases are discarded, the primary is started alone, then the others join it anew.
    RebuildingReplicas,
    /// Credentials that the backup brought back are replaced.
    Resuming,
    /// The Kanidm serves the restored data.
    Completed,
    /// It did not succeed; the message says what to do.
    Failed,
}

/// Which servers of a claimed Kanidm may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Servers {
    /// None.
    #[default]
    None,
    /// The primary alone, without peers.
    Primary,
    /// All that the spec wants.
    All,
}

impl Servers {
    /// As it stands in an annotation.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Primary => "primary",
            Self::All => "all",
        }
    }

    /// Reads the annotation. Whatever is not known lets no server run.
    #[must_use]
    pub fn of(annotation: Option<&str>) -> Self {
        [Self::Primary, Self::All].into_iter().find(|servers| annotation == Some(servers.as_str())).unwrap_or_default()
    }
}

/// In the status of a Kanidm: the restore whose claim the cluster's controller has acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Maintenance {
    /// Name of the restore.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Which servers can start, as the pods' configuration says.
    #[serde(default)]
    pub servers: Servers,
}

/// What is known of a restore. Every field is optional, so that an older status still reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KanidmRestoreStatus {
    /// `metadata.generation` that the conditions speak of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`, `Progressing`, `Failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// What happens, or what it waits for, or what went wrong and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// UID of the Kanidm that was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_target_uid: Option<String>,
    /// The Job that replaces the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_job_name: Option<String>,
    /// The Job that reads the restored database back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify_job_name: Option<String>,
    /// Whether the database may have been changed: set before the Job that does it exists. A failure from then on leaves the Kanidm offline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_mutation_started: Option<bool>,
    /// Whether no volume with data from before the restore is left but the primary's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas_cleared: Option<bool>,
    /// Whether credentials that the backup brought back are replaced and the new ones work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_renewed: Option<bool>,
    /// What it was decided to do, before anything was touched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<RestorePlan>,
    /// What was read from the backup and from the restored database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<RestoreEvidence>,
    /// Where the database from before lies on the primary's volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safety_copy: Option<String>,
    /// When each phase began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_times: Option<BTreeMap<String, Time>>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<RestoreFailure>,
    /// The reason with which somebody let the Kanidm go after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force_released: Option<String>,
}

/// What it was decided to do, before anything was touched. It only ever grows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestorePlan {
    /// The replica groups with the counts that the spec asked for.
    pub groups: Vec<PlannedGroup>,
    /// The primary's pod.
    pub primary: String,
    /// The primary's volume, which is restored.
    pub primary_claim: PlannedClaim,
    /// Every other volume of the Kanidm, those of former nodes and groups too: discarded once the restored database is proven.
    pub claims: Vec<PlannedClaim>,
    /// Image that restores.
    pub image: String,
    /// UIDs of earlier restores that failed after they had begun to change the database, oldest first. Their plan is in this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predecessors: Vec<String>,
}

/// A replica group as the spec had it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedGroup {
    /// Its StatefulSet.
    pub statefulset: String,
    /// Its number of nodes.
    pub replicas: i32,
}

/// A PersistentVolumeClaim. One that is made again under its name is another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedClaim {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

/// What was read from the backup and from the restored database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreEvidence {
    /// The backup.
    pub source: DatabaseEvidence,
    /// The restored database, backed up again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<DatabaseEvidence>,
    /// Whether both agree.
    #[serde(default)]
    pub agrees: bool,
}

/// What identifies the content of a database, without any of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseEvidence {
    /// Minor release that wrote it, such as `1.10`.
    pub version: String,
    /// UUID of the domain.
    pub domain_uuid: String,
    /// UUID of the server.
    pub server_uuid: String,
    /// SHA-256 of the key handles, hexadecimal.
    pub key_handles: String,
    /// Number of entries.
    pub entries: i64,
    /// Whether the server's own check of the database found faults.
    #[serde(default)]
    pub inconsistent: bool,
}

/// What went wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreFailure {
    /// In which phase.
    pub phase: Phase,
    /// Kind of failure.
    pub cause: Cause,
    /// What happened, for people.
    pub message: String,
}

/// Kinds of failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Cause {
    /// The request cannot be carried out.
    #[default]
    InvalidRequest,
    /// Another restore has claimed the Kanidm.
    Busy,
    /// The Kanidm is gone, being deleted, or another one of the same name.
    TargetGone,
    /// Something did not come about in time.
    DeadlineExceeded,
    /// A Job failed.
    JobFailed,
    /// The backup, or what was restored, is not what it should be.
    EvidenceDiffers,
    /// The claim went to somebody else.
    ClaimLost,
    /// The KanidmRestore was deleted.
    Deleted,
}
