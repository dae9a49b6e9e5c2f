//! `kaniop run`: stands for election, and while it leads runs every controller.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Namespace;
use kaniop_api::{Kanidm, KanidmGroup, KanidmOAuth2Client, KanidmPersonAccount, KanidmServiceAccount};
use kube::api::Api;
use kube::runtime::reflector::{self, Store, store::Writer};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Config, ResourceExt};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::clock::Clock;
use crate::context::{Context, Options};
use crate::events::Events;
use crate::leader::{Election, Guard};
use crate::metrics::Metrics;
use crate::targets::{ObjectKey, Targets, Wake};
use crate::{cluster, engine, http};

/// How long controllers may take to finish what they have begun.
const GRACE: Duration = Duration::from_secs(20);
/// How long publishing what they have told may take after that.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Who we are and where we listen.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Name of the pod, or of the machine: unique among operators.
    pub name: String,
    /// Namespace of the Lease.
    pub namespace: String,
    /// Address of `/livez`, `/readyz`, `/metrics`.
    pub listen: SocketAddr,
}

/// Why the operator ended.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// No way to the API server is configured.
    #[error("no way to a Kubernetes API server: {0}. Run inside a pod, or set KUBECONFIG")]
    NoKubernetes(String),
    /// The health address cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// The lease was lost. Ending is the one way to be sure that nothing goes on; the pod starts again and stands anew.
    #[error(
        "the lease was lost to another operator or could not be renewed in time; ending so that nothing goes on in doubt"
    )]
    LeaseLost,
    /// A controller ended by itself.
    #[error("a controller ended unexpectedly")]
    ControllerEnded,
    /// Signals cannot be listened to.
    #[error("signals cannot be listened to: {0}")]
    Signals(std::io::Error),
}

/// Runs until told to stop.
///
/// # Errors
/// [`Ended`] for every end but the one that a signal asked for.
pub async fn run(identity: Identity, options: Options) -> Result<(), Ended> {
    let client = client().await?;
    let (clock, metrics) = (Clock::start(), Metrics::default());
    let guard = Guard::closed(clock);
    let (ready, is_ready) = watch::channel(false);
    let mut over = pin!(over(identity.listen, metrics.clone(), is_ready));
    let mut election = Election::new(client.clone(), &identity.namespace, identity.name.clone(), guard.clone(), clock);
    let won = async {
        reached(&client).await;
        ready.send_replace(true);
        election.win().await;
    };
    if let Either::Left((ended, _)) = select(over.as_mut(), pin!(won)).await {
        return ended;
    }
    tracing::info!(identity = identity.name, "leading");
    metrics.leading(true);
    let (events, publisher) = Events::new(client.clone(), identity.name, clock, metrics.clone());
    let (stopped, stopping) = watch::channel(false);
    let publishing = tokio::spawn(publisher.run(stopping.clone()));
    let (mut tasks, _stores) = start(client, options, (clock, guard, events, metrics.clone()), &stopping);
    let ended = match select(over, pin!(until_broken(&mut election, &mut tasks))).await {
        Either::Left((ended, _)) => ended,
        Either::Right((broken, _)) => Err(broken),
    };
    stopped.send_replace(true);
    if ended.is_ok() {
        wind_up(&mut election, &mut tasks).await;
        last_words(publishing).await;
    }
    metrics.leading(false);
    ended
}

/// Returns when a signal asks for the end, or the listener breaks.
async fn over(listen: SocketAddr, metrics: Metrics, ready: watch::Receiver<bool>) -> Result<(), Ended> {
    match select(pin!(http::serve(listen, metrics, ready)), pin!(asked_to_stop())).await {
        Either::Left((served, _)) => {
            Err(Ended::Listen(listen, served.err().unwrap_or_else(|| std::io::Error::other("the listener ended"))))
        }
        Either::Right((asked, _)) => asked,
    }
}

/// Returns when the lease is lost or a controller ends.
async fn until_broken(election: &mut Election, tasks: &mut JoinSet<()>) -> Ended {
    match select(pin!(election.keep()), pin!(tasks.join_next())).await {
        Either::Left(_) => Ended::LeaseLost,
        Either::Right(_) => Ended::ControllerEnded,
    }
}

