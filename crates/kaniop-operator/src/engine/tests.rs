//! The loop of the identities in a world in memory: what it does in which order, and what is left when it dies anywhere.

use std::sync::Arc;
use std::time::Duration;

use kaniop_api::{Kanidm as KanidmObject, KanidmPersonAccount};
use kube::runtime::reflector;
use kube::runtime::watcher;
use serde_json::{Value as Json, json};

use super::{Engine, assess::Assessment, claims::Claims};
use crate::clock::Clock;
use crate::context::{Context, Options};
use crate::events::Events;
use crate::leader::Guard;
use crate::metrics::Metrics;
use crate::picture::Rules;
use crate::scenario::kanidm::Kanidm;
use crate::scenario::kubernetes::Kubernetes;
use crate::scenario::{Faults, Side};
use crate::targets::{Health, ObjectKey, Targets, Unusable};

type Person = KanidmPersonAccount;

struct World {
    faults: Arc<Faults>,
    kubernetes: Kubernetes,
    kanidm: Kanidm,
    selector: Option<Json>,
}

/// One life of the operator: everything that it forgets when it dies.
struct Life {
    engine: Engine<Person>,
    targets: Arc<Targets>,
    _writers: (reflector::store::Writer<KanidmObject>, reflector::store::Writer<k8s_openapi::api::core::v1::Namespace>),
}

fn idm() -> ObjectKey {
    ObjectKey { namespace: "default".to_owned(), name: "idm".to_owned() }
}

fn alice() -> Json {
    json!({
        "apiVersion": "kaniop.rs/v1beta1",
        "kind": "KanidmPersonAccount",
        "metadata": {"name": "alice", "namespace": "default", "uid": "u1", "generation": 1, "resourceVersion": "1", "finalizers": []},
        "spec": {"kanidmRef": {"name": "idm"}, "personAttributes": {"displayname": "Alice", "mail": ["alice@example.com"]}, "credentialReset": {"delivery": "None"}},
    })
}

impl World {
    async fn with(object: Json) -> Self {
        let faults = Arc::new(Faults::none());
        let kubernetes = Kubernetes::holding(object, faults.clone());
        let kanidm = Kanidm::start(faults.clone()).await;
        Self { faults, kubernetes, kanidm, selector: None }
    }

    /// The operator starts with nothing but what both servers hold.
    async fn live(&self) -> Life {
        let targets = Arc::new(Targets::new(Duration::from_secs(3600)));
        let mut news = targets.subscribe();
        targets.set(&idm(), &self.kanidm.connection).unwrap();
        news.recv().await.unwrap();
        let (kanidms, mut writer) = reflector::store();
        let kanidm = json!({
            "metadata": {"name": "idm", "namespace": "default"},
            "spec": {
                "domain": "example.com",
                "replicaGroups": [{"name": "default", "replicas": 1}],
                "personNamespaceSelector": self.selector,
            },
        });
        writer.apply_watcher_event(&watcher::Event::Apply(serde_json::from_value(kanidm).unwrap()));
        let (namespaces, namespace_writer) = reflector::store();
        let client = self.kubernetes.client();
        let clock = Clock::start();
        let guard = Guard::closed(clock);
        guard.renewed_at(clock.elapsed());
        let options = Options {
            image: "kaniop".to_owned(),
            interval: Duration::from_secs(3600),
            namespace: None,
            pictures: Rules::new(Vec::new()).unwrap(),
        };
        let events = Events::new(client.clone(), "test".to_owned());
        let metrics = Metrics::default();
        let ctx =
            Context { client, clock, guard, targets: targets.clone(), kanidms, namespaces, events, metrics, options };
        let (store, _) = reflector::store();
        let engine = Engine::new(ctx, store);
        Life { engine, targets, _writers: (writer, namespace_writer) }
    }

    fn object(&self) -> Option<Arc<Person>> {
        let object = self.kubernetes.held.lock().unwrap().object.clone();
        (!object.is_null()).then(|| Arc::new(serde_json::from_value(object).unwrap()))
    }

