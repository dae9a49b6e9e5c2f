//! A running server: start-up in order, reload, and a clean stop.
//!
//! The order is the real server's and observable: TLS files, database, HTTPS, and the admin socket last, so that an
//! answer there means that the start-up has finished.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum_server::Handle;
use axum_server::tls_rustls::{RustlsConfig, from_tcp_rustls};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::broadcast;
use tokio::task::JoinSet;

use crate::admin::socket::AdminSocket;
use crate::backup::timer;
use crate::config::{self, Config};
use crate::engine::{Engine, OpenError};
use crate::replication::{Node, Orders, Replication};
use crate::tls::{self, TlsError};
use crate::{http, lock_file, release};

/// How long open requests may go on after the signal to stop.
const GRACE: Duration = Duration::from_millis(300);
/// The fewest worker threads: the engine's calls block the thread they run on.
const FEWEST_THREADS: usize = 4;

/// What every part of a running server shares.
pub struct Running {
    /// The engine.
    pub engine: Engine,
    /// The configuration as read at start; a reload does not read it again.
    pub config: Config,
    /// The replication task, when replication is configured.
    pub replication: Option<Replication>,
    tls: RustlsConfig,
    reloads: broadcast::Sender<()>,
}

/// Why a server did not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The certificate.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The database.
    #[error("the database {path} cannot be opened or migrated: {error}")]
    Database {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: OpenError,
    },
    /// A listener.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address or path.
        address: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The schedule of backups.
    #[error(transparent)]
    Schedule(#[from] timer::ScheduleError),
    /// The operating system.
    #[error("the operating system refused what a server needs: {0}")]
    System(#[from] std::io::Error),
}

impl Running {
    /// Reads the TLS files again. The backup timer loses its next slot by it, as in servers after 1.7.
    ///
    /// # Errors
    /// When the new files are unusable; the old certificate then stays in use.
    pub fn reload(&self) -> Result<(), TlsError> {
        let fresh = tls::load(&self.config.tls_chain, &self.config.tls_key)?;
        self.tls.reload_from_config(fresh);
        // Without a backup timer nobody listens, which is no error.
        let _ = self.reloads.send(());
        tracing::info!("the TLS files have been read again");
        Ok(())
    }
}

/// Runs a server until a signal ends it.
///
/// # Errors
/// Why it could not start or had to stop.
pub fn run(config: Config) -> Result<(), ServerError> {
    let threads = config.thread_count.unwrap_or(0).max(FEWEST_THREADS);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    let outcome = runtime.block_on(serve(config));
    runtime.shutdown_timeout(Duration::from_millis(500));
    if outcome.is_ok() {
        tracing::info!("stopped");
    }
    outcome
}

/// Opens and migrates the database and ends there, as `configtest` does.
///
/// # Errors
/// Why a server would not start.
pub fn check(config: Config) -> Result<(), ServerError> {
    tls::load(&config.tls_chain, &config.tls_key)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let outcome = runtime.block_on(async {
        let engine = open(&config).await?;
        engine.stop();
        Ok(())
    });
    runtime.shutdown_timeout(Duration::from_millis(500));
    outcome
}

async fn open(config: &Config) -> Result<Engine, ServerError> {
    Engine::open(config).await.map_err(|error| ServerError::Database { path: config.db_path.clone(), error })
}

async fn serve(config: Config) -> Result<(), ServerError> {
    let mut signals = Signals::new()?;
    warn_of_what_is_ignored(&config);
    let tls = RustlsConfig::from_config(tls::load(&config.tls_chain, &config.tls_key)?);
    let _lock = lock_file::LockFile::take(&config.db_path);
    let engine = open(&config).await?;
    let listeners = config.bindaddress.iter().map(|a| listen(*a)).collect::<Result<Vec<_>, _>>()?;
    let schedule = config.online_backup.clone().map(timer::Timer::new).transpose()?;
    let (reloads, _) = broadcast::channel(16);
    let (replication, node) = match config.replication.clone() {
        Some(plan) => {
            let (replication, orders) = Replication::new(plan.renewal_delay);
            (Some(replication), Some(listen_for_peers(plan, orders).await?))
        }
        None => (None, None),
    };
    let running = Arc::new(Running { engine, config, replication, tls, reloads });

    let handle = Handle::new();
    let mut tasks = JoinSet::new();
    let routes = http::router(Arc::clone(&running)).map_err(std::io::Error::other)?;
    for listener in listeners {
        let service = routes.clone().into_make_service_with_connect_info::<SocketAddr>();
        let server = from_tcp_rustls(listener, running.tls.clone())?.handle(handle.clone());
        tasks.spawn(async move { server.serve(service).await });
    }
    let node = node.map(|n| tokio::spawn(n.run(Arc::clone(&running))));
    let timer = schedule.map(|s| tokio::spawn(s.run(Arc::clone(&running), running.reloads.subscribe())));
    let path = &running.config.adminbindpath;
    let socket = AdminSocket::open(path)
        .map_err(|source| ServerError::Listen { address: path.display().to_string(), source })?;
    let admin = tokio::spawn(socket.serve(Arc::clone(&running)));
    tracing::info!(version = release::played().version, "ready to rock! (a development server, not Kanidm itself)");

    let outcome = wait(&mut signals, &running, &mut tasks).await;
    admin.abort();
    for task in timer.iter().chain(&node) {
        task.abort();
    }
    handle.graceful_shutdown(Some(GRACE));
    while tasks.join_next().await.is_some() {}
    running.engine.stop();
    // The database stays open until the process ends, so its write-ahead log stays beside it, as the real server
    // leaves it: whoever copies or moves the one file alone loses data here too.
    std::mem::forget(running);
    outcome
}

/// Returns when a signal to stop has come; fails when a listener ended by itself.
async fn wait(
    signals: &mut Signals,
    running: &Running,
    tasks: &mut JoinSet<std::io::Result<()>>,
) -> Result<(), ServerError> {
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => return Ok(()),
            _ = signals.interrupt.recv() => return Ok(()),
            _ = signals.hangup.recv() => {
                if let Err(error) = running.reload() {
                    tracing::error!(%error, "the reload failed; the old certificate stays in use");
                }
            }
            Some(ended) = tasks.join_next() => {
                if let Ok(Err(error)) = ended {
                    return Err(error.into());
                }
            }
        }
    }
}

struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }
}

fn listen(address: SocketAddr) -> Result<TcpListener, ServerError> {
    TcpListener::bind(address).map_err(|source| ServerError::Listen { address: address.to_string(), source })
}

async fn listen_for_peers(plan: config::Replication, orders: Orders) -> Result<Node, ServerError> {
    let address = plan.bindaddress.to_string();
    Node::listen(plan, orders).await.map_err(|source| ServerError::Listen { address, source })
}

fn warn_of_what_is_ignored(config: &Config) {
    let migrations = std::fs::read_dir(&config.migration_path).is_ok_and(|mut files| files.next().is_some());
    if migrations {
        tracing::warn!(path = %config.migration_path.display(), "this development server runs no HJSON migrations");
    }
}
