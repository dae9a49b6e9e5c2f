//! The loop of the servers beside an API server in memory, up to the point where it would speak into a pod.

mod backup;
mod bootstrap;
mod certificate;
mod gate;
mod growth;
mod network;
mod reload;
mod replication;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kaniop_api::Kanidm;
use kaniop_core::cluster::gateway::Installed;
use kube::runtime::controller::Action;
use kube::runtime::reflector;
use serde_json::{Value as Json, json};

use super::Clusters;
use crate::clock::Clock;
use crate::context::{Context, Options};
use crate::error::Error;
use crate::events::{Events, Publisher};
use crate::leader::Guard;
use crate::metrics::Metrics;
use crate::picture::Rules;
use crate::retry::Retry;
use crate::scenario::shelf::Shelf;
use crate::targets::Targets;

const KANIDM: &str = "/apis/kaniop.rs/v1beta1/namespaces/default/kanidms/idm";
const STATEFULSET: &str = "/apis/apps/v1/namespaces/default/statefulsets/idm-default";
const POD: &str = "/api/v1/namespaces/default/pods/idm-default-0";

fn service(name: &str) -> String {
    format!("/api/v1/namespaces/default/services/{name}")
}

fn secret(name: &str) -> String {
    format!("/api/v1/namespaces/default/secrets/{name}")
}

/// One life of the operator: everything that it forgets when it dies.
struct Life {
    clusters: Clusters,
    publisher: tokio::sync::Mutex<Publisher>,
    _writers: (reflector::store::Writer<Kanidm>, reflector::store::Writer<Namespace>),
}

impl Life {
    fn begin(client: kube::Client) -> Self {
        let clock = Clock::start();
        let guard = Guard::closed(clock);
        // Nobody renews it, and on a busy machine a test may take longer than a lease lasts.
        guard.renewed_at(clock.elapsed() + Duration::from_secs(3600));
        let ((kanidms, kanidm_writer), (namespaces, namespace_writer)) = (reflector::store(), reflector::store());
        let interval = Duration::from_secs(60);
        let metrics = Metrics::default();
        let (events, publisher) = Events::new(client.clone(), "test".to_owned(), clock, metrics.clone());
        let ctx = Context {
            events,
            targets: Arc::new(Targets::new(interval)),
            options: Options {
                image: "kaniop:1".to_owned(),
                interval,
                namespace: None,
                pictures: Rules::new(Vec::new()).unwrap(),
            },
            metrics,
            client,
            clock,
            guard,
            kanidms,
            namespaces,
        };
        let (retry, logins) = (Retry::default(), Retry::default());
        let (memories, gateway) = (Mutex::default(), Mutex::default());
        let clusters = Clusters { ctx, retry, logins, memories, gateway };
        Self { clusters, publisher: tokio::sync::Mutex::new(publisher), _writers: (kanidm_writer, namespace_writer) }
    }

    /// A pass, and what it told is published.
    async fn pass(&self, kanidm: &Kanidm) -> Result<Action, Error> {
        let passed = Box::pin(self.clusters.pass(kanidm)).await;
        self.publisher.lock().await.drain().await;
        passed
    }
}

struct World {
    shelf: Shelf,
    life: Life,
}

fn put_kanidm(shelf: &Shelf) {
    shelf.put(
        KANIDM,
        json!({
            "apiVersion": "kaniop.rs/v1beta1", "kind": "Kanidm",
            "metadata": {"name": "idm", "namespace": "default", "uid": "owner", "generation": 1},
            "spec": {"domain": "idm.example.com", "replicaGroups": [{"name": "default", "replicas": 1}]},
        }),
    );
}

/// `Ready` as `status reason`, and its message.
fn ready(shelf: &Shelf) -> (String, String) {
    says(shelf, "Ready")
}

/// The same of any condition.
fn says(shelf: &Shelf, kind: &str) -> (String, String) {
    let conditions = shelf.get(KANIDM).unwrap()["status"]["conditions"].clone();
    let ready = conditions.as_array().into_iter().flatten().find(|condition| condition["type"] == kind).cloned();
    let text = |field: &str| ready.as_ref().map_or("-", |ready| ready[field].as_str().unwrap()).to_owned();
    (format!("{} {}", text("status"), text("reason")), text("message"))
}

