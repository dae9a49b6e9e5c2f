//! What the server is told to do: `server.toml` version 2 with the environment laid over it.
//!
//! Reads and checks; never creates, opens or changes anything.

mod environment;
mod file;
mod peer;
mod settings;
mod validate;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use url::Url;

pub use peer::Peer;
pub use settings::Settings;

/// Where the published container image keeps its configuration.
pub const DEFAULT_CONFIG_PATH: &str = "/data/server.toml";
/// Where the published container image opens its admin socket.
pub const DEFAULT_ADMIN_SOCKET: &str = "/data/kanidmd.sock";
/// Where the published container image looks for HJSON migrations.
pub const DEFAULT_MIGRATION_PATH: &str = "/data/migrations.d";

/// What this node is; only the user interface depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Serves the API and, in the real server, the web interface.
    WriteReplica,
    /// Serves the API only.
    WriteReplicaNoUi,
    /// In spite of its name it accepts writes, as the real server does.
    ReadOnlyReplica,
}

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// The default.
    Info,
    /// More.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// The word as the filter of the log understands it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// Whether backups are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Files end in `.json.gz`.
    Gzip,
    /// Files end in `.json`.
    None,
}

/// The timed backup of a running server.
#[derive(Debug, Clone)]
pub struct OnlineBackup {
    /// The folder that receives the files.
    pub path: PathBuf,
    /// The schedule as written; parsed by the timer.
    pub schedule: String,
    /// How many files are kept.
    pub versions: usize,
    /// Whether files are compressed.
    pub compression: Compression,
}

/// How this node replicates.
#[derive(Debug, Clone)]
pub struct Replication {
    /// `repl://host:port`; the host goes into the certificate.
    pub origin: Url,
    /// Where peers pull from.
    pub bindaddress: SocketAddr,
    /// How long it takes from one pull to the next.
    pub poll: Duration,
    /// How long after a renewal nothing replicates: the new certificate is used after that.
    pub renewal_delay: Duration,
    /// Read at start only.
    pub peers: Vec<Peer>,
}

/// A complete, checked configuration of a server.
#[derive(Debug, Clone)]
pub struct Config {
    /// The domain of all SPNs.
    pub domain: String,
    /// The public address; its host is the domain or below it.
    pub origin: Url,
    /// The database file.
    pub db_path: PathBuf,
    /// Whether the database uses the larger pages for ZFS.
    pub zfs: bool,
    /// Entries in the cache; `None` lets the engine choose.
    pub db_arc_size: Option<usize>,
    /// PEM certificate chain.
    pub tls_chain: PathBuf,
    /// PEM private key.
    pub tls_key: PathBuf,
    /// Addresses of the HTTPS listeners, at least one.
    pub bindaddress: Vec<SocketAddr>,
    /// The admin socket.
    pub adminbindpath: PathBuf,
    /// The folder of HJSON migrations, which this server does not run.
    pub migration_path: PathBuf,
    /// Only decides whether images are served.
    pub role: Role,
    /// Worker threads asked for.
    pub thread_count: Option<usize>,
    /// The timed backup, when switched on.
    pub online_backup: Option<OnlineBackup>,
    /// Replication, when configured.
    pub replication: Option<Replication>,
}

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("the configuration file {path} cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not what version 2 allows. Quotes the file, as the real server does.
    #[error("the configuration file {path} is not valid: {reason}\n{content}")]
    Syntax {
        /// The file.
        path: String,
        /// What is wrong and where.
        reason: String,
        /// The whole file.
        content: String,
    },
    /// A value cannot be used.
    #[error("{name} = {value:?} cannot be used: {reason}")]
    Value {
        /// The key or variable.
        name: &'static str,
        /// What was given.
        value: String,
        /// Why not.
        reason: String,
    },
    /// A required value is missing.
    #[error("{name} is required: set it in the configuration file or as {variable}")]
    Missing {
        /// The key.
        name: &'static str,
        /// The environment variable.
        variable: &'static str,
    },
    /// The real server can do it, this one cannot.
    #[error("{what} is not implemented in this development server: remove it from the configuration")]
    NotImplemented {
        /// The setting.
        what: String,
    },
}

/// Reads the file (given, or the default one when it exists) and lays the environment over it.
///
/// # Errors
/// When the file cannot be read or parsed, or a variable has a value of the wrong form.
pub fn load(given: Option<&Path>) -> Result<Settings, ConfigError> {
    let default = Path::new(DEFAULT_CONFIG_PATH);
    let path = given.or_else(|| default.is_file().then_some(default));
    let mut settings = match path {
        Some(path) => file::read(path)?,
        None => Settings::default(),
    };
    environment::overlay(&mut settings, &|name| std::env::var(name).ok())?;
    Ok(settings)
}
