//! `KanidmServiceAccount`: an account for a program on a Kanidm server.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shared::{
    AdoptionPolicy, DeletionPolicy, IdentityStatus, KanidmRef, PosixAccount, SecretRotation, identity,
};

/// An account for a program on a Kanidm server. What is absent here is left alone on the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "kaniop.rs",
    version = "v1beta1",
    kind = "KanidmServiceAccount",
    plural = "kanidmserviceaccounts",
    singular = "kanidmserviceaccount",
    shortname = "kanidmsa",
    category = "kaniop",
    namespaced,
    status = "IdentityStatus",
    printcolumn = r#"{"name":"Kanidm","type":"string","jsonPath":".status.kanidmRef"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"GID","type":"integer","jsonPath":".status.gid"}"#,
    printcolumn = r#"{"name":"Valid","type":"string","jsonPath":".status.conditions[?(@.type=='Valid')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "(has(self.kanidmName) ? self.kanidmName : '') == (has(oldSelf.kanidmName) ? oldSelf.kanidmName : '')",
    "kanidmName cannot be changed."
))]
pub struct KanidmServiceAccountSpec {
    /// The Kanidm that the account lives on.
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
    /// What the entry says of the account.
    pub service_account_attributes: ServiceAccountAttributes,
    /// Makes the account a POSIX account. Taking the block away later leaves it one: the server cannot undo it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posix_attributes: Option<PosixAccount>,
    /// API tokens, each in a Secret of its own. At most one live token per label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["label"]))]
    #[x_kube(
        validation = (
            "self.all(a, self.exists_one(b, a.label.lowerAscii() == b.label.lowerAscii()))",
            "labels must be unique, whatever their case"
        ),
        validation = (
            "self.all(a, !has(a.secretName) || self.exists_one(b, has(b.secretName) && a.secretName == b.secretName))",
            "secretNames must be unique"
        )
    )]
    pub api_tokens: Option<Vec<ApiToken>>,
    /// Whether the account gets a password, in the Secret `<name>-kanidm-service-account-credentials`.
    #[serde(default)]
    pub generate_credentials: bool,
    /// When the password is made anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_rotation: Option<SecretRotation>,
    /// When the API tokens are made anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_token_rotation: Option<SecretRotation>,
}

/// What the entry says of the account.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceAccountAttributes {
    /// Name shown to people.
    #[schemars(length(min = 1, max = 512))]
    pub displayname: String,
    /// Group or account, by name or SPN, that may change this account and its credentials. The operator has to be in it, directly or not, to do
    /// so itself: `idm_admins` always is right.
    #[schemars(length(min = 1, max = 510))]
    pub entry_managed_by: String,
    /// Mail addresses, the first one is the primary; an empty list purges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), inner(length(min = 3, max = 254)))]
    #[x_kube(validation = (
        "self.all(a, self.exists_one(b, a.lowerAscii() == b.lowerAscii()))",
        "mail addresses must be unique, whatever their case"
    ))]
    pub mail: Option<Vec<String>>,
    /// The account cannot be used before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self < timestamp('9999-01-01T00:00:00Z')", "must be before the year 9999; leave it out for never"))]
    pub account_valid_from: Option<Time>,
    /// The account cannot be used from this time on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self < timestamp('9999-01-01T00:00:00Z')", "must be before the year 9999; leave it out for never"))]
    pub account_expire: Option<Time>,
}

/// One API token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiToken {
    /// What tells it from the account's other tokens; part of its Secret's name.
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-zA-Z0-9]([-._a-zA-Z0-9]*[a-zA-Z0-9])?$"))]
    pub label: String,
    /// What it may be used for.
    #[serde(default)]
    pub purpose: TokenPurpose,
    /// When it ends; never when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self < timestamp('9999-01-01T00:00:00Z')", "must be before the year 9999; leave it out for never"))]
    pub expiry: Option<Time>,
    /// Name of its Secret; `<name>-<label>-api-token`, in lower case, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub secret_name: Option<String>,
}

/// What an API token may be used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TokenPurpose {
    /// Reading.
    #[default]
    ReadOnly,
    /// Reading and writing.
    ReadWrite,
}

identity!(KanidmServiceAccount);
