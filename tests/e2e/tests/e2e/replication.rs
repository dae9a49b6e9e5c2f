//! Several nodes on real volumes: one domain, changes in both directions, and no restart without a reason.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use kaniop_e2e::certificate::Authority;
use kaniop_e2e::cluster::Cluster;
use kaniop_e2e::server::Bystander;
use kaniop_e2e::{PATIENCE, condition, eventually, example, setting};
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::person;

const PRIMARY: &str = "idm-main-0";

/// The example, elsewhere and with this many nodes.
fn replicated(space: &str, host: &str, edge: i32) -> Value {
    let mut object = example("examples/replicated").remove(1);
    object["metadata"]["namespace"] = space.into();
    let spec = &mut object["spec"];
    spec["domain"] = host.into();
    spec["image"] = setting("KANIOP_KANIDM_IMAGE").into();
    spec["replicaGroups"][1]["replicas"] = edge.into();
    // The servers look for changes more often than they would by themselves. At one second, Kanidm 1.10 loses each of its own refreshes.
    spec["env"] = json!([{"name": "KANIDM_REPLICATION_TASK_POLL_INTERVAL", "value": "3"}]);
    object
}

async fn begin(cluster: &Cluster, space: &str, host: &str) {
    cluster.namespace(space).await;
    let authority = Authority::default();
    cluster.apply(&authority.secret(space, "idm-tls", host, &authority.pem)).await;
}

/// UIDs of the Kanidm's pods: a restarted one has another.
async fn pods(cluster: &Cluster, space: &str) -> BTreeMap<String, String> {
    let listed = cluster.api("Pod", space).list(&Default::default()).await.unwrap();
    listed.items.into_iter().map(|pod| (pod.metadata.name.unwrap(), pod.metadata.uid.unwrap())).collect()
}

fn serves(pod: &DynamicObject) -> bool {
    let conditions = pod.data["status"]["conditions"].as_array();
    let mut ready = conditions.into_iter().flatten().filter(|condition| condition["type"] == "Ready");
    pod.metadata.deletion_timestamp.is_none() && ready.any(|condition| condition["status"] == "True")
}

