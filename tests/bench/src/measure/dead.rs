//! (g) Changes on a healthy server while another one, with objects of its own, answers nothing: its process is stopped, so that connections
//! are taken and no byte comes back. Its objects are changed all the time, so that the operator always has something to do there.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kaniop_e2e::is_current;

use super::{Run, change};
use crate::kubelet;
use crate::operator::Operator;
use crate::population::{self, PERSON, Population, person_name};
use crate::report::Bar;
use crate::server::Server;
use crate::stage::Stage;
use crate::statistics::{millis, percentile};

/// Name of the Kanidm whose server is stopped.
const DEAD: &str = "dead";
/// How often all of its people are changed.
const EVERY: Duration = Duration::from_secs(10);
/// What is allowed above the time without it, in milliseconds …
const ABOVE: f64 = 20.0;
/// … or as a share, whichever is more.
const SHARE: f64 = 1.1;

pub(super) async fn measure(run: &mut Run<'_>, stage: &Stage, operator: &mut Operator, alone: Duration) -> Result<()> {
    let population = Population::of(run.scale.dead);
    let (cluster, namespace) = (&stage.cluster, &stage.namespace);
    let server = Server::start(&run.programs.server).await?;
    kubelet::store(cluster, namespace, DEAD, &server).await?;
    kubelet::run_pod(cluster, namespace, DEAD, &server).await?;
    population::store(cluster, namespace, DEAD, population).await?;
    population::all_ready(cluster, (namespace, DEAD), &server, population, stage.patience).await?;
    server.freeze()?;
    let churn = tokio::spawn(churn(stage.cluster.clone(), namespace.clone(), population.people));
    let taken = change::many(stage, run.scale.changes, run.scale.changes).await?;
    churn.abort();
    operator.must_run(&stage.start.log)?;
    // Or it was not dead, and nothing was measured.
    let person = cluster.api(PERSON, namespace).get(&person_name(DEAD, 0)).await?;
    let says_so = person.data["status"]["ready"] == true && is_current(&person);
    ensure!(!says_so, "{} is Ready, but its server is dead", person_name(DEAD, 0));

    let most = millis(percentile(&taken, 0.99));
    let bar = (millis(alone) * SHARE).max(millis(alone) + ABOVE);
    let what = format!("one change while a server with {} objects is dead, P50", population.objects());
    run.report.fact('g', what, (millis(percentile(&taken, 0.5)), "ms"));
    run.report.value('g', "… P99 (bar: 10 % or 20 ms above that without)", (most, "ms"), Bar::AtMost(bar));
    let longest = taken.iter().max().context("changes were made")?;
    run.report.fact('g', "… the longest", (millis(*longest), "ms"));
    Ok(())
}

/// Changes all people of the dead server again and again.
async fn churn(cluster: kaniop_e2e::cluster::Cluster, namespace: String, people: usize) -> Result<()> {
    for round in 0.. {
        for number in 0..people {
            population::change(&cluster, &namespace, &person_name(DEAD, number), &format!("Round {round}")).await?;
        }
        tokio::time::sleep(EVERY).await;
    }
    Ok(())
}
