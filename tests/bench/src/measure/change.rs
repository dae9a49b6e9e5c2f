//! (d) From the API server's answer to one change until the Kanidm server shows it.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use kaniop_outside::Session;

use super::Run;
use crate::population::{self, person_name};
use crate::report::Bar;
use crate::stage::{KANIDM, Stage};
use crate::statistics::{millis, percentile};

/// What 99 of 100 changes must stay below, in milliseconds.
const BAR: f64 = 250.0;
/// How often the server is asked: far more often than changes take, and seldom enough not to slow it down.
const PAUSE: Duration = Duration::from_millis(2);

/// Makes changes one after the other and tells of them. Returns what 99 of 100 stayed below.
pub(super) async fn measure(run: &mut Run<'_>, stage: &Stage) -> Result<Duration> {
    let session = stage.server.as_bystander().await?;
    let mut taken = Vec::new();
    for nth in 0..run.scale.changes {
        taken.push(one(stage, &session, nth).await?);
    }
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

/// One change of the nth person, until the server shows it.
pub(super) async fn one(stage: &Stage, session: &Session, nth: usize) -> Result<Duration> {
    let person = person_name(KANIDM, nth % stage.population.people);
    let displayname = format!("Changed {nth} {}", stage.namespace);
    let answered = population::change(&stage.cluster, &stage.namespace, &person, &displayname).await?;
    let shown = shown(session, person, displayname, stage.patience).await?;
    Ok(shown.duration_since(answered))
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
        let deadline = Instant::now() + patience;
        loop {
            let seen = session.values(&format!("/v1/person/{person}"), "displayname")?;
            let now = Instant::now();
            if seen.contains(&displayname) {
                return Ok(now);
            }
            if now > deadline {
                bail!("{person} is {seen:?} on the server and not {displayname:?} after {} s", patience.as_secs());
            }
            std::thread::sleep(PAUSE);
        }
    };
    tokio::task::spawn_blocking(watch).await?
}