/// Keeps the lease alive until everything that was begun has ended, and only then gives it back.
async fn wind_up(election: &mut Election, tasks: &mut JoinSet<()>) {
    let finished = async { while tasks.join_next().await.is_some() {} };
    let finished = tokio::time::timeout(GRACE, finished);
    if let Either::Left((Err(_), _)) = select(pin!(finished), pin!(election.keep())).await {
        tracing::warn!("some controllers did not end in time");
    }
    election.release().await;
}

/// Waits for what was told to be published, if that is soon.
async fn last_words(publishing: JoinHandle<()>) {
    if tokio::time::timeout(LAST_WORDS, publishing).await.is_err() {
        tracing::warn!("not all events could be published in time; the others are lost");
    }
}

async fn client() -> Result<Client, Ended> {
    let mut config = Config::infer().await.map_err(|error| Ended::NoKubernetes(error.to_string()))?;
    // Our own back-off is the one mechanism of retries.
    config.default_retry = false;
    Client::try_from(config).map_err(|error| Ended::NoKubernetes(error.to_string()))
}

/// Returns when the API server answers.
async fn reached(client: &Client) {
    let retry = crate::retry::Retry::default();
    while let Err(error) = client.apiserver_version().await {
        tracing::warn!(%error, "the Kubernetes API server does not answer; trying again");
        tokio::time::sleep(retry.next(())).await;
    }
}

async fn asked_to_stop() -> Result<(), Ended> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Ended::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Ended::Signals)?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("asked to stop");
    Ok(())
}

type Shared = (Clock, Guard, Events, Metrics);

/// Starts every controller; they end when `stopping` turns true.
fn start(client: Client, options: Options, shared: Shared, stopping: &watch::Receiver<bool>) -> (JoinSet<()>, Writers) {
    let (clock, guard, events, metrics) = shared;
    let targets = Arc::new(Targets::new(options.interval));
    let (kanidms, kanidm_writer) = reflector::store::<Kanidm>();
    let (namespaces, namespace_writer) = reflector::store::<Namespace>();
    let ctx = Context { client, clock, guard, targets, kanidms, namespaces, events, metrics, options };
    let mut tasks = JoinSet::new();
    tasks.spawn(until(stopping.clone(), watch_kanidms(ctx.clone(), kanidm_writer)));
    // In a namespaced installation no other namespace can be selected, and the right to watch namespaces is not asked for.
    let spare = if ctx.options.namespace.is_none() {
        tasks.spawn(until(stopping.clone(), watch_namespaces(ctx.clone(), namespace_writer)));
        None
    } else {
        Some(namespace_writer)
    };
    tasks.spawn(cluster::run(ctx.clone(), stop(stopping)));
    let filled = stores_filled(&ctx, &mut tasks, stopping);
    tasks.spawn(run_engine::<KanidmPersonAccount>(ctx.clone(), filled.clone(), stopping.clone()));
    tasks.spawn(run_engine::<KanidmGroup>(ctx.clone(), filled.clone(), stopping.clone()));
    tasks.spawn(run_engine::<KanidmOAuth2Client>(ctx.clone(), filled.clone(), stopping.clone()));
    tasks.spawn(run_engine::<KanidmServiceAccount>(ctx, filled, stopping.clone()));
    (tasks, spare)
}

/// A writer that must not be dropped, or its store would count as broken.
type Writers = Option<Writer<Namespace>>;

fn stop(stopping: &watch::Receiver<bool>) -> impl Future<Output = ()> + Send + Sync + use<> {
    let mut stopping = stopping.clone();
    async move {
        // An error means that the sender is gone: the process is ending.
        let _ = stopping.wait_for(|stop| *stop).await;
    }
}

async fn until(stopping: watch::Receiver<bool>, work: impl Future<Output = ()>) {
    tokio::select! {
        () = work => {}
        () = stop(&stopping) => {}
    }
}

