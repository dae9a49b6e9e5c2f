//! What the nodes tell of themselves, and the certificates by which they know each other: asked, stored, renewed. Who peers with whom is the
//! core's decision.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kaniop_core::cluster::credentials::{certificate_secret, read_certificate};
use kaniop_core::cluster::replication::{Flaw, NodeSeen, flaw, is_certificate, is_possible};
use kaniop_core::cluster::status::Obstacle;
use kaniop_core::cluster::{Certificates, ValidatedCluster, labels, names};
use kaniop_core::reason::Reason;
use kaniop_kanidm::node::NodeReport;
use kube::api::{Api, ListParams};

use super::observe::Servers;
use super::pass::Valid;
use super::{Clusters, Memory};
use crate::apply::{self, Applied, Owner, is_controlled_by};
use crate::error::Error;
use crate::exec;
use crate::targets::ObjectKey;

/// While a node starts, joins or makes a new certificate, it is asked this often.
pub(super) const SOON: Duration = Duration::from_secs(5);
/// A node that did not show a new certificate by then is told to make one again. Some releases take more than a minute.
const RENEWAL_PAUSE: Duration = Duration::from_secs(300);

/// What is known of the nodes of a Kanidm in this pass.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    /// What each of them told.
    pub seen: Vec<NodeSeen>,
    /// Why the primary told nothing, if it was asked.
    pub untold: Option<Error>,
    /// Certificates that are stored.
    pub certificates: Certificates,
}

impl Nodes {
    /// What this pod told.
    pub fn of(&self, pod: &str) -> Option<&NodeSeen> {
        self.seen.iter().find(|node| node.pod == pod)
    }
}

