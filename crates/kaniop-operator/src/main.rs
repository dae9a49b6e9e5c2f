//! The binary `kaniop`: the operator, and the helper that it brings into the servers' pods.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use kaniop_operator::context::Options;
use kaniop_operator::picture::Rules;
use kaniop_operator::{node, run};
use tracing_subscriber::EnvFilter;

/// Kubernetes operator for the Kanidm identity server.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the operator.
    Run(Run),
    /// Serve as the helper inside a server's pod; answers are JSON on stdout.
    Node(node::Node),
    /// Print the CustomResourceDefinitions as YAML.
    Crds,
    /// Print the version.
    Version,
}

#[derive(Debug, clap::Args)]
struct Run {
    /// Name of this operator in the election: unique among all of them.
    #[arg(long, env = "POD_NAME")]
    identity: String,
    /// Namespace of the operator: where the Lease lives.
    #[arg(long, env = "POD_NAMESPACE")]
    namespace: String,
    /// Image of this operator, from which the node helper is copied into the servers' pods.
    #[arg(long, env = "KANIOP_IMAGE")]
    image: String,
    /// How often each server is looked at when nothing happens, in seconds.
    #[arg(long, env = "KANIOP_INTERVAL", default_value = "60", value_parser = clap::value_parser!(u32).range(1..=3600))]
    interval: u32,
    /// Watch only this namespace.
    #[arg(long, env = "KANIOP_WATCH_NAMESPACE")]
    watch_namespace: Option<String>,
    /// Networks (CIDR) that pictures are never fetched from although they are public, such as those of nodes, pods and services.
    #[arg(long, env = "KANIOP_REFUSED_NETWORKS", value_delimiter = ',')]
    refused_networks: Vec<ipnet::IpNet>,
    /// Address of /livez, /readyz and /metrics.
    #[arg(long, env = "KANIOP_LISTEN", default_value = "[::]:8080")]
    listen: SocketAddr,
    /// What to log, as tracing filters.
    #[arg(long, env = "KANIOP_LOG", default_value = "info")]
    log: String,
    /// How log lines look.
    #[arg(long, env = "KANIOP_LOG_FORMAT", default_value = "text")]
    log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    /// For people.
    Text,
    /// For collectors.
    Json,
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(arguments) => operate(arguments),
        Command::Node(arguments) => node::run(arguments),
        Command::Crds => crds(),
        Command::Version => {
            println!("kaniop {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
    }
}

fn operate(arguments: Run) -> ExitCode {
    let filter = match EnvFilter::try_new(&arguments.log) {
        Ok(filter) => filter,
        Err(error) => return failed(&format!("--log {:?} is not a tracing filter: {error}", arguments.log)),
    };
    let log = tracing_subscriber::fmt().with_env_filter(filter);
    match arguments.log_format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        return failed("the TLS provider is set already");
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("no runtime: {error}")),
    };
    let identity = run::Identity { name: arguments.identity, namespace: arguments.namespace, listen: arguments.listen };
    let pictures = match Rules::new(arguments.refused_networks) {
        Ok(rules) => rules,
        Err(error) => return failed(&error.to_string()),
    };
    let options = Options {
        image: arguments.image,
        interval: Duration::from_secs(arguments.interval.into()),
        namespace: arguments.watch_namespace.filter(|namespace| !namespace.is_empty()),
        pictures,
    };
    match runtime.block_on(run::run(identity, options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(ended) => {
            tracing::error!("{ended}");
            ExitCode::FAILURE
        }
    }
}

fn crds() -> ExitCode {
    let Ok(crds) = kaniop_api::crd::all() else { return failed("a schema does not read back") };
    for crd in crds {
        match serde_norway::to_string(&crd) {
            Ok(yaml) => print!("---\n{yaml}"),
            Err(error) => return failed(&format!("a definition cannot be written: {error}")),
        }
    }
    ExitCode::SUCCESS
}

fn failed(why: &str) -> ExitCode {
    eprintln!("kaniop: {why}");
    ExitCode::FAILURE
}
