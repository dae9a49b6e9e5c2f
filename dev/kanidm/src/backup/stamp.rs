//! The series in a backup. The engine writes and accepts its own only, so that of the release played is put there on the
//! way out and taken away on the way in.

use serde::Deserialize;

use crate::release;

/// Why a backup is not for this release.
#[derive(Debug, thiserror::Error)]
pub enum StampError {
    /// It is not a backup at all.
    #[error("this is not a backup: {0}")]
    Garbled(#[from] serde_json::Error),
    /// It has no series.
    #[error("DB0002MismatchedRestoreVersion: the backup has no version and is not restored")]
    Missing,
    /// It is of another series.
    #[error("DB0001MismatchedRestoreVersion: the backup is of series {found}, and this server of {series}")]
    Other {
        /// The backup's.
        found: String,
        /// This server's.
        series: String,
    },
    /// The engine's dump does not begin as expected.
    #[error("the engine's dump does not begin with its version")]
    Unexpected,
}

#[derive(Deserialize)]
struct Stamped {
    version: Option<String>,
}

fn stamp(series: &str) -> String {
    format!("{{\"version\":\"{series}\"")
}

/// What the engine's dump must begin with, and what a backup of the release played begins with.
pub fn beginnings() -> (String, String) {
    (stamp(&release::engine_series()), stamp(&release::played().series))
}

/// The backup as the engine accepts it.
///
/// # Errors
/// When it is no backup, or of another series than the one played.
pub fn for_the_engine(backup: Vec<u8>) -> Result<Vec<u8>, StampError> {
    let series = &release::played().series;
    let found = serde_json::from_slice::<Stamped>(&backup)?.version.ok_or(StampError::Missing)?;
    if found != *series {
        return Err(StampError::Other { found, series: series.clone() });
    }
    if *series == release::engine_series() {
        return Ok(backup);
    }
    let mut content: serde_json::Value = serde_json::from_slice(&backup)?;
    content["version"] = release::engine_series().into();
    Ok(serde_json::to_vec(&content)?)
}
