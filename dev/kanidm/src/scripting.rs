//! `kanidmd scripting …`: one line of JSON on standard output, and no log.
//!
//! Failures are told by the JSON, not by the exit code: only `healthcheck` exits 1.

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::admin::client::{self, ClientError};
use crate::admin::protocol::{Request, Response};
use crate::cli::ScriptingCommand;
use crate::config::Settings;
use crate::{command, healthcheck};

/// Runs one command.
pub fn run(command: ScriptingCommand, settings: &Settings) -> ExitCode {
    match command {
        ScriptingCommand::RecoverAccount { name } => {
            tell(&ask(&settings.admin_socket(), &Request::RecoverAccount { name }));
            ExitCode::SUCCESS
        }
        ScriptingCommand::Reload => {
            tell(&ask(&settings.admin_socket(), &Request::Reload));
            ExitCode::SUCCESS
        }
        ScriptingCommand::Backup { path } => {
            // Nothing may be printed: without a path, standard output is the backup itself.
            // Why there is none stays untold, as in the real server: only the file is evidence.
            let _ = command::backup(settings, path.as_deref());
            ExitCode::SUCCESS
        }
        ScriptingCommand::Healthcheck { verify, origin } => match healthcheck::run(settings, verify, origin) {
            Ok(()) => {
                tell(&json!({"status": "ok"}));
                ExitCode::SUCCESS
            }
            Err(reason) => {
                tell(&failure(&format!("Connection failed: {reason}"), "HealthcheckFailed"));
                ExitCode::FAILURE
            }
        },
    }
}

fn tell(line: &Value) {
    println!("{line}");
}

fn failure(message: &str, reason: &str) -> Value {
    json!({"status": "error", "reason": reason, "message": message})
}

fn ask(socket: &Path, request: &Request) -> Value {
    match client::ask(socket, request) {
        Ok(Response::RecoverAccount { password }) => json!({"status": "ok", "output": password}),
        Ok(Response::Success) => json!({"status": "ok"}),
        Ok(Response::Error) => {
            failure("Error processing request - you should inspect the server logs.", "ResponseError")
        }
        Ok(_) => failure("The server answered something else than was asked.", "ResponseError"),
        Err(ClientError::NoServer { source, .. }) => failure("Unable to connect to socket path.", &source.to_string()),
        Err(error) => failure("The conversation with the server broke.", &error.to_string()),
    }
}
