//! A renewed certificate reaches the servers: each is told to read its files again, once they are the new ones in its pod, and is judged by the
//! certificate that it then shows. One that goes on to show another, or that would lose a backup by it, is restarted instead, as everything is: one at
//! a time.

use std::collections::BTreeSet;
use std::time::Duration;

use kaniop_core::backup::reload_costs;
use kaniop_core::cluster::pods::PodSeen;
use kaniop_core::cluster::status::TlsSeen;
use kaniop_core::cluster::tls::Usable;
use kaniop_kanidm::node::ReloadReport;
use kaniop_kanidm::shows;

use super::gate::run;
use super::pass::Valid;
use super::rollout::Rollout;
use super::{Clusters, key};
use crate::error::Error;
use crate::exec;
use crate::targets::ObjectKey;

/// A server that was told so often to read its files again, and does not show them, is restarted.
const ENOUGH: u32 = 3;
/// A Secret reaches the pods within a minute or two; a pod that has not got it by then is restarted.
const LONGEST: Duration = Duration::from_secs(180);

/// How far a renewed certificate has come.
#[derive(Debug, Default)]
pub(super) struct Renewal {
    /// Pods that show another certificate than the Secret holds.
    pub renewing: BTreeSet<String>,
    /// Those of them that have to be restarted for it.
    pub stale: BTreeSet<String>,
    /// Whether something is on its way that no watch tells of.
    pub soon: bool,
}

/// What was tried to have a pod show a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attempt {
    run: String,
    hash: String,
    began: Duration,
    told: u32,
    failed: u32,
}

/// What is remembered of a pod's certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// Run of its server, and the hash of the certificate that it was seen to show.
    newest: Option<(String, String)>,
    /// What was tried.
    attempt: Option<Attempt>,
    /// The certificate for which it was restarted: once, should that be no cure.
    restarted_for: Option<String>,
}

impl Clusters {
    /// Has every server show the certificate of the Secret, as far as that goes in this pass. Not one that clients refuse: then what is shown is better.
    pub(super) async fn renewal(&self, rollout: &Rollout<'_>) -> Result<Renewal, Error> {
        let mut renewal = Renewal::default();
        let TlsSeen::Usable(usable) = rollout.tls else { return Ok(renewal) };
        if usable.problem.is_some() {
            return Ok(renewal);
        }
        let key = key(rollout.valid.kanidm);
        let pods = &rollout.servers.pods;
        self.remember(&key, |memory| memory.shown.retain(|pod, _| pods.iter().any(|seen| seen.name == *pod)));
        for pod in pods.iter().filter(|pod| pod.started) {
            if self.shows_newest(rollout, usable, pod).await != Some(false) {
                continue;
            }
            renewal.renewing.insert(pod.name.clone());
            if self.is_stale(rollout, usable, pod).await? {
                renewal.stale.insert(pod.name.clone());
            } else if self.shows_newest(rollout, usable, pod).await == Some(true) {
                renewal.renewing.remove(&pod.name);
            }
            let began = self.shown(&key, &pod.name).attempt.map(|attempt| attempt.began);
            renewal.soon |= began.is_some_and(|began| self.ctx.clock.elapsed() < began + LONGEST);
        }
        Ok(renewal)
    }

    fn shown(&self, key: &ObjectKey, pod: &str) -> Shown {
        self.memory(key).shown.remove(pod).unwrap_or_default()
    }

    /// Whether the pod shows the certificate of the Secret to whoever connects. None when nobody could say. It is asked until it does.
    async fn shows_newest(&self, rollout: &Rollout<'_>, usable: &Usable, pod: &PodSeen) -> Option<bool> {
        let (key, now) = (key(rollout.valid.kanidm), (run(pod), usable.hash.clone()));
        let known = self.shown(&key, &pod.name);
        if known.newest.as_ref() == Some(&now) {
            return Some(true);
        }
        let endpoint = self.endpoint_of(&rollout.valid.cluster, pod.ip.as_deref()?, usable).ok()?;
        match shows(&endpoint, &usable.chain).await {
            Ok(true) => {
                let reloaded = known.attempt.is_some_and(|attempt| attempt.told > 0 && attempt.run == now.0);
                let shown = Shown { newest: Some(now), ..Shown::default() };
                self.remember(&key, |memory| drop(memory.shown.insert(pod.name.clone(), shown)));
                if reloaded {
                    let secret = &rollout.valid.cluster.tls_secret;
                    let note = format!(
                        "Pod '{}' shows the renewed certificate of Secret '{secret}', without a restart.",
                        pod.name
                    );
                    self.tell(rollout.valid.kanidm, false, "CertificateReloaded", &note);
                }
                Some(true)
            }
            Ok(false) => Some(false),
            Err(error) => {
                tracing::debug!(pod = pod.name, %error, "which certificate the server shows could not be seen");
                None
            }
        }
    }

    /// Tells a server to read its files again, if that is to be tried, and whether it has to be restarted instead.
    async fn is_stale(&self, rollout: &Rollout<'_>, usable: &Usable, pod: &PodSeen) -> Result<bool, Error> {
        let (key, elapsed) = (key(rollout.valid.kanidm), self.ctx.clock.elapsed());
        let known = self.shown(&key, &pod.name);
        let may_restart = known.restarted_for.as_ref() != Some(&usable.hash);
        let Valid { kanidm, cluster, .. } = rollout.valid;
        let backup = kanidm.status.as_ref().and_then(|status| status.backup.as_ref()?.last_backup.as_ref());
        let last = backup.map(|last| last.time.0);
        if may_restart && reload_costs(cluster, &pod.name, last, self.ctx.clock.now()) {
            return Ok(true);
        }
        let fresh = Attempt { run: run(pod), hash: usable.hash.clone(), began: elapsed, told: 0, failed: 0 };
        let same = |attempt: &Attempt| attempt.run == fresh.run && attempt.hash == fresh.hash;
        let mut attempt = known.attempt.filter(same).unwrap_or(fresh);
        if may_restart && (attempt.told + attempt.failed >= ENOUGH || elapsed >= attempt.began + LONGEST) {
            return Ok(true);
        }
        let namespace = rollout.valid.owner.namespace;
        match exec::helper::<ReloadReport>(&self.ctx, namespace, &pod.name, &["reload", &usable.hash]).await {
            Ok(report) => attempt.told += u32::from(report.told),
            Err(error @ Error::Pod { .. }) => {
                tracing::warn!(pod = pod.name, %error, "the server could not be told to read its certificate again");
                attempt.failed += 1;
            }
            Err(error) => return Err(error),
        }
        self.remember(&key, |memory| memory.shown.entry(pod.name.clone()).or_default().attempt = Some(attempt));
        Ok(false)
    }

    /// A pod is restarted for this certificate: once.
    pub(super) fn restarted_for(&self, key: &ObjectKey, pod: &str, usable: &Usable) {
        self.remember(key, |memory| {
            memory.shown.entry(pod.to_owned()).or_default().restarted_for = Some(usable.hash.clone());
        });
    }
}
