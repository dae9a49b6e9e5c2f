//! `kanidmd`: a development server that keeps the contract of a Kanidm server, built on its published engine crate.
//!
//! It is not Kanidm and not for production: see the README beside it.

#![forbid(unsafe_code)]

mod admin;
mod backup;
mod cli;
mod command;
mod config;
mod engine;
mod healthcheck;
mod http;
mod later_schema;
mod lock_file;
mod logging;
mod offline;
mod release;
mod replication;
mod scripting;
mod server;
mod tls;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    // The database, its log and the socket are nobody else's business; the group may read.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o027));
    // Fails only when a provider is installed already, and then there is one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    if let Err(error) = release::choose() {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    command::run(cli)
}
