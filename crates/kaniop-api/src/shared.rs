//! Fields that several kinds have in common.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which Kanidm an identity belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
pub struct KanidmRef {
    /// Name of the Kanidm.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the Kanidm; the object's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
}

/// What to do when the entry of this object's name exists already and is not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AdoptionPolicy {
    /// Leave it alone and say so.
    Never,
    /// Take it over. Counts only in the Kanidm's own namespace and in those that its `adoptionNamespaceSelector` selects.
    Adopt,
}

/// What becomes of the entry when this object is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// It is deleted. What the server itself made never is.
    Delete,
    /// It stays on the server.
    Retain,
}

/// When credentials are made anew without anybody asking.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretRotation {
    /// Whether they are.
    #[serde(default)]
    pub enabled: bool,
    /// How long they live, in days.
    #[serde(default = "default_period_days")]
    #[schemars(range(min = 1, max = 3650))]
    pub period_days: i64,
}

fn default_period_days() -> i64 {
    90
}

/// Labels and annotations for what the operator makes, besides the operator's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetadataTemplate {
    /// Annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 64))]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 64))]
    pub labels: Option<BTreeMap<String, String>>,
}

/// A picture on the web.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageSource {
    /// Where it is: https, a public host, at most 256 KiB and 1024 by 1024 pixels of png, jpg, gif, svg or webp.
    #[schemars(length(min = 9, max = 2048), regex(pattern = "^https://"))]
    pub url: String,
}

/// Makes an account a POSIX one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PosixAccount {
    /// Numeric id of account and group; the server chooses one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4294967294_i64))]
    pub gidnumber: Option<i64>,
    /// Login shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub loginshell: Option<String>,
}

/// Status of every identity kind. Every field is optional, so that the smaller status of an older release still reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityStatus {
    /// `metadata.generation` that the conditions speak of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`, `Synced`, `Exists` and, for accounts, `Valid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// The condition `Ready` as a boolean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// The Kanidm as `namespace/name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kanidm_ref: Option<String>,
    /// UUID of the entry, pinned when it was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// The POSIX id as the server has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<i64>,
    /// Whether the entry was there before this object and was taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopted: Option<bool>,
    /// Name of the Secret with the object's credentials, where it has exactly one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// The picture that was put on the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageStatus>,
    /// The list of attestation authorities that was put on the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attestation_ca_list: Option<Told>,
    /// What the operator itself put into sets that others write to as well, by field: it removes nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed: Option<BTreeMap<String, Vec<String>>>,
}

/// A value that the server does not show as it was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    /// SHA-256 of what was given, hexadecimal.
    pub sha256: String,
    /// How the server shows it.
    pub digest: String,
}

/// A picture as it was put on the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageStatus {
    /// Where it came from.
    pub url: String,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
    /// How the server shows it.
    pub digest: String,
    /// What its server calls this state of it, for asking whether it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

/// A kind whose objects stand for one entry on a Kanidm server: what the one engine needs to know of its API type.
pub trait Identity {
    /// Which Kanidm the entry lives on.
    fn kanidm_ref(&self) -> &KanidmRef;
    /// The entry's name on the server, where it differs from the object's.
    fn kanidm_name(&self) -> Option<&str>;
    /// What the object itself says of entries that exist already, and of its own entry when it goes.
    fn policies(&self) -> (Option<AdoptionPolicy>, Option<DeletionPolicy>);
    /// Status as last written.
    fn identity_status(&self) -> Option<&IdentityStatus>;
}

/// Implements [`Identity`] for a kind with the usual field names.
macro_rules! identity {
    ($kind:ty) => {
        impl $crate::shared::Identity for $kind {
            fn kanidm_ref(&self) -> &$crate::shared::KanidmRef {
                &self.spec.kanidm_ref
            }
            fn kanidm_name(&self) -> Option<&str> {
                self.spec.kanidm_name.as_deref()
            }
            fn policies(&self) -> (Option<$crate::shared::AdoptionPolicy>, Option<$crate::shared::DeletionPolicy>) {
                (self.spec.adoption_policy, self.spec.deletion_policy)
            }
            fn identity_status(&self) -> Option<&$crate::shared::IdentityStatus> {
                self.status.as_ref()
            }
        }
    };
}
pub(crate) use identity;
