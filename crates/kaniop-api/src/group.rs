//! `KanidmGroup`: a group on a Kanidm server.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shared::{AdoptionPolicy, DeletionPolicy, IdentityStatus, KanidmRef, identity};

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
    printcolumn = r#"{"name":"GID","type":"integer","jsonPath":".status.gid"}"#,
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
    /// What to do when an entry of this name exists already; the Kanidm's `identityDefaults`, else `Never`, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adoption_policy: Option<AdoptionPolicy>,
    /// What becomes of the entry when this object is deleted. Absent: the Kanidm's `identityDefaults`, else `Delete` for an entry that this
    /// object created and `Retain` for one that it took over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
    /// Human-readable description; an empty one purges.
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
    /// Whether `members` is all that the group has.
    #[serde(default)]
    pub members_policy: MembersPolicy,
    /// Makes the group a POSIX group. Taking the block away later leaves it one: the server cannot undo it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posix_attributes: Option<PosixGroup>,
    /// Rules for the accounts of the group's members. Inside the block, what is absent is reset on the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_policy: Option<AccountPolicy>,
}

/// Whether `members` is all that a group has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MembersPolicy {
    /// Whoever is not named is removed.
    #[default]
    Exclusive,
    /// Members that others added stay; the operator removes only whom it added itself.
    Additive,
}

/// Makes a group a POSIX group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PosixGroup {
    /// Numeric id; the server chooses one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4294967294_i64))]
    pub gidnumber: Option<i64>,
}

/// Rules for the accounts of a group's members. What is absent is reset on the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountPolicy {
    /// Longest session, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4294967295_i64))]
    pub auth_session_expiry: Option<i64>,
    /// Weakest credential that is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_type_minimum: Option<CredentialType>,
    /// Shortest password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 128))]
    pub password_minimum_length: Option<i64>,
    /// Longest time of raised privileges after a login, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self >= 1 && self <= 3600", "privilegeExpiry must be at most 3600 seconds (1 hour)"))]
    pub privilege_expiry: Option<i64>,
    /// Authorities whose passkeys count as attested: the JSON text that the server itself takes. The server shows only names of it, so the operator
    /// remembers what it put there, and puts it there again when those names change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 262_144))]
    pub webauthn_attestation_ca_list: Option<String>,
    /// Whether the main password serves where a POSIX password is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_primary_cred_fallback: Option<bool>,
    /// Most entries that a search answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4294967295_i64))]
    pub limit_search_max_results: Option<i64>,
    /// Most entries that a search looks at without an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4294967295_i64))]
    pub limit_search_max_filter_test: Option<i64>,
}

/// Kinds of credential, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CredentialType {
    /// Any, a mere password included.
    Any,
    /// A second factor.
    Mfa,
    /// A passkey.
    Passkey,
    /// A passkey of a known maker.
    AttestedPasskey,
}

impl CredentialType {
    /// As the server writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Mfa => "mfa",
            Self::Passkey => "passkey",
            Self::AttestedPasskey => "attested_passkey",
        }
    }
}

identity!(KanidmGroup);
