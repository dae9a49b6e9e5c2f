//! The measurements, in their order: (a) the bare rate, (h) proving a backup, then three stages with more and more objects.

mod bare;
mod change;
mod dead;
mod fill;
mod prove;
mod rest;
mod restart;

use anyhow::Result;

use crate::operator::Operator;
use crate::population::Population;
use crate::report::{Bar, Report};
use crate::scale::Scale;
use crate::stage::{self, Programs, Stage};

/// Peak memory in MiB that the three sizes may take.
const MEMORY: [f64; 3] = [40.0, 64.0, 120.0];

/// What a run measures with.
pub(crate) struct Run<'a> {
    /// What is measured.
    pub(crate) programs: &'a Programs,
    /// How much of it.
    pub(crate) scale: &'a Scale,
    /// Only these measurements, if any are named.
    only: &'a [char],
    /// Where the results go.
    pub(crate) report: &'a mut Report,
}

impl Run<'_> {
    fn wants(&self, measurement: char) -> bool {
        self.only.is_empty() || self.only.contains(&measurement)
    }
}

/// Takes all of them, or those that are named.
pub(crate) async fn all(programs: &Programs, scale: &Scale, only: &[char], report: &mut Report) -> Result<()> {
    let cluster = stage::connect().await?;
    let mut run = Run { programs, scale, only, report };
    bare::measure(&mut run).await?;
    if run.wants('h') {
        prove::measure(&mut run).await?;
    }
    let mut fewest = None;
    let [_, filled, many] = scale.sizes;
    for (size, bar) in scale.sizes.into_iter().zip(MEMORY) {
        let here = |letters: &str| letters.chars().any(|letter| run.wants(letter));
        if !(here("ce") || size == filled && here("bdg") || size == many && here("df")) {
            continue;
        }
        let stage = Stage::set(&cluster, programs, Population::of(size), scale.interval, scale.patience).await?;
        let mut operator = fill::measure(&mut run, &stage).await?;
        if run.wants('c') {
            let rest = rest::measure(&mut run, &stage, &mut operator, fewest).await?;
            fewest = fewest.or(Some(rest));
        }
        memory(&mut run, &stage, &operator, bar)?;
        if size == filled {
            beside_others(&mut run, &stage, &mut operator).await?;
        }
        if size == many {
            if run.wants('d') {
                change::measure(&mut run, &stage).await?;
            }
            if run.wants('f') {
                operator = restart::measure(&mut run, &stage, operator).await?;
                let what = format!("operator's peak memory after a restart with {size} objects");
                run.report.value('e', what, (operator.peak()?, "MiB"), Bar::AtMost(bar));
            }
        }
        operator.stop().await?;
    }
    Ok(())
}

fn memory(run: &mut Run<'_>, stage: &Stage, operator: &Operator, bar: f64) -> Result<()> {
    let what = format!("operator's peak memory at {} objects", stage.population.objects());
    run.report.value('e', what, (operator.peak()?, "MiB"), Bar::AtMost(bar));
    Ok(())
}

/// Changes of one object, alone and beside a server that does not answer.
async fn beside_others(run: &mut Run<'_>, stage: &Stage, operator: &mut Operator) -> Result<()> {
    if !run.wants('d') && !run.wants('g') {
        return Ok(());
    }
    let alone = change::measure(run, stage).await?;
    if run.wants('g') { dead::measure(run, stage, operator, alone).await } else { Ok(()) }
}