/// A value that a node shows, sooner or later.
async fn shows(cluster: &Cluster, (space, host): (&str, &str), pod: &str, person: &str, displayname: &str) {
    let (node, path) = (Bystander::of_node(cluster, space, "idm", host, pod).await, format!("/v1/person/{person}"));
    eventually(&format!("{pod} shows {displayname}"), PATIENCE, || async {
        let seen = node.values(&path, "displayname").await;
        if seen == [displayname] { Ok(()) } else { Err(seen) }
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn nodes_of_two_groups_share_one_domain_and_exchange_changes_in_both_directions() {
    let (cluster, space, host) = (Cluster::connect().await, "e2e-two-groups", "idm.two-groups.test");
    begin(&cluster, space, host).await;
    cluster.apply(&replicated(space, host, 1)).await;
    cluster.apply(&person(space, "alice", "idm", "Alice")).await;
    let ready = cluster.ready("Kanidm", space, "idm").await;
    cluster.ready("KanidmPersonAccount", space, "alice").await;
    let (status, reason, _) = condition(&ready, "ReplicationHealthy").unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "ReplicationUnknown"), "nothing better can be shown");

    shows(&cluster, (space, host), "idm-edge-0", "alice", "Alice").await;
    // What nobody manages may be changed anywhere.
    let edge = Bystander::of_node(&cluster, space, "idm", host, "idm-edge-0").await;
    edge.put("/v1/person/alice", "legalname", &["Alice Edge"]).await;
    let primary = Bystander::of_node(&cluster, space, "idm", host, PRIMARY).await;
    eventually("the primary has it too", PATIENCE, || async {
        let seen = primary.values("/v1/person/alice", "legalname").await;
        if seen == ["Alice Edge"] { Ok(()) } else { Err(seen) }
    })
    .await;

    // A third and a fourth node cost the primary one restart, and the other secondary none; taking them away again too.
    for (edge, nodes) in [(3, 4), (1, 2), (3, 4)] {
        let before = pods(&cluster, space).await;
        cluster.apply(&replicated(space, host, edge)).await;
        cluster.ready("Kanidm", space, "idm").await;
        let after = eventually("as many pods as nodes", PATIENCE, || async {
            let now = pods(&cluster, space).await;
            if now.len() == nodes { Ok(now) } else { Err(now) }
        })
        .await;
        cluster.ready("Kanidm", space, "idm").await;
        assert_eq!(after["idm-edge-0"], before["idm-edge-0"], "to {edge}");
    }
    shows(&cluster, (space, host), "idm-edge-2", "alice", "Alice").await;
    cluster.delete_namespace(space, PATIENCE).await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_change_of_all_servers_restarts_one_after_the_other_and_the_primary_last() {
    let (cluster, space, host) = (Cluster::connect().await, "e2e-rollout", "idm.rollout.test");
    begin(&cluster, space, host).await;
    let mut object = replicated(space, host, 2);
    cluster.apply(&object).await;
    cluster.ready("Kanidm", space, "idm").await;
    let before = pods(&cluster, space).await;
    object["spec"]["logLevel"] = "debug".into();
    cluster.apply(&object).await;

    // As anybody sees it: which pods are other ones than before, and how many do not serve.
    let (order, most_away) = (RefCell::new(Vec::new()), Cell::new(0));
    eventually("every pod is another one", PATIENCE, || async {
        let listed = cluster.api("Pod", space).list(&Default::default()).await.unwrap().items;
        let serving = listed.iter().filter(|pod| serves(pod)).count();
        most_away.set(most_away.get().max(before.len().saturating_sub(serving)));
        let mut order = order.borrow_mut();
        for pod in listed {
            let (name, uid) = (pod.metadata.name.unwrap(), pod.metadata.uid);
            if uid.as_ref() != before.get(&name) && !order.contains(&name) {
                order.push(name);
            }
        }
        if order.len() == before.len() { Ok(()) } else { Err(order.clone()) }
    })
    .await;
    assert_eq!(order.borrow().last().unwrap(), PRIMARY, "{order:?}");
    assert!(most_away.get() <= 1, "{most_away:?} nodes were away at a time");
    cluster.ready("Kanidm", space, "idm").await;
    cluster.delete_namespace(space, PATIENCE).await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn pods_that_are_killed_and_come_back_at_other_addresses_go_on_replicating() {
    let (cluster, space, host) = (Cluster::connect().await, "e2e-killed-pods", "idm.killed-pods.test");
    begin(&cluster, space, host).await;
    cluster.apply(&replicated(space, host, 1)).await;
    cluster.ready("Kanidm", space, "idm").await;
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for round in 0..3 {
        let mut killed = vec![PRIMARY, "idm-edge-0"];
        random.shuffle(&mut killed);
        killed.truncate(random.usize(1..=2));
        let before = pods(&cluster, space).await;
        for pod in &killed {
            cluster.api("Pod", space).delete(pod, &Default::default()).await.unwrap();
        }
        eventually("other pods", PATIENCE, || async {
            let now = pods(&cluster, space).await;
            if killed.iter().all(|pod| now.get(*pod).is_some_and(|uid| *uid != before[*pod])) {
                Ok(())
            } else {
                Err(now)
            }
        })
        .await;
        cluster.ready("Kanidm", space, "idm").await;
        let name = format!("dora-{round}");
        cluster.apply(&person(space, &name, "idm", "Dora")).await;
        shows(&cluster, (space, host), "idm-edge-0", &name, "Dora").await;
    }
    cluster.delete_namespace(space, PATIENCE).await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn an_emptied_primary_beside_a_living_replica_is_blocked_and_the_replica_keeps_its_people() {
    let (cluster, space, host) = (Cluster::connect().await, "e2e-emptied", "idm.emptied.test");
    begin(&cluster, space, host).await;
    cluster.apply(&replicated(space, host, 1)).await;
    cluster.apply(&person(space, "bob", "idm", "Bob")).await;
    cluster.ready("Kanidm", space, "idm").await;
    cluster.ready("KanidmPersonAccount", space, "bob").await;
    shows(&cluster, (space, host), "idm-edge-0", "bob", "Bob").await;

    // The claim goes with its pod, and both come back empty.
    let claims = cluster.api("PersistentVolumeClaim", space);
    let claim = format!("kanidm-data-{PRIMARY}");
    let before = claims.get(&claim).await.unwrap().metadata.uid;
    claims.delete(&claim, &Default::default()).await.unwrap();
    cluster.api("Pod", space).delete(PRIMARY, &Default::default()).await.unwrap();
    eventually("a new claim", PATIENCE, || async {
        let now = claims.get_opt(&claim).await.unwrap().and_then(|claim| claim.metadata.uid);
        if now.is_some() && now != before {
            return Ok(());
        }
        // The pod may have come back before its claim was gone; then it holds it.
        let _ = cluster.api("Pod", space).delete(PRIMARY, &Default::default()).await;
        Err(now)
    })
    .await;
    let (_, message) = cluster.says("Kanidm", space, "idm", "False DomainMismatch").await;
    assert!(message.contains(PRIMARY), "{message}");
    shows(&cluster, (space, host), "idm-edge-0", "bob", "Bob").await;
    let primary = cluster.api("Pod", space).get(PRIMARY).await.unwrap();
    assert_ne!(primary.data["status"]["containerStatuses"][0]["ready"], true, "no client reaches it");
    cluster.delete_namespace(space, PATIENCE).await;
}
