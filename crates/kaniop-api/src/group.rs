//! `KanidmGroup`: a group on a Kanidm server.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::shared::{IdentityStatus, KanidmRef, identity};

/// A group on a Kanidm server. What is absent here is left alone on the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "kaniop.rs",
    version = "v1beta1",
    kind = "KanidmGroup",
    plural = "kanidmgroups",
    singular = "kanidmgroup",
    shortname = "kg",
    category = "kaniop",
    namespaced,
    status = "IdentityStatus",
    printcolumn = r#"{"name":"Kanidm","type":"string","jsonPath":".status.kanidmRef"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"ManagedBy","type":"string","jsonPath":".spec.entryManagedBy","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "(has(self.kanidmName) ? self.kanidmName : '') == (has(oldSelf.kanidmName) ? oldSelf.kanidmName : '')",
    "kanidmName cannot be changed."
))]
pub struct KanidmGroupSpec {
    /// The Kanidm that the group lives on.
    pub kanidm_ref: KanidmRef,
    /// Name of the entry, where Kubernetes would not allow it as a name. Cannot be changed, added or removed later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub kanidm_name: Option<String>,
    /// Human-readable description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub description: Option<String>,
    /// Group or account, by name or SPN, that may change this group's members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 510))]
    pub entry_managed_by: Option<String>,
    /// Mail addresses, the first one is the primary; an empty list purges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), inner(length(min = 3, max = 254)))]
    #[x_kube(validation = (
        "self.all(a, self.exists_one(b, a.lowerAscii() == b.lowerAscii()))",
        "mail addresses must be unique, whatever their case"
    ))]
    pub mail: Option<Vec<String>>,
    /// The exact set of members, each by name or SPN. Absent: members are managed elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10000), inner(length(min = 1, max = 510)))]
    pub members: Option<Vec<String>>,
}

identity!(KanidmGroup);
