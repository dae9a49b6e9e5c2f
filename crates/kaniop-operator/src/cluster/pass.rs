//! One pass over one Kanidm: the steps in their order. Each step is a file of this folder or of the core; here is only what follows what.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use kaniop_api::Kanidm;
use kaniop_core::cluster::credentials::Administrators;
use kaniop_core::cluster::domain::Verdict;
use kaniop_core::cluster::status::{Access, Obstacle, TlsSeen, World};
use kaniop_core::cluster::tls::Usable;
use kaniop_core::cluster::{
    Child, Refusal, Surroundings, ValidatedCluster, build, names, refused_changes, rollout, template_hash, validate,
};
use kaniop_core::reason::Reason;
use kaniop_kanidm::Error as KanidmError;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::Action;
use serde_json::json;

use super::bootstrap::{Progress, Scene};
use super::observe::{self, Servers};
use super::{Clusters, key};
use crate::apply::{self, Applied, Owner};
use crate::error::Error;
use crate::retry::LONGEST;
use crate::targets::Health;

/// Set by older releases; nothing has to be done at the end of a Kanidm.
const LEGACY_FINALIZER: &str = "kanidms.kaniop.rs/finalizer";

/// What came of applying the children.
#[derive(Default)]
struct Children {
    /// The StatefulSets as they should be.
    statefulsets: Vec<StatefulSet>,
    /// What kept the rest from being applied.
    blocked: Option<Obstacle>,
    /// Whether anything was written.
    written: bool,
}

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
        let judged = validate(kanidm)
            .and_then(|cluster| refused_changes(&cluster, &servers.statefulsets).map(|refused| (cluster, refused)));
        match judged {
            Ok((cluster, refused)) => self.carry_out(&Valid { kanidm, owner, cluster, refused }, servers, now).await,
            Err(refusals) => {
                let progress = Progress::not_tried(self.has_passwords(&owner).await?);
                let world = world(kanidm, Err(&refusals), &servers, &progress);
                self.report(&world, now).await?;
                Ok(Action::requeue(LONGEST))
            }
        }
    }

    async fn carry_out(&self, valid: &Valid<'_>, mut servers: Servers, now: Timestamp) -> Result<Action, Error> {
        let Valid { kanidm, owner, cluster, refused } = valid;
        let tls = observe::tls(&self.ctx, cluster, now).await?;
        let paused = kanidm.spec.paused;
        let children = self.children(valid, &servers, &tls).await?;
        let progress = if paused || children.blocked.is_some() {
            Progress::not_tried(self.has_passwords(owner).await?)
        } else {
            if let Some(name) = self.restart_next(valid, &servers, &tls, &children).await? {
                servers.pods.retain(|pod| pod.name != name);
            }
            Box::pin(self.progress(&Scene { kanidm, owner, cluster, servers: &servers, tls: &tls })).await?
        };
        let world = World {
            refused,
            blocked: children.blocked,
            tls,
            wanted: &children.statefulsets,
            ..world(kanidm, Ok(cluster), &servers, &progress)
        };
        if !(progress.early && is_told(kanidm, &progress)) {
            self.report(&world, now).await?;
        }
        if progress.again.is_none() {
            self.retry.reset(&key(kanidm));
        }
        let interval = self.ctx.options.interval.mul_f64(0.9 + 0.2 * fastrand::f64());
        Ok(Action::requeue(progress.again.unwrap_or(interval).min(interval)))
    }

    async fn has_passwords(&self, owner: &Owner<'_>) -> Result<bool, Error> {
        let stored = observe::stored(&self.ctx, owner, &names::admin_secret(owner.name)).await?;
        Ok(stored.read(Administrators::read).is_some())
    }

    /// Applies the children in their order. The first that cannot be applied ends it: what follows may need it.
    async fn children(&self, valid: &Valid<'_>, servers: &Servers, tls: &TlsSeen) -> Result<Children, Error> {
        let live = &servers.statefulsets;
        let tls_hash = match tls {
            TlsSeen::Usable(usable) if !usable.must_wait(live) => Some(usable.hash.as_str()),
            _ => None,
        };
        let around = Surroundings { helper_image: &self.ctx.options.image, tls_hash, live };
        let wanted = build(&valid.cluster, &around);
        let mut children = Children::default();
        for child in &wanted {
            if let Child::StatefulSet(statefulset) = child {
                children.statefulsets.push(StatefulSet::clone(statefulset));
            }
        }
        if valid.kanidm.spec.paused {
            return Ok(children);
        }
        for child in &wanted {
            match apply::child(&self.ctx, &valid.owner, child).await? {
                Applied::Unchanged => {}
                Applied::Written | Applied::Ending => children.written = true,
                Applied::Conflict(why) => children.blocked = Some(Obstacle::known(Reason::NameConflict, why)),
                Applied::Refused(why) => children.blocked = Some(Obstacle::known(Reason::InvalidSpec, why)),
            }
            if children.blocked.is_some() {
                return Ok(children);
            }
        }
        apply::prune(&self.ctx, &valid.owner, &wanted).await?;
        Ok(children)
    }

    /// Deletes the pod whose turn it is, if any, and names it. Not while one could not come back, and not before the StatefulSet's controller knows the template.
    async fn restart_next(
        &self,
        valid: &Valid<'_>,
        servers: &Servers,
        tls: &TlsSeen,
        children: &Children,
    ) -> Result<Option<String>, Error> {
        let TlsSeen::Usable(usable) = tls else { return Ok(None) };
        if children.written {
            return Ok(None);
        }
        // Whatever a pod is restarted for, it comes back with the certificate of the Secret.
        let keep_serving = usable.must_wait(&servers.statefulsets);
        for wanted in &children.statefulsets {
            let name = wanted.metadata.name.as_deref();
            let live = servers.statefulsets.iter().find(|live| live.metadata.name.as_deref() == name);
            let Some(hash) = template_hash(wanted).filter(|_| live.is_some_and(is_observed)) else { continue };
            let pods: Vec<_> =
                servers.pods.iter().filter(|pod| Some(pod.statefulset.as_str()) == name).cloned().collect();
            let next = rollout::next(&pods, hash, &valid.cluster.primary);
            if let Some(pod) = next.filter(|pod| !(pod.ready && keep_serving)) {
                apply::restart_pod(&self.ctx, valid.owner.namespace, &pod.name, &pod.uid).await?;
                let note = format!("Pod '{}' is restarted to take over the newest configuration.", pod.name);
                self.tell(valid.kanidm, false, "PodRestarted", &note);
                return Ok(Some(pod.name.clone()));
            }
        }
        self.restart_for_certificate(valid, servers, usable).await
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
struct Valid<'a> {
    kanidm: &'a Kanidm,
    owner: Owner<'a>,
    cluster: ValidatedCluster,
    /// Parts of the spec that cannot be carried out, while the rest is.
    refused: Vec<Refusal>,
}

/// Whether the status speaks of this generation, and nothing was learned that has to be kept: then it holds for the moment that the first look
/// takes, or a restart of the operator would make every Kanidm unready.
fn is_told(kanidm: &Kanidm, progress: &Progress) -> bool {
    let told = kanidm.status.as_ref().is_some_and(|status| status.observed_generation == kanidm.metadata.generation);
    told && !matches!(progress.domain, Some((_, Verdict::First | Verdict::Replaced)))
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
        blocked: None,
        tls: TlsSeen::Missing,
        wanted: &[],
        pods: &servers.pods,
        admin_secret: progress.admin_secret,
        domain: progress.domain,
        access: Access::clone(&progress.access),
    }
}

/// Whether the StatefulSet's controller has seen the newest template: a pod that is deleted before comes back from the old one.
fn is_observed(live: &StatefulSet) -> bool {
    live.status.as_ref().and_then(|status| status.observed_generation) == live.metadata.generation
}
