//! The log: text lines on standard output, for people. Nothing may parse them.

use tracing_subscriber::EnvFilter;

use crate::config::LogLevel;

/// Starts logging, and says so on standard error as the real server does.
pub fn start(level: LogLevel) {
    let filter = EnvFilter::new(level.as_str());
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).finish();
    match tracing::subscriber::set_global_default(subscriber) {
        Ok(()) => eprintln!("Logging filter initialized: {}", level.as_str()),
        Err(error) => eprintln!("Logging could not be started: {error}"),
    }
}
