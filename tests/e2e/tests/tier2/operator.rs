//! The operator as a process beside the API server: election, children, status. Nothing makes pods here.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use kaniop_e2e::certificate::Authority;
use kaniop_e2e::cluster::Cluster;
use kaniop_e2e::{eventually, setting};
use kube::ResourceExt;

use super::{SOON, cluster, minimal, space, stands_still};

/// A running operator that watches one namespace; killed when it is dropped.
pub(super) struct Operator {
    child: Child,
    name: String,
}

impl Operator {
    pub(super) fn start(space: &str, name: &str) -> Self {
        let log = PathBuf::from(setting("KANIOP_LOGS")).join(format!("{name}.log"));
        let log = File::create(&log).unwrap();
        let child = Command::new(setting("KANIOP_BINARY"))
            .args([
                "run",
                "--identity",
                name,
                "--namespace",
                space,
                "--watch-namespace",
                space,
                "--image",
                "localhost/kaniop:dev",
            ])
            .args(["--interval", "2", "--listen", "127.0.0.1:0", "--log", "info,kaniop_operator=debug"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { child, name: name.to_owned() }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn leads(cluster: &Cluster, space: &str, who: &str) {
    let leases = cluster.api("Lease", space);
    eventually(&format!("{who} leads"), SOON, || async {
        let all = leases.list(&Default::default()).await.unwrap();
        let holders: Vec<_> = all
            .iter()
            .map(|lease| lease.data["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned())
            .collect();
        if holders == [who] { Ok(()) } else { Err(holders) }
    })
    .await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test"]
async fn of_two_operators_one_leads_and_the_other_takes_over_when_it_is_killed() {
    let cluster = cluster().await;
    let space = space(&cluster, "t2-election").await;
    let mut first = Operator::start(&space, "election-first");
    leads(&cluster, &space, &first.name).await;
    let mut second = Operator::start(&space, "election-second");
    first.kill();
    leads(&cluster, &space, &second.name).await;
    assert!(second.child.try_wait().unwrap().is_none(), "the second operator runs");
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test"]
async fn an_operator_that_is_asked_to_stop_gives_its_lease_back_and_ends_well() {
    let cluster = cluster().await;
    let space = space(&cluster, "t2-stop").await;
    let mut operator = Operator::start(&space, "stop-only");
    leads(&cluster, &space, &operator.name).await;
    let pid = rustix::process::Pid::from_raw(i32::try_from(operator.child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    eventually("it has ended", SOON, || std::future::ready(operator.child.try_wait().unwrap().ok_or("it runs"))).await;
    assert!(operator.child.wait().unwrap().success());
    leads(&cluster, &space, "").await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test"]
async fn a_kanidm_waits_for_its_certificate_and_then_gets_children_that_are_written_once() {
    let cluster = cluster().await;
    let space = space(&cluster, "t2-children").await;
    let _operator = Operator::start(&space, "children-only");
    cluster.apply(&minimal("Kanidm", &space, "idm")).await;
    let (_, message) = cluster.says("Kanidm", &space, "idm", "False TlsSecretMissing").await;
    assert!(message.contains("idm-tls"), "{message}");

    let authority = Authority::default();
    cluster.apply(&authority.secret(&space, "idm-tls", "idm.example.com", &authority.pem)).await;
    let children = [("StatefulSet", "idm-default"), ("Service", "idm"), ("Secret", "idm-config")];
    for (kind, name) in children {
        let api = cluster.api(kind, &space);
        let child = eventually(&format!("{kind} {name}"), SOON, || async {
            api.get_opt(name).await.map_err(|error| error.to_string())?.ok_or_else(|| "absent".to_owned())
        })
        .await;
        let owner = &child.owner_references()[0];
        assert_eq!(
            (owner.kind.as_str(), owner.name.as_str(), owner.controller),
            ("Kanidm", "idm", Some(true)),
            "{kind} {name}"
        );
    }
    cluster.says("Kanidm", &space, "idm", "False PodsNotReady").await;

    // With nobody to make pods the world stands still: so must the objects. Two looks of the operator are the measurement.
    stands_still(&cluster, &space).await;

    cluster.api("Service", &space).delete("idm", &Default::default()).await.unwrap();
    let services = cluster.api("Service", &space);
    eventually("the deleted Service is made again", SOON, || async {
        services.get_opt("idm").await.unwrap().ok_or("absent")
    })
    .await;
    cluster.delete("Kanidm", &space, "idm").await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test"]
async fn a_child_that_belongs_to_somebody_else_is_left_alone() {
    let cluster = cluster().await;
    let space = space(&cluster, "t2-foreign").await;
    let foreign = serde_json::json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "idm", "namespace": space},
        "spec": {"ports": [{"name": "web", "port": 80}], "selector": {"app": "web"}},
    });
    let before = cluster.apply(&foreign).await;
    let authority = Authority::default();
    cluster.apply(&authority.secret(&space, "idm-tls", "idm.example.com", &authority.pem)).await;
    let _operator = Operator::start(&space, "foreign-only");
    cluster.apply(&minimal("Kanidm", &space, "idm")).await;
    let (_, message) = cluster.says("Kanidm", &space, "idm", "False NameConflict").await;
    assert!(message.contains("idm"), "{message}");
    let after = cluster.api("Service", &space).get("idm").await.unwrap();
    assert_eq!(before.resource_version(), after.resource_version());
}
