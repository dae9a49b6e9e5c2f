//! Several nodes: how they come to one domain, how they come and go, and what is never done to them.

use std::collections::BTreeMap;

use futures::StreamExt;

use super::*;
use crate::scenario::fleet::{Fleet, certificate, pod_path};
use crate::scenario::node::Node;
use crate::scenario::{Faults, Side};
use crate::targets::ObjectKey;

const PRIMARY: &str = "idm-main-0";

struct Scene {
    shelf: Shelf,
    fleet: Fleet,
    faults: Arc<Faults>,
}

fn idm() -> ObjectKey {
    ObjectKey { namespace: "default".to_owned(), name: "idm".to_owned() }
}

fn groups(main: i32, edge: Option<i32>) -> Json {
    let mut groups = vec![json!({"name": "main", "replicas": main, "primaryNode": true})];
    groups.extend(edge.map(|replicas| json!({"name": "edge", "replicas": replicas})));
    json!(groups)
}

impl Scene {
    async fn of(groups: Json) -> Self {
        let faults = Arc::new(Faults::none());
        let node = Node::start(faults.clone()).await;
        let fleet = Fleet::new(node, PRIMARY);
        let scene = Self { shelf: Shelf::before(fleet.clone(), faults.clone()), fleet, faults };
        put_kanidm(&scene.shelf);
        let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
        scene.shelf.change(KANIDM, |kanidm| {
            kanidm["spec"]["storage"] = json!({"volumeClaimTemplate": claim});
            kanidm["spec"]["replicaGroups"] = groups;
        });
        let (certificate, key) = &scene.fleet.node.certificate;
        scene.shelf.put(&secret("idm-tls"), certificate_secret(certificate, key));
        scene
    }

    /// A cluster that is at rest, and the life that brought it there.
    async fn at_rest(groups: Json) -> (Self, Life) {
        let scene = Self::of(groups).await;
        let life = scene.begin().await;
        scene.until_ready(&life).await;
        scene.shelf.writes();
        scene.shelf.held.lock().unwrap().events.clear();
        (scene, life)
    }

    async fn begin(&self) -> Life {
        Life::begin(self.shelf.connected_client().await)
    }

    fn set_groups(&self, groups: Json) {
        self.shelf.change(KANIDM, |kanidm| kanidm["spec"]["replicaGroups"] = groups);
    }

    /// One pass, then Kubernetes and the servers.
    async fn step(&self, life: &Life) {
        let kanidm: Kanidm = serde_json::from_value(self.shelf.get(KANIDM).unwrap()).unwrap();
        Box::pin(life.clusters.pass(&kanidm)).await.unwrap();
        self.fleet.turn(&self.shelf);
    }

    /// Until it is Ready and three passes change nothing.
    async fn until_ready(&self, life: &Life) {
        let mut news = life.clusters.ctx.targets.subscribe();
        let mut quiet = 0;
        for _ in 0..300 {
            let before = self.shelf.held.lock().unwrap().version;
            self.step(life).await;
            let unchanged = before == self.shelf.held.lock().unwrap().version;
            quiet = if unchanged && ready(&self.shelf).0 == "True Ready" { quiet + 1 } else { 0 };
            if quiet == 3 {
                return;
            }
            let _ = tokio::time::timeout(Duration::from_millis(20), news.recv()).await;
        }
        panic!("it does not become Ready: {:?}, {:?}", ready(&self.shelf), self.fleet.starts());
    }

    fn domains(&self) -> BTreeMap<String, Uuid> {
        let members = self.fleet.members.lock().unwrap();
        let domain =
            |pod: &str| if pod == PRIMARY { self.fleet.node.held.lock().unwrap().domain } else { members[pod].domain };
        let running = members.keys().filter(|pod| self.shelf.get(&pod_path(pod)).is_some());
        running.map(|pod| (pod.clone(), domain(pod))).collect()
    }

    fn is_one_domain(&self, nodes: usize) {
        let domains = self.domains();
        assert_eq!(domains.len(), nodes, "{domains:?}");
        assert!(domains.values().all(|domain| *domain == domains[PRIMARY]), "{domains:?}");
    }

    fn starts(&self, pod: &str) -> usize {
        self.fleet.starts()[pod]
    }

    fn resets(&self) -> usize {
        self.fleet.node.held.lock().unwrap().resets
    }

    fn condition(&self, kind: &str) -> (String, String) {
        let conditions = self.shelf.get(KANIDM).unwrap()["status"]["conditions"].clone();
        let found = conditions.as_array().unwrap().iter().find(|condition| condition["type"] == kind).cloned();
        let text = |field: &str| found.as_ref().map_or("-", |found| found[field].as_str().unwrap()).to_owned();
        (format!("{} {}", text("status"), text("reason")), text("message"))
    }

