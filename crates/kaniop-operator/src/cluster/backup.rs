//! Backups of the primary: asks its node what it has, when there may be something new, and hands the answer to `kaniop_core::backup`, which says what it means.
//!
//! Nothing is asked at rest: the next question is after the next run of the schedule.

use std::time::Duration;

use kaniop_api::Kanidm;
use kaniop_core::backup::{Asked, Expected, Listing, Report, Seen, is_due, report};
use kaniop_core::cluster::ValidatedCluster;
use kaniop_core::cluster::image::Image;
use uuid::Uuid;

use super::observe::Servers;
use super::{Clusters, key};
use crate::error::Error;
use crate::exec;

/// The node reads on by itself for as long as it needs; this pass waits no longer, in seconds.
const PATIENCE: &str = "5";
/// No question takes longer.
const DEADLINE: Duration = Duration::from_secs(25);

impl Clusters {
    /// What there is to say of the backups, after asking if that is due. `may_ask`: the Kanidm is to be reconciled at all.
    pub(super) async fn backups(
        &self,
        kanidm: &Kanidm,
        cluster: &ValidatedCluster,
        servers: &Servers,
        may_ask: bool,
    ) -> Report {
        let key = key(kanidm);
        let Some(plan) = &cluster.backup else {
            self.ctx.metrics.backups.forget(&key);
            self.remember(&key, |memory| memory.backups = Asked::default());
            return Report::default();
        };
        let mut asked = self.memory(&key).backups;
        if may_ask && is_due(plan, &asked, self.ctx.clock.now()) {
            asked = if servers.pods.iter().any(|pod| pod.name == cluster.primary && pod.started) {
                let told = self.ask(cluster).await;
                let now = self.ctx.clock.now();
                match told {
                    Ok(listing) => asked.answered(listing, plan, now),
                    Err(error) => asked.failed(error.to_string(), now),
                }
            } else {
                asked.unreachable()
            };
            self.remember(&key, |memory| memory.backups = asked.clone());
        }
        let status = kanidm.status.as_ref();
        let seen = Seen {
            plan,
            pod: &cluster.primary,
            old: status.and_then(|status| status.backup.as_ref()),
            asked: &asked,
            expected: &expected(kanidm, cluster),
        };
        let report = report(&seen, self.ctx.clock.now());
        let exists = |key: &_| self.ctx.kanidms.state().iter().any(|kanidm| super::key(kanidm) == *key);
        self.ctx.metrics.backups.tell(&key, report.figures.clone(), exists);
        report
    }

    async fn ask(&self, cluster: &ValidatedCluster) -> Result<Listing, Error> {
        let words = ["backups", "--patience", PATIENCE];
        let asked = exec::helper(&self.ctx, &cluster.namespace, &cluster.primary, &words);
        tokio::time::timeout(DEADLINE, asked).await.unwrap_or(Err(Error::Deadline(DEADLINE)))
    }
}

/// The domain that was recorded, and the series of the image that has served: one that was only asked for may never run.
fn expected(kanidm: &Kanidm, cluster: &ValidatedCluster) -> Expected {
    let status = kanidm.status.as_ref();
    let served = status.and_then(|status| Image::parse(status.version.as_ref()?.image.as_deref()?).ok());
    Expected {
        domain: status.and_then(|status| Uuid::parse_str(status.domain_uuid.as_deref()?).ok()),
        series: served.as_ref().unwrap_or(&cluster.image).series(),
    }
}
