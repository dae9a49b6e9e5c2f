//! One pass over one Kanidm: the steps in their order. Each step is a file of this folder or of the core; here is only what follows what.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kaniop_api::Kanidm;
use kaniop_core::backup::Report;
use kaniop_core::cluster::credentials::Administrators;
use kaniop_core::cluster::domain;
use kaniop_core::cluster::growth::Growth;
use kaniop_core::cluster::status::{Access, TlsSeen, World};
use kaniop_core::cluster::version::Verdict;
use kaniop_core::cluster::{
    Certificates, Refusal, Surroundings, ValidatedCluster, names, refused_changes, server_config, validate,
};
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::Action;
use serde_json::json;

use super::bootstrap::{Progress, Scene};
use super::nodes::SOON;
use super::observe::{self, Servers};
use super::reload::Renewal;
use super::rollout::Rollout;
use super::{Clusters, key};
use crate::apply::Owner;
use crate::error::Error;
use crate::retry::LONGEST;

static NO_DIGESTS: BTreeMap<String, String> = BTreeMap::new();
static NO_CERTIFICATES: Certificates = Certificates::new();
static NO_PODS: BTreeSet<String> = BTreeSet::new();

/// Set by older releases; nothing has to be done at the end of a Kanidm.
const LEGACY_FINALIZER: &str = "kanidms.kaniop.rs/finalizer";

impl Clusters {
    pub(super) async fn pass(&self, kanidm: &Kanidm) -> Result<Action, Error> {
        let key = key(kanidm);
        if kanidm.metadata.deletion_timestamp.is_some() {
            self.ctx.targets.remove(&key);
            self.forget(&key);
            return self.release(kanidm).await;
        }
        let uid = kanidm.uid().unwrap_or_default();
        self.recognize(&key, &uid);
        let owner = Owner { namespace: &key.namespace, name: &key.name, uid: &uid };
        let now = self.ctx.clock.now();
        let servers = observe::servers(&self.ctx, &owner).await?;
        let primary = kanidm.status.as_ref().and_then(|status| status.primary_node.as_deref());
        let judged = validate(kanidm).and_then(|cluster| {
            refused_changes(&cluster, &servers.statefulsets, primary).map(|refused| (cluster, refused))
        });
        match judged {
            Ok((cluster, refused)) => {
                Box::pin(self.carry_out(&Valid { kanidm, owner, cluster, refused }, servers, now)).await
            }
            Err(refusals) => {
                let progress = Progress::not_tried(self.has_passwords(&owner).await?);
                let world = world(kanidm, Err(&refusals), &servers, &progress);
                self.report(&world, now).await?;
                Ok(Action::requeue(LONGEST))
            }
        }
    }

    async fn carry_out(&self, valid: &Valid<'_>, mut servers: Servers, now: Timestamp) -> Result<Action, Error> {
        let Valid { kanidm, cluster, refused, .. } = valid;
        let key = key(kanidm);
        let tls = observe::tls(&self.ctx, cluster, now).await?;
        self.count_certificate(cluster, &tls);
        let mut known = self.look(valid, &servers).await?;
        let gate = self.gate(valid, &servers, &known, &tls).await;
        let version = kanidm.status.as_ref().and_then(|status| status.version.as_ref());
        let around = Surroundings {
            helper_image: &self.ctx.options.image,
            tls_hash: match &tls {
                TlsSeen::Usable(usable) if !usable.must_wait(&servers.statefulsets) => Some(&usable.hash),
                _ => None,
            },
            live: &servers.statefulsets,
            domain: known.domain,
            certificates: &known.nodes.certificates,
            gateway: self.gateway_api(cluster.spec.gateway.is_some()).await?,
            primary_serves: servers.pods.iter().any(|pod| pod.name == cluster.primary && pod.ready),
            images: gate.images(version.and_then(|version| version.image.as_deref())),
        };
        let digests = server_config::digests(cluster, &around);
        let mut children = self.children(valid, &around, gate.refusal()).await?;
        children.blocked = children.blocked.or(known.blocked.take());
        let rollout =
            Rollout { valid, servers: &servers, known: &known, tls: &tls, children: &children, digests: &digests };
        let driven = Box::pin(self.drive(&rollout, around.primary_serves)).await?;
        let progress = driven.progress;
        servers.pods.retain(|pod| Some(&pod.name) != driven.restarted.as_ref());
        let may_ask = !kanidm.spec.paused && children.blocked.is_none();
        let growth = if may_ask { Box::pin(self.grow(valid, &servers)).await? } else { Growth::default() };
        let refused = [refused.as_slice(), growth.refused.as_slice()].concat();
        let world = World {
            refused: &refused,
            growing: &growth.under_way,
            blocked: children.blocked,
            left_out: &children.left_out,
            tls,
            wanted: &children.statefulsets,
            nodes: &known.nodes.seen,
            digests: &digests,
            certificates: &known.nodes.certificates,
            gate: Some(&gate),
            renewing: &driven.renewing,
            backup: Box::pin(self.backups(kanidm, cluster, &servers, may_ask)).await,
            ..world(kanidm, Ok(cluster), &servers, &progress)
        };
        if !(progress.early && is_told(kanidm, &progress)) {
            self.report(&world, now).await?;
        }
        let beside = children.again.then(|| self.retry.next(key.clone()));
        if progress.again.or(beside).is_none() {
            self.retry.reset(&key);
        }
        let interval = self.ctx.options.interval.mul_f64(0.9 + 0.2 * fastrand::f64());
        let soon = driven.soon || matches!(gate.image, Verdict::NeedsBackup { .. });
        let waits = [progress.again, beside, soon.then_some(SOON)];
        Ok(Action::requeue(waits.into_iter().flatten().fold(interval, std::cmp::min)))
    }

