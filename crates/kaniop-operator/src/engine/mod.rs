//! Identities: the one loop for every kind. Observe (the shared snapshot) → plan (pure, `kaniop_core::identity`) → execute → report.
//!
//! Nothing here knows a field of any kind; a kind adds its table in core and the few lines of [`Managed`].

mod act;
mod assess;
mod behind;
mod claims;
mod credentials;
mod pace;
mod pass;
mod picture;
mod places;
mod removal;
mod untold;
mod watched;

use std::collections::HashMap;
use std::fmt::Debug;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::{Stream, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kaniop_api::shared::Identity;
use kaniop_api::{Kanidm, KanidmGroup, KanidmOAuth2Client, KanidmPersonAccount, KanidmServiceAccount};
use kaniop_core::identity::IdentityKind;
use kube::api::Api;
use kube::core::NamespaceResourceScope;
use kube::runtime::controller;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_stream::wrappers::{BroadcastStream, UnboundedReceiverStream};
use tracing::Instrument;

use self::assess::Assessment;
use self::behind::Behind;
use self::claims::Claims;
use self::pace::Pace;
use self::places::Places;
use crate::context::Context;
use crate::error::Error;
use crate::retry::Retry;
use crate::targets::{ObjectKey, Wake};

/// Passes of one kind that need no server, under way at a time. The others wait for a turn at theirs.
const IDLE_PASSES: usize = 16;
/// Several changes of one object within this time are one pass.
const DEBOUNCE: Duration = Duration::from_millis(20);
/// No pass takes longer.
const DEADLINE: Duration = Duration::from_secs(90);

/// What the engine needs to know of a kind besides its table.
pub trait Managed:
    IdentityKind<Spec: Send + Sync>
    + Identity
    + Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// Finalizer, in the spelling that older releases used.
    const FINALIZER: &'static str;
    /// What the labels of Secrets of this kind say of who manages them; `None` for a kind without Secrets.
    const MANAGER: Option<&'static str>;
    /// Which namespaces may use this Kanidm for this kind.
    fn selector(kanidm: &Kanidm) -> Option<&LabelSelector>;
}

impl Managed for KanidmGroup {
    const FINALIZER: &'static str = "kanidmgroups.kaniop.rs/finalizer";
    const MANAGER: Option<&'static str> = None;
    fn selector(kanidm: &Kanidm) -> Option<&LabelSelector> {
        kanidm.spec.group_namespace_selector.as_ref()
    }
}

impl Managed for KanidmPersonAccount {
    // Misspelt, as objects of older releases carry it.
    const FINALIZER: &'static str = "kanidmpersonsaccounts.kaniop.rs/finalizer";
    const MANAGER: Option<&'static str> = Some("kaniop-person");
    fn selector(kanidm: &Kanidm) -> Option<&LabelSelector> {
        kanidm.spec.person_namespace_selector.as_ref()
    }
}

impl Managed for KanidmOAuth2Client {
    const FINALIZER: &'static str = "kanidmoauth2clients.kaniop.rs/finalizer";
    const MANAGER: Option<&'static str> = Some("kaniop-oauth2-client");
    fn selector(kanidm: &Kanidm) -> Option<&LabelSelector> {
        kanidm.spec.oauth2_client_namespace_selector.as_ref()
    }
}

impl Managed for KanidmServiceAccount {
    // Misspelt likewise.
    const FINALIZER: &'static str = "kanidmservicesaccounts.kaniop.rs/finalizer";
    const MANAGER: Option<&'static str> = Some("kaniop-service-account");
    fn selector(kanidm: &Kanidm) -> Option<&LabelSelector> {
        kanidm.spec.service_account_namespace_selector.as_ref()
    }
}

/// The loop of one kind.
pub struct Engine<K: Managed> {
    ctx: Context,
    retry: Retry<ObjectKey>,
    /// What each object's last pass concluded: an object whose conclusion would be the same again is not woken.
    settled: Mutex<HashMap<ObjectKey, Assessment>>,
    store: Store<K>,
    claims: Arc<Claims>,
    places: Places<K>,
    pace: Pace,
    behind: Behind,
    /// Turns of passes that need no server.
    idle: Arc<Semaphore>,
    looks: picture::Looks,
}

/// Runs the loop of one kind until `stop` resolves.
pub async fn run<K: Managed>(ctx: Context, stop: impl Future<Output = ()> + Send + Sync + 'static) {
    let api: Api<K> = match &ctx.options.namespace {
        Some(namespace) => Api::namespaced(ctx.client.clone(), namespace),
        None => Api::all(ctx.client.clone()),
    };
    // Each server has its own queue of passes, so that none waits for another's.
    let config = controller::Config::default().debounce(DEBOUNCE);
    let claims = Arc::new(Claims::default());
    let (store, objects) = watched::objects(api, claims.clone());
    let mut controller = Controller::for_stream(objects, store.clone()).with_config(config).graceful_shutdown_on(stop);
    if let Some(manager) = K::MANAGER {
        controller = controller.watches_stream(watched::secrets(&ctx, manager), |secret| watched::holder::<K>(&secret));
    }
    let wakes = BroadcastStream::new(ctx.targets.subscribe());
    let (engine, back) = Engine::new(ctx, store, claims);
    let engine = Arc::new(engine);
    let woken = futures::stream::select(engine.clone().woken(wakes), UnboundedReceiverStream::new(back));
    controller
        .reconcile_on(woken)
        .run(reconcile, |_, error: &Error, _| after_failure(error), engine)
        .for_each(|ended| async {
            if let Err(controller::Error::QueueError(error)) = ended {
                tracing::warn!(kind = K::KIND, %error, "a watch was interrupted; it begins anew");
            }
        })
        .await;
}

