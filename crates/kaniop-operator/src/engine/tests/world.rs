//! Both servers in memory with objects of one kind, and lives of the operator beside them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kaniop_api::Kanidm as KanidmObject;
use kube::runtime::controller::Action;
use kube::runtime::{reflector, watcher};
use serde_json::{Value as Json, json};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::layer::SubscriberExt;

use super::super::{Engine, Managed};
use crate::clock::Clock;
use crate::context::{Context, Options};
use crate::error::Error;
use crate::events::{Events, Publisher};
use crate::leader::Guard;
use crate::metrics::Metrics;
use crate::picture::Rules;
use crate::scenario::Faults;
use crate::scenario::kanidm::{Credentials, Entry, Kanidm, OPERATOR_TOKEN};
use crate::scenario::shelf::Shelf;
use crate::targets::{ObjectKey, Targets};

const NAMESPACES: [&str; 2] = ["default", "tenant"];

pub(super) fn idm() -> ObjectKey {
    ObjectKey { namespace: "default".to_owned(), name: "idm".to_owned() }
}

/// Path of an object of a kind.
pub(super) fn path<K: Managed>(namespace: &str, name: &str) -> String {
    format!("/apis/kaniop.rs/v1beta1/namespaces/{namespace}/{}/{name}", K::plural(&()))
}

fn secret_path(name: &str) -> String {
    format!("/api/v1/namespaces/default/secrets/{name}")
}

/// The servers, with one object that the test is about.
pub(super) struct World<K> {
    pub(super) faults: Arc<Faults>,
    pub(super) shelf: Shelf,
    pub(super) kanidm: Kanidm,
    /// What the spec of the Kanidm has besides the necessary.
    pub(super) kanidm_spec: Json,
    /// Path of the object.
    pub(super) main: String,
    kind: PhantomData<fn() -> K>,
}

/// One life of the operator: everything that it forgets when it dies.
pub(super) struct Life<K: Managed> {
    pub(super) engine: Engine<K>,
    pub(super) targets: Arc<Targets>,
    publisher: tokio::sync::Mutex<Publisher>,
    objects: Mutex<reflector::store::Writer<K>>,
    _writers: (reflector::store::Writer<KanidmObject>, reflector::store::Writer<Namespace>),
}

impl<K: Managed> Life<K> {
    /// A pass, and what it told is published.
    pub(super) async fn pass(&self, object: Arc<K>) -> Result<Action, Error> {
        let passed = self.engine.pass(object).await;
        self.publisher.lock().await.drain().await;
        passed
    }

    /// Whether anything but the objects themselves would bring this one to a pass.
    pub(super) fn would_wake(&self, object: &K) -> bool {
        self.engine.has_work(object)
    }
}

/// How many writes each side has seen: of the object and its Secrets, of entries, tokens issued, tokens revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Writes {
    pub(super) kubernetes: usize,
    pub(super) entries: usize,
    pub(super) credentials: usize,
    pub(super) issued: usize,
    pub(super) revoked: usize,
}

