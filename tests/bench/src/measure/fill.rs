//! (b) Objects that are stored before the operator starts: how fast all of them are Ready, and what that asks of the server.

use std::time::Duration;

use anyhow::{Context, Result};

use super::{Run, bare};
use crate::counts::Counts;
use crate::cpu;
use crate::operator::Operator;
use crate::report::Bar;
use crate::stage::Stage;
use crate::statistics::{millis, number};

/// Share of the bare rate that must be reached.
const SHARE: f64 = 0.6;
/// Requests to the server for each object, lists and all.
const REQUESTS: f64 = 1.3;

/// Starts the operator and waits until everything is Ready; tells of it at the size that the bars speak of.
pub(super) async fn measure(run: &mut Run<'_>, stage: &Stage) -> Result<Operator> {
    let kubernetes = Counts::of_kubernetes(&stage.cluster.client).await?;
    let kanidm = stage.server.counts().await?;
    let (processors, machine) = (processors(stage, None)?, cpu::of_the_machine()?);
    let operator = stage.operator()?;
    let ready = stage.all_ready().await?;
    let took = ready.duration_since(operator.began).as_secs_f64();
    let processors = processors_since(stage, &operator, &processors)?;
    let (used, could) = cpu::of_the_machine()?;
    let machine = 100.0 * (used - machine.0) / (could - machine.1);
    let own = operator.counts().await?;
    let kanidm = stage.server.counts().await?.since(&kanidm);
    let kubernetes = Counts::of_kubernetes(&stage.cluster.client).await?.since(&kubernetes);
    stage.note("until all were Ready", &[&kanidm, &kubernetes, &own])?;

    let objects = stage.population.objects();
    let rate = number(objects) / took;
    let stored = format!("{objects} stored objects, from the operator's start until all are Ready");
    run.report.fact('b', stored, (rate, "objects/s"));
    if objects != run.scale.sizes[1] {
        return Ok(operator);
    }
    let bare = |row| run.report.find('a', row).unwrap_or(f64::NAN);
    let (people, mixed) = (rate / bare(bare::RATE), rate / bare(bare::MIXED));
    run.report.value('b', "… of the plain loop's rate for people", (people, ""), Bar::AtLeast(SHARE));
    run.report.fact('b', "… of the plain loop's rate for people and groups", (mixed, ""));
    let sent = own.sum(|key| key.starts_with("kaniop_kanidm_requests_total"));
    let each = sent.max(kanidm.sum(|_| true)) / number(objects);
    run.report.value('b', "… requests to Kanidm for each object", (each, ""), Bar::AtMost(REQUESTS));
    let asked = (kubernetes.kubernetes_reads() + kubernetes.kubernetes_writes()) / number(objects);
    run.report.fact('b', "… requests to Kubernetes for each object", (asked, ""));
    let waiting = own.sum(|key| key == "kaniop_events_waiting") / number(objects);
    run.report.fact('b', "… events for each object that are still to be published", (waiting, ""));
    run.report.fact('b', "… all processors were busy, by anything", (machine, "%"));
    for (who, time) in processors {
        let each = millis(time) / number(objects);
        run.report.fact('b', format!("… processor time of {who} for each object"), (each, "ms"));
    }
    Ok(operator)
}

/// Processor time by who used it.
type Processors = [(&'static str, Duration); 6];

/// Processor time so far. What is not there has used none.
fn processors(stage: &Stage, operator: Option<&Operator>) -> Result<Processors> {
    let components = cpu::of_components(&stage.kubeconfig)?;
    let of = |component: &str| components.get(component).copied();
    Ok([
        ("the operator", operator.map(Operator::cpu).transpose()?.unwrap_or_default()),
        ("the Kanidm server", cpu::time(stage.server.pid())?),
        ("the API server", of("kube-apiserver").context("the API server is none that `cargo xtask` has started")?),
        ("etcd", of("etcd").unwrap_or_default()),
        ("Kubernetes' controllers", of("kube-controller-manager").unwrap_or_default()),
        ("the benchmark itself", cpu::time(std::process::id())?),
    ])
}

/// Processor time since then.
fn processors_since(stage: &Stage, operator: &Operator, before: &Processors) -> Result<Processors> {
    let mut now = processors(stage, Some(operator))?;
    for ((_, time), (_, before)) in now.iter_mut().zip(before) {
        *time = time.saturating_sub(*before);
    }
    Ok(now)
}