/// Reached only by errors that [`reconcile`] did not turn into a wait of its own: none today.
fn after_failure(error: &Error) -> Action {
    tracing::error!(%error, "a pass failed without a wait");
    Action::requeue(crate::retry::LONGEST)
}

async fn reconcile<K: Managed>(object: Arc<K>, engine: Arc<Engine<K>>) -> Result<Action, Error> {
    let Some(_place) = engine.places.take(&object) else { return Ok(Action::await_change()) };
    let key = key(object.as_ref());
    let span = tracing::info_span!(
        "reconcile",
        kind = K::KIND,
        namespace = key.namespace,
        object = key.name,
        generation = object.meta().generation
    );
    let clock = engine.ctx.clock;
    let began = clock.elapsed();
    let passed = async {
        let _turn = engine.turn(&object).await;
        // It may have changed while it waited.
        let object = engine.store.get(&ObjectRef::from_obj(object.as_ref())).unwrap_or(object);
        let pass = tokio::time::timeout(DEADLINE, Box::pin(engine.pass(object))).await;
        pass.unwrap_or(Err(Error::Deadline(DEADLINE)))
    };
    let passed = passed.instrument(span.clone()).await;
    let outcome = passed.as_ref().map_or_else(Error::label, |_| "ok");
    engine.ctx.metrics.pass(K::KIND, outcome, (clock.elapsed() - began).as_secs_f64());
    match passed {
        Ok(action) => Ok(action),
        Err(error) => {
            let wait = engine.retry.next(key);
            span.in_scope(|| tracing::warn!(%error, wait_s = wait.as_secs_f32(), "the pass failed and is tried again"));
            Ok(Action::requeue(wait))
        }
    }
}

impl<K: Managed> Engine<K> {
    /// The loop, and who comes back to it from being put aside.
    fn new(ctx: Context, store: Store<K>, claims: Arc<Claims>) -> (Self, mpsc::UnboundedReceiver<ObjectRef<K>>) {
        let (places, back) = Places::new(store.clone());
        let (idle, looks) = (Arc::new(Semaphore::new(IDLE_PASSES)), picture::Looks::default());
        let (retry, settled) = (Retry::default(), Mutex::default());
        let (pace, behind) = (Pace::default(), Behind::default());
        (Self { ctx, retry, settled, store, claims, places, pace, behind, idle, looks }, back)
    }

    /// Waits for a turn at the object's server, or among those that have none.
    async fn turn(&self, object: &K) -> Option<OwnedSemaphorePermit> {
        match self.ctx.targets.get(&kanidm_key(object)) {
            Some(target) => target.turn().await,
            None => self.idle.clone().acquire_owned().await.ok(),
        }
    }

    /// The objects for which something changed that they do not watch themselves.
    fn woken(self: Arc<Self>, wakes: BroadcastStream<Wake>) -> impl Stream<Item = ObjectRef<K>> + Send + 'static {
        wakes.flat_map(move |wake| {
            let concerned = |object: &K| match &wake {
                Ok(Wake::Refreshed(kanidm) | Wake::Kanidm(kanidm) | Wake::Created(kanidm)) => {
                    kanidm_key(object) == *kanidm
                }
                Ok(Wake::Namespace(namespace)) => object.namespace().as_ref() == Some(namespace),
                // Too many wakes at once were lost: everybody looks.
                Err(_) => true,
            };
            // While many are created, a plan for each object each time would be most of all work.
            let objects = match &wake {
                Ok(Wake::Created(_)) => self.waiting(),
                _ => self.store.state(),
            };
            let refs: Vec<_> = objects
                .iter()
                .filter(|object| concerned(object) && self.has_work(object))
                .map(|object| ObjectRef::from_obj(object.as_ref()))
                .collect();
            futures::stream::iter(refs)
        })
    }

    /// The objects that refer to something that was not there in their last pass.
    fn waiting(&self) -> Vec<Arc<K>> {
        let settled = self.settled();
        let waiting = settled.iter().filter(|(_, assessed)| assessed.waits()).map(|(key, _)| key.clone());
        let waiting: Vec<_> = waiting.collect();
        drop(settled);
        let refs = waiting.iter().map(|key| ObjectRef::new(&key.name).within(&key.namespace));
        refs.filter_map(|object| self.store.get(&object)).collect()
    }

    fn has_work(&self, object: &K) -> bool {
        if object.meta().deletion_timestamp.is_some() {
            return true;
        }
        let assessed = self.assess(object).0;
        let held_back = matches!(&assessed, Assessment::Planned(plan) if self.held_back(object, plan).is_some());
        self.settled().get(&key(object)).is_none_or(|settled| match settled {
            // Its last pass has set a timer for when it may go on.
            Assessment::Planned(_) if held_back => false,
            settled => !settled.same(&assessed),
        })
    }

    fn settled(&self) -> std::sync::MutexGuard<'_, HashMap<ObjectKey, Assessment>> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Namespace and name of an object.
fn key<K: ResourceExt>(object: &K) -> ObjectKey {
    ObjectKey { namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
}

/// The Kanidm that an object refers to.
fn kanidm_key<K: Managed>(object: &K) -> ObjectKey {
    let reference = object.kanidm_ref();
    ObjectKey {
        namespace: reference.namespace.clone().or_else(|| object.namespace()).unwrap_or_default(),
        name: reference.name.clone(),
    }
}

#[cfg(test)]
mod tests;
