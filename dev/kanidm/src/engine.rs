//! The engine: opening the database, migrating it, and the engine's own background work.
//!
//! Every transaction of this program begins here. Nothing here knows HTTP or the admin socket.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kanidm_proto::internal::FsType;
use kanidmd_lib::be::{Backend, BackendConfig};
use kanidmd_lib::idm::server::{IdmServerProxyReadTransaction, IdmServerProxyWriteTransaction};
use kanidmd_lib::prelude::*;
use kanidmd_lib::schema::Schema;
use tokio::task::JoinHandle;

use crate::config::Config;
use crate::{later_schema, release};

/// Read connections to the database, one more than the readers that can run at once.
const POOL_SIZE: u32 = 4;
/// How often recycled entries and tombstones are purged.
const PURGE_EVERY: Duration = Duration::from_secs(600);
/// How many delayed actions are taken in one transaction.
const DELAYED_BATCH: usize = 32;

/// An engine that has finished its start-up.
pub struct Engine {
    idms: Arc<IdmServer>,
    tasks: Vec<JoinHandle<()>>,
}

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The engine refused it.
    #[error("{0:?}")]
    Engine(OperationError),
    /// The operating system refused what it takes.
    #[error(transparent)]
    System(std::io::Error),
    /// It is of a later release.
    #[error("MG0010DowngradeNotAllowed: the domain is at level {found}, and this release is for level {level}")]
    Downgrade {
        /// The database's level.
        found: u32,
        /// This release's level.
        level: u32,
    },
    /// It is of a release long before.
    #[error("MG0008SkipUpgradeAttempted: the domain is at level {found}, and this release is for level {level}")]
    Skip {
        /// The database's level.
        found: u32,
        /// This release's level.
        level: u32,
    },
}

impl From<OperationError> for OpenError {
    fn from(error: OperationError) -> Self {
        Self::Engine(error)
    }
}

/// Opens the database file, which is created when missing, without looking at its content.
///
/// # Errors
/// When the file cannot be opened as a database.
pub fn open_backend(path: &Path, zfs: bool, arc_size: Option<usize>) -> Result<(Backend, Schema), OperationError> {
    let schema = Schema::new()?;
    let index_keys = schema.write().reload_idxmeta();
    let file_system = if zfs { FsType::Zfs } else { FsType::Generic };
    let config = BackendConfig::new(Some(path), POOL_SIZE, file_system, arc_size);
    Ok((Backend::new(config, index_keys, false)?, schema))
}

/// Brings the database up to the release that is played, as every start does.
///
/// # Errors
/// When the database is of another release than this or the one before, or its migration fails.
pub async fn start_up(
    backend: Backend,
    schema: Schema,
    config: &Config,
) -> Result<(IdmServer, IdmServerDelayed, IdmServerAudit), OpenError> {
    let now = duration_from_epoch_now();
    let server = QueryServer::new(backend, schema, config.domain.clone(), now)?;
    let level = release::played().level;
    match level_of(&server).await? {
        Some(found) => is_one_step(found, level)?,
        // Levels above the engine's own are steps and have no content to begin with.
        None if level > DOMAIN_TGT_LEVEL => server.initialise_helper(now, DOMAIN_TGT_LEVEL).await?,
        None => {}
    }
    server.initialise_helper(now, level).await?;
    later_schema::ensure(&server).await?;
    Ok(IdmServer::new(server, &config.origin, false, now).await?)
}

/// The domain level of a database; `None` for a new one.
async fn level_of(server: &QueryServer) -> Result<Option<u32>, OperationError> {
    let mut read = server.read().await?;
    match read.internal_search_uuid(UUID_DOMAIN_INFO) {
        Ok(entry) => Ok(entry.get_ava_single_uint32(Attribute::Version)),
        Err(OperationError::NoMatchingEntries) => Ok(None),
        Err(error) => Err(error),
    }
}

