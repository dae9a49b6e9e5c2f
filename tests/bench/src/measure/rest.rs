//! (c) What is read and written when nothing changes, over a few of the operator's looks at the server.

use anyhow::{Result, ensure};

use super::Run;
use crate::counts::Counts;
use crate::operator::Operator;
use crate::report::Bar;
use crate::stage::{LISTS, Stage};

/// Label of the operator's own counts of requests that only look.
const READS: [&str; 2] = ["operation=\"list\"", "operation=\"read\""];

/// How much more than with the fewest objects counts as the same: a pass may lie on the edge of the time that is measured.
const SAME: f64 = 1.5;

/// Measures the rest. Returns what one pass over the Kanidm reads from Kubernetes: the measure for more objects, for how many passes fall into
/// the time that is measured is chance.
pub(super) async fn measure(
    run: &mut Run<'_>,
    stage: &Stage,
    operator: &mut Operator,
    fewest: Option<f64>,
) -> Result<f64> {
    // The last traces of the fill are gone after one look.
    stage.all_told(operator).await?;
    stage.looks(operator, 1).await?;
    let before = stage.moment(operator).await?;
    stage.looks(operator, run.scale.looks).await?;
    let after = stage.moment(operator).await?;
    let minutes = after.at.duration_since(before.at).as_secs_f64() / 60.0;
    let (kubernetes, kanidm) = (after.kubernetes.since(&before.kubernetes), after.kanidm.since(&before.kanidm));
    let own = after.operator.since(&before.operator);
    stage.note(&format!("at rest for {minutes:.2} minutes"), &[&kanidm, &kubernetes, &own])?;
    ensure!(kanidm.kanidm_reads() > 0.0, "nobody looked at the server: there is no rest to measure");

    let (reads, writes) = sent(&own);
    let what = format!("at rest with {} objects, a minute: reads from Kanidm", stage.population.objects());
    // One look an interval, which is up to a tenth shorter than it is set.
    let once = LISTS * 60.0 / (0.9 * f64::from(run.scale.interval));
    run.report.value('c', what, (kanidm.kanidm_reads().max(reads) / minutes, ""), Bar::AtMost(once));
    let writes = kanidm.kanidm_writes().max(writes) / minutes;
    run.report.value('c', "… writes to Kanidm", (writes, ""), Bar::AtMost(0.0));

    let passes = own.sum(|key| key.starts_with("kaniop_reconciliations_total") && key.contains("\"Kanidm\""));
    let reads = kubernetes.kubernetes_reads() / minutes;
    run.report.fact('c', "… reads from Kubernetes", (reads, ""));
    let pass = kubernetes.kubernetes_reads() / passes.max(1.0);
    let what = "… of it in one pass over the Kanidm";
    match fewest {
        None => run.report.fact('c', what, (pass, "")),
        Some(few) => run.report.value('c', what, (pass, ""), Bar::AtMost(few * SAME)),
    }
    let writes = kubernetes.kubernetes_writes() / minutes;
    run.report.value('c', "… writes to Kubernetes", (writes, ""), Bar::AtMost(0.0));
    Ok(pass)
}

/// Reads and other requests to Kanidm by the operator's own count.
fn sent(own: &Counts) -> (f64, f64) {
    let requests = |looks: bool| {
        own.sum(|key| {
            key.starts_with("kaniop_kanidm_requests_total") && READS.iter().any(|read| key.contains(read)) == looks
        })
    };
    (requests(true), requests(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operators_own_reads_and_writes_are_told_apart() {
        let sample = |operation: &str, count: u8| {
            format!("kaniop_kanidm_requests_total{{operation=\"{operation}\",outcome=\"done\"}} {count}\n")
        };
        let page = [sample("list", 1), sample("read", 2), sample("write", 4), "kaniop_leader 8\n".to_owned()].concat();
        assert_eq!(sent(&Counts::read(&page, "kaniop_")), (3.0, 4.0));
    }
}
