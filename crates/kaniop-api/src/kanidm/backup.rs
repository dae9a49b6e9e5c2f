//! When the primary backs the database up, and what became of it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Backups that the primary's server makes by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    /// When, in five cron fields, UTC. Days of the week by name (`SUN` … `SAT`): the server counts them from 1, which is Sunday.
    #[schemars(length(max = 128))]
    #[x_kube(validation = ("self.size() > 0", "backup.schedule cannot be empty"))]
    pub schedule: String,
    /// How many are kept.
    #[serde(default = "seven")]
    #[x_kube(validation = ("self > 0", "backup.versions must be greater than zero"))]
    pub versions: i32,
}

const fn seven() -> i32 {
    7
}

/// What is known of the backups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupStatus {
    /// The schedule that these times are of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// Since when runs of this schedule are expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// The newest backup of the schedule that was read from its first to its last byte and can be restored with the image that runs now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_backup: Option<LastBackup>,
    /// When the next run is due. A time that is over: the run's file has not been looked for yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_due_time: Option<Time>,
    /// The newest files of the folder, twenty at most, the newest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<BackupFile>>,
}

/// A backup that was proven.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastBackup {
    /// Its file.
    pub file_name: String,
    /// When it was made.
    pub time: Time,
    /// Size of the file.
    pub size_bytes: i64,
    /// Entries of the database in it.
    pub entries: i64,
    /// Release series of the server that made it, and that can restore it, such as `1.10`.
    pub series: String,
}

/// A file in the folder of backups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupFile {
    /// Its name.
    pub file_name: String,
    /// When it was made, as far as its name and its last change tell.
    pub time: Time,
    /// Its size.
    pub size_bytes: i64,
    /// `Proven`, or what is wrong with it or not known yet.
    pub verdict: String,
}