fn certificate_secret(certificate: &str, key: &str) -> Json {
    let data = |pem: &str| serde_json::to_value(k8s_openapi::ByteString(pem.as_bytes().to_vec())).unwrap();
    json!({"metadata": {"name": "idm-tls"}, "data": {"tls.crt": data(certificate), "tls.key": data(key)}})
}

impl World {
    fn new() -> Self {
        let shelf = Shelf::default();
        put_kanidm(&shelf);
        let life = Life::begin(shelf.client());
        Self { shelf, life }
    }

    /// A world in which the certificate is there, everything is applied, and the StatefulSet's controller has made the pod.
    async fn running() -> Self {
        let world = Self::new();
        world.give_certificate();
        world.pass().await.unwrap();
        world.start_pod(&world.wanted_hash());
        world.pass().await.unwrap();
        world.shelf.writes();
        world
    }

    fn give_certificate(&self) {
        let certified = rcgen::generate_simple_self_signed(["idm.example.com".to_owned()]).unwrap();
        let secret_of = certificate_secret(&certified.cert.pem(), &certified.signing_key.serialize_pem());
        self.shelf.put(&secret("idm-tls"), secret_of);
    }

    fn wanted_hash(&self) -> String {
        let set = self.shelf.get(STATEFULSET).unwrap();
        set["spec"]["template"]["metadata"]["annotations"]["kanidm.kaniop.rs/template-hash"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// The pod exists and is on its way up.
    fn start_pod(&self, hash: &str) {
        let set = self.shelf.get(STATEFULSET).unwrap();
        self.shelf.put(
            POD,
            json!({"metadata": {
                "name": "idm-default-0", "labels": {"kanidm.kaniop.rs/cluster": "idm"},
                "annotations": {"kanidm.kaniop.rs/template-hash": hash},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "idm-default", "controller": true, "uid": set["metadata"]["uid"]}],
            }}),
        );
    }

    async fn pass(&self) -> Result<Action, Error> {
        let kanidm: Kanidm = serde_json::from_value(self.shelf.get(KANIDM).unwrap()).unwrap();
        self.life.pass(&kanidm).await
    }

    fn ready(&self) -> (String, String) {
        ready(&self.shelf)
    }

    fn change(&self, pointer: &str, value: Json) {
        let mut kanidm = self.shelf.get(KANIDM).unwrap();
        *kanidm.pointer_mut(pointer).unwrap() = value;
        self.shelf.put(KANIDM, kanidm);
    }
}

#[tokio::test]
async fn without_a_certificate_everything_but_the_server_is_made_and_it_follows_when_the_certificate_comes() {
    let world = World::new();
    world.pass().await.unwrap();
    assert_eq!(world.ready().0, "False TlsSecretMissing");
    assert!(world.shelf.get(&service("idm")).is_some() && world.shelf.get(STATEFULSET).is_none());
    world.give_certificate();
    world.pass().await.unwrap();
    assert_eq!(world.ready().0, "False PodsNotReady");
    assert!(world.shelf.get(STATEFULSET).is_some());
    assert_eq!(world.shelf.held.lock().unwrap().events, ["TlsSecretMissing"]);
}

