//! What the primary's server is told about backups, and what of the spec cannot be carried out.

use kaniop_api::kanidm::KanidmSpec;
use serde::Serialize;

use super::{FOLDER, Schedule};
use crate::cluster::{Refusal, ValidatedCluster};

/// Environment of the server that goes before its file. Any one of them switches backups on, on every node.
pub const SWITCHES: [&str; 3] =
    ["KANIDM_ONLINE_BACKUP_PATH", "KANIDM_ONLINE_BACKUP_SCHEDULE", "KANIDM_ONLINE_BACKUP_VERSIONS"];

/// Backups as the spec asks for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupPlan {
    /// When.
    pub schedule: Schedule,
    /// How many files the server keeps, whole or not.
    pub versions: u32,
}

/// The table `[online_backup]` of a server's file, keys in its own spelling. Compression is left at the server's default, gzip: releases before 1.8 do not
/// know the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OnlineBackup {
    path: &'static str,
    schedule: String,
    versions: u32,
}

/// What this pod's server is told: backups are made by the primary alone, for the others have the same data and another server's identity.
#[must_use]
pub fn online_backup(cluster: &ValidatedCluster, pod: &str) -> Option<OnlineBackup> {
    let plan = cluster.backup.as_ref().filter(|_| pod == cluster.primary)?;
    let schedule = plan.schedule.as_str().trim().to_owned();
    Some(OnlineBackup { path: FOLDER, schedule, versions: plan.versions })
}

/// Reads what the spec asks for. Its errors are told by field, all of them.
pub fn wanted(spec: &KanidmSpec, errors: &mut Vec<Refusal>) -> Option<BackupPlan> {
    let backup = spec.backup.as_ref()?;
    let before = errors.len();
    let storage = spec.storage.as_ref();
    if !storage.is_some_and(|s| s.volume_claim_template.is_some() && s.empty_dir.is_none() && s.ephemeral.is_none()) {
        let why =
            "backup requires PVC-backed storage: set spec.storage.volumeClaimTemplate and nothing else in spec.storage";
        errors.push(Refusal::new("spec.backup", why));
    }
    if spec.replica_groups.iter().filter(|group| group.primary_node).count() != 1 {
        let why =
            "backup requires exactly one primary replica group: set primaryNode: true in the group that takes writes";
        errors.push(Refusal::new("spec.backup", why));
    }
    let versions = u32::try_from(backup.versions).ok().filter(|versions| *versions > 0);
    if versions.is_none() {
        errors.push(Refusal::new("spec.backup.versions", "backup.versions must be greater than zero"));
    }
    let schedule = Schedule::parse(&backup.schedule);
    let schedule = schedule.map_err(|why| errors.push(Refusal::new("spec.backup.schedule", why))).ok();
    (errors.len() == before).then_some(BackupPlan { schedule: schedule?, versions: versions? })
}
