//! A backup by a second process, beside a live server or without one.

use std::path::Path;

use kanidmd_lib::prelude::OperationError;

use super::write::{BackupError, Dump};
use crate::config::Compression;
use crate::engine::open_backend;

/// Writes the database at `database` into the new file `target`, or to standard output without one.
///
/// # Errors
/// When the database cannot be opened, or the target exists or cannot be written; nothing is overwritten.
pub fn make(database: &Path, zfs: bool, target: Option<&Path>, compression: Compression) -> Result<(), BackupError> {
    if let Some(path) = target.filter(|path| path.exists()) {
        let source = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
        return Err(BackupError::File { path: path.to_path_buf(), source });
    }
    // Opening would create an empty database, and a backup of nothing looks like one.
    if !database.is_file() {
        tracing::error!(path = %database.display(), "there is no database");
        return Err(BackupError::Engine(OperationError::InvalidDbState));
    }
    let (backend, _schema) = open_backend(database, zfs, None)?;
    let dump = Dump::take(&mut backend.read()?)?;
    match target {
        Some(path) => dump.write_new(path, compression),
        None => Ok(dump.copy_to(&mut std::io::stdout().lock(), compression)?),
    }
}
