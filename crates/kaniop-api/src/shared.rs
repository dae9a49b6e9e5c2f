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
    /// What the operator itself put into sets that others write to as well, by field: it removes nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed: Option<BTreeMap<String, Vec<String>>>,
}

/// A kind whose objects stand for one entry on a Kanidm server: what the one engine needs to know of its API type.
pub trait Identity {
    /// Which Kanidm the entry lives on.
    fn kanidm_ref(&self) -> &KanidmRef;
    /// The entry's name on the server, where it differs from the object's.
    fn kanidm_name(&self) -> Option<&str>;
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
            fn identity_status(&self) -> Option<&$crate::shared::IdentityStatus> {
                self.status.as_ref()
            }
        }
    };
}
pub(crate) use identity;
