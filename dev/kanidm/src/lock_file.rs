//! `kanidm.klock` beside the database. As in the real server it protects nothing: it is made, forgotten, and removed
//! by whichever process ends first.

use std::path::{Path, PathBuf};

/// Removes the file when dropped.
pub struct LockFile(PathBuf);

impl LockFile {
    /// Makes the file; that it cannot be made is not an error.
    pub fn take(database: &Path) -> Self {
        let path = database.with_file_name("kanidm.klock");
        if let Err(error) = std::fs::File::create(&path) {
            tracing::warn!(%error, path = %path.display(), "the lock file could not be made");
        }
        Self(path)
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // Another process may have removed it already; it protects nothing either way.
        let _ = std::fs::remove_file(&self.0);
    }
}
