//! What is said of the image and of the servers' release.

use kaniop_api::kanidm::VersionStatus;

use super::super::version::{Open, Series, Verdict};
use super::World;
use crate::condition::Statement;
use crate::reason::Reason;

/// The condition. Nothing is said while the spec cannot be carried out at all.
pub(super) fn statement(world: &World<'_>) -> Option<Statement> {
    let (blocked, reason, message) = match &world.gate?.image {
        Verdict::Blocked(reason, message) => (true, *reason, message.clone()),
        Verdict::NeedsBackup { from, to } => {
            let message = format!("Before the database goes from release {from} to {to}, a backup is made and proven.");
            (false, Reason::BackupPending, message)
        }
        Verdict::Open(open) => {
            let (reason, message) = match open {
                Open::Unchecked => {
                    (Reason::UpgradeChecksDisabled, "spec.disableUpgradeChecks is set: any image is taken.".to_owned())
                }
                Open::FirstStart => {
                    (Reason::UpgradeAllowed, "There is no database yet, so any release may make it.".to_owned())
                }
                Open::Same => (Reason::UpgradeAllowed, "The servers have the image of the spec.".to_owned()),
                Open::Patch => (Reason::UpgradeAllowed, "The image is of the database's release.".to_owned()),
                Open::Upgrade { from, to } => {
                    (Reason::UpgradeAllowed, format!("The database goes from release {from} to the next, {to}."))
                }
            };
            (false, reason, message)
        }
    };
    Some(Statement::new("UpgradeBlocked", blocked, reason, message))
}

/// What runs, after what was known of it before.
///
/// The image to keep is a default at once, for nothing else remembers which one it was; the user's when a pod serves with it, so that a wrong one
/// is forgotten when it is taken out of the spec; and none that is blocked.
pub(super) fn version(world: &World<'_>, old: Option<VersionStatus>) -> Option<VersionStatus> {
    let (Ok(cluster), Some(gate)) = (world.cluster, world.gate) else { return old };
    let mut version = old.unwrap_or_default();
    let is_default = world.kanidm.spec.image.is_none();
    let serves = || world.pods.iter().any(|pod| pod.ready && super::is_updated(world, pod));
    if matches!(gate.image, Verdict::Open(_)) && (is_default || serves()) {
        version.image = Some(cluster.image.to_string());
        version.image_tag = Some(cluster.image.tag().to_owned());
    }
    version.domain_level = gate.level.or(version.domain_level);
    version.server_version = gate.version.clone().or(version.server_version);
    version.upgrade_backup = gate.backup.clone().or(version.upgrade_backup);
    version.upgrade_check_result = Some(gate.check());
    version.compatibility_result = Some(gate.compatibility());
    Some(version)
}

/// A sentence for several nodes that are on their way to another release, else nothing.
pub(super) fn pause(world: &World<'_>) -> &'static str {
    let Ok(cluster) = world.cluster else { return "" };
    let wanted = cluster.image.series().and_then(Series::level);
    let wanted = wanted.filter(|_| world.gate.is_some_and(|gate| gate.blocked().is_none()));
    let mut levels: Vec<_> = world.nodes.iter().map(|node| node.level).chain(wanted).collect();
    levels.dedup();
    if cluster.nodes().count() > 1 && levels.len() > 1 {
        " They go to another release: replication pauses until all nodes run the same."
    } else {
        ""
    }
}
