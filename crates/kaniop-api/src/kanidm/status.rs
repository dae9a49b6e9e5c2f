//! What the operator tells of a Kanidm.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::de::value;
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde::{Deserialize, Deserializer, Serialize};

use super::backup::BackupStatus;

use crate::restore::Maintenance;

/// What is known of a Kanidm. Every field is optional, so that an older status still reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KanidmStatus {
    /// `metadata.generation` that the conditions speak of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`, `Available`, `Initialized`, `Progressing`, `UpgradeBlocked`, `CertificatesValid`; `ReplicationHealthy` where there is something to replicate
    /// with, `BackupHealthy` where backups are asked for.
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
    /// The restore that has claimed this Kanidm, once nothing else changes the cluster any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Maintenance>,
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
    /// The version that the server names in its answers, as last seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_version: Option<String>,
    /// Domain level of the database: how far it was migrated. The highest, where nodes differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain_level: Option<u32>,
    /// The backup that was made before the last upgrade: the way back, by a restore with the image beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade_backup: Option<UpgradeBackup>,
    /// Whether the image of the spec may run on the database.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known")]
    pub upgrade_check_result: Option<UpgradeCheckResult>,
    /// Whether this operator is made for the server that runs.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known")]
    pub compatibility_result: Option<CompatibilityResult>,
}

/// A backup that was made before an upgrade.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeBackup {
    /// Its file, in the folder of backups.
    pub file_name: String,
    /// The image that made it, and that can restore it.
    pub image: String,
}

/// Whether the image of the spec may run on the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpgradeCheckResult {
    /// It may: it is of the database's release or the next, or there is no database yet.
    Passed,
    /// It may not: it is of an older release, or one lies between, or it is of one that this operator is not made for.
    Failed,
    /// Nobody can tell which release it is of, or which one the database is of. It is not taken.
    Unknown,
    /// `disableUpgradeChecks` is set.
    Skipped,
}

/// Whether this operator is made for the server that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CompatibilityResult {
    /// It is.
    Compatible,
    /// It is not, and nothing of the server is touched.
    Incompatible,
    /// The server has not told.
    Unknown,
}

/// A word of a closed list, or nothing for one that another release of the operator wrote: a status must never keep an object from being read.
fn known<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Option<T>, D::Error> {
    let word = Option::<String>::deserialize(from)?;
    Ok(word.and_then(|word| T::deserialize(IntoDeserializer::<value::Error>::into_deserializer(word)).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_another_release_keeps_no_status_from_being_read() {
        let read = |words: &str| serde_json::from_str::<VersionStatus>(words).unwrap();
        let ours =
            read(r#"{"upgradeCheckResult": "Passed", "compatibilityResult": "Compatible", "imageTag": "1.10.5"}"#);
        assert_eq!(ours.upgrade_check_result, Some(UpgradeCheckResult::Passed));
        assert_eq!(ours.compatibility_result, Some(CompatibilityResult::Compatible));
        let theirs = read(r#"{"upgradeCheckResult": "Maybe", "compatibilityResult": null, "imageTag": "1.10.5"}"#);
        assert_eq!((theirs.upgrade_check_result, theirs.compatibility_result), (None, None));
        assert_eq!(theirs.image_tag.as_deref(), Some("1.10.5"));
    }
}
