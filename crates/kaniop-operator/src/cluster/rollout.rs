//! Restarts pods and takes nodes away, one at a time, as the core decides.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use kaniop_core::cluster::leaving;
use kaniop_core::cluster::rollout::{self, Measure, Standing};
use kaniop_core::cluster::status::TlsSeen;
use kaniop_core::cluster::tls::Usable;
use kaniop_kanidm::Error as KanidmError;

use super::children::Children;
use super::look::Known;
use super::observe::Servers;
use super::pass::Valid;
use super::{Clusters, key};
use crate::apply;
use crate::error::Error;
use crate::targets::Health;

/// What restarts are decided from.
pub(super) struct Rollout<'a> {
    pub valid: &'a Valid<'a>,
    pub servers: &'a Servers,
    pub known: &'a Known,
    pub tls: &'a TlsSeen,
    pub children: &'a Children,
    pub digests: &'a BTreeMap<String, String>,
}

impl Clusters {
    /// Deletes the pod whose turn it is, if any, and names it. Not while one could not come back, and not before the StatefulSets' controller knows
    /// the templates.
    pub(super) async fn restart_next(&self, rollout: &Rollout<'_>) -> Result<Option<String>, Error> {
        let Rollout { valid, servers, children, .. } = rollout;
        let TlsSeen::Usable(usable) = rollout.tls else { return Ok(None) };
        let wanted = &children.statefulsets;
        if children.written || !wanted.iter().all(|wanted| live(servers, wanted).is_some_and(is_observed)) {
            return Ok(None);
        }
        let measure = Measure {
            wanted,
            digests: rollout.digests,
            nodes: &rollout.known.nodes.seen,
            domain: rollout.known.domain,
        };
        let standings: Vec<Standing<'_>> = servers.pods.iter().map(|pod| measure.standing(pod)).collect();
        let replicas = |set: &StatefulSet| set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or_default();
        let complete = wanted.iter().all(|set| {
            let pods = servers.pods.iter().filter(|pod| set.metadata.name.as_ref() == Some(&pod.statefulset)).count();
            usize::try_from(replicas(set)).unwrap_or_default() <= pods
        });
        // Whatever a pod is restarted for, it comes back with the certificate of the Secret.
        let keep_serving = usable.must_wait(&servers.statefulsets);
        let next = rollout::next(&standings, &valid.cluster.primary, complete);
        let Some(next) = next.filter(|next| !(next.pod.ready && keep_serving)) else {
            return self.restart_for_certificate(valid, servers, usable).await;
        };
        let pod = next.pod;
        apply::restart_pod(&self.ctx, valid.owner.namespace, &pod.name, &pod.uid).await?;
        let what = next.outdated.map_or("", rollout::Outdated::in_words);
        let note = format!("Pod '{}' is restarted to take over {what}.", pod.name);
        self.tell(valid.kanidm, false, "PodRestarted", &note);
        Ok(Some(pod.name.clone()))
    }

    /// A pod that was started while the Secret held a certificate that clients refuse goes on to show that one, although the Secret is good again and the
    /// pod's template the newest. Deletes it, once for each certificate, and names it.
    async fn restart_for_certificate(
        &self,
        valid: &Valid<'_>,
        servers: &Servers,
        usable: &Usable,
    ) -> Result<Option<String>, Error> {
        let key = key(valid.kanidm);
        let memory = self.memory(&key);
        let refused = memory.certificate_refused
            || matches!(self.ctx.targets.health(&key), Health::Fails(KanidmError::Certificate { .. }));
        let tried = memory.restarted_for.as_ref() == Some(&usable.hash);
        let Some(pod) = servers.pods.iter().find(|pod| pod.name == valid.cluster.primary) else { return Ok(None) };
        if !refused || tried || usable.problem.is_some() {
            return Ok(None);
        }
        self.remember(&key, |memory| {
            memory.restarted_for = Some(usable.hash.clone());
            memory.certificate_refused = false;
        });
        apply::restart_pod(&self.ctx, valid.owner.namespace, &pod.name, &pod.uid).await?;
        let note = format!("Pod '{}' shows another certificate than the Secret holds now; it is restarted.", pod.name);
        self.tell(valid.kanidm, false, "PodRestarted", &note);
        Ok(Some(pod.name.clone()))
    }

    /// Takes away the nodes of groups that are gone from the spec: scaled to zero while the primary serves, and the StatefulSet deleted when none is
    /// left. Their claims are the user's policy.
    pub(super) async fn retire(&self, valid: &Valid<'_>, servers: &Servers, primary_serves: bool) -> Result<(), Error> {
        for name in leaving(&valid.cluster, &servers.statefulsets) {
            let Some(set) = servers.statefulsets.iter().find(|set| set.metadata.name.as_deref() == Some(name)) else {
                continue;
            };
            let (uid, namespace) = (set.metadata.uid.clone().unwrap_or_default(), valid.owner.namespace);
            let replicas = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or_default();
            if replicas > 0 && primary_serves {
                apply::scale_to_zero(&self.ctx, namespace, name, &uid).await?;
                self.tell_leaving(valid, name, 0, replicas).await;
            } else if replicas == 0 && !servers.pods.iter().any(|pod| pod.statefulset == name) {
                apply::delete_statefulset(&self.ctx, namespace, name, &uid).await?;
            }
        }
        Ok(())
    }

    /// Tells which nodes of a StatefulSet go.
    pub(super) async fn tell_leaving(&self, valid: &Valid<'_>, statefulset: &str, from: i32, to: i32) {
        let pods: Vec<_> = (from..to).map(|ordinal| format!("'{statefulset}-{ordinal}'")).collect();
        let note = format!(
            "Node {} is taken away. Whether its last changes reached the primary, the server does not show; its claim stays unless \
             spec.persistentVolumeClaimRetentionPolicy says otherwise.",
            pods.join(", ")
        );
        self.tell(valid.kanidm, false, "NodeRemoved", &note);
    }
}

fn live<'a>(servers: &'a Servers, wanted: &StatefulSet) -> Option<&'a StatefulSet> {
    servers.statefulsets.iter().find(|live| live.metadata.name == wanted.metadata.name)
}

/// Whether the StatefulSet's controller has seen the newest template: a pod that is deleted before comes back from the old one.
fn is_observed(live: &StatefulSet) -> bool {
    live.status.as_ref().and_then(|status| status.observed_generation) == live.metadata.generation
}
