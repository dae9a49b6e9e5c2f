//! Where the database of each node lives.

use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, EphemeralVolumeSource, PersistentVolumeClaimSpec};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::shared::MetadataTemplate;

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
