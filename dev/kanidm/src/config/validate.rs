//! Whether settings make a server, and what this development server cannot do.
//!
//! Refuses rather than ignores: a setting that would silently have no effect could make a test pass for the wrong
//! reason.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use url::Url;

use super::settings::{BackupSettings, ReplicationSettings, Settings};
use super::{Compression, Config, ConfigError, DEFAULT_MIGRATION_PATH, OnlineBackup, Replication, Role};

/// The pull interval that the real server does not exceed, in seconds.
const LONGEST_POLL: u64 = 300;
/// The pull interval unless one is given, in seconds.
const USUAL_POLL: u64 = 15;
/// How long a renewed certificate takes to be used in a server of 1.10, in seconds.
const USUAL_RENEWAL_DELAY: u64 = 60;

impl Settings {
    /// The complete configuration of a server.
    ///
    /// # Errors
    /// When a required value is missing, a value cannot be used, or asks for something that is not implemented.
    pub fn into_config(self) -> Result<Config, ConfigError> {
        self.refuse_what_is_missing()?;
        self.warn_of_what_has_no_effect();
        let admin_socket = self.admin_socket();
        let db_path = self.database()?;
        let domain = required(self.domain, "domain", "KANIDM_DOMAIN")?;
        let origin = origin(&required(self.origin, "origin", "KANIDM_ORIGIN")?, &domain)?;
        let tls_chain = required(self.tls_chain, "tls_chain", "KANIDM_TLS_CHAIN")?;
        let tls_key = required(self.tls_key, "tls_key", "KANIDM_TLS_KEY")?;
        let bindaddress = if self.bindaddress.is_empty() {
            vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 8443))]
        } else {
            self.bindaddress
        };
        Ok(Config {
            online_backup: self.online_backup.and_then(|b| online_backup(b, &db_path)),
            replication: self.replication.map(|r| replication(r, self.renewal_delay)).transpose()?.flatten(),
            domain,
            origin,
            db_path,
            zfs: self.db_fs_type.as_deref() == Some("zfs"),
            db_arc_size: self.db_arc_size,
            tls_chain,
            tls_key,
            bindaddress,
            adminbindpath: admin_socket,
            migration_path: self.migration_path.unwrap_or_else(|| PathBuf::from(DEFAULT_MIGRATION_PATH)),
            role: self.role.unwrap_or(Role::WriteReplica),
            thread_count: self.thread_count,
        })
    }

    fn warn_of_what_has_no_effect(&self) {
        if self.otel_grpc_url.is_some() {
            tracing::warn!("otel_grpc_url has no effect: this development server exports no traces");
        }
        if self.http_client_address_info == Some("x-forward-for") {
            tracing::warn!("x-forward-for has no effect: addresses in the log are those of the connection");
        }
    }

    fn refuse_what_is_missing(&self) -> Result<(), ConfigError> {
        let what = if !self.ldapbindaddress.is_empty() {
            Some("LDAP (ldapbindaddress)".to_owned())
        } else if self.tls_client_ca.is_some() {
            Some("authentication by client certificates (tls_client_ca)".to_owned())
        } else {
            self.http_client_address_info
                .filter(|info| info.starts_with("proxy"))
                .map(|info| format!("the proxy protocol ({info})"))
        };
        what.map_or(Ok(()), |what| Err(ConfigError::NotImplemented { what }))
    }
}

fn required<T>(value: Option<T>, name: &'static str, variable: &'static str) -> Result<T, ConfigError> {
    value.ok_or(ConfigError::Missing { name, variable })
}

/// The origin, which must be the domain or lie below it.
fn origin(text: &str, domain: &str) -> Result<Url, ConfigError> {
    let refuse = |reason: String| ConfigError::Value { name: "origin", value: text.to_owned(), reason };
    let url = Url::parse(text).map_err(|e| refuse(e.to_string()))?;
    let host = url.host_str().unwrap_or_default();
    if host == domain || host.ends_with(&format!(".{domain}")) {
        Ok(url)
    } else {
        Err(refuse(format!("its host must be the domain {domain:?} or a name below it")))
    }
}

fn online_backup(given: BackupSettings, db_path: &Path) -> Option<OnlineBackup> {
    if given.enabled == Some(false) {
        return None;
    }
    let folder = db_path.parent().unwrap_or(Path::new(".")).to_path_buf();
    Some(OnlineBackup {
        path: given.path.unwrap_or(folder),
        schedule: given.schedule.unwrap_or_else(|| "@daily".to_owned()),
        versions: given.versions.unwrap_or(7),
        compression: given.compression.unwrap_or(Compression::Gzip),
    })
}

/// `None` when only a listener was configured: without an origin there is no certificate.
fn replication(given: ReplicationSettings, renewal_delay: Option<u64>) -> Result<Option<Replication>, ConfigError> {
    let bindaddress = match &given.bindaddress {
        None => SocketAddr::from((Ipv4Addr::LOCALHOST, 8444)),
        Some(address) => address.parse::<SocketAddr>().map_err(|e| ConfigError::Value {
            name: "replication.bindaddress",
            value: address.clone(),
            reason: e.to_string(),
        })?,
    };
    let seconds = given.task_poll_interval.unwrap_or(USUAL_POLL);
    if seconds > LONGEST_POLL {
        tracing::warn!("replication.task_poll_interval is more than {LONGEST_POLL} s and is capped");
    }
    let Some(text) = given.origin else {
        return if given.peers.is_empty() {
            Ok(None)
        } else {
            Err(ConfigError::Missing { name: "replication.origin", variable: "KANIDM_REPLICATION_ORIGIN" })
        };
    };
    let refuse = |reason: String| ConfigError::Value { name: "replication.origin", value: text.clone(), reason };
    let origin = Url::parse(&text).map_err(|e| refuse(e.to_string()))?;
    if origin.scheme() != "repl" || origin.host_str().is_none_or(str::is_empty) {
        return Err(refuse("it must have the form repl://host:port".to_owned()));
    }
    Ok(Some(Replication {
        origin,
        bindaddress,
        poll: Duration::from_secs(seconds.clamp(1, LONGEST_POLL)),
        renewal_delay: Duration::from_secs(renewal_delay.unwrap_or(USUAL_RENEWAL_DELAY)),
        peers: given.peers,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_must_be_the_domain_or_below_it() {
        for (text, domain, accepted) in [
            ("https://idm.example.com", "idm.example.com", true),
            ("https://a.idm.example.com:8443", "idm.example.com", true),
            ("https://example.com", "idm.example.com", false),
            ("https://notidm.example.com", "idm.example.com", false),
            ("not a url", "idm.example.com", false),
        ] {
            assert_eq!(origin(text, domain).is_ok(), accepted, "{text} under {domain}");
        }
    }
}