    fn condition(&self, kind: &str) -> (String, String) {
        let object = self.kubernetes.held.lock().unwrap().object.clone();
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.iter().find(|condition| condition["type"] == kind).cloned().unwrap_or_default();
        (found["status"].as_str().unwrap_or("-").to_owned(), found["reason"].as_str().unwrap_or("-").to_owned())
    }

    fn events(&self) -> Vec<String> {
        self.kubernetes.held.lock().unwrap().events.clone()
    }

    fn writes(&self) -> (usize, usize) {
        let kanidm = self.kanidm.held.lock().unwrap();
        (self.kubernetes.held.lock().unwrap().writes, kanidm.created + kanidm.changed)
    }

    fn edit(&self, change: impl FnOnce(&mut Json)) {
        change(&mut self.kubernetes.held.lock().unwrap().object);
    }

    /// Passes over the object until one changes nothing in Kubernetes, as a watch would bring them about.
    async fn settle(&self, life: &Life) {
        for _ in 0..10 {
            let Some(object) = self.object() else { return };
            let before = object.metadata.resource_version.clone();
            life.engine.pass(object).await.unwrap();
            if self.object().is_none_or(|object| object.metadata.resource_version == before) {
                return;
            }
        }
        panic!("the object does not come to rest");
    }

    /// As [`Self::settle`], until the operator dies. Returns whether it did.
    async fn settle_or_die(&self, life: &Life) -> bool {
        tokio::select! {
            () = self.settle(life) => false,
            () = self.faults.death() => true,
        }
    }
}

#[tokio::test]
async fn a_person_is_created_with_one_request_and_is_ready_by_what_the_server_answered() {
    let world = World::with(alice()).await;
    let life = world.live().await;
    world.settle(&life).await;
    assert_eq!(world.condition("Ready"), ("True".to_owned(), "Ready".to_owned()));
    assert_eq!(world.events(), ["EntryCreated"]);
    let kanidm = world.kanidm.held.lock().unwrap();
    let entry = kanidm.entries.values().next().unwrap();
    assert_eq!((entry["displayname"].as_str(), kanidm.created, kanidm.changed), (Some("Alice"), 1, 0));
    let pinned = world.object().unwrap().status.clone().unwrap().uuid;
    assert_eq!(pinned.as_deref(), entry["id"].as_str());
}

#[tokio::test]
async fn at_rest_nothing_is_written_on_either_side_and_nobody_is_woken() {
    let world = World::with(alice()).await;
    let life = world.live().await;
    world.settle(&life).await;
    let before = (world.writes(), world.events().len());
    for _ in 0..3 {
        life.engine.pass(world.object().unwrap()).await.unwrap();
        assert!(!life.engine.has_work(&world.object().unwrap(), &Claims::default()));
    }
    assert_eq!((world.writes(), world.events().len()), before);
}

#[tokio::test]
async fn wherever_the_operator_dies_there_is_one_entry_in_the_end_and_the_object_is_ready() {
    for side in [Side::Before, Side::After] {
        let mut deaths = 0;
        for nth in 1.. {
            let world = World::with(alice()).await;
            let life = world.live().await;
            world.faults.arm(nth, side);
            let died = world.settle_or_die(&life).await;
            world.faults.disarm();
            drop(life);
            let life = world.live().await;
            world.settle(&life).await;
            assert_eq!(world.condition("Ready").0, "True", "died {side:?} call {nth}");
            let (entries, created) = {
                let kanidm = world.kanidm.held.lock().unwrap();
                (kanidm.entries.len(), kanidm.created)
            };
            assert_eq!((entries, created), (1, 1), "died {side:?} call {nth}");
            if !died {
                break;
            }
            deaths += 1;
        }
        // Finalizer, creation, event, status.
        assert_eq!(deaths, 4, "{side:?}");
    }
}

