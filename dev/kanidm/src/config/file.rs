//! `server.toml`, version 2: its exact shape.
//!
//! Unknown keys are refused everywhere but in `[online_backup]`; an unknown key in `[replication]` is read as a peer
//! and refused as such. Version 1 files are refused, not guessed at.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::peer::{FilePeer, Peer};
use super::settings::{BackupSettings, ReplicationSettings, Settings};
use super::{Compression, ConfigError, LogLevel, Role};

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    fn into_vec(self) -> Vec<T> {
        match self {
            Self::One(value) => vec![value],
            Self::Many(values) => values,
        }
    }
}

#[derive(Deserialize)]
enum FileRole {
    WriteReplica,
    #[serde(rename = "WriteReplicaNoUI")]
    WriteReplicaNoUi,
    ReadOnlyReplica,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum FileLogLevel {
    Info,
    Debug,
    Trace,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum FileCompression {
    Gzip,
    NoCompression,
}

/// The one table that tolerates unknown keys.
#[derive(Deserialize)]
struct FileBackup {
    path: Option<PathBuf>,
    schedule: String,
    versions: Option<usize>,
    enabled: Option<bool>,
    compression: Option<FileCompression>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[expect(dead_code, reason = "the ranges are read for their form only: no rule is carried out")]
enum FileAddressInfo {
    XForwardFor(Vec<String>),
    ProxyV2(Vec<String>),
    ProxyV1(Vec<String>),
}

#[derive(Deserialize)]
struct FileReplication {
    origin: Option<String>,
    bindaddress: Option<String>,
    task_poll_interval: Option<u64>,
    #[serde(flatten)]
    peers: BTreeMap<String, FilePeer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "version")]
    _version: String,
    domain: Option<String>,
    origin: Option<String>,
    db_path: Option<PathBuf>,
    db_fs_type: Option<String>,
    db_arc_size: Option<usize>,
    tls_chain: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    tls_client_ca: Option<PathBuf>,
    bindaddress: Option<OneOrMany<SocketAddr>>,
    ldapbindaddress: Option<OneOrMany<String>>,
    role: Option<FileRole>,
    log_level: Option<FileLogLevel>,
    adminbindpath: Option<PathBuf>,
    migration_path: Option<PathBuf>,
    thread_count: Option<usize>,
    // Read and never enforced, as in the real server: the limit is the HTTP library's 2 MiB.
    #[serde(rename = "maximum_request_size_bytes")]
    _maximum_request_size_bytes: Option<usize>,
    otel_grpc_url: Option<String>,
    http_client_address_info: Option<FileAddressInfo>,
    #[serde(rename = "ldap_client_address_info")]
    _ldap_client_address_info: Option<FileAddressInfo>,
    online_backup: Option<FileBackup>,
    replication: Option<FileReplication>,
}

/// Reads a version 2 file.
///
/// # Errors
/// When it cannot be read, is not TOML, has another version or a key that version 2 does not know.
pub fn read(path: &Path) -> Result<Settings, ConfigError> {
    let content = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Unreadable { path: path.display().to_string(), source })?;
    let refuse =
        |reason: String| ConfigError::Syntax { path: path.display().to_string(), reason, content: content.clone() };
    let table: toml::Table = toml::from_str(&content).map_err(|e| refuse(e.to_string()))?;
    if table.get("version").and_then(|v| v.as_str()) != Some("2") {
        return Err(refuse("this development server reads only files with version = \"2\"".to_owned()));
    }
    let mut file: File = toml::from_str(&content).map_err(|e| refuse(e.to_string()))?;
    let replication = file.replication.take().map(ReplicationSettings::try_from).transpose().map_err(refuse)?;
    Ok(Settings { replication, ..file.into() })
}

impl From<FileBackup> for BackupSettings {
    fn from(file: FileBackup) -> Self {
        Self {
            path: file.path,
            schedule: Some(file.schedule),
            versions: file.versions,
            enabled: file.enabled,
            compression: file.compression.map(|c| match c {
                FileCompression::Gzip => Compression::Gzip,
                FileCompression::NoCompression => Compression::None,
            }),
        }
    }
}

impl TryFrom<FileReplication> for ReplicationSettings {
    type Error = String;

    fn try_from(file: FileReplication) -> Result<Self, String> {
        Ok(Self {
            origin: file.origin,
            bindaddress: file.bindaddress,
            task_poll_interval: file.task_poll_interval,
            peers: file
                .peers
                .into_iter()
                .map(|(address, given)| Peer::new(&address, given))
                .collect::<Result<_, _>>()?,
        })
    }
}

/// All but the replication, whose peers have to be checked.
impl From<File> for Settings {
    fn from(file: File) -> Self {
        Self {
            domain: file.domain,
            origin: file.origin,
            db_path: file.db_path,
            db_fs_type: file.db_fs_type,
            db_arc_size: file.db_arc_size,
            tls_chain: file.tls_chain,
            tls_key: file.tls_key,
            tls_client_ca: file.tls_client_ca,
            bindaddress: file.bindaddress.map(OneOrMany::into_vec).unwrap_or_default(),
            ldapbindaddress: file.ldapbindaddress.map(OneOrMany::into_vec).unwrap_or_default(),
            role: file.role.map(|r| match r {
                FileRole::WriteReplica => Role::WriteReplica,
                FileRole::WriteReplicaNoUi => Role::WriteReplicaNoUi,
                FileRole::ReadOnlyReplica => Role::ReadOnlyReplica,
            }),
            log_level: file.log_level.map(|l| match l {
                FileLogLevel::Info => LogLevel::Info,
                FileLogLevel::Debug => LogLevel::Debug,
                FileLogLevel::Trace => LogLevel::Trace,
            }),
            adminbindpath: file.adminbindpath,
            migration_path: file.migration_path,
            thread_count: file.thread_count,
            otel_grpc_url: file.otel_grpc_url,
            http_client_address_info: file.http_client_address_info.map(|i| match i {
                FileAddressInfo::XForwardFor(_) => "x-forward-for",
                FileAddressInfo::ProxyV2(_) => "proxy-v2",
                FileAddressInfo::ProxyV1(_) => "proxy-v1",
            }),
            online_backup: file.online_backup.map(Into::into),
            ..Self::default()
        }
    }
}
