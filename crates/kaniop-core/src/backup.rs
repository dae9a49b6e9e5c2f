//! Backups: what is asked of the server, what a file in its folder proves, and what is said of all that.
//!
//! The server makes backups by itself and tells nobody whether it did. So the only evidence is a file that was read from its first to its last byte:
//! names and sizes are none, for a file is written in place under its final name. Reading is `kaniop-kanidm`'s; nothing here opens a file.

mod artefact;
mod figures;
mod health;
mod online;
mod schedule;
#[cfg(test)]
mod tests;

pub use artefact::{Artefact, Evidence, Expected, Listing, Verdict};
pub use figures::Figures;
pub use health::{Asked, Report, Seen, is_due, report};
pub use online::{BackupPlan, OnlineBackup, SWITCHES, online_backup, wanted};
pub use schedule::Schedule;

/// Where backups lie in the primary's pod.
pub const FOLDER: &str = "/data/backups";
/// Where the node helper keeps what it has proven, beside the database: the rest of the server's file system cannot be written.
pub const STATE: &str = "/data/.kaniop";