/// One minor release at a time, and never back: the engine alone would let more pass than a released server.
fn is_one_step(found: u32, level: u32) -> Result<(), OpenError> {
    if found > level {
        return Err(OpenError::Downgrade { found, level });
    }
    if found + 1 < level {
        return Err(OpenError::Skip { found, level });
    }
    Ok(())
}

impl Engine {
    /// Opens, creates or migrates the database and starts the background work.
    ///
    /// # Errors
    /// When the database cannot be opened or its migration fails; it is then left as it was.
    pub async fn open(config: &Config) -> Result<Self, OpenError> {
        let (backend, schema) = open_backend(&config.db_path, config.zfs, config.db_arc_size)?;
        let (idms, delayed, audit) = start_up(backend, schema, config).await?;
        let idms = Arc::new(idms);
        let tasks = vec![
            tokio::spawn(run_delayed(Arc::clone(&idms), delayed)),
            tokio::spawn(drain_audit(audit)),
            tokio::spawn(purge(Arc::clone(&idms))),
        ];
        Ok(Self { idms, tasks })
    }

    /// Runs `work` in one read transaction.
    ///
    /// # Errors
    /// Those of `work`, or that no transaction could be had in time.
    pub async fn read<T, E, F>(&self, work: F) -> Result<T, E>
    where
        E: From<OperationError>,
        F: for<'a> FnOnce(&mut IdmServerProxyReadTransaction<'a>, Duration) -> Result<T, E>,
    {
        let mut transaction = self.idms.proxy_read().await?;
        work(&mut transaction, duration_from_epoch_now())
    }

    /// Runs `work` in one write transaction and commits it when `work` succeeds.
    ///
    /// # Errors
    /// Those of `work`, after which nothing has changed, or of the transaction itself.
    pub async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        E: From<OperationError>,
        F: for<'a> FnOnce(&mut IdmServerProxyWriteTransaction<'a>, Duration) -> Result<T, E>,
    {
        let now = duration_from_epoch_now();
        let mut transaction = self.idms.proxy_write(now).await?;
        let answer = work(&mut transaction, now)?;
        transaction.commit()?;
        Ok(answer)
    }

    /// The identity server itself, for the transactions of logins and credential updates.
    pub fn idms(&self) -> &IdmServer {
        &self.idms
    }

    /// Ends the background work, so that the database can be closed.
    pub fn stop(&self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Stores what logins leave behind, sessions above all.
async fn run_delayed(idms: Arc<IdmServer>, mut delayed: IdmServerDelayed) {
    let mut batch = Vec::with_capacity(DELAYED_BATCH);
    while delayed.recv_many(&mut batch).await > 0 {
        let now = duration_from_epoch_now();
        let stored = match idms.proxy_write(now).await {
            Ok(mut transaction) => batch
                .iter()
                .try_for_each(|action| transaction.process_delayedaction(action, now))
                .and_then(|()| transaction.commit()),
            Err(error) => Err(error),
        };
        if let Err(error) = stored {
            tracing::error!(?error, "delayed actions could not be stored");
        }
        batch.clear();
    }
}

/// Without a reader the queue of audit events would grow for ever.
async fn drain_audit(mut audit: IdmServerAudit) {
    while let Some(event) = audit.audit_rx().recv().await {
        tracing::info!(?event, "audit");
    }
}

/// Purges deleted entries; these writes are also the anchors of replication.
async fn purge(idms: Arc<IdmServer>) {
    loop {
        tokio::time::sleep(PURGE_EVERY).await;
        let purged = match idms.proxy_write(duration_from_epoch_now()).await {
            Ok(mut transaction) => transaction
                .qs_write
                .purge_tombstones()
                .and_then(|_| transaction.qs_write.purge_recycled())
                .and_then(|_| transaction.commit()),
            Err(error) => Err(error),
        };
        if let Err(error) = purged {
            tracing::error!(?error, "deleted entries could not be purged");
        }
    }
}
