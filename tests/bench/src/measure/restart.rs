//! (f) A clean restart: nothing is written when nothing has changed meanwhile, and what has changed is soon on the server.

use std::time::Duration;

use anyhow::Result;

use super::{Run, change};
use crate::counts::Counts;
use crate::operator::Operator;
use crate::population::{self, person_name};
use crate::report::Bar;
use crate::stage::{KANIDM, Stage};

/// What the first useful write must stay below, in seconds.
const BAR: f64 = 5.0;

/// Restarts the operator several times; returns the last.
pub(super) async fn measure(run: &mut Run<'_>, stage: &Stage, operator: Operator) -> Result<Operator> {
    operator.stop().await?;
    let (kubernetes, kanidm) = (Counts::of_kubernetes(&stage.cluster.client).await?, stage.server.counts().await?);
    let mut operator = stage.operator()?;
    stage.looks(&mut operator, 2).await?;
    let kubernetes = Counts::of_kubernetes(&stage.cluster.client).await?.since(&kubernetes);
    let kanidm = stage.server.counts().await?.since(&kanidm);
    stage.note("from a restart to the second look", &[&kanidm, &kubernetes])?;
    let objects = stage.population.objects();
    let what = format!("writes to Kubernetes by a restart with {objects} objects");
    run.report.value('f', what, (kubernetes.kubernetes_writes(), ""), Bar::AtMost(0.0));
    run.report.value('f', "… writes to Kanidm", (kanidm.kanidm_writes(), ""), Bar::AtMost(0.0));

    let session = stage.server.as_bystander().await?;
    let mut longest = Duration::ZERO;
    for nth in 0..run.scale.restarts {
        operator.stop().await?;
        let (person, displayname) = (person_name(KANIDM, nth), format!("Changed before restart {nth}"));
        population::change(&stage.cluster, &stage.namespace, &person, &displayname).await?;
        operator = stage.operator()?;
        let shown = change::shown(&session, person, displayname, stage.patience).await?;
        longest = longest.max(shown.duration_since(operator.began));
    }
    let what = format!("… from the operator's start to its first useful write, longest of {}", run.scale.restarts);
    run.report.value('f', what, (longest.as_secs_f64(), "s"), Bar::Below(BAR));
    Ok(operator)
}
