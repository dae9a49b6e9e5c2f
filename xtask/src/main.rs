//! The project's own tasks, run as `cargo xtask TASK`. This file only says which there are.

mod apiserver;
mod bench;
mod chart;
mod cluster;
mod command;
mod demo;
mod e2e;
mod generate;
mod gobuild;
mod images;
mod install;
mod interrupt;
mod licences;
mod outside;
mod ownership;
mod process;
mod report;
mod setup;
mod test;
mod tidy;
mod tools;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::cluster::{Cluster, become_command};

/// Tasks of the Kaniop project.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what a fresh Debian machine lacks and build the development cluster's binaries
    Setup,
    /// A one-node Kubernetes on this machine, in its own network namespace
    #[command(subcommand)]
    Cluster(ClusterTask),
    /// Build the operator's and the development server's image and load them into the cluster
    Images,
    /// Run kubectl on the cluster
    Kubectl(Passed),
    /// Run Helm on the cluster
    Helm(Passed),
    /// Run any program where the cluster's addresses are reachable
    InNetwork(Passed),
    /// Run a program beside an API server of its own (no nodes), which ends with it
    WithApiserver(apiserver::Options),
    /// Write what is generated: the chart's CRDs and roles, the reference pages
    Gen {
        /// Change nothing, fail when something is out of date
        #[arg(long)]
        check: bool,
    },
    /// Check what no compiler checks: invariants, style, the truth of the documents
    Tidy,
    /// Check licences, banned crates and sources of all dependencies
    Licences,
    /// Check the Helm chart
    Chart {
        /// Take what it renders now as what it should render
        #[arg(long)]
        bless: bool,
    },
    /// From nothing to a running Kanidm with people in it
    Demo(demo::Options),
    /// Run every gate, in order, and say how long each took
    Test,
    /// Run the quick gates: no root, no cluster
    Check,
    /// Run the end-to-end tests
    E2e(e2e::Options),
    /// Measure the operator: speed, size, rest
    Bench(bench::Options),
}

#[derive(Subcommand)]
enum ClusterTask {
    /// Bring it up; if it is up, find that out
    Up,
    /// Take it down
    Down {
        /// Keep objects and volumes for the next `up`
        #[arg(long)]
        keep_data: bool,
    },
    /// Say how it is; fails unless it is wholly up
    Status,
    /// Prove with real pods that it does what the operator asks of a cluster
    Check,
}

/// Words that are passed on as they are.
#[derive(clap::Args)]
struct Passed {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<ExitCode> {
    match task {
        Task::Setup => setup::setup()?,
        Task::Cluster(task) => on_cluster(&task, &Cluster::from_env()?)?,
        Task::Images => {
            let images = images::ensure(&Cluster::from_env()?)?;
            println!("operator: {}\nkanidm: {}", images.operator, images.kanidm);
        }
        Task::Kubectl(passed) => return Err(become_command(Cluster::from_env()?.kubectl(passed.words))),
        Task::Helm(passed) => return Err(become_command(Cluster::from_env()?.helm(passed.words))),
        Task::InNetwork(passed) => return in_network(&passed.words),
        Task::WithApiserver(options) => return apiserver::run(&options),
        Task::Gen { check } => generate::run(check)?,
        Task::Tidy => tidy::run()?,
        Task::Licences => licences::run()?,
        Task::Chart { bless } => chart::check(bless)?,
        Task::Demo(options) => demo::run(&options)?,
        Task::Test => test::all()?,
        Task::Check => test::quick()?,
        Task::E2e(options) => e2e::with(&options)?,
        Task::Bench(options) => bench::run(&options)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn on_cluster(task: &ClusterTask, cluster: &Cluster) -> Result<()> {
    match task {
        ClusterTask::Up => cluster.up(),
        ClusterTask::Down { keep_data } => cluster.down(*keep_data),
        ClusterTask::Status => cluster.status(),
        ClusterTask::Check => cluster.check(),
    }
}

fn in_network(words: &[String]) -> Result<ExitCode> {
    let Some((program, arguments)) = words.split_first() else { anyhow::bail!("say which program to run") };
    let mut command = Cluster::from_env()?.in_network(program);
    command.args(arguments);
    Err(become_command(command))
}
