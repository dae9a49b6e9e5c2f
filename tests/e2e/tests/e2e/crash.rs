//! The operator dies.

use std::fs;

use k8s_openapi::api::core::v1::Pod;
use kaniop_e2e::cluster::Cluster;
use kaniop_e2e::{PATIENCE, eventually};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};

use super::{SHARED, person, shared};

const CROWD: usize = 20;

/// Kills the operator's process without warning. Where it does not run on this machine, the pod is deleted without grace, which comes close.
async fn kill(cluster: &Cluster) {
    let pod = cluster.operator().await;
    let uid = pod.uid().unwrap();
    let before = restarts(&pod);
    if let Some(pid) = process_of(&uid) {
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        println!("killed process {} of pod {}", pid.as_raw_nonzero(), pod.name_any());
    } else {
        println!("the operator does not run on this machine: deleting pod {} without grace", pod.name_any());
        let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &pod.namespace().unwrap());
        pods.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await.unwrap();
    }
    eventually("the operator runs again", PATIENCE, || async {
        let now = cluster.operator().await;
        let ready = now
            .status
            .as_ref()
            .and_then(|status| status.container_statuses.as_ref())
            .is_some_and(|all| all.iter().all(|c| c.ready));
        if ready && (restarts(&now) > before || now.uid() != pod.uid()) { Ok(()) } else { Err(restarts(&now)) }
    })
    .await;
}

fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    statuses.into_iter().flatten().map(|container| container.restart_count).sum()
}

/// The process `kaniop` in a control group of this pod.
fn process_of(pod: &str) -> Option<rustix::process::Pid> {
    let names = [pod.to_owned(), pod.replace('-', "_")];
    let ids = fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let ours = |id: &i32| {
        let groups = fs::read_to_string(format!("/proc/{id}/cgroup")).unwrap_or_default();
        let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
        name.trim() == "kaniop" && names.iter().any(|name| groups.contains(name))
    };
    ids.into_iter().find(ours).and_then(rustix::process::Pid::from_raw)
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn an_operator_killed_while_creating_twenty_people_leaves_exactly_twenty_and_resets_nobody() {
    let cluster = Cluster::connect().await;
    let server = shared(&cluster).await;
    let secret = cluster.api("Secret", SHARED).get("kanidm-admin-passwords").await.unwrap();
    let names: Vec<_> = (0..CROWD).map(|number| format!("crowd-{number:02}")).collect();
    for name in &names {
        cluster.apply(&person(SHARED, name, "kanidm", name)).await;
    }
    eventually("the first of them exists", PATIENCE, || async {
        let count = server.names("person").await.iter().filter(|name| name.starts_with("crowd-")).count();
        if count > 0 { Ok(()) } else { Err(count) }
    })
    .await;
    kill(&cluster).await;

    for name in &names {
        cluster.ready("KanidmPersonAccount", SHARED, name).await;
    }
    let mut found: Vec<_> =
        server.names("person").await.into_iter().filter(|name| name.starts_with("crowd-")).collect();
    found.sort();
    assert_eq!(found, names);
    let after = cluster.api("Secret", SHARED).get("kanidm-admin-passwords").await.unwrap();
    assert_eq!(secret.resource_version(), after.resource_version(), "the administrators were reset");

    for name in &names {
        cluster.api("KanidmPersonAccount", SHARED).delete(name, &DeleteParams::default()).await.unwrap();
    }
    eventually("all of them are gone from the server", PATIENCE, || async {
        let count = server.names("person").await.iter().filter(|name| name.starts_with("crowd-")).count();
        if count == 0 { Ok(()) } else { Err(count) }
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_server_that_is_killed_comes_back_with_its_people_and_nobody_is_reset() {
    let cluster = Cluster::connect().await;
    shared(&cluster).await;
    let secret = cluster.api("Secret", SHARED).get("kanidm-admin-passwords").await.unwrap();
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), SHARED);
    let old = pods.get("kanidm-default-0").await.unwrap().uid();
    pods.delete("kanidm-default-0", &DeleteParams::default().grace_period(0)).await.unwrap();
    eventually("another pod is ready", PATIENCE, || async {
        let pod = pods.get_opt("kanidm-default-0").await.unwrap();
        let ready = pod.as_ref().is_some_and(|pod| {
            pod.uid() != old
                && pod
                    .status
                    .as_ref()
                    .and_then(|s| s.container_statuses.as_ref())
                    .is_some_and(|all| all.iter().all(|c| c.ready))
        });
        if ready { Ok(()) } else { Err(pod.and_then(|pod| pod.status.and_then(|status| status.phase))) }
    })
    .await;
    let server = shared(&cluster).await;
    assert_eq!(server.values("/v1/person/ada", "displayname").await, ["Ada Lovelace"]);
    let after = cluster.api("Secret", SHARED).get("kanidm-admin-passwords").await.unwrap();
    assert_eq!(secret.resource_version(), after.resource_version(), "the administrators were reset");
}
