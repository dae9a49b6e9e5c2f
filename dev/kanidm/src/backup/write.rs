//! Writing one backup file, in place and under its final name, as the real server does: a process that is killed
//! leaves a short file with a good name.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use kanidmd_lib::be::BackendTransaction;
use kanidmd_lib::prelude::OperationError;
use rustix::fs::{MemfdFlags, memfd_create};

use super::stamp::{self, StampError};
use crate::config::Compression;

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The engine could not dump its database.
    #[error("the engine could not dump the database: {0:?}")]
    Engine(OperationError),
    /// The file.
    #[error("{path} cannot be written: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The dump is not what it should be.
    #[error(transparent)]
    Stamp(#[from] StampError),
    /// Memory for the dump.
    #[error("the dump cannot be held in memory: {0}")]
    Memory(#[from] std::io::Error),
}

impl From<OperationError> for BackupError {
    fn from(error: OperationError) -> Self {
        Self::Engine(error)
    }
}

/// A whole dump, in memory: the engine only writes to a path, and every secret of the domain is in it.
pub struct Dump(File);

impl Dump {
    /// Dumps what `transaction` sees.
    ///
    /// # Errors
    /// Those of the engine, or no memory.
    pub fn take<T: BackendTransaction>(transaction: &mut T) -> Result<Self, BackupError> {
        let memory = File::from(memfd_create("backup", MemfdFlags::CLOEXEC).map_err(std::io::Error::from)?);
        transaction.backup(Path::new(&format!("/proc/self/fd/{}", memory.as_raw_fd())))?;
        let (engines, ours) = stamp::beginnings();
        let mut beginning = vec![0; engines.len()];
        memory.read_exact_at(&mut beginning, 0)?;
        // All series that the engine can play are of the same length, so the rest stays where it is.
        if beginning != engines.as_bytes() || ours.len() != engines.len() {
            return Err(StampError::Unexpected.into());
        }
        memory.write_all_at(ours.as_bytes(), 0)?;
        Ok(Self(memory))
    }

    /// Copies the dump out.
    ///
    /// # Errors
    /// When the target cannot take it.
    pub fn copy_to(mut self, target: &mut dyn Write, compression: Compression) -> std::io::Result<()> {
        self.0.seek(SeekFrom::Start(0))?;
        let mut buffer = vec![0; 64 * 1024];
        match compression {
            Compression::Gzip => {
                let mut encoder = GzEncoder::new(target, flate2::Compression::default());
                copy(&mut self.0, &mut encoder, &mut buffer)?;
                encoder.finish()?.flush()
            }
            Compression::None => {
                copy(&mut self.0, target, &mut buffer)?;
                target.flush()
            }
        }
    }

    /// Writes the dump into a new file that the group may read.
    ///
    /// # Errors
    /// When the file exists or cannot be written.
    pub fn write_new(self, path: &Path, compression: Compression) -> Result<(), BackupError> {
        let failed = |source| BackupError::File { path: path.to_path_buf(), source };
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o640).open(path).map_err(failed)?;
        self.copy_to(&mut file, compression).map_err(failed)
    }
}

fn copy(from: &mut File, to: &mut dyn Write, buffer: &mut [u8]) -> std::io::Result<()> {
    loop {
        let count = from.read(buffer)?;
        if count == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..count])?;
    }
}