#[tokio::test]
async fn at_rest_nothing_is_written() {
    let world = World::running().await;
    for _ in 0..3 {
        world.pass().await.unwrap();
    }
    assert_eq!(world.shelf.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn what_somebody_else_controls_is_never_written_and_ready_names_it() {
    for path in [secret("idm-config"), service("idm-peers"), service("idm"), STATEFULSET.to_owned()] {
        let world = World::new();
        world.give_certificate();
        let name = path.rsplit('/').next().unwrap();
        world.shelf.put(&path, json!({"metadata": {"name": name}, "theirs": true}));
        world.pass().await.unwrap();
        let (verdict, message) = world.ready();
        assert_eq!(verdict, "False NameConflict", "{path}");
        assert!(message.contains(&format!("'{name}' exists and is not controlled by this object")), "{message}");
        assert_eq!(world.shelf.get(&path).unwrap()["theirs"], true);
        assert!(world.shelf.writes().iter().all(|write| *write != format!("PATCH {path}")));
    }
}

#[tokio::test]
async fn what_somebody_edits_in_a_child_is_put_back() {
    for (path, pointer) in [
        (service("idm"), "/spec/type"),
        (service("idm-peers"), "/spec/publishNotReadyAddresses"),
        (STATEFULSET.to_owned(), "/spec/replicas"),
        (STATEFULSET.to_owned(), "/spec/template/spec/terminationGracePeriodSeconds"),
        (secret("idm-config"), "/data/idm-default-0.toml"),
    ] {
        let world = World::running().await;
        let before = world.shelf.get(&path).unwrap();
        world.shelf.edit(&path, pointer, json!(77));
        world.pass().await.unwrap();
        assert_eq!(world.shelf.writes(), [format!("PATCH {path}")]);
        assert_eq!(world.shelf.get(&path).unwrap().pointer(pointer), before.pointer(pointer));
    }
}

#[tokio::test]
async fn a_deleted_child_comes_back() {
    let world = World::running().await;
    world.shelf.held.lock().unwrap().objects.remove(&service("idm"));
    world.pass().await.unwrap();
    assert_eq!(world.shelf.writes(), [format!("PATCH {}", service("idm"))]);
}

#[tokio::test]
async fn of_every_kind_only_what_is_ours_and_not_wanted_is_pruned() {
    let labels = json!({"kanidm.kaniop.rs/cluster": "idm", "app.kubernetes.io/managed-by": "kaniop-kanidm"});
    let owner = json!([{"apiVersion": "kaniop.rs/v1beta1", "kind": "Kanidm", "name": "idm", "uid": "owner", "controller": true}]);
    for kind in
        kaniop_core::cluster::child::prunable(Installed::default().with("v1", &["HTTPRoute", "BackendTLSPolicy"]))
    {
        let path = |name: &str| {
            let root = if kind.group.is_empty() { "api" } else { "apis" };
            format!("/{root}/{}/namespaces/default/{}/{name}", kind.api_version, kind.plural)
        };
        let world = World::running().await;
        network::install_gateway_api(&world.shelf, "v1", &["HTTPRoute", "BackendTLSPolicy"]);
        world.life.clusters.gateway.lock().unwrap().take();
        let mut password_labels = labels.clone();
        password_labels["kaniop.rs/secret-type"] = json!("admin-passwords");
        for (name, labels, owner) in [
            ("left-over", &labels, &owner),
            ("not-controlled", &labels, &json!([])),
            ("not-labelled", &json!({}), &owner),
            ("credentials", &password_labels, &owner),
        ] {
            let metadata = json!({"name": name, "labels": labels, "ownerReferences": owner});
            world.shelf.put(&path(name), json!({"metadata": metadata}));
        }
        world.pass().await.unwrap();
        assert_eq!(world.shelf.writes(), [format!("DELETE {}", path("left-over"))], "{}", kind.kind);
    }
}

#[tokio::test]
async fn a_pod_of_an_older_template_is_restarted_once_the_statefulset_is_observed() {
    let world = World::running().await;
    world.start_pod("older");
    let mut set = world.shelf.get(STATEFULSET).unwrap();
    set["metadata"]["generation"] = json!(2);
    set["status"] = json!({"observedGeneration": 1, "replicas": 1});
    world.shelf.put(STATEFULSET, set.clone());
    world.pass().await.unwrap();
    assert!(world.shelf.writes().iter().all(|write| write.ends_with("/status")), "not before the template is known");
    set["status"]["observedGeneration"] = json!(2);
    world.shelf.put(STATEFULSET, set);
    world.pass().await.unwrap();
    assert!(world.shelf.writes().contains(&format!("DELETE {POD}")));
    assert_eq!(world.shelf.held.lock().unwrap().events.last().unwrap(), "PodRestarted");
}

#[tokio::test]
async fn no_pod_is_restarted_while_its_certificate_is_gone() {
    let world = World::running().await;
    world.start_pod("older");
    world.shelf.held.lock().unwrap().objects.remove(&secret("idm-tls"));
    world.pass().await.unwrap();
    let (verdict, message) = world.ready();
    assert_eq!(verdict, "False TlsSecretMissing");
    assert!(message.contains("goes on, but could not start again"), "{message}");
    assert!(world.shelf.get(POD).is_some() && world.shelf.get(STATEFULSET).is_some());
}

#[tokio::test]
async fn a_wrong_spec_changes_nothing_and_every_error_is_told() {
    let world = World::running().await;
    world.change("/spec/domain", json!("Not A Domain"));
    world.pass().await.unwrap();
    assert_eq!(world.ready().0, "False InvalidSpec");
    assert_eq!(world.shelf.writes(), [format!("PATCH {KANIDM}/status")]);
}

#[tokio::test]
async fn renaming_the_only_group_changes_nothing() {
    let world = World::running().await;
    world.change("/spec/replicaGroups/0/name", json!("other"));
    world.pass().await.unwrap();
    let (verdict, message) = world.ready();
    assert_eq!(verdict, "False InvalidSpec");
    assert!(message.contains("put the group back"), "{message}");
    assert_eq!(world.shelf.writes(), [format!("PATCH {KANIDM}/status")]);
}

#[tokio::test]
async fn while_paused_nothing_but_the_status_is_written() {
    let world = World::running().await;
    let mut kanidm = world.shelf.get(KANIDM).unwrap();
    kanidm["spec"]["paused"] = json!(true);
    kanidm["spec"]["portName"] = json!("web");
    world.shelf.put(KANIDM, kanidm);
    world.pass().await.unwrap();
    assert_eq!(world.ready().0, "False Paused");
    assert_eq!(world.shelf.writes(), [format!("PATCH {KANIDM}/status")]);
}

#[tokio::test]
async fn a_refusal_of_kubernetes_is_shown_and_an_outage_is_retried() {
    let world = World::new();
    world.shelf.held.lock().unwrap().refuse = Some((422, "Invalid"));
    world.pass().await.unwrap();
    let (verdict, message) = world.ready();
    assert_eq!(verdict, "False InvalidSpec");
    assert!(message.contains("Kubernetes refuses Secret 'idm-config': no"), "{message}");
    world.shelf.held.lock().unwrap().refuse = Some((500, "InternalError"));
    assert_eq!(world.pass().await.unwrap_err().class(), kaniop_kanidm::Class::Retry);
}

#[tokio::test]
async fn a_pass_that_fails_leaves_no_ready_behind_keeps_the_rest_and_is_told_once() {
    let world = World::running().await;
    let turned = json!({"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2030-01-01T00:00:00Z", "observedGeneration": 1});
    let conditions = world.shelf.get(KANIDM).unwrap()["status"]["conditions"].clone();
    let index = conditions.as_array().unwrap().iter().position(|condition| condition["type"] == "Ready").unwrap();
    world.change(&format!("/status/conditions/{index}"), turned);
    let before = world.shelf.get(KANIDM).unwrap()["status"].clone();
    world.shelf.held.lock().unwrap().events.clear();
    for _ in 0..3 {
        world.shelf.held.lock().unwrap().broken = true;
        let kanidm: Kanidm = serde_json::from_value(world.shelf.get(KANIDM).unwrap()).unwrap();
        let error = world.pass().await.unwrap_err();
        world.life.clusters.failed(&kanidm, &error).await;
        world.life.publisher.lock().await.drain().await;
    }
    let (verdict, message) = world.ready();
    assert_eq!(verdict, "Unknown ConnectionFailed");
    assert!(message.contains("The last pass failed: Kubernetes"), "{message}");
    let mut after = world.shelf.get(KANIDM).unwrap()["status"].clone();
    after["conditions"][index] = before["conditions"][index].clone();
    assert_eq!(after, before, "all else stays");
    assert_eq!(world.shelf.writes(), [format!("PATCH {KANIDM}/status")]);
    assert_eq!(world.shelf.held.lock().unwrap().events, ["KanidmClientError"]);
}

#[tokio::test]
async fn a_lost_lease_is_no_news_of_the_server() {
    let world = World::running().await;
    let kanidm: Kanidm = serde_json::from_value(world.shelf.get(KANIDM).unwrap()).unwrap();
    world.life.clusters.failed(&kanidm, &Error::NotLeader).await;
    assert_eq!(world.shelf.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn without_the_lease_nothing_is_written() {
    let world = World::new();
    world.life.clusters.ctx.guard.close();
    assert!(matches!(world.pass().await, Err(Error::NotLeader)));
    assert_eq!(world.shelf.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn the_finalizer_of_an_older_release_is_taken_off_at_the_end_and_no_child_is_made_anew() {
    let world = World::new();
    world.change("/metadata/generation", json!(2));
    let mut kanidm = world.shelf.get(KANIDM).unwrap();
    kanidm["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
    kanidm["metadata"]["finalizers"] = json!(["kanidms.kaniop.rs/finalizer", "other/finalizer"]);
    world.shelf.put(KANIDM, kanidm);
    world.pass().await.unwrap();
    assert_eq!(world.shelf.writes(), [format!("PATCH {KANIDM}")]);
    assert_eq!(world.shelf.get(KANIDM).unwrap()["metadata"]["finalizers"], json!(["other/finalizer"]));
}
