//! What is counted of the backups of one Kanidm.

use std::collections::BTreeMap;

use kaniop_api::kanidm::BackupStatus;

use super::Verdict;

/// Numbers for the metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// When the last proven backup was made, in seconds since 1970.
    pub last_success: Option<i64>,
    /// Its size in bytes.
    pub last_size: Option<i64>,
    /// Number of files by what was found of them; empty as long as the node was not asked.
    pub files: BTreeMap<Verdict, u64>,
}

impl Figures {
    /// What the status alone tells.
    #[must_use]
    pub fn of_status(status: &BackupStatus) -> Self {
        let last = status.last_backup.as_ref();
        Self {
            last_success: last.map(|last| last.time.0.as_second()),
            last_size: last.map(|last| last.size_bytes),
            files: BTreeMap::new(),
        }
    }

    /// What status and files tell. Every verdict is counted, those that no file has too: an alert needs the zero before it.
    pub(super) fn of_files(status: &BackupStatus, verdicts: impl Iterator<Item = Verdict>) -> Self {
        let mut files = BTreeMap::from(Verdict::ALL.map(|verdict| (verdict, 0)));
        for verdict in verdicts {
            *files.entry(verdict).or_default() += 1;
        }
        Self { files, ..Self::of_status(status) }
    }
}
