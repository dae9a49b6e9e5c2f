//! Measures what the operator promises of speed, size and rest: against a real API server (`KUBECONFIG`) and development Kanidm servers,
//! which it starts as processes. It plays the kubelet for them, so no pods are needed. It fails when something could not be measured;
//! a bar that is missed is reported and fails nothing, for timings are no tests. Run by `cargo xtask bench`.

mod counts;
mod cpu;
mod kubelet;
mod machine;
mod measure;
mod operator;
mod population;
mod report;
mod scale;
mod server;
mod stage;
mod statistics;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use crate::report::Report;
use crate::scale::Scale;

/// Measures the operator. KUBECONFIG names an API server that nothing else uses.
#[derive(Debug, Parser)]
struct Arguments {
    /// The operator's binary.
    #[arg(long)]
    operator: PathBuf,
    /// The development server's binary.
    #[arg(long)]
    server: PathBuf,
    /// Where the results and the operator's logs go.
    #[arg(long)]
    output: PathBuf,
    /// Small numbers: shows that everything can be measured, not how fast anything is.
    #[arg(long)]
    short: bool,
    /// Names of measurements, by letter (`b`, `f`, …); all when there are none. The bare rate is always taken.
    #[arg(long, value_delimiter = ',')]
    only: Vec<char>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<()> {
    let scale = if arguments.short { Scale::SHORT } else { Scale::FULL };
    let programs = stage::Programs {
        operator: arguments.operator.clone(),
        server: arguments.server.clone(),
        logs: arguments.output.join("logs"),
    };
    std::fs::create_dir_all(&programs.logs).with_context(|| format!("create {}", programs.logs.display()))?;
    let mut report = Report::new(arguments.short, machine::description());
    measure::all(&programs, &scale, &arguments.only, &mut report).await?;
    println!("\n{}", report.table());
    report.write(&arguments.output)
}
