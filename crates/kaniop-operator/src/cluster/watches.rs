//! What wakes the loop: the Kanidm itself, its children, its pods and claims, its TLS Secret, and news of its server. Secrets, pods and claims are
//! watched as metadata only; what is in them is read by name when it is needed.

use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kaniop_api::Kanidm;
use kaniop_core::cluster::{labels, tls};
use kube::api::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::controller::{self, Controller};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher;
use kube::{Resource, ResourceExt};
use tokio_stream::wrappers::BroadcastStream;

use super::{Clusters, Memory};
use crate::context::Context;
use crate::targets::{ObjectKey, Wake};

/// Passes under way at a time.
const CONCURRENCY: u16 = 16;
/// A pod that starts changes several times within a moment: one pass.
const DEBOUNCE: Duration = Duration::from_millis(100);

pub(super) fn controller(
    clusters: &Arc<Clusters>,
    stop: impl Future<Output = ()> + Send + Sync + 'static,
) -> Controller<Kanidm> {
    let ctx = &clusters.ctx;
    let ours = watcher::Config::default().labels(labels::CLUSTER);
    let controller = Controller::new(api::<Kanidm>(ctx), watcher::Config::default());
    let kanidms = controller.store();
    controller
        .with_config(controller::Config::default().concurrency(CONCURRENCY).debounce(DEBOUNCE))
        .graceful_shutdown_on(stop)
        .owns(api::<StatefulSet>(ctx), ours.clone())
        .owns(api::<Service>(ctx), ours.clone())
        .owns(api::<Ingress>(ctx), ours.clone())
        .owns(api::<NetworkPolicy>(ctx), ours.clone())
        .owns(api::<PodDisruptionBudget>(ctx), ours.clone())
        .owns(api::<Deployment>(ctx), ours.clone())
        .watches(api::<PartialObjectMeta<Pod>>(ctx), ours.clone(), |pod| labelled(&pod))
        .watches(api::<PartialObjectMeta<PersistentVolumeClaim>>(ctx), ours, |claim| labelled(&claim))
        .watches(api::<PartialObjectMeta<Secret>>(ctx), watcher::Config::default(), move |secret| {
            of_secret(&kanidms, &secret)
        })
        .reconcile_on(news(clusters.clone()))
}

fn api<K>(ctx: &Context) -> Api<K>
where
    K: Resource<Scope = NamespaceResourceScope>,
    K::DynamicType: Default,
{
    match &ctx.options.namespace {
        Some(namespace) => Api::namespaced(ctx.client.clone(), namespace),
        None => Api::all(ctx.client.clone()),
    }
}

/// The Kanidm that an object's label names: a pod, or a claim, whose volume grows.
fn labelled<K>(object: &PartialObjectMeta<K>) -> Option<ObjectRef<Kanidm>> {
    let cluster = object.metadata.labels.as_ref()?.get(labels::CLUSTER)?;
    Some(ObjectRef::new(cluster).within(object.metadata.namespace.as_deref()?))
}

/// The Kanidms that take a certificate from this Secret, and the one that owns it.
fn of_secret(kanidms: &Store<Kanidm>, secret: &PartialObjectMeta<Secret>) -> Vec<ObjectRef<Kanidm>> {
    let name = secret.name_any();
    let owns = |kanidm: &Kanidm| {
        let uid = kanidm.metadata.uid.as_ref();
        secret.owner_references().iter().any(|owner| Some(&owner.uid) == uid)
    };
    let reads = |kanidm: &Kanidm| {
        let mut external = kanidm.spec.external_replication_nodes.iter().flatten();
        tls::secret_name(&kanidm.name_any(), &kanidm.spec) == name || external.any(|node| node.certificate.name == name)
    };
    let concerned = |kanidm: &Kanidm| kanidm.namespace() == secret.namespace() && (reads(kanidm) || owns(kanidm));
    let concerned = kanidms.state_filter(|kanidm| concerned(kanidm));
    concerned.iter().map(|kanidm| ObjectRef::from_obj(kanidm.as_ref())).collect()
}

/// The Kanidms whose server answers in another way than in their last pass.
fn news(clusters: Arc<Clusters>) -> impl Stream<Item = ObjectRef<Kanidm>> + Send + 'static {
    let wakes = BroadcastStream::new(clusters.ctx.targets.subscribe());
    wakes.flat_map(move |wake| {
        let keys = match wake {
            Ok(Wake::Refreshed(key)) => vec![key],
            Ok(Wake::Created(_) | Wake::Kanidm(_) | Wake::Namespace(_)) => vec![],
            // Too many wakes at once were lost: everybody looks.
            Err(_) => clusters.ctx.kanidms.state().iter().map(|kanidm| super::key(kanidm)).collect(),
        };
        let changed: Vec<_> = keys.into_iter().filter(|key| is_news(&clusters, key, &clusters.memory(key))).collect();
        futures::stream::iter(changed.into_iter().map(|key| ObjectRef::new(&key.name).within(&key.namespace)))
    })
}

fn is_news(clusters: &Clusters, key: &ObjectKey, memory: &Memory) -> bool {
    memory.health.as_ref().is_some_and(|known| *known != clusters.ctx.targets.health(key))
}
