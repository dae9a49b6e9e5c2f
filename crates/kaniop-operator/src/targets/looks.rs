//! Looks at one server again and again: once an interval, sooner when somebody has seen that the snapshot is stale, and ever more rarely while
//! it does not answer. Tells everybody when there is news; decides nothing about objects.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::{Health, ObjectKey, Target, Targets, Wake};
use crate::retry::Retry;

/// Shortest time between two looks, however many ask for one.
const GAP: Duration = Duration::from_secs(2);
/// How long creations are collected before those are woken that may have waited for them.
const COLLECT: Duration = Duration::from_millis(200);
/// Longest wait between two looks at a server that does not answer.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Looks at one server for as long as it is held.
pub(super) async fn looks(targets: Arc<Targets>, key: ObjectKey, target: Arc<Target>) {
    let retry = Retry::default();
    loop {
        let (answered, news) = target.refresh().await;
        if news {
            if let Health::Fails(error) = target.health() {
                tracing::warn!(kanidm = %key, %error, "the server does not answer as it should");
            }
            targets.wake(Wake::Refreshed(key.clone()));
        }
        let wait = if answered {
            retry.reset(&());
            targets.interval.mul_f64(0.9 + 0.2 * fastrand::f64())
        } else {
            retry.next(()).min(LONGEST_WAIT).min(targets.interval)
        };
        let mut rest = pin!(tokio::time::sleep(wait));
        let mut gap = pin!(tokio::time::sleep(GAP.min(wait)));
        loop {
            tokio::select! {
                () = &mut rest => break,
                // Not while the server does not answer: then its own wait counts.
                () = target.look.notified(), if answered => {
                    gap.as_mut().await;
                    break;
                }
                () = target.created.notified() => {
                    tokio::time::sleep(COLLECT).await;
                    targets.wake(Wake::Created(key.clone()));
                }
            }
        }
    }
}
