//! Settings as given, before it is known whether they make a server.
//!
//! Commands that only need the admin socket or the database ask these directly, so that they work with a
//! configuration that would not start a server.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::peer::Peer;
use super::{Compression, ConfigError, DEFAULT_ADMIN_SOCKET, LogLevel, Role};

/// `[online_backup]` as given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupSettings {
    /// The folder; the database's folder when absent.
    pub path: Option<PathBuf>,
    /// `@daily` when only the environment switched backups on.
    pub schedule: Option<String>,
    /// Seven when absent.
    pub versions: Option<usize>,
    /// On when absent.
    pub enabled: Option<bool>,
    /// Gzip when absent.
    pub compression: Option<Compression>,
}

/// `[replication]` as given.
#[derive(Debug, Clone, Default)]
pub struct ReplicationSettings {
    /// `repl://host:port`.
    pub origin: Option<String>,
    /// The listener's address.
    pub bindaddress: Option<String>,
    /// Seconds between pulls.
    pub task_poll_interval: Option<u64>,
    /// The peers, each already checked.
    pub peers: Vec<Peer>,
}

/// Everything that was given, each value possibly absent.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// `domain`.
    pub domain: Option<String>,
    /// `origin`.
    pub origin: Option<String>,
    /// `db_path`.
    pub db_path: Option<PathBuf>,
    /// `db_fs_type`: `zfs` or anything else.
    pub db_fs_type: Option<String>,
    /// `db_arc_size`.
    pub db_arc_size: Option<usize>,
    /// `tls_chain`.
    pub tls_chain: Option<PathBuf>,
    /// `tls_key`.
    pub tls_key: Option<PathBuf>,
    /// `tls_client_ca`.
    pub tls_client_ca: Option<PathBuf>,
    /// `bindaddress`.
    pub bindaddress: Vec<SocketAddr>,
    /// `ldapbindaddress`.
    pub ldapbindaddress: Vec<String>,
    /// `role`.
    pub role: Option<Role>,
    /// `log_level`.
    pub log_level: Option<LogLevel>,
    /// `adminbindpath`.
    pub adminbindpath: Option<PathBuf>,
    /// `migration_path`.
    pub migration_path: Option<PathBuf>,
    /// `thread_count`.
    pub thread_count: Option<usize>,
    /// `otel_grpc_url`.
    pub otel_grpc_url: Option<String>,
    /// The proxy rule in `[http_client_address_info]`, by name.
    pub http_client_address_info: Option<&'static str>,
    /// `[online_backup]`, or any of its variables.
    pub online_backup: Option<BackupSettings>,
    /// `[replication]`, or any of its variables.
    pub replication: Option<ReplicationSettings>,
    /// Seconds that a renewed replication certificate takes to be used.
    pub renewal_delay: Option<u64>,
}

impl Settings {
    /// The admin socket, given or default.
    pub fn admin_socket(&self) -> PathBuf {
        self.adminbindpath.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_ADMIN_SOCKET))
    }

    /// The database file.
    ///
    /// # Errors
    /// When none was given.
    pub fn database(&self) -> Result<PathBuf, ConfigError> {
        self.db_path.clone().ok_or(ConfigError::Missing { name: "db_path", variable: "KANIDM_DB_PATH" })
    }

    /// Whether backups made on demand are compressed.
    pub fn compression(&self) -> Compression {
        self.online_backup.as_ref().and_then(|b| b.compression).unwrap_or(Compression::Gzip)
    }
}
