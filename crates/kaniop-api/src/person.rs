//! `KanidmPersonAccount`: a person on a Kanidm server.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shared::{AdoptionPolicy, DeletionPolicy, IdentityStatus, KanidmRef, PosixAccount, identity};

/// A person on a Kanidm server. What is absent here is left alone on the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "kaniop.rs",
    version = "v1beta1",
    kind = "KanidmPersonAccount",
    plural = "kanidmpersonaccounts",
    singular = "kanidmpersonaccount",
    shortname = "person",
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
pub struct KanidmPersonAccountSpec {
    /// The Kanidm that the person lives on.
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
    /// What the entry says of the person.
    pub person_attributes: PersonAttributes,
    /// Makes the person a POSIX account. Taking the block away later leaves it one: the server cannot undo it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posix_attributes: Option<PosixAccount>,
    /// The exact set of SSH public keys, by label. Absent: keys are managed elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 64))]
    pub ssh_public_keys: Option<BTreeMap<String, SshPublicKey>>,
    /// How long a link for setting the first credential works, in seconds; the server allows a day at most.
    #[serde(default = "default_token_ttl")]
    #[schemars(range(min = 300, max = 86400))]
    pub credentials_token_ttl: i64,
    /// How a person without any credential gets the link for setting the first one; in a Secret when absent.
    #[serde(default)]
    pub credential_reset: CredentialReset,
}

fn default_token_ttl() -> i64 {
    3600
}

/// How a person without any credential gets the link for setting the first one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialReset {
    /// Where the link goes.
    #[serde(default)]
    pub delivery: ResetDelivery,
}

/// Where the link for setting a first credential goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ResetDelivery {
    /// Into the Secret `<name>-credential-reset`, which is removed once a credential exists. Deleting it asks for a new link.
    #[default]
    Secret,
    /// To the person's primary mail address, by the server's own mail sender.
    Email,
    /// Nowhere: no link is made.
    None,
}

/// An SSH public key, as it stands in `authorized_keys`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SshPublicKey(#[schemars(length(min = 1, max = 16384))] pub String);

/// What the entry says of the person.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersonAttributes {
    /// Name shown to people.
    #[schemars(length(min = 1, max = 512))]
    pub displayname: String,
    /// Mail addresses, the first one is the primary; an empty list purges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), inner(length(min = 3, max = 254)))]
    #[x_kube(validation = (
        "self.all(a, self.exists_one(b, a.lowerAscii() == b.lowerAscii()))",
        "mail addresses must be unique, whatever their case"
    ))]
    pub mail: Option<Vec<String>>,
    /// Name as the law knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub legalname: Option<String>,
    /// The account cannot be used before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self < timestamp('9999-01-01T00:00:00Z')", "must be before the year 9999; leave it out for never"))]
    pub account_valid_from: Option<Time>,
    /// The account cannot be used from this time on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self < timestamp('9999-01-01T00:00:00Z')", "must be before the year 9999; leave it out for never"))]
    pub account_expire: Option<Time>,
}

identity!(KanidmPersonAccount);