#[tokio::test]
async fn wherever_the_operator_dies_a_deletion_ends_with_entry_and_object_gone() {
    for side in [Side::Before, Side::After] {
        let mut deaths = 0;
        for nth in 1.. {
            let world = World::with(alice()).await;
            let life = world.live().await;
            world.settle(&life).await;
            world.edit(|object| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
            world.faults.arm(nth, side);
            let died = world.settle_or_die(&life).await;
            world.faults.disarm();
            drop(life);
            let life = world.live().await;
            world.settle(&life).await;
            assert!(world.object().is_none(), "died {side:?} call {nth}: the object is still there");
            assert!(
                world.kanidm.held.lock().unwrap().entries.is_empty(),
                "died {side:?} call {nth}: the entry is still there"
            );
            if !died {
                break;
            }
            deaths += 1;
        }
        // Definition, deletion, event, finalizer.
        assert_eq!(deaths, 4, "{side:?}");
    }
}

#[tokio::test]
async fn a_value_changed_behind_our_back_is_set_again_with_one_event() {
    let world = World::with(alice()).await;
    let life = world.live().await;
    world.settle(&life).await;
    for entry in world.kanidm.held.lock().unwrap().entries.values_mut() {
        entry.insert("displayname".to_owned(), json!("Mallory"));
    }
    drop(life);
    let life = world.live().await;
    assert!(life.engine.has_work(&world.object().unwrap(), &Claims::default()));
    world.settle(&life).await;
    assert_eq!(world.events(), ["EntryCreated", "DriftRepaired"]);
    assert_eq!(world.kanidm.held.lock().unwrap().entries.values().next().unwrap()["displayname"], "Alice");
}

#[tokio::test]
async fn an_object_created_again_after_its_entry_was_deleted_gets_the_next_uuid() {
    let world = World::with(alice()).await;
    let life = world.live().await;
    world.settle(&life).await;
    world.edit(|object| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    world.settle(&life).await;
    assert!(world.object().is_none());
    world.edit(|object| *object = alice());
    world.settle(&life).await;
    assert_eq!(world.condition("Ready").0, "True");
    assert_eq!(world.kanidm.held.lock().unwrap().entries.len(), 1);
}

#[tokio::test]
async fn an_entry_of_somebody_else_is_left_alone_and_the_object_says_so_without_a_finalizer() {
    let world = World::with(alice()).await;
    let theirs = json!({"id": "11111111-1111-4111-8111-111111111111", "class": ["person"], "name": "alice", "spn": "alice@example.com", "displayname": "By hand"});
    let theirs = theirs.as_object().unwrap().clone();
    world.kanidm.held.lock().unwrap().entries.insert("11111111-1111-4111-8111-111111111111".to_owned(), theirs.clone());
    let life = world.live().await;
    world.settle(&life).await;
    assert_eq!(world.condition("Ready"), ("False".to_owned(), "EntryExists".to_owned()));
    assert_eq!(world.kanidm.held.lock().unwrap().entries.values().next(), Some(&theirs));
    assert!(world.object().unwrap().metadata.finalizers.as_ref().is_none_or(Vec::is_empty));
    assert_eq!(world.events(), ["EntryExists"]);
}

#[tokio::test]
async fn another_namespace_needs_the_selector_and_then_touches_nothing() {
    let mut object = alice();
    object["metadata"]["namespace"] = json!("tenant");
    object["spec"]["kanidmRef"]["namespace"] = json!("default");
    let world = World::with(object).await;
    let life = world.live().await;
    world.settle(&life).await;
    assert_eq!(world.condition("Ready"), ("False".to_owned(), "NamespaceNotSelected".to_owned()));
    assert_eq!((world.events(), world.writes().1), (vec!["ResourceNotWatched".to_owned()], 0));
}

#[tokio::test]
async fn a_refused_value_is_said_with_the_field_and_is_not_sent_again_at_once() {
    let world = World::with(alice()).await;
    let life = world.live().await;
    let refusal = json!({"invalidattribute": "mail"});
    world.kanidm.held.lock().unwrap().refuse = Some((400, refusal));
    world.settle(&life).await;
    assert_eq!(world.condition("Ready"), ("False".to_owned(), "InvalidValue".to_owned()));
    assert_eq!(world.events(), ["KanidmClientError"]);
    assert!(
        !life.engine.has_work(&world.object().unwrap(), &Claims::default()),
        "a refresh must not wake it while nothing changed"
    );
}

#[tokio::test]
async fn a_server_that_refuses_the_token_is_not_asked_by_anybody_else() {
    let world = World::with(alice()).await;
    let life = world.live().await;
    world.kanidm.held.lock().unwrap().refuse = Some((401, json!("notauthenticated")));
    world.settle(&life).await;
    let mut news = life.targets.subscribe();
    while !matches!(life.targets.health(&idm()), Health::Fails(_)) {
        tokio::time::timeout(Duration::from_secs(10), news.recv()).await.unwrap().unwrap();
    }
    assert!(matches!(life.targets.get(&idm()).unwrap().snapshot(), Err(Unusable::Fails(_))));
    let calls = world.faults.calls();
    let (assessed, usable) = life.engine.assess(&world.object().unwrap(), &Claims::default());
    assert!(matches!(assessed, Assessment::Unknown(_)) && usable.is_none());
    world.settle(&life).await;
    assert_eq!(world.condition("Ready").0, "Unknown");
    assert_eq!(world.kanidm.held.lock().unwrap().created, 0);
    assert!(world.faults.calls() <= calls + 3, "only the status and its event are written");
}

#[tokio::test]
async fn a_deletion_that_the_server_refuses_is_said_and_goes_on_when_it_does_not() {
    let world = World::with(alice()).await;
    let life = world.live().await;
    world.settle(&life).await;
    world.edit(|object| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    world.kanidm.held.lock().unwrap().refuse = Some((403, json!("accessdenied")));
    world.settle(&life).await;
    assert_eq!(world.condition("Ready"), ("Unknown".to_owned(), "Deleting".to_owned()));
    assert_eq!(world.events(), ["EntryCreated", "Deleting"]);
    world.kanidm.held.lock().unwrap().refuse = None;
    world.settle(&life).await;
    assert!(world.object().is_none() && world.kanidm.held.lock().unwrap().entries.is_empty());
}

#[tokio::test]
async fn a_person_whose_creation_was_answered_to_nobody_does_not_outlive_the_object() {
    let world = World::with(alice()).await;
    let life = world.live().await;
    // Made behind the snapshot's back, as by a request whose answer was lost.
    let other = world.live().await;
    world.settle(&other).await;
    world.edit(|object| {
        object["status"] = Json::Null;
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    });
    world.settle(&life).await;
    assert!(world.object().is_none() && world.kanidm.held.lock().unwrap().entries.is_empty());
}

#[tokio::test]
async fn the_entry_of_an_object_from_an_older_release_is_taken_over_by_its_status() {
    let mut object = alice();
    object["status"] = json!({"conditions": [{
        "type": "Exists", "status": "True", "reason": "Exists", "message": "", "lastTransitionTime": "2025-01-01T00:00:00Z",
    }]});
    let world = World::with(object).await;
    let id = "11111111-1111-4111-8111-111111111111";
    let entry =
        json!({"id": id, "class": ["person"], "name": "alice", "spn": "alice@example.com", "displayname": "Old"});
    world.kanidm.held.lock().unwrap().entries.insert(id.to_owned(), entry.as_object().unwrap().clone());
    let life = world.live().await;
    world.settle(&life).await;
    assert_eq!(world.condition("Ready").0, "True");
    assert_eq!(world.object().unwrap().status.clone().unwrap().uuid.as_deref(), Some(id));
    assert_eq!(world.kanidm.held.lock().unwrap().created, 0);
}

#[tokio::test]
async fn nothing_is_sent_when_the_lease_is_in_doubt() {
    let world = World::with(alice()).await;
    let life = world.live().await;
    life.engine.ctx.guard.close();
    assert!(matches!(life.engine.pass(world.object().unwrap()).await, Err(crate::error::Error::NotLeader)));
    assert_eq!(world.writes(), (0, 0));
}

#[tokio::test]
async fn a_definition_that_is_being_removed_deletes_no_people() {
    let world = World::with(alice()).await;
    let life = world.live().await;
    world.settle(&life).await;
    world.kubernetes.held.lock().unwrap().definition_going = true;
    world.edit(|object| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    world.settle(&life).await;
    assert!(world.object().is_none());
    assert_eq!(world.kanidm.held.lock().unwrap().entries.len(), 1);
    assert_eq!(world.events().last().map(String::as_str), Some("EntryLeftBehind"));
}