    fn events(&self) -> Vec<String> {
        std::mem::take(&mut self.shelf.held.lock().unwrap().events)
    }
}

use uuid::Uuid;

#[tokio::test]
async fn fresh_nodes_come_to_one_domain_with_one_restart_of_the_primary_and_none_of_the_others() {
    for (main, edge, nodes) in [(2, None, 2), (1, Some(1), 2), (1, Some(2), 3), (3, None, 3)] {
        let (scene, _life) = Scene::at_rest(groups(main, edge)).await;
        scene.is_one_domain(nodes);
        let starts = scene.fleet.starts();
        assert!(starts.iter().all(|(pod, starts)| *starts == if pod == PRIMARY { 2 } else { 1 }), "{starts:?}");
        assert_eq!(scene.resets(), 1);
        assert_eq!(
            scene.condition("ReplicationHealthy").0,
            "Unknown ReplicationUnknown",
            "nothing better can be shown"
        );
    }
}

#[tokio::test]
async fn at_rest_several_nodes_cost_no_write() {
    let (scene, life) = Scene::at_rest(groups(1, Some(1))).await;
    for _ in 0..3 {
        scene.step(&life).await;
    }
    let next = scene.begin().await;
    scene.until_ready(&next).await;
    assert_eq!(scene.shelf.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_node_serves_nobody_before_it_holds_the_domain() {
    let (scene, life) = Scene::at_rest(groups(1, None)).await;
    scene.set_groups(groups(1, Some(1)));
    for _ in 0..3 {
        scene.step(&life).await;
        let Some(pod) = scene.shelf.get(&pod_path("idm-edge-0")) else { continue };
        let holds = scene.domains()["idm-edge-0"] == scene.domains()[PRIMARY];
        assert!(holds || pod["status"]["conditions"][0]["status"] != "True");
    }
    scene.until_ready(&life).await;
    scene.is_one_domain(2);
}

#[tokio::test]
async fn growing_and_shrinking_restarts_the_primary_once_each_time_and_no_other_node() {
    let (scene, life) = Scene::at_rest(groups(1, Some(1))).await;
    let before = scene.starts(PRIMARY);
    for (change, (edge, nodes)) in [(3, 4), (1, 2), (3, 4)].into_iter().enumerate() {
        scene.set_groups(groups(1, Some(edge)));
        scene.until_ready(&life).await;
        scene.is_one_domain(nodes);
        assert_eq!((scene.starts(PRIMARY), scene.starts("idm-edge-0")), (before + change + 1, 1), "to {edge}");
    }
    assert_eq!(scene.events().iter().filter(|event| *event == "NodeRemoved").count(), 1);
    assert_eq!(scene.resets(), 1);
}

#[tokio::test]
async fn a_node_is_not_taken_away_while_the_primary_does_not_serve() {
    let (scene, life) = Scene::at_rest(groups(1, Some(2))).await;
    scene.shelf.change(&pod_path(PRIMARY), |pod| pod["status"]["conditions"][0]["status"] = json!("False"));
    scene.set_groups(groups(1, Some(1)));
    let kanidm: Kanidm = serde_json::from_value(scene.shelf.get(KANIDM).unwrap()).unwrap();
    Box::pin(life.clusters.pass(&kanidm)).await.unwrap();
    let edge = scene.shelf.get("/apis/apps/v1/namespaces/default/statefulsets/idm-edge").unwrap();
    assert_eq!(edge["spec"]["replicas"], 2);
    scene.until_ready(&life).await;
    scene.is_one_domain(2);
}

#[tokio::test]
async fn the_nodes_of_a_group_that_is_gone_go_and_then_its_statefulset() {
    let (scene, life) = Scene::at_rest(groups(1, Some(2))).await;
    scene.set_groups(groups(1, None));
    scene.until_ready(&life).await;
    scene.is_one_domain(1);
    assert!(scene.shelf.get("/apis/apps/v1/namespaces/default/statefulsets/idm-edge").is_none());
    assert!(scene.shelf.get(&secret("idm-edge-0-cert")).is_none());
    assert!(scene.events().contains(&"NodeRemoved".to_owned()));
}

#[tokio::test]
async fn the_primary_cannot_move_and_nothing_is_changed_by_the_wish() {
    let (scene, life) = Scene::at_rest(groups(1, Some(1))).await;
    let wishes = [
        json!([{"name": "main", "replicas": 1}, {"name": "edge", "replicas": 1, "primaryNode": true}]),
        json!([{"name": "edge", "replicas": 1}]),
    ];
    for wish in wishes {
        scene.set_groups(wish);
        scene.step(&life).await;
        let (verdict, message) = ready(&scene.shelf);
        assert_eq!(verdict, "False InvalidSpec");
        assert!(message.contains("the primary is 'idm-main-0'") && message.contains("Put primaryNode"), "{message}");
        scene.is_one_domain(2);
    }
    assert!(scene.shelf.writes().iter().all(|write| write.ends_with("/status")));
}

#[tokio::test]
async fn an_emptied_primary_beside_a_living_replica_is_blocked_and_the_replica_keeps_its_data() {
    let (scene, life) = Scene::at_rest(groups(1, Some(1))).await;
    let domain = scene.domains()[PRIMARY];
    let config = scene.shelf.get(&secret("idm-config")).unwrap()["data"].clone();
    scene.fleet.wipe(&scene.shelf, PRIMARY);
    scene.fleet.turn(&scene.shelf);
    for _ in 0..5 {
        scene.step(&life).await;
    }
    let (verdict, message) = ready(&scene.shelf);
    assert_eq!(verdict, "False DomainMismatch", "{message}");
    assert_eq!(scene.domains()["idm-edge-0"], domain);
    assert_eq!(scene.shelf.get(&secret("idm-config")).unwrap()["data"], config, "nothing was offered to the peers");
    let pod = scene.shelf.get(&pod_path(PRIMARY)).unwrap();
    assert_eq!(pod["status"]["conditions"][0]["status"], "False", "no client reaches it");
    assert_eq!((scene.resets(), scene.starts("idm-edge-0")), (1, 1));
    assert!(life.clusters.ctx.targets.get(&idm()).is_none());
}

#[tokio::test]
async fn a_secondary_that_came_back_empty_joins_again_by_its_new_certificate() {
    let (scene, life) = Scene::at_rest(groups(1, Some(2))).await;
    let primary = scene.starts(PRIMARY);
    scene.fleet.wipe(&scene.shelf, "idm-edge-1");
    scene.fleet.turn(&scene.shelf);
    scene.until_ready(&life).await;
    scene.is_one_domain(3);
    assert_eq!((scene.starts(PRIMARY), scene.starts("idm-edge-0")), (primary + 1, 1));
}

#[tokio::test]
async fn certificates_that_end_are_renewed_on_all_nodes_with_one_restart_of_each() {
    let (scene, life) = Scene::at_rest(groups(1, Some(2))).await;
    // Passes after a restart read what the nodes show now.
    for (pod, member) in scene.fleet.members.lock().unwrap().iter_mut() {
        member.certificate = certificate(&format!("{pod}.idm-peers.default.svc"), 2026);
    }
    let before = scene.fleet.starts();
    let next = scene.begin().await;
    drop(life);
    scene.until_ready(&next).await;
    scene.is_one_domain(3);
    for (pod, starts) in scene.fleet.starts() {
        assert!(starts <= before[&pod] + 2, "{pod}: {starts} after {}", before[&pod]);
        assert_eq!(scene.fleet.members.lock().unwrap()[&pod].certificate, stored(&scene.shelf, &pod), "{pod}");
    }
    assert_eq!(scene.condition("ReplicationHealthy").0, "Unknown ReplicationUnknown");
}

fn stored(shelf: &Shelf, pod: &str) -> String {
    let secret: k8s_openapi::api::core::v1::Secret =
        serde_json::from_value(shelf.get(&secret(&format!("{pod}-cert"))).unwrap()).unwrap();
    String::from_utf8(secret.data.unwrap()["tls.der.b64url"].0.clone()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_each_of_the_first_calls_two_nodes_still_come_to_one_domain_with_one_reset() {
    let lives = (1..=60).flat_map(|nth| [(nth, Side::Before), (nth, Side::After)]);
    let killed: Vec<_> =
        futures::stream::iter(lives).map(|(nth, side)| killed_at(nth, side)).buffer_unordered(8).collect().await;
    assert!(killed.iter().filter(|killed| **killed).count() > 100, "the first life was over before");
}

/// Whether the first life ended there.
async fn killed_at(nth: usize, side: Side) -> bool {
    let scene = Scene::of(groups(1, Some(1))).await;
    let life = scene.begin().await;
    scene.faults.arm(nth, side);
    let killed = tokio::select! {
        () = scene.until_ready(&life) => false,
        () = scene.faults.death() => true,
    };
    life.clusters.ctx.targets.remove(&idm());
    scene.faults.disarm();
    let resets = scene.resets();
    let lost = resets > 0 && scene.shelf.get(&secret("idm-admin-passwords")).is_none();
    scene.until_ready(&scene.begin().await).await;
    scene.is_one_domain(2);
    assert_eq!(scene.resets() - resets, usize::from(lost || resets == 0), "killed {side:?} call {nth}");
    assert_eq!((scene.starts("idm-edge-0"), scene.starts(PRIMARY)), (1, 2), "killed {side:?} call {nth}");
    killed
}
