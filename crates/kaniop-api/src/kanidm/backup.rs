//! When the primary backs the database up.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// Backups that the primary's server makes by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    /// When, in five cron fields, UTC.
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
