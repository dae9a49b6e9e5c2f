//! The environment variables that override the file.
//!
//! Their spellings differ from the file's in places (`role`); both are the real server's.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use super::settings::Settings;
use super::{ConfigError, LogLevel, Role};

type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Lays every variable that is set over the settings.
///
/// # Errors
/// When a variable has a value of the wrong form.
pub fn overlay(settings: &mut Settings, lookup: Lookup<'_>) -> Result<(), ConfigError> {
    text(&mut settings.domain, "KANIDM_DOMAIN", lookup);
    text(&mut settings.origin, "KANIDM_ORIGIN", lookup);
    text(&mut settings.db_fs_type, "KANIDM_DB_FS_TYPE", lookup);
    text(&mut settings.otel_grpc_url, "KANIDM_OTEL_GRPC_URL", lookup);
    path(&mut settings.db_path, "KANIDM_DB_PATH", lookup);
    path(&mut settings.tls_chain, "KANIDM_TLS_CHAIN", lookup);
    path(&mut settings.tls_key, "KANIDM_TLS_KEY", lookup);
    path(&mut settings.tls_client_ca, "KANIDM_TLS_CLIENT_CA", lookup);
    path(&mut settings.adminbindpath, "KANIDM_ADMIN_BIND_PATH", lookup);
    number(&mut settings.renewal_delay, "KANIDM_DEV_RENEWAL_DELAY", lookup)?;
    number(&mut settings.db_arc_size, "KANIDM_DB_ARC_SIZE", lookup)?;
    if let Some(list) = lookup("KANIDM_BINDADDRESS") {
        settings.bindaddress = list
            .split(',')
            .map(|one| parse::<SocketAddr>("KANIDM_BINDADDRESS", one.trim()))
            .collect::<Result<_, _>>()?;
    }
    if let Some(list) = lookup("KANIDM_LDAPBINDADDRESS") {
        settings.ldapbindaddress = list.split(',').map(|one| one.trim().to_owned()).collect();
    }
    if let Some(word) = lookup("KANIDM_ROLE") {
        settings.role = Some(role(&word)?);
    }
    if let Some(word) = lookup("KANIDM_LOG_LEVEL") {
        settings.log_level = Some(log_level(&word)?);
    }
    if lookup("KANIDM_TRUST_X_FORWARDED_FOR").as_deref() == Some("true") {
        settings.http_client_address_info = Some("x-forward-for");
    }
    online_backup(settings, lookup)?;
    replication(settings, lookup)
}

/// Any one of the three switches backups on, with a daily schedule unless one is given.
fn online_backup(settings: &mut Settings, lookup: Lookup<'_>) -> Result<(), ConfigError> {
    let names = ["KANIDM_ONLINE_BACKUP_PATH", "KANIDM_ONLINE_BACKUP_SCHEDULE", "KANIDM_ONLINE_BACKUP_VERSIONS"];
    if names.iter().all(|name| lookup(name).is_none()) {
        return Ok(());
    }
    let backup = settings.online_backup.get_or_insert_default();
    path(&mut backup.path, "KANIDM_ONLINE_BACKUP_PATH", lookup);
    text(&mut backup.schedule, "KANIDM_ONLINE_BACKUP_SCHEDULE", lookup);
    number(&mut backup.versions, "KANIDM_ONLINE_BACKUP_VERSIONS", lookup)?;
    if backup.schedule.is_none() {
        backup.schedule = Some("@daily".to_owned());
    }
    Ok(())
}

fn replication(settings: &mut Settings, lookup: Lookup<'_>) -> Result<(), ConfigError> {
    let names =
        ["KANIDM_REPLICATION_ORIGIN", "KANIDM_REPLICATION_BINDADDRESS", "KANIDM_REPLICATION_TASK_POLL_INTERVAL"];
    if names.iter().all(|name| lookup(name).is_none()) {
        return Ok(());
    }
    let replication = settings.replication.get_or_insert_default();
    text(&mut replication.origin, "KANIDM_REPLICATION_ORIGIN", lookup);
    text(&mut replication.bindaddress, "KANIDM_REPLICATION_BINDADDRESS", lookup);
    number(&mut replication.task_poll_interval, "KANIDM_REPLICATION_TASK_POLL_INTERVAL", lookup)
}

fn text(target: &mut Option<String>, name: &str, lookup: Lookup<'_>) {
    if let Some(value) = lookup(name) {
        *target = Some(value);
    }
}

fn path(target: &mut Option<PathBuf>, name: &str, lookup: Lookup<'_>) {
    if let Some(value) = lookup(name) {
        *target = Some(PathBuf::from(value));
    }
}

fn number<T: FromStr>(target: &mut Option<T>, name: &'static str, lookup: Lookup<'_>) -> Result<(), ConfigError>
where
    T::Err: std::fmt::Display,
{
    if let Some(value) = lookup(name) {
        *target = Some(parse(name, &value)?);
    }
    Ok(())
}

fn parse<T: FromStr>(name: &'static str, value: &str) -> Result<T, ConfigError>
where
    T::Err: std::fmt::Display,
{
    value.parse().map_err(|e: T::Err| ConfigError::Value { name, value: value.to_owned(), reason: e.to_string() })
}

fn role(word: &str) -> Result<Role, ConfigError> {
    match word {
        "write_replica" => Ok(Role::WriteReplica),
        "write_replica_no_ui" => Ok(Role::WriteReplicaNoUi),
        "read_only_replica" => Ok(Role::ReadOnlyReplica),
        other => Err(ConfigError::Value {
            name: "KANIDM_ROLE",
            value: other.to_owned(),
            reason: "it must be write_replica, write_replica_no_ui or read_only_replica".to_owned(),
        }),
    }
}

fn log_level(word: &str) -> Result<LogLevel, ConfigError> {
    match word {
        "info" => Ok(LogLevel::Info),
        "debug" => Ok(LogLevel::Debug),
        "trace" => Ok(LogLevel::Trace),
        other => Err(ConfigError::Value {
            name: "KANIDM_LOG_LEVEL",
            value: other.to_owned(),
            reason: "it must be info, debug or trace".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlaid(pairs: &[(&str, &str)]) -> Result<Settings, ConfigError> {
        let mut settings = Settings::default();
        overlay(&mut settings, &|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))?;
        Ok(settings)
    }

    #[test]
    fn a_comma_list_gives_several_listeners() {
        let settings = overlaid(&[("KANIDM_BINDADDRESS", "127.0.0.1:1, [::1]:2")]).unwrap();
        assert_eq!(settings.bindaddress.len(), 2);
    }

    #[test]
    fn one_backup_variable_switches_daily_backups_on() {
        let settings = overlaid(&[("KANIDM_ONLINE_BACKUP_VERSIONS", "3")]).unwrap();
        let backup = settings.online_backup.unwrap();
        assert_eq!((backup.schedule.as_deref(), backup.versions), (Some("@daily"), Some(3)));
    }

    #[test]
    fn the_spelling_of_roles_in_the_file_is_refused_in_the_environment() {
        assert!(overlaid(&[("KANIDM_ROLE", "WriteReplica")]).is_err());
        assert_eq!(overlaid(&[("KANIDM_ROLE", "write_replica_no_ui")]).unwrap().role, Some(Role::WriteReplicaNoUi));
    }
}
