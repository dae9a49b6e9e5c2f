//! Work on a database that no server should have open: restore and verify.
//!
//! Nothing here finds out whether a server has it open all the same. As with the real server, that is for the caller to
//! prove: a restore beside a live server destroys the database and says that it went well.

pub mod restore;
pub mod verify;

use crate::config::Config;
use crate::engine::{OpenError, open_backend};
use kanidmd_lib::be::Backend;
use kanidmd_lib::schema::Schema;

/// Runs asynchronous work to its end, so that the database is closed and in one piece when the process exits.
fn to_the_end<T>(work: impl Future<Output = T>) -> std::io::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_timeout(std::time::Duration::from_millis(500));
    Ok(outcome)
}

fn open(config: &Config) -> Result<(Backend, Schema), OpenError> {
    Ok(open_backend(&config.db_path, config.zfs, config.db_arc_size)?)
}