/// Says when the stores that the engines look into are filled: before, everything would look as if it did not exist. One task waits and tells the
/// others, for a store wakes only one of several that wait for it.
fn stores_filled(ctx: &Context, tasks: &mut JoinSet<()>, stopping: &watch::Receiver<bool>) -> watch::Receiver<bool> {
    let (filled, is_filled) = watch::channel(false);
    let (ctx, stopping) = (ctx.clone(), stopping.clone());
    tasks.spawn(async move {
        let both = async {
            let kanidms = ctx.kanidms.wait_until_ready().await.is_ok();
            kanidms && (ctx.options.namespace.is_some() || ctx.namespaces.wait_until_ready().await.is_ok())
        };
        tokio::select! {
            true = both => {
                filled.send_replace(true);
                // Lives as long as the others, or its end would look like that of a controller.
                stop(&stopping).await;
            }
            () = stop(&stopping) => {}
            else => {}
        }
    });
    is_filled
}

/// Runs the engine of a kind once the stores are filled.
async fn run_engine<K: engine::Managed>(
    ctx: Context,
    mut filled: watch::Receiver<bool>,
    stopping: watch::Receiver<bool>,
) {
    tokio::select! {
        Ok(_) = filled.wait_for(|filled| *filled) => {}
        () = stop(&stopping) => return,
        else => return,
    }
    engine::run::<K>(ctx, stop(&stopping)).await;
}

async fn watch_kanidms(ctx: Context, writer: Writer<Kanidm>) {
    let api: Api<Kanidm> = match &ctx.options.namespace {
        Some(namespace) => Api::namespaced(ctx.client.clone(), namespace),
        None => Api::all(ctx.client.clone()),
    };
    let mut seen = std::collections::HashMap::new();
    let mut events = pin!(reflected(api, writer));
    while let Some(event) = events.next().await {
        match event {
            watcher::Event::Apply(kanidm) | watcher::Event::InitApply(kanidm) => {
                let key = object_key(&kanidm);
                let state = (kanidm.metadata.uid, kanidm.metadata.generation, kanidm.metadata.deletion_timestamp);
                if seen.insert(key.clone(), state.clone()).as_ref() != Some(&state) {
                    ctx.targets.wake(Wake::Kanidm(key));
                }
            }
            watcher::Event::Delete(kanidm) => {
                let key = object_key(&kanidm);
                seen.remove(&key);
                ctx.targets.remove(&key);
                ctx.targets.wake(Wake::Kanidm(key));
            }
            watcher::Event::InitDone => {
                let gone: Vec<_> = seen.keys().filter(|key| !holds(&ctx.kanidms, key)).cloned().collect();
                for key in gone {
                    seen.remove(&key);
                    ctx.targets.remove(&key);
                    ctx.targets.wake(Wake::Kanidm(key));
                }
            }
            watcher::Event::Init => {}
        }
    }
}

async fn watch_namespaces(ctx: Context, writer: Writer<Namespace>) {
    let mut events = pin!(reflected(Api::all(ctx.client.clone()), writer));
    while let Some(event) = events.next().await {
        if let watcher::Event::Apply(namespace) | watcher::Event::InitApply(namespace) = event {
            ctx.targets.wake(Wake::Namespace(namespace.name_any()));
        }
    }
}

/// A watch that fills a store, without the fields that nobody reads, and never ends.
fn reflected<K>(api: Api<K>, writer: Writer<K>) -> impl Stream<Item = watcher::Event<K>>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    watcher(api, watcher::Config::default())
        .default_backoff()
        .modify(|object| object.managed_fields_mut().clear())
        .reflect(writer)
        .filter_map(|event| async {
            event
                .inspect_err(
                    |error| tracing::warn!(%error, kind = %K::kind(&()), "a watch was interrupted; it begins anew"),
                )
                .ok()
        })
}

fn object_key(kanidm: &Kanidm) -> ObjectKey {
    ObjectKey { namespace: kanidm.namespace().unwrap_or_default(), name: kanidm.name_any() }
}

fn holds(store: &Store<Kanidm>, key: &ObjectKey) -> bool {
    store.get(&reflector::ObjectRef::new(&key.name).within(&key.namespace)).is_some()
}
