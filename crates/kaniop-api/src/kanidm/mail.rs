//! What the domain looks like, and the sender of its mails.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Affinity, ResourceRequirements, Toleration};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::shared::ImageSource;

/// What people see when they log in. What is absent is left alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct DomainAppearance {
    /// Name of the domain for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub display_name: Option<String>,
    /// Picture of the domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageSource>,
}

/// Kanidm's own program that sends the mails that its server has queued.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MailSender {
    /// The mail server, `smtp://…` (STARTTLS) or `smtps://…`.
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^smtps?://[^\s]+$"))]
    pub relay: String,
    /// Secret with name and password for the mail server.
    pub credentials_secret: MailCredentials,
    /// Sender of the mails.
    #[schemars(length(min = 3, max = 320))]
    pub from_address: String,
    /// Where answers go; to the sender when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 3, max = 320))]
    pub reply_to_address: Option<String>,
    /// Seconds between two looks at the queue.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 3600))]
    pub queue_poll_interval_seconds: i32,
    /// Seconds that a connection may take.
    #[serde(default = "fifteen")]
    #[schemars(range(min = 1, max = 3600))]
    pub connect_timeout_seconds: i32,
    /// Its image; the server's with `/server` replaced by `/tools` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// Its resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Labels of the nodes that it may run on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Its affinity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// Its tolerations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Toleration>>,
}

/// Secret with name and password for the mail server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MailCredentials {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key of the name.
    #[serde(default = "username")]
    #[schemars(length(min = 1, max = 253))]
    pub username_key: String,
    /// Key of the password.
    #[serde(default = "password")]
    #[schemars(length(min = 1, max = 253))]
    pub password_key: String,
}

const fn five() -> i32 {
    5
}

const fn fifteen() -> i32 {
    15
}

fn username() -> String {
    "username".to_owned()
}

fn password() -> String {
    "password".to_owned()
}
