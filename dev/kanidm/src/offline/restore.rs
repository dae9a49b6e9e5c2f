//! `database restore`: the database becomes what a backup says, server UUID and replication key included.
//!
//! Its outcome is poor evidence, as in the real server: it exits 0 when it did nothing, and also when the restored
//! database cannot be started with this configuration.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

use flate2::read::GzDecoder;
use kanidmd_lib::prelude::{OperationError, duration_from_epoch_now};
use rustix::fs::{MemfdFlags, memfd_create};

use super::{open, to_the_end};
use crate::backup::stamp::{self, StampError};
use crate::config::Config;
use crate::engine::{OpenError, start_up};
use crate::lock_file::LockFile;

/// Why the database is not the backup's.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// There is nothing to restore. Exits 0.
    #[error("{0} does not exist")]
    Missing(String),
    /// What lies at the database's path cannot be opened, and is left as it is. Exits 0.
    #[error("the database at {path} cannot be opened, and a restore begins with that: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why not.
        error: OpenError,
    },
    /// The backup cannot be read, gzip or text.
    #[error("the backup cannot be read or held in memory: {0}")]
    Backup(#[from] std::io::Error),
    /// The backup is not one, or of another series.
    #[error(transparent)]
    Stamp(#[from] StampError),
    /// The engine refused it; the old content is still there.
    #[error("the engine refused the backup: {0:?}")]
    Engine(OperationError),
}

impl From<OperationError> for RestoreError {
    fn from(error: OperationError) -> Self {
        Self::Engine(error)
    }
}

/// Replaces the content of the database, builds its indexes and lets it start once.
///
/// # Errors
/// When the content was not replaced; the old one is then still there. A failure to start is only logged.
pub fn restore(source: &Path, config: &Config) -> Result<(), RestoreError> {
    if !source.is_file() {
        return Err(RestoreError::Missing(source.display().to_string()));
    }
    let _lock = LockFile::take(&config.db_path);
    let (backend, schema) =
        open(config).map_err(|error| RestoreError::Unreadable { path: config.db_path.display().to_string(), error })?;
    let content = stamp::for_the_engine(content(source)?)?;
    let memory = File::from(memfd_create("restore", MemfdFlags::CLOEXEC).map_err(std::io::Error::from)?);
    (&memory).write_all(&content)?;
    let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
    {
        let mut write = backend.write()?;
        write.restore(Path::new(&path))?;
        write.commit()?;
    }
    tracing::info!("the database has the content of the backup");
    {
        let mut write = backend.write()?;
        write.reindex(true)?;
        write.commit()?;
    }
    let started = to_the_end(async {
        let (idms, _delayed, _audit) = start_up(backend, schema, config).await?;
        let mut write = idms.proxy_write(duration_from_epoch_now()).await?;
        write.qs_write.reindex(true)?;
        Ok(write.commit()?)
    });
    if let Err(error) = started.map_err(OpenError::System).flatten() {
        tracing::error!("the restored database cannot be started: {error}");
    }
    tracing::info!("Restore Success!");
    Ok(())
}

/// Whether it is compressed is taken from the name alone.
fn content(source: &Path) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let mut file = File::open(source)?;
    if source.extension().is_some_and(|extension| extension == "gz") {
        GzDecoder::new(file).read_to_end(&mut content)?;
    } else {
        file.read_to_end(&mut content)?;
    }
    Ok(content)
}
