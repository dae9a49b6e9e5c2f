//! `KanidmOAuth2Client`: an application that lets people log in through a Kanidm server.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shared::{
    AdoptionPolicy, DeletionPolicy, IdentityStatus, ImageSource, KanidmRef, MetadataTemplate, SecretRotation, identity,
};

/// An application that lets people log in through a Kanidm server. What is absent here is left alone on the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "kaniop.rs",
    version = "v1beta1",
    kind = "KanidmOAuth2Client",
    plural = "kanidmoauth2clients",
    singular = "kanidmoauth2client",
    shortname = "oauth2",
    category = "kaniop",
    namespaced,
    status = "IdentityStatus",
    printcolumn = r#"{"name":"Kanidm","type":"string","jsonPath":".status.kanidmRef"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"Public","type":"boolean","jsonPath":".spec.public"}"#,
    printcolumn = r#"{"name":"Secret","type":"string","jsonPath":".status.secretName"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "(has(self.kanidmName) ? self.kanidmName : '') == (has(oldSelf.kanidmName) ? oldSelf.kanidmName : '')",
        "kanidmName cannot be changed."
    ),
    validation = ("self.public == oldSelf.public", "Public cannot be changed."),
    validation = (
        "!has(self.allowLocalhostRedirect) || self.public",
        "allowLocalhostRedirect is for public clients only"
    ),
    validation = (
        "!has(self.allowInsecureClientDisablePkce) || !self.public",
        "allowInsecureClientDisablePkce is for confidential clients only: a public one has nothing but PKCE"
    ),
    validation = (
        "!self.public || !(has(self.secretRotation) || has(self.secretTemplate) || has(self.secretKeyAliases))",
        "secretRotation, secretTemplate and secretKeyAliases are for confidential clients only: a public one has no secret"
    )
)]
pub struct KanidmOAuth2ClientSpec {
    /// The Kanidm that the client lives on.
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
    /// Name shown to people.
    #[schemars(length(min = 1, max = 512))]
    pub displayname: String,
    /// Human-readable description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub description: Option<String>,
    /// Landing page: where people go who choose the application.
    #[schemars(length(min = 1, max = 2048))]
    pub origin: String,
    /// The exact set of URLs that people may be sent back to after the login; may be empty.
    #[schemars(length(max = 64), inner(length(min = 1, max = 2048)))]
    pub redirect_url: Vec<String>,
    /// Whether the client can keep no secret (an application on people's own devices). Cannot be changed.
    #[serde(default)]
    pub public: bool,
    /// The exact scopes that members of groups get. Absent: managed elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["group"]))]
    #[x_kube(validation = (
        "self.all(a, self.exists_one(b, a.group.lowerAscii() == b.group.lowerAscii()))",
        "groups must be unique, whatever their case"
    ))]
    pub scope_map: Option<Vec<ScopeMap>>,
    /// The exact scopes that members of groups get on top, without the client asking. Absent: managed elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["group"]))]
    #[x_kube(validation = (
        "self.all(a, self.exists_one(b, a.group.lowerAscii() == b.group.lowerAscii()))",
        "groups must be unique, whatever their case"
    ))]
    pub sup_scope_map: Option<Vec<ScopeMap>>,
    /// The exact claims that members of groups get in their tokens. Absent: managed elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub claim_map: Option<Vec<ClaimMap>>,
    /// Whether a redirect URL must match exactly, instead of by its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict_redirect_url: Option<bool>,
    /// Whether `preferred_username` is the short name, instead of `name@domain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefer_short_username: Option<bool>,
    /// Whether people may be sent back to their own machine. Public clients only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_localhost_redirect: Option<bool>,
    /// Whether the client may do without PKCE, which makes stolen codes useful. Confidential clients only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_insecure_client_disable_pkce: Option<bool>,
    /// Whether tokens are signed with RS256, for clients that know nothing newer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwt_legacy_crypto_enable: Option<bool>,
    /// Whether people are not asked for their consent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_consent_prompt: Option<bool>,
    /// How long a refresh token lives, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4294967295_i64))]
    pub refresh_token_expiry: Option<i64>,
    /// When the client's secret is made anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_rotation: Option<SecretRotation>,
    /// Labels and annotations for the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_template: Option<MetadataTemplate>,
    /// More keys of the Secret with the same values, for applications that want other names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_aliases: Option<SecretKeyAliases>,
    /// Picture of the application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageSource>,
}

/// Scopes for the members of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScopeMap {
    /// The group, by name or SPN.
    #[schemars(length(min = 1, max = 320))]
    #[x_kube(validation = (
        "!self.matches('^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",
        "name the group by its name or SPN, not by its UUID"
    ))]
    pub group: String,
    /// The scopes.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 128)))]
    pub scopes: Vec<String>,
}

/// One claim in tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimMap {
    /// Its name.
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// Its values, by group. A group that is named twice, by name and by SPN or in another case, gets the values of both.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["group"]))]
    pub values_map: Vec<ClaimValues>,
    /// How several values become one claim.
    #[serde(default)]
    pub join_strategy: JoinStrategy,
}

/// Values of a claim for the members of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimValues {
    /// The group, by name or SPN.
    #[schemars(length(min = 1, max = 320))]
    #[x_kube(validation = (
        "!self.matches('^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",
        "name the group by its name or SPN, not by its UUID"
    ))]
    pub group: String,
    /// The values.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 512)))]
    pub values: Vec<String>,
}

/// How several values become one claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JoinStrategy {
    /// One text, with commas.
    Csv,
    /// One text, with spaces.
    Ssv,
    /// A list.
    #[default]
    Array,
}

/// More names for the keys of an OAuth2 client's Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "!(has(self.clientId) && has(self.clientSecret)) || self.clientId.all(a, !(a in self.clientSecret))",
        "a key cannot be an alias of both the id and the secret"
    ),
    validation = (
        "!(has(self.clientId) && self.clientId.exists(a, a in ['CLIENT_ID', 'CLIENT_SECRET'])) && !(has(self.clientSecret) && self.clientSecret.exists(a, a in ['CLIENT_ID', 'CLIENT_SECRET']))",
        "CLIENT_ID and CLIENT_SECRET are there anyway and cannot be aliases"
    )
)]
pub struct SecretKeyAliases {
    /// More keys with the client's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 16),
        inner(length(min = 1, max = 253), regex(pattern = "^[-._a-zA-Z0-9]+$")),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub client_id: Option<Vec<String>>,
    /// More keys with the client's secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 16),
        inner(length(min = 1, max = 253), regex(pattern = "^[-._a-zA-Z0-9]+$")),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub client_secret: Option<Vec<String>>,
}

identity!(KanidmOAuth2Client);
