//! (b) Objects that are stored before the operator starts: how fast all of them are Ready, and what that asks of the server.

use anyhow::Result;

use super::{Run, bare};
use crate::counts::Counts;
use crate::cpu;
use crate::operator::Operator;
use crate::report::Bar;
use crate::stage::Stage;
use crate::statistics::number;

/// Share of the bare rate that must be reached.
const SHARE: f64 = 0.6;
/// Requests to the server for each object, lists and all.
const REQUESTS: f64 = 1.3;

/// Starts the operator and waits until everything is Ready; tells of it at the size that the bars speak of.
pub(super) async fn measure(run: &mut Run<'_>, stage: &Stage) -> Result<Operator> {
    let kubernetes = Counts::of_kubernetes(&stage.cluster.client).await?;
    let kanidm = stage.server.counts().await?;
    let (busy, machine) = (cpu::time(stage.server.pid())?, cpu::of_the_machine()?);
    let operator = stage.operator()?;
    let ready = stage.all_ready().await?;
    let took = ready.duration_since(operator.began).as_secs_f64();
    let busy = cpu::time(stage.server.pid())?.saturating_sub(busy);
    let (used, could) = cpu::of_the_machine()?;
    let machine = 100.0 * (used - machine.0) / (could - machine.1);
    let kanidm = stage.server.counts().await?.since(&kanidm);
    let kubernetes = Counts::of_kubernetes(&stage.cluster.client).await?.since(&kubernetes);
    stage.note("until all were Ready", &[&kanidm, &kubernetes])?;

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
    let sent = operator.counts().await?.sum(|key| key.starts_with("kaniop_kanidm_requests_total"));
    let served = kanidm.sum(|_| true);
    let each = sent.max(served) / number(objects);
    run.report.value('b', "… requests to Kanidm for each object", (each, ""), Bar::AtMost(REQUESTS));
    let asked = (kubernetes.kubernetes_reads() + kubernetes.kubernetes_writes()) / number(objects);
    run.report.fact('b', "… requests to Kubernetes for each object", (asked, ""));
    run.report.fact('b', "… all processors were busy, by anything", (machine, "%"));
    let api = kubernetes.sum(|key| key.starts_with("process_cpu"));
    for (who, seconds) in
        [("operator", operator.cpu()?.as_secs_f64()), ("Kanidm server", busy.as_secs_f64()), ("API server", api)]
    {
        let each = 1e3 * seconds / number(objects);
        run.report.fact('b', format!("… processor time of the {who} for each object"), (each, "ms"));
    }
    Ok(operator)
}