impl<K: Managed> World<K> {
    /// A world with this object.
    pub(super) async fn with(object: Json) -> Self {
        let faults = Arc::new(Faults::none());
        let shelf = Shelf::failing(faults.clone());
        for namespace in NAMESPACES {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            shelf.put(&format!("/api/v1/namespaces/{namespace}"), object);
        }
        let definition =
            json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "crd", "finalizers": ["cleanup"]}});
        shelf.put(&Self::definition(), definition);
        let kanidm = Kanidm::start(faults.clone()).await;
        let operator = "00000007-0000-4000-8000-000000000000";
        kanidm.put(&json!({
            "id": operator, "class": ["account", "service_account"], "name": "kaniop-operator", "spn": "kaniop-operator@example.com",
        }));
        kanidm.put(&json!({
            "id": "00000000-0000-0000-0000-ffff00000034", "class": ["group"], "name": "idm_admins", "spn": "idm_admins@example.com",
            "member": [{"uuid": operator}],
        }));
        let world = Self { faults, shelf, kanidm, kanidm_spec: json!({}), main: String::new(), kind: PhantomData };
        let main = world.put(object);
        Self { main, ..world }
    }

    /// Path of the kind's definition.
    pub(super) fn definition() -> String {
        format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}.kaniop.rs", K::plural(&()))
    }

    /// Somebody creates an object. Returns its path.
    pub(super) fn put(&self, mut object: Json) -> String {
        object["apiVersion"] = json!("kaniop.rs/v1beta1");
        object["kind"] = json!(K::KIND);
        object["metadata"]["generation"] = json!(1);
        let text = |field: &str| object["metadata"][field].as_str().unwrap().to_owned();
        let path = path::<K>(&text("namespace"), &text("name"));
        self.shelf.put(&path, object);
        path
    }

    /// The operator starts with nothing but what both servers hold.
    pub(super) async fn live(&self) -> Life<K> {
        let life = self.begin();
        let mut news = life.targets.subscribe();
        life.targets.set(&idm(), &self.kanidm.connection).unwrap();
        news.recv().await.unwrap();
        life
    }

    /// The operator starts and has not looked at anything yet.
    pub(super) fn begin(&self) -> Life<K> {
        let targets = Arc::new(Targets::new(Duration::from_secs(3600)));
        let (kanidms, mut writer) = reflector::store();
        let mut spec = json!({"domain": "example.com", "replicaGroups": [{"name": "default", "replicas": 1}]});
        spec.as_object_mut().unwrap().extend(self.kanidm_spec.as_object().unwrap().clone());
        let kanidm = json!({"metadata": {"name": "idm", "namespace": "default"}, "spec": spec});
        writer.apply_watcher_event(&watcher::Event::Apply(serde_json::from_value(kanidm).unwrap()));
        let (namespaces, mut namespace_writer) = reflector::store();
        for name in NAMESPACES {
            let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
            namespace_writer.apply_watcher_event(&watcher::Event::Apply(namespace));
        }
        let client = self.shelf.client();
        let clock = Clock::start();
        let guard = Guard::closed(clock);
        // Nobody renews it, and on a busy machine a test may take longer than a lease lasts.
        guard.renewed_at(clock.elapsed() + Duration::from_secs(3600));
        let options = Options {
            image: "kaniop".to_owned(),
            interval: Duration::from_secs(3600),
            namespace: None,
            pictures: Rules::new(Vec::new()).unwrap(),
        };
        let metrics = Metrics::default();
        let (events, publisher) = Events::new(client.clone(), "test".to_owned(), clock, metrics.clone());
        let ctx =
            Context { client, clock, guard, targets: targets.clone(), kanidms, namespaces, events, metrics, options };
        let (store, objects) = reflector::store();
        let engine = Engine::new(ctx, store, Arc::default()).0;
        let (publisher, objects) = (tokio::sync::Mutex::new(publisher), Mutex::new(objects));
        let life = Life { engine, targets, publisher, objects, _writers: (writer, namespace_writer) };
        self.watch(&life);
        life
    }

    /// The objects of the kind, by path.
    fn objects(&self) -> Vec<Arc<K>> {
        let held = self.shelf.held.lock().unwrap();
        let of_kind = held.objects.values().filter(|object| object["kind"] == K::KIND);
        of_kind.map(|object| Arc::new(serde_json::from_value(object.clone()).unwrap())).collect()
    }

    /// The operator's watch catches up.
    pub(super) fn watch(&self, life: &Life<K>) {
        let mut writer = life.objects.lock().unwrap();
        let objects = self.objects().into_iter().map(|object| watcher::Event::InitApply(object.as_ref().clone()));
        for event in [watcher::Event::Init].into_iter().chain(objects).chain([watcher::Event::InitDone]) {
            life.engine.claims.follow(&event);
            writer.apply_watcher_event(&event);
        }
    }

    pub(super) fn object(&self) -> Option<Arc<K>> {
        self.shelf.get(&self.main).map(|object| Arc::new(serde_json::from_value(object).unwrap()))
    }

    /// Status and reason of one of the object's conditions.
    pub(super) fn condition(&self, kind: &str) -> (String, String) {
        self.condition_of(&self.main, kind)
    }

    pub(super) fn condition_of(&self, path: &str, kind: &str) -> (String, String) {
        let object = self.shelf.get(path).unwrap_or_default();
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.iter().find(|condition| condition["type"] == kind).cloned().unwrap_or_default();
        (found["status"].as_str().unwrap_or("-").to_owned(), found["reason"].as_str().unwrap_or("-").to_owned())
    }

    pub(super) fn is_ready(&self) -> bool {
        self.condition("Ready") == ("True".to_owned(), "Ready".to_owned())
    }

    pub(super) fn events(&self) -> Vec<String> {
        self.shelf.held.lock().unwrap().events.clone()
    }

    pub(super) fn writes(&self) -> Writes {
        let kanidm = self.kanidm.held.lock().unwrap();
        let Credentials { issued, revoked, .. } = kanidm.credentials;
        Writes {
            kubernetes: self.shelf.held.lock().unwrap().writes.len(),
            entries: kanidm.created + kanidm.changed,
            credentials: kanidm.credentials.writes() - issued - revoked,
            issued,
            revoked,
        }
    }

    /// Somebody changes the object.
    pub(super) fn edit(&self, change: impl FnOnce(&mut Json)) {
        self.shelf.change(&self.main, change);
    }

    /// Somebody deletes the object.
    pub(super) fn delete(&self) {
        self.shelf.delete(&self.main);
    }

    /// The entries of this name.
    pub(super) fn entries(&self, name: &str) -> Vec<Entry> {
        self.kanidm.held.lock().unwrap().named(name).into_iter().cloned().collect()
    }

    pub(super) fn credentials(&self) -> Credentials {
        self.kanidm.held.lock().unwrap().credentials.clone()
    }

    /// What is in a Secret.
    pub(super) fn secret(&self, name: &str) -> Option<BTreeMap<String, String>> {
        let secret: Secret = serde_json::from_value(self.shelf.get(&secret_path(name))?).unwrap();
        let data = secret.data.unwrap_or_default();
        Some(data.into_iter().map(|(key, value)| (key, String::from_utf8(value.0).unwrap())).collect())
    }

    /// Names of all Secrets.
    pub(super) fn secrets(&self) -> Vec<String> {
        let held = self.shelf.held.lock().unwrap();
        held.objects.keys().filter_map(|path| path.strip_prefix(&secret_path("")).map(str::to_owned)).collect()
    }

    /// Somebody changes a Secret, in a way that nobody keeps books of.
    pub(super) fn change_secret(&self, name: &str, change: impl FnOnce(&mut Json)) {
        self.shelf.change(&secret_path(name), change);
    }

    /// Somebody edits what is under a key of a Secret.
    pub(super) fn edit_secret(&self, name: &str, key: &str, value: &str) {
        self.shelf.edit(&secret_path(name), &format!("/data/{key}"), encoded(value));
    }

    /// Somebody else has a Secret of this name.
    pub(super) fn put_secret(&self, name: &str, key: &str, value: &str) {
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"}, "data": {key: encoded(value)}});
        self.shelf.put(&secret_path(name), object);
    }

    pub(super) fn delete_secret(&self, name: &str) {
        self.shelf.delete(&secret_path(name));
    }

    /// Passes over all objects until one changes nothing in Kubernetes, as watches would bring them about.
    pub(super) async fn settle(&self, life: &Life<K>) {
        for _ in 0..15 {
            let before = self.shelf.held.lock().unwrap().version;
            self.watch(life);
            for object in self.objects() {
                life.pass(object).await.unwrap();
            }
            if self.shelf.held.lock().unwrap().version == before {
                return;
            }
        }
        panic!("the objects do not come to rest");
    }

    /// As [`Self::settle`], until the operator dies. Returns whether it did.
    pub(super) async fn settle_or_die(&self, life: &Life<K>) -> bool {
        tokio::select! {
            () = self.settle(life) => false,
            () = self.faults.death() => true,
        }
    }

    /// Nothing that lets anybody in is in an Event, a status, in the metadata of anything, or in what was logged.
    pub(super) fn keeps_secrets(&self, log: &Log) {
        assert!(log.text().contains("TRACE"), "nobody listened");
        let mut values = self.credentials().told;
        values.push(OPERATOR_TOKEN.to_owned());
        let encoded: Vec<_> = values.iter().map(|value| encoded(value).as_str().unwrap().to_owned()).collect();
        values.extend(encoded);
        let held = self.shelf.held.lock().unwrap();
        let public = held
            .objects
            .values()
            .map(|object| if object["kind"] == "Secret" { object["metadata"].to_string() } else { object.to_string() });
        let texts: Vec<_> = public.chain(held.told.iter().map(Json::to_string)).chain([log.text()]).collect();
        for value in &values {
            let found = texts.iter().find_map(|text| text.find(value.as_str()).map(|at| &text[..at]));
            let before = found.map(|text| text.chars().rev().take(300).collect::<String>());
            let before = before.map(|text| text.chars().rev().collect::<String>());
            assert!(before.is_none(), "a secret is told after {before:?}");
        }
    }
}

/// Text as it is in a Secret.
pub(super) fn encoded(value: &str) -> Json {
    serde_json::to_value(ByteString(value.as_bytes().to_vec())).unwrap()
}

thread_local! {
    static HEARD: RefCell<Option<Log>> = const { RefCell::new(None) };
}

/// What everything on this thread logs, as finely as it can.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<u8>>>);

/// Somebody listens on this thread.
pub(super) struct Listening;

impl Drop for Listening {
    fn drop(&mut self) {
        HEARD.take();
    }
}

impl Log {
    /// From now on, until what is returned is dropped.
    pub(super) fn listen() -> (Self, Listening) {
        // One for all threads: where a subscriber is one thread's own, others may switch off for it what they come by first.
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let writer = || HEARD.with_borrow(Clone::clone).unwrap_or_default();
            let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer);
            let layer = layer.with_filter(dynamic_filter_fn(|_, _| HEARD.with_borrow(Option::is_some)));
            tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer)).unwrap();
        });
        let log = Self::default();
        HEARD.set(Some(log.clone()));
        (log, Listening)
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }

    pub(super) fn clear(&self) {
        self.0.lock().unwrap().clear();
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
