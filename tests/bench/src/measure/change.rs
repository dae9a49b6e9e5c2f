//! (d) From the API server's answer to one change until the Kanidm server shows it.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use kaniop_outside::Session;
use tokio::task::JoinSet;

use super::Run;
use crate::population::{self, person_name};
use crate::report::Bar;
use crate::stage::{KANIDM, Stage};
use crate::statistics::{millis, percentile};

/// What 99 of 100 changes must stay below, in milliseconds.
const BAR: f64 = 250.0;
/// Changes are made at this pace, whether or not the last one has arrived: one that is held up must not hide that later ones would be, too.
const EVERY: Duration = Duration::from_millis(200);
/// How often the server is asked: far more often than changes take, and seldom enough not to slow it down …
const PAUSE: Duration = Duration::from_millis(2);
/// … and, after a second, how often for a change that is late.
const LATE: Duration = Duration::from_millis(100);

/// Makes changes and tells of them. Returns what 99 of 100 stayed below.
pub(super) async fn measure(run: &mut Run<'_>, stage: &Stage) -> Result<Duration> {
    let taken = many(stage, 0, run.scale.changes).await?;
    let objects = stage.population.objects();
    let (half, most) = (percentile(&taken, 0.5), percentile(&taken, 0.99));
    run.report.fact(
        'd',
        format!("one change of {objects} objects until the server shows it, P50"),
        (millis(half), "ms"),
    );
    run.report.value('d', "… P99", (millis(most), "ms"), Bar::Below(BAR));
    Ok(most)
}

/// So many changes, beginning with the nth person's.
pub(super) async fn many(stage: &Stage, first: usize, count: usize) -> Result<Vec<Duration>> {
    let session = stage.server.as_bystander().await?;
    let mut ticks = tokio::time::interval(EVERY);
    let mut under_way = JoinSet::new();
    for nth in first..first + count {
        ticks.tick().await;
        let person = person_name(KANIDM, nth % stage.population.people);
        let displayname = format!("Changed {nth} {}", stage.namespace);
        let (cluster, namespace, session) = (stage.cluster.clone(), stage.namespace.clone(), session.clone());
        let patience = stage.patience;
        under_way.spawn(async move {
            let answered = population::change(&cluster, &namespace, &person, &displayname).await?;
            let shown = shown(&session, person, displayname, patience).await?;
            anyhow::Ok(shown.duration_since(answered))
        });
    }
    under_way.join_all().await.into_iter().collect()
}

/// Asks the server until it shows a person's new name; returns when it did.
pub(super) async fn shown(
    session: &Session,
    person: String,
    displayname: String,
    patience: Duration,
) -> Result<Instant> {
    let session = session.clone();
    let watch = move || {
        let began = Instant::now();
        loop {
            let seen = session.values(&format!("/v1/person/{person}"), "displayname")?;
            let now = Instant::now();
            if seen.contains(&displayname) {
                return Ok(now);
            }
            if now > began + patience {
                bail!("{person} is {seen:?} on the server and not {displayname:?} after {} s", patience.as_secs());
            }
            std::thread::sleep(if now < began + Duration::from_secs(1) { PAUSE } else { LATE });
        }
    };
    tokio::task::spawn_blocking(watch).await?
}
