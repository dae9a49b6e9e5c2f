//! `database verify`: whether the database agrees with itself. It says nothing about other nodes.

use std::process::ExitCode;

use kanidmd_lib::prelude::{ConsistencyError, QueryServer, duration_from_epoch_now};

use super::{open, to_the_end};
use crate::config::Config;
use crate::engine::OpenError;
use crate::lock_file::LockFile;

/// Checks the database. Exits 0 when there was nothing to check, and then without the line that says that it passed.
pub fn verify(config: &Config) -> ExitCode {
    // Opening would create an empty database, which has no fault.
    if !config.db_path.is_file() {
        tracing::error!(path = %config.db_path.display(), "there is no database");
        return ExitCode::SUCCESS;
    }
    let _lock = LockFile::take(&config.db_path);
    match findings(config) {
        Err(error) => {
            tracing::error!("the database cannot be opened: {error}");
            ExitCode::SUCCESS
        }
        Ok(findings) if findings.is_empty() => {
            eprintln!("Verification passed!");
            ExitCode::SUCCESS
        }
        Ok(findings) => {
            for finding in findings {
                tracing::error!("{finding:?}");
            }
            ExitCode::FAILURE
        }
    }
}

fn findings(config: &Config) -> Result<Vec<Result<(), ConsistencyError>>, OpenError> {
    let (backend, schema) = open(config)?;
    let server = QueryServer::new(backend, schema, config.domain.clone(), duration_from_epoch_now())?;
    to_the_end(async move { server.verify().await }).map_err(OpenError::System)
}
