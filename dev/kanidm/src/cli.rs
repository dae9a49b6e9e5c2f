//! The command line, in the shape of the real server.
//!
//! One oddity is left out: there, stray words after a subcommand are read as settings; here they are an error.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// A development identity server on Kanidm's engine. Not Kanidm, not for production.
#[derive(Debug, Parser)]
#[command(name = "kanidmd", disable_version_flag = true)]
pub struct Cli {
    /// The configuration file.
    #[arg(short, long, global = true, env = "KANIDM_CONFIG", value_name = "FILE")]
    pub config_path: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs the server.
    Server,
    /// Opens and migrates the database, then ends; exits 0 on most failures.
    Configtest,
    /// Sets a new password for an account, through the running server.
    RecoverAccount {
        /// The account.
        name: String,
    },
    /// Expires an account, through the running server.
    DisableAccount {
        /// The account.
        name: String,
    },
    /// Shows the replication certificate of the running server.
    ShowReplicationCertificate,
    /// Shows dates and subject of the replication certificate.
    ShowReplicationCertificateMetadata,
    /// Makes a new replication certificate.
    RenewReplicationCertificate,
    /// Replaces the content of the running server by its supplier's.
    RefreshReplicationConsumer {
        /// Says that you mean it.
        #[arg(long = "i-want-to-refresh-this-servers-database")]
        confirmed: bool,
    },
    /// About the domain, through the running server.
    Domain {
        /// What about it.
        #[command(subcommand)]
        command: DomainCommand,
    },
    /// Work on the database itself.
    Database {
        /// Which work.
        #[command(subcommand)]
        command: DatabaseCommand,
    },
    /// For programs: one line of JSON on standard output.
    Scripting {
        /// What to do.
        #[command(subcommand)]
        command: ScriptingCommand,
    },
    /// Makes a test certificate (not implemented here).
    CertGenerate,
    /// Looks into the database (not implemented here).
    #[command(disable_help_subcommand = true)]
    DbScan {
        /// Whatever the real server takes.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Prints the version.
    Version,
}

/// `kanidmd domain …`
#[derive(Debug, Subcommand)]
pub enum DomainCommand {
    /// Name, UUID and level.
    Show,
    /// What stands in the way of the next level.
    UpgradeCheck,
    /// Lifts the level.
    Raise,
    /// Runs a migration again.
    Remigrate {
        /// The level, or all.
        level: Option<u32>,
    },
    /// Renames the domain (not implemented here).
    Rename,
}

/// `kanidmd database …`
#[derive(Debug, Subcommand)]
pub enum DatabaseCommand {
    /// Writes a backup into a new file.
    Backup {
        /// The file.
        path: PathBuf,
        /// Ignored, as in the real server: the configuration's compression counts.
        #[arg(short = 'C', long)]
        compression: Option<String>,
    },
    /// Replaces the content of the database by a backup's; exits 0 on some failures.
    Restore {
        /// The file.
        path: PathBuf,
    },
    /// Checks the database; exits 0 when it cannot be opened.
    Verify,
    /// Builds the indexes again (not implemented here).
    Reindex,
    /// Compacts the database (not implemented here).
    Vacuum,
}

/// `kanidmd scripting …`
#[derive(Debug, Subcommand)]
pub enum ScriptingCommand {
    /// Sets a new password for an account, through the running server.
    RecoverAccount {
        /// The account.
        name: String,
    },
    /// Makes the running server read its TLS files again.
    Reload,
    /// Writes a backup into a new file, or to standard output.
    Backup {
        /// The file.
        path: Option<PathBuf>,
    },
    /// Asks the server for its status.
    Healthcheck {
        /// Verifies the server's certificate.
        #[arg(short, long = "verify-tls")]
        verify: bool,
        /// Asks at the origin rather than at the listener.
        #[arg(short = 'O', long = "check-origin")]
        origin: bool,
    },
}
