//! Which command does what, and the exit codes, which lie exactly as the real server's do.

use std::path::Path;
use std::process::ExitCode;

use crate::admin::client;
use crate::admin::protocol::{Request, Response};
use crate::backup::on_demand;
use crate::cli::{Cli, Command, DatabaseCommand, DomainCommand};
use crate::config::{self, Config, LogLevel, Settings};
use crate::offline::restore::RestoreError;
use crate::offline::verify::verify;
use crate::{logging, offline, release, scripting, server};

/// Runs one command.
pub fn run(cli: Cli) -> ExitCode {
    if matches!(cli.command, Command::Version) {
        println!("kanidmd {} dev", release::played().version);
        return ExitCode::SUCCESS;
    }
    let settings = match config::load(cli.config_path.as_deref()) {
        Ok(settings) => settings,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    if let Command::Scripting { command } = cli.command {
        return scripting::run(command, &settings);
    }
    logging::start(settings.log_level.unwrap_or(LogLevel::Info));
    match cli.command {
        Command::Server => serve(settings),
        Command::Configtest => configtest(settings),
        Command::Database { command } => database(command, settings),
        Command::CertGenerate => not_implemented("cert-generate"),
        Command::DbScan { .. } => not_implemented("db-scan"),
        Command::Domain { command: DomainCommand::Rename } => not_implemented("domain rename"),
        Command::RefreshReplicationConsumer { confirmed: false } => {
            tracing::error!("refusing: say --i-want-to-refresh-this-servers-database");
            ExitCode::SUCCESS
        }
        other => ask(other, &settings),
    }
}

fn serve(settings: Settings) -> ExitCode {
    let outcome = settings.into_config().map_err(|e| e.to_string());
    match outcome.and_then(|config| server::run(config).map_err(|e| e.to_string())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("the server cannot run: {error}");
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Exits 1 for unreadable TLS files, and 0 for whatever fails after that.
fn configtest(settings: Settings) -> ExitCode {
    let files = [settings.tls_chain.clone(), settings.tls_key.clone()];
    let readable = files.iter().flatten().all(|path| std::fs::File::open(path).is_ok());
    let outcome = settings
        .into_config()
        .map_err(|e| e.to_string())
        .and_then(|config| server::check(config).map_err(|e| e.to_string()));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("UNCLEAN SHUTDOWN: {error}");
            if readable { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
    }
}

fn database(command: DatabaseCommand, settings: Settings) -> ExitCode {
    match command {
        DatabaseCommand::Backup { path, .. } => {
            if let Err(error) = backup(&settings, Some(&path)) {
                tracing::error!("no backup was written: {error}");
            }
            ExitCode::SUCCESS
        }
        DatabaseCommand::Restore { path } => with_config(settings, |config| restore(&path, config)),
        DatabaseCommand::Verify => with_config(settings, verify),
        DatabaseCommand::Reindex => not_implemented("database reindex"),
        DatabaseCommand::Vacuum => not_implemented("database vacuum"),
    }
}

fn with_config(settings: Settings, work: impl FnOnce(&Config) -> ExitCode) -> ExitCode {
    match settings.into_config() {
        Ok(config) => work(&config),
        Err(error) => {
            tracing::error!("{error}");
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Exits 0 when nothing was touched because nothing could be, and 1 when the backup was refused.
fn restore(source: &Path, config: &Config) -> ExitCode {
    match offline::restore::restore(source, config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("nothing was restored: {error}");
            match error {
                RestoreError::Missing(_) | RestoreError::Unreadable { .. } => ExitCode::SUCCESS,
                _ => ExitCode::FAILURE,
            }
        }
    }
}

/// Makes a backup of the configured database.
///
/// # Errors
/// In words, for people.
pub fn backup(settings: &Settings, target: Option<&Path>) -> Result<(), String> {
    let database = settings.database().map_err(|e| e.to_string())?;
    let zfs = settings.db_fs_type.as_deref() == Some("zfs");
    on_demand::make(&database, zfs, target, settings.compression()).map_err(|e| e.to_string())
}

/// What is not there must fail: an exit code of 0 would be taken for work done.
fn not_implemented(what: &str) -> ExitCode {
    tracing::error!("{what} is not implemented in this development server");
    eprintln!("{what} is not implemented in this development server");
    ExitCode::FAILURE
}

/// The commands that only ask the running server. They exit 0 whatever the answer is.
fn ask(command: Command, settings: &Settings) -> ExitCode {
    let request = match command {
        Command::RecoverAccount { name } => Request::RecoverAccount { name },
        Command::DisableAccount { name } => Request::DisableAccount { name },
        Command::ShowReplicationCertificate => Request::ShowReplicationCertificate,
        Command::ShowReplicationCertificateMetadata => Request::ShowReplicationCertificateMetadata,
        Command::RenewReplicationCertificate => Request::RenewReplicationCertificate,
        Command::RefreshReplicationConsumer { .. } => Request::RefreshReplicationConsumer,
        Command::Domain { command: DomainCommand::UpgradeCheck } => Request::DomainUpgradeCheck,
        Command::Domain { command: DomainCommand::Raise } => Request::DomainRaise,
        Command::Domain { command: DomainCommand::Remigrate { level } } => Request::DomainRemigrate { level },
        _ => Request::DomainShow,
    };
    match client::ask(&settings.admin_socket(), &request) {
        Ok(response) => print(&response),
        Err(error) => tracing::error!("{error}"),
    }
    ExitCode::SUCCESS
}

fn print(response: &Response) {
    match response {
        Response::RecoverAccount { password } => tracing::info!("new_password: {password:?}"),
        Response::ShowReplicationCertificate { cert } => tracing::info!("certificate: {cert:?}"),
        Response::ShowReplicationCertificateMetadata { not_before, not_after, subject, expired } => {
            tracing::info!("not_before: {not_before}, not_after: {not_after}, subject: {subject}, expired: {expired}");
        }
        Response::DomainShow { domain_info } => tracing::info!("domain: {domain_info:?}"),
        Response::DomainUpgradeCheck { report } => tracing::info!("upgrade check: {report:?}"),
        Response::DomainRaise { level } => tracing::info!("domain level: {level}"),
        Response::Success => tracing::info!("success"),
        Response::Error => tracing::error!("the server answered Error: see its log"),
    }
}
