//! The node helper (being written).
/// Helper.
#[derive(Debug, clap::Args)]
pub struct Node {}
/// Runs the helper.
pub fn run(_arguments: Node) -> std::process::ExitCode { std::process::ExitCode::FAILURE }
