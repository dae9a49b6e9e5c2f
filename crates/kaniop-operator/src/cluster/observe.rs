//! Reads what a pass has to know of Kubernetes. Everything is read from the API server, not from a cache: a pass is rare, and what a stale
//! view would cost (a second reset of passwords, a pod restarted twice) is not.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret};
use kaniop_core::cluster::pods::{self, PodSeen};
use kaniop_core::cluster::status::TlsSeen;
use kaniop_core::cluster::{ValidatedCluster, labels, names, tls};
use kaniop_kanidm::check_key;
use kube::api::{Api, ListParams};
use kube::core::PartialObjectMeta;

use crate::apply::{Owner, is_controlled_by};
use crate::context::Context;
use crate::error::Error;

/// The servers of a Kanidm.
#[derive(Clone, Debug, Default)]
pub(super) struct Servers {
    /// Its StatefulSets.
    pub statefulsets: Vec<StatefulSet>,
    /// Their pods, by name.
    pub pods: Vec<PodSeen>,
}

pub(super) async fn servers(ctx: &Context, owner: &Owner<'_>) -> Result<Servers, Error> {
    let ours = ListParams::default().labels(&format!("{}={}", labels::CLUSTER, owner.name));
    let statefulsets: Api<StatefulSet> = Api::namespaced(ctx.client.clone(), owner.namespace);
    let pods: Api<Pod> = Api::namespaced(ctx.client.clone(), owner.namespace);
    let (statefulsets, pods) = tokio::try_join!(statefulsets.list(&ours), pods.list(&ours))?;
    let statefulsets: Vec<_> =
        statefulsets.into_iter().filter(|found| is_controlled_by(&found.metadata, owner.uid)).collect();
    let mut pods: Vec<_> = pods.iter().filter_map(|pod| seen(pod, &statefulsets)).collect();
    pods.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Servers { statefulsets, pods })
}

/// Pods of our StatefulSets only: Jobs and others may carry some of the same labels.
fn seen(pod: &Pod, statefulsets: &[StatefulSet]) -> Option<PodSeen> {
    let owner = statefulsets
        .iter()
        .find(|set| set.metadata.uid.as_deref().is_some_and(|uid| is_controlled_by(&pod.metadata, uid)));
    Some(pods::seen(pod, owner?.metadata.name.as_deref()?))
}

/// The TLS Secret. It belongs to the user or to a certificate controller, so nobody asks who controls it.
pub(super) async fn tls(ctx: &Context, cluster: &ValidatedCluster, now: Timestamp) -> Result<TlsSeen, Error> {
    let api: Api<Secret> = Api::namespaced(ctx.client.clone(), &cluster.namespace);
    let Some(secret) = api.get_opt(&cluster.tls_secret).await? else { return Ok(TlsSeen::Missing) };
    let data = secret.data.unwrap_or_default();
    let read = tls::read(&data, cluster.origin.host(), now).and_then(|usable| {
        let key = data.get(tls::KEY).map(|key| key.0.as_slice()).unwrap_or_default();
        check_key(&usable.chain, key).map(|()| usable).map_err(|error| error.to_string())
    });
    Ok(read.map_or_else(TlsSeen::Invalid, TlsSeen::Usable))
}

/// Whether there is a claim of this Kanidm besides its primary's: what lies on it may be all that is left of the domain. One without our labels
/// counts by its name.
pub(super) async fn has_other_claims(
    ctx: &Context,
    owner: &Owner<'_>,
    cluster: &ValidatedCluster,
) -> Result<bool, Error> {
    let api: Api<PartialObjectMeta<PersistentVolumeClaim>> = Api::namespaced(ctx.client.clone(), owner.namespace);
    let claims = api.list_metadata(&ListParams::default()).await?;
    let of_primary = format!("{}-{}", names::DATA, cluster.primary);
    let prefix = format!("{}-{}-", names::DATA, owner.name);
    Ok(claims.iter().any(|claim| {
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        let label = claim.metadata.labels.as_ref().and_then(|labels| labels.get(labels::CLUSTER));
        let ours = label.map_or_else(|| name.starts_with(&prefix), |of| of == owner.name);
        ours && name != of_primary
    }))
}

/// A Secret that is ours to fill.
#[derive(Clone, Debug)]
pub(super) enum Stored {
    /// There is none of this name.
    Absent,
    /// There is one, and it is not controlled by this Kanidm.
    Foreign,
    /// It is ours.
    Ours(Box<Secret>),
}

impl Stored {
    /// What our Secret holds, as `read` understands it.
    pub fn read<T>(&self, read: impl FnOnce(&Secret) -> Option<T>) -> Option<T> {
        if let Self::Ours(secret) = self { read(secret) } else { None }
    }
}

pub(super) async fn stored(ctx: &Context, owner: &Owner<'_>, name: &str) -> Result<Stored, Error> {
    let api: Api<Secret> = Api::namespaced(ctx.client.clone(), owner.namespace);
    Ok(match api.get_opt(name).await? {
        None => Stored::Absent,
        Some(secret) if is_controlled_by(&secret.metadata, owner.uid) => Stored::Ours(Box::new(secret)),
        Some(_) => Stored::Foreign,
    })
}