impl Clusters {
    /// Asks every node that runs, once for each run of its server and again while its certificate is awaited.
    pub(super) async fn ask_nodes(
        &self,
        key: &ObjectKey,
        cluster: &ValidatedCluster,
        servers: &Servers,
    ) -> Result<Nodes, Error> {
        let mut nodes = Nodes::default();
        let several = servers.pods.len() > 1 || cluster.nodes().count() > 1;
        for pod in &servers.pods {
            // One that has not started cannot say anything, but one that waits to join can, and is known by that.
            if !(pod.started || several && pod.running) {
                continue;
            }
            let known = self.memory(key).reports;
            let known = known.get(&pod.name).filter(|(run, _)| pod.ready && pod.run.as_ref() == Some(run));
            let is_whole = |node: &&NodeSeen| node.certificate.is_some() || !is_possible(&cluster.storage);
            if let Some(known) = known.map(|(_, node)| node).filter(is_whole) {
                nodes.seen.push(known.clone());
                continue;
            }
            match exec::helper::<NodeReport>(&self.ctx, &key.namespace, &pod.name, &["report"]).await {
                Ok(report) => {
                    let node = seen(&pod.name, report);
                    // What a node that does not serve tells is not its last word: it may join.
                    if let Some(run) = pod.run.clone().filter(|_| pod.ready) {
                        self.remember(key, |memory| {
                            memory.reports.insert(pod.name.clone(), (run, node.clone()));
                        });
                    }
                    nodes.seen.push(node);
                }
                Err(error @ Error::Pod { .. }) if pod.name == cluster.primary && pod.started => {
                    nodes.untold = Some(error);
                }
                Err(Error::Pod { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.remember(key, |memory| memory.reports.retain(|pod, _| servers.pods.iter().any(|seen| seen.name == *pod)));
        Ok(nodes)
    }

    /// Stores what the nodes showed, and reads what is stored. `trusted`: whether the primary may be one that others copy; while it may not, what
    /// it shows is kept from them.
    pub(super) async fn exchange(
        &self,
        valid: &Valid<'_>,
        servers: &Servers,
        nodes: &mut Nodes,
        trusted: bool,
    ) -> Result<Option<Obstacle>, Error> {
        let Valid { owner, cluster, .. } = valid;
        if !is_possible(&cluster.storage) {
            return Ok(None);
        }
        nodes.certificates = self.stored_certificates(owner, cluster).await?;
        for node in &nodes.seen {
            let Some(shown) = node.certificate.as_deref().filter(|shown| is_certificate(shown)) else { continue };
            let wanted = cluster.nodes().any(|wanted| wanted.pod == node.pod);
            let is_kept = node.pod == cluster.primary && !trusted;
            if !wanted || is_kept || nodes.certificates.nodes.get(&node.pod).is_some_and(|stored| stored == shown) {
                continue;
            }
            match apply::object(&self.ctx, owner, &certificate_secret(cluster, &node.pod, shown)).await? {
                Applied::Unchanged | Applied::Written | Applied::Ending => {}
                Applied::Conflict(why) => return Ok(Some(Obstacle::known(Reason::NameConflict, why))),
                Applied::Refused(why) => return Ok(Some(Obstacle::known(Reason::InvalidSpec, why))),
            }
            nodes.certificates.nodes.insert(node.pod.clone(), shown.to_owned());
        }
        // A node that goes is known by its certificate until it is gone.
        let pods = cluster.nodes().map(|node| node.pod).chain(servers.pods.iter().map(|pod| pod.name.clone()));
        let wanted: Vec<_> = pods.map(|pod| names::certificate_secret(&pod)).collect();
        let wanted: Vec<_> = wanted.iter().map(String::as_str).collect();
        apply::prune_secrets(&self.ctx, owner, &selector(owner), &wanted).await?;
        Ok(None)
    }

    async fn stored_certificates(&self, owner: &Owner<'_>, cluster: &ValidatedCluster) -> Result<Certificates, Error> {
        let api: Api<Secret> = Api::namespaced(self.ctx.client.clone(), owner.namespace);
        let stored = api.list(&ListParams::default().labels(&selector(owner))).await?;
        let ours = stored.iter().filter(|secret| is_controlled_by(&secret.metadata, owner.uid));
        let nodes = ours.filter_map(read_certificate).filter(|(_, certificate)| is_certificate(certificate)).collect();
        let mut external = BTreeMap::new();
        for node in cluster.spec.external_replication_nodes.iter().flatten() {
            let secret = api.get_opt(&node.certificate.name).await?;
            let value = secret.and_then(|secret| secret.data?.remove(&node.certificate.key));
            let text = value.and_then(|value| String::from_utf8(value.0).ok()).map(|text| text.trim().to_owned());
            external.extend(text.filter(|text| is_certificate(text)).map(|text| (node.name.clone(), text)));
        }
        Ok(Certificates { nodes, external })
    }

    /// Has those nodes make new certificates whose own end soon or are for another host. All at once, so that each node is restarted once for it.
    /// Whether any is awaited.
    pub(super) async fn renew(
        &self,
        key: &ObjectKey,
        cluster: &ValidatedCluster,
        nodes: &Nodes,
    ) -> Result<bool, Error> {
        let (now, elapsed) = (self.ctx.clock.now(), self.ctx.clock.elapsed());
        let mut awaited = false;
        for node in cluster.nodes() {
            let shown = nodes.of(&node.pod).and_then(|seen| seen.certificate.as_deref());
            let is_flawed = shown.and_then(|shown| flaw(shown, &node.host, now));
            if !matches!(is_flawed, Some(Flaw::Expiring(_) | Flaw::Host(_))) {
                continue;
            }
            awaited = true;
            let asked = self.memory(key).renewals.get(&node.pod).copied();
            // What it shows now is what it showed then: it is asked again in every pass.
            self.remember(key, |memory| forget_certificate(memory, &node.pod));
            if asked.is_some_and(|asked| elapsed < asked + RENEWAL_PAUSE) {
                continue;
            }
            self.remember(key, |memory| {
                memory.renewals.insert(node.pod.clone(), elapsed);
            });
            // Whatever it answers, the certificate that it shows later is what counts.
            if let Err(error) = exec::helper::<()>(&self.ctx, &key.namespace, &node.pod, &["renew-certificate"]).await {
                tracing::warn!(pod = node.pod, %error, "the replication certificate could not be renewed yet");
            }
        }
        Ok(awaited)
    }
}

fn forget_certificate(memory: &mut Memory, pod: &str) {
    if let Some((_, node)) = memory.reports.get_mut(pod) {
        node.certificate = None;
    }
}

fn seen(pod: &str, report: NodeReport) -> NodeSeen {
    NodeSeen { pod: pod.to_owned(), domain: report.domain.uuid, certificate: report.certificate, config: report.config }
}

fn selector(owner: &Owner<'_>) -> String {
    format!("{}={},{}={}", labels::CLUSTER, owner.name, labels::SECRET_TYPE, labels::REPLICA_CERTIFICATE)
}
