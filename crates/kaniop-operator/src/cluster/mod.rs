//! Servers: the loop of the kind Kanidm. Observe → validate (pure) → build (pure) → apply → bootstrap → report (pure but for its writing).
//!
//! What should be is `kaniop_core::cluster`'s; this folder reads, acts in its order, and hands the way to each server to
//! [`targets`](crate::targets). No finalizer is set: children go with their owner, claims stay as the user's policy says, and nothing outside
//! Kubernetes knows of a cluster. One that an older release left is taken off, or the object could never go.

mod account;
mod backup;
mod bootstrap;
mod children;
mod growth;
mod look;
mod nodes;
mod observe;
mod pass;
mod report;
mod rollout;
#[cfg(test)]
mod tests;
mod watches;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use kaniop_api::Kanidm;
use kaniop_core::backup::Asked;
use kaniop_core::cluster::gateway::Installed;
use kaniop_core::cluster::replication::NodeSeen;
use kaniop_kanidm::Class;
use kube::ResourceExt;
use kube::runtime::controller::{self, Action};
use tracing::Instrument;

use crate::context::Context;
use crate::error::Error;
use crate::retry::{LONGEST, Retry};
use crate::targets::{Health, ObjectKey};

/// No pass takes longer: two calls into a pod are the longest that it does.
const DEADLINE: Duration = Duration::from_secs(150);

/// Telling of a failed pass takes no longer.
const TELLING: Duration = Duration::from_secs(20);

/// The loop, and what it remembers. Everything in here can be lost at any time at the cost of asking once more.
pub(crate) struct Clusters {
    ctx: Context,
    retry: Retry<ObjectKey>,
    logins: Retry<ObjectKey>,
    memories: Mutex<HashMap<ObjectKey, Memory>>,
    /// Which kinds of the Gateway API there were, and when that was asked, since the process began.
    gateway: Mutex<Option<(Duration, Installed)>>,
}

/// What is remembered of one Kanidm.
#[derive(Clone, Debug, Default)]
struct Memory {
    /// UID of the Kanidm: another one of its name inherits nothing.
    uid: String,
    /// What each node told in this run of its server, by pod. Each question leaves lines in the server's log, so it is asked once a run.
    reports: BTreeMap<String, (String, NodeSeen)>,
    /// Time since the process began at which a node was told to make a new replication certificate, by pod.
    renewals: BTreeMap<String, Duration>,
    /// What was known of the server in the last pass: news wake the loop, the same again does not.
    health: Option<Health>,
    /// Time since the process began before which no password is tried: a wrong one locks the account for everybody.
    no_login_before: Duration,
    /// Time since the process began before which refused passwords are not made anew: if those just made are refused, more are no cure.
    no_reset_before: Duration,
    /// Whether the server showed a certificate that is not accepted when it was spoken to last, the looks at it apart.
    certificate_refused: bool,
    /// The certificate for which a pod was restarted that showed another one: once until the server answers, should that be no cure.
    restarted_for: Option<String>,
    /// What the primary's node was asked about its backups.
    backups: Asked,
}

/// Runs the loop until `stop` resolves.
pub async fn run(ctx: Context, stop: impl Future<Output = ()> + Send + Sync + 'static) {
    let clusters = Arc::new(Clusters {
        ctx,
        retry: Retry::default(),
        logins: Retry::default(),
        memories: Mutex::default(),
        gateway: Mutex::default(),
    });
    watches::controller(&clusters, stop)
        .run(reconcile, |_, error: &Error, _| after_failure(error), clusters.clone())
        .for_each(|ended| async {
            if let Err(controller::Error::QueueError(error)) = ended {
                tracing::warn!(kind = "Kanidm", %error, "a watch was interrupted; it begins anew");
            }
        })
        .await;
}

/// Reached only by errors that [`reconcile`] did not turn into a wait of its own: none today.
fn after_failure(error: &Error) -> Action {
    tracing::error!(%error, "a pass failed without a wait");
    Action::requeue(LONGEST)
}

async fn reconcile(kanidm: Arc<Kanidm>, clusters: Arc<Clusters>) -> Result<Action, Error> {
    let key = key(&kanidm);
    let generation = kanidm.metadata.generation;
    let span =
        tracing::info_span!("reconcile", kind = "Kanidm", namespace = key.namespace, object = key.name, generation);
    let clock = clusters.ctx.clock;
    let began = clock.elapsed();
    let passed = async {
        let pass = tokio::time::timeout(DEADLINE, Box::pin(clusters.pass(&kanidm))).await;
        pass.unwrap_or(Err(Error::Deadline(DEADLINE)))
    };
    let passed = passed.instrument(span.clone()).await;
    let outcome = passed.as_ref().map_or_else(Error::label, |_| "ok");
    clusters.ctx.metrics.pass("Kanidm", outcome, (clock.elapsed() - began).as_secs_f64());
    // An outage of the API server says nothing of the Kanidm.
    if passed.as_ref().map_or_else(|error| error.class() != Class::Retry, |_| true) {
        clusters.ctx.targets.judged(&key);
    }
    match passed {
        Ok(action) => Ok(action),
        Err(error) => Ok(clusters.failed(&kanidm, &error).instrument(span).await),
    }
}

impl Clusters {
    /// What follows a pass that failed: it is told as far as that is possible, and tried again after a while.
    async fn failed(&self, kanidm: &Kanidm, error: &Error) -> Action {
        let wait = self.retry.next(key(kanidm));
        tracing::warn!(%error, wait_s = wait.as_secs_f32(), "the pass failed and is tried again");
        let told = tokio::time::timeout(TELLING, self.report_failure(kanidm, error)).await;
        if let Err(error) = told.unwrap_or(Err(Error::Deadline(TELLING))) {
            tracing::warn!(%error, "and that could not be told in the status either");
        }
        Action::requeue(wait)
    }

    fn memory(&self, key: &ObjectKey) -> Memory {
        self.memories.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned().unwrap_or_default()
    }

    fn remember(&self, key: &ObjectKey, change: impl FnOnce(&mut Memory)) {
        let mut memories = self.memories.lock().unwrap_or_else(PoisonError::into_inner);
        change(memories.entry(key.clone()).or_default());
    }

    /// Forgets what is remembered of another Kanidm of this name. Its end is normally not seen: without a finalizer it is simply gone.
    fn recognize(&self, key: &ObjectKey, uid: &str) {
        let known = self.memory(key).uid;
        if !known.is_empty() && known != uid {
            self.ctx.targets.remove(key);
            self.forget(key);
        }
        if known != uid {
            self.remember(key, |memory| memory.uid = uid.to_owned());
        }
    }

    fn forget(&self, key: &ObjectKey) {
        self.memories.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        self.retry.reset(key);
        self.logins.reset(key);
        self.ctx.metrics.backups.forget(key);
    }
}

fn key(kanidm: &Kanidm) -> ObjectKey {
    ObjectKey { namespace: kanidm.namespace().unwrap_or_default(), name: kanidm.name_any() }
}