    /// Restarts whoever is next, renews what ends, and goes as far with the primary as it lets us. Nothing of it while a child is in the way.
    async fn drive(&self, rollout: &Rollout<'_>, primary_serves: bool) -> Result<Driven, Error> {
        let Rollout { valid, servers, known, tls, children, .. } = rollout;
        let Valid { kanidm, owner, cluster, .. } = valid;
        if kanidm.spec.paused || children.blocked.is_some() {
            let progress = Progress::not_tried(self.has_passwords(owner).await?);
            return Ok(Driven { progress, restarted: None, renewing: BTreeSet::new(), soon: false });
        }
        self.retire(valid, servers, primary_serves).await?;
        let Renewal { renewing, stale, soon } = Box::pin(self.renewal(rollout)).await?;
        let restarted = self.restart_next(rollout, &stale).await?;
        let soon = soon || self.renew(&key(kanidm), cluster, &known.nodes).await? || is_under_way(cluster, servers);
        let mut left = Servers::clone(servers);
        left.pods.retain(|pod| Some(&pod.name) != restarted.as_ref());
        let scene = Scene {
            kanidm,
            owner,
            cluster,
            servers: &left,
            tls,
            nodes: &known.nodes,
            verdict: known.verdict,
            renewing: renewing.contains(&cluster.primary),
        };
        Ok(Driven { progress: Box::pin(self.progress(&scene)).await?, restarted, renewing, soon })
    }

    async fn has_passwords(&self, owner: &Owner<'_>) -> Result<bool, Error> {
        let stored = observe::stored(&self.ctx, owner, &names::admin_secret(owner.name)).await?;
        Ok(stored.read(Administrators::read).is_some())
    }

    /// Takes off the finalizer of an older release. Carries the version that was read, so that the finalizer of somebody else is never lost.
    async fn release(&self, kanidm: &Kanidm) -> Result<Action, Error> {
        if !kanidm.finalizers().iter().any(|finalizer| finalizer == LEGACY_FINALIZER) {
            return Ok(Action::await_change());
        }
        self.ctx.guard.check()?;
        let others: Vec<_> = kanidm.finalizers().iter().filter(|finalizer| *finalizer != LEGACY_FINALIZER).collect();
        let patch = json!({"metadata": {"resourceVersion": kanidm.resource_version(), "finalizers": others}});
        let api: Api<Kanidm> = Api::namespaced(self.ctx.client.clone(), &kanidm.namespace().unwrap_or_default());
        match api.patch_metadata(&kanidm.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(_) => Ok(Action::await_change()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Action::await_change()),
            Err(error) => Err(error.into()),
        }
    }
}

/// A Kanidm whose spec can be carried out.
pub(super) struct Valid<'a> {
    pub kanidm: &'a Kanidm,
    pub owner: Owner<'a>,
    pub cluster: ValidatedCluster,
    /// Parts of the spec that cannot be carried out, while the rest is.
    pub refused: Vec<Refusal>,
}

/// What came of driving the servers.
struct Driven {
    progress: Progress,
    /// The pod that was restarted.
    restarted: Option<String>,
    /// Pods that show another certificate than the Secret holds.
    renewing: BTreeSet<String>,
    /// Whether something is on its way that no watch tells of.
    soon: bool,
}

/// Whether several nodes are on their way: then news may come that no watch brings.
fn is_under_way(cluster: &ValidatedCluster, servers: &Servers) -> bool {
    let several = cluster.nodes().count() > 1 || servers.pods.len() > 1;
    several && servers.pods.iter().any(|pod| pod.running && !pod.ready)
}

/// Whether the status speaks of this generation, and nothing was learned that has to be kept: then it holds for the moment that the first look
/// takes, or a restart of the operator would make every Kanidm unready.
fn is_told(kanidm: &Kanidm, progress: &Progress) -> bool {
    let told = kanidm.status.as_ref().is_some_and(|status| status.observed_generation == kanidm.metadata.generation);
    told && !matches!(progress.domain, Some((_, domain::Verdict::First | domain::Verdict::Replaced)))
}

fn world<'a>(
    kanidm: &'a Kanidm,
    cluster: Result<&'a ValidatedCluster, &'a [Refusal]>,
    servers: &'a Servers,
    progress: &Progress,
) -> World<'a> {
    World {
        kanidm,
        cluster,
        refused: &[],
        growing: &[],
        blocked: None,
        left_out: &[],
        tls: TlsSeen::Missing,
        wanted: &[],
        pods: &servers.pods,
        nodes: &[],
        digests: &NO_DIGESTS,
        certificates: &NO_CERTIFICATES,
        admin_secret: progress.admin_secret,
        domain: progress.domain,
        access: Access::clone(&progress.access),
        gate: None,
        renewing: &NO_PODS,
        backup: Report::not_judged(&kanidm.spec, kanidm.status.as_ref()),
    }
}
