//! Brings the cluster up. Every step looks at what is there and adds what is missing, so that it
//! can follow any earlier run, finished or not.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::components::{self, Component};
use super::layout::{self, DATA, NODE, NODE_IP, RUN};
use super::wait::Wait;
use super::{cgroup, config, down, lock, network, pki};
use crate::command::{output, output_with_input};
use crate::gobuild::{self, Binaries};
use crate::process::{self, Mark};
use crate::report::{note, phase};
use crate::tools::{self, Need};
use crate::{images, interrupt, workspace};

/// Generous, because the machine may be busy with builds. An idle one needs seconds.
const LIMIT: Duration = Duration::from_secs(180);

/// Components that the rest cannot start without.
const FIRST: [&str; 3] = ["etcd", "containerd", "apiserver"];

/// Brings the cluster up, or finds it up already.
///
/// # Errors
/// One line for what the machine lacks; otherwise the failing component's last words. What this run
/// started has been taken down again by then, and the logs are kept.
pub(crate) fn up() -> Result<()> {
    super::require_root_or_external()?;
    refuse_another_kubelet()?;
    if let Some(complaint) = tools::complaint(&tools::lacking(&[Need::Cluster, Need::Images])) {
        bail!(complaint);
    }
    let binaries = gobuild::binaries()?;
    interrupt::watch()?;
    let _lock = lock::take()?;
    down::finish_interrupted()?;
    let before = Before { data: Path::new(DATA).exists(), running: running()? };
    let mut started = Vec::new();
    bring_up(&binaries, &mut started).or_else(|error| {
        note("taking down what this run has started");
        before.restore(&started).context("and cleaning up failed too")?;
        Err(error)
    })
}

/// Some of the kubelet's places cannot be moved, and it clears them when it starts.
fn refuse_another_kubelet() -> Result<()> {
    match process::foreign(&["kubelet", "k3s-server", "kubelite"], RUN)? {
        None => Ok(()),
        Some(name) => bail!(
            "a Kubernetes node runs on this machine already ({name}): use it with {}=external and KUBECONFIG",
            super::VARIABLE
        ),
    }
}

/// What was there when this run began.
struct Before {
    data: bool,
    running: Vec<String>,
}

impl Before {
    /// Ends what this run has started. When nothing ran before, nothing is left but kept data.
    fn restore(&self, started: &[&'static str]) -> Result<()> {
        if let Ok(Some(place)) = keep_logs() {
            note(format_args!("the logs are in {place}"));
        }
        if self.running.is_empty() {
            return down::take_down(self.data);
        }
        down::end(|process| started.contains(&process.mark.component.as_str()), true)
    }
}

fn bring_up(binaries: &Binaries, started: &mut Vec<&'static str>) -> Result<()> {
    let all = phase("network, keys, configuration", || {
        network::ensure()?;
        cgroup::ensure()?;
        prepare(binaries)
    })?;
    let (components, stamp) = (&all.components, &all.stamp);
    phase("components", || {
        stop_outdated(components, stamp)?;
        start(components, |name| FIRST.contains(&name), stamp, started)
    })?;
    phase("API server", wait_for_api)?;
    phase("pause image", || images::ensure_busybox().map(|_| ()))?;
    let heartbeat = node(HEARTBEAT).unwrap_or_default();
    start(components, |_| true, stamp, started)?;
    phase("storage class", || {
        output_with_input(&mut kubectl(&["apply", "-f", "-"]), &storage_class().to_string()).map(|_| ())
    })?;
    phase("node", || {
        let since = if started.contains(&"kubelet") { Some(heartbeat) } else { None };
        wait_for_node(since.as_deref())
    })?;
    phase("DNS", || wait_for_dns(components))
}

/// The components as they should run, with a digest of all that shapes them.
struct Prepared {
    components: Vec<Component>,
    stamp: String,
}

fn prepare(binaries: &Binaries) -> Result<Prepared> {
    config::folders()?;
    pki::ensure(&layout::data("pki"), config::SERVER_NAMES)?;
    install(binaries)?;
    let bridge = tools::CNI_BRIDGE.iter().map(Path::new).find(|file| file.exists());
    let cni_bin = bridge.and_then(Path::parent).context("the CNI plugin `bridge` is gone")?;
    let written = config::write(cni_bin)?;
    let components = components::all(network::bridge_filter());
    let mut shape = vec![binaries.stamp.clone(), written, format!("{:?}", network::identity()?)];
    shape.extend(components.iter().map(|component| format!("{component:?}")));
    Ok(Prepared { components, stamp: workspace::digest(shape) })
}

/// Copies the binary to where the components run it from.
fn install(binaries: &Binaries) -> Result<()> {
    let (target, record) = (layout::data("bin/kube"), layout::data("bin/built-from"));
    if workspace::holds(&record, &binaries.stamp) && target.exists() {
        return Ok(());
    }
    // Renamed into place: the old one may be running.
    let unfinished = layout::data("bin/kube.unfinished");
    fs::copy(&binaries.kube, &unfinished).with_context(|| format!("copy {}", binaries.kube.display()))?;
    fs::rename(&unfinished, &target)?;
    workspace::write(&record, &binaries.stamp)
}

/// Ends what was started from another configuration, in another namespace, or by another version.
fn stop_outdated(components: &[Component], stamp: &str) -> Result<()> {
    let known = |name: &str| components.iter().any(|component| component.name == name);
    // Not what they have started: a container lives on while containerd is replaced.
    down::end(|process| process.main && (process.mark.stamp != stamp || !known(&process.mark.component)), true)
}

fn start(
    components: &[Component],
    chosen: impl Fn(&str) -> bool,
    stamp: &str,
    started: &mut Vec<&'static str>,
) -> Result<()> {
    let live = running()?;
    for component in components.iter().filter(|c| chosen(c.name) && !live.iter().any(|name| name == c.name)) {
        let mark = Mark { owner: RUN.to_owned(), component: component.name.to_owned(), stamp: stamp.to_owned() };
        process::start(&component.inside(), &mark, &layout::place().log(component.name))?;
        started.push(component.name);
    }
    Ok(())
}

/// The components that are running now.
pub(crate) fn running() -> Result<Vec<String>> {
    Ok(process::find(RUN)?.into_iter().filter(|process| process.main).map(|process| process.mark.component).collect())
}

fn wait_for_api() -> Result<()> {
    let place = layout::place();
    let wait = Wait { place: &place, what: "the API server", suspect: "apiserver", alive: &FIRST, limit: LIMIT };
    wait.until(|| output(&mut kubectl(&["get", "--raw", "/readyz"])).map(|answer| answer.trim() == "ok"))
}

const HEARTBEAT: &str = r#"{.status.conditions[?(@.type=="Ready")].lastHeartbeatTime}"#;
const READY: &str = r#"{.status.conditions[?(@.type=="Ready")].status}"#;

fn node(path: &str) -> Result<String> {
    output(&mut kubectl(&["get", "node", NODE, "-o", &format!("jsonpath={path}")]))
}

/// Kept data may say "Ready" from an earlier life: then only a later heartbeat than `since` counts.
fn wait_for_node(since: Option<&str>) -> Result<()> {
    let place = layout::place();
    let wait = Wait {
        place: &place,
        what: "the node",
        suspect: "kubelet",
        alive: &["containerd", "apiserver", "kubelet"],
        limit: LIMIT,
    };
    wait.until(|| {
        let is_ready =
            node(READY)? == "True" && since.is_none_or(|since| node(HEARTBEAT).is_ok_and(|now| now != since));
        // Pods are refused until the controller-manager has made their namespace's account.
        let account = || output(&mut kubectl(&["get", "serviceaccount", "default", "-n", "default", "-o", "name"]));
        Ok(is_ready && account()?.contains("default"))
    })
}

fn wait_for_dns(components: &[Component]) -> Result<()> {
    let alive: Vec<_> = components.iter().map(|component| component.name).collect();
    let place = layout::place();
    let wait =
        Wait { place: &place, what: "an answer from the cluster's DNS", suspect: "dns", alive: &alive, limit: LIMIT };
    wait.until(|| {
        let mut query = network::enter("busybox");
        query.args(["nslookup", "kubernetes.default.svc.cluster.local", NODE_IP]);
        Ok(output(&mut query)?.contains(layout::API_SERVICE_IP))
    })
}

/// kubectl with all rights, inside of the namespace.
pub(crate) fn kubectl(arguments: &[&str]) -> Command {
    let mut command = network::enter(&components::kube_binary());
    command.arg("kubectl").arg("--request-timeout=10s").args(arguments);
    command.env("KUBECONFIG", layout::data(config::ADMIN_KUBECONFIG));
    command
}

fn storage_class() -> serde_json::Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": "standard",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "kaniop.rs/local",
        // A volume lies on a node, so the pod's node must be known first.
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": true,
    })
}

/// Copies the logs to where taking the cluster down does not delete them.
fn keep_logs() -> Result<Option<String>> {
    let target = workspace::output_folder("dev-cluster")?.join("failed-logs");
    if target.exists() {
        fs::remove_dir_all(&target)?;
    }
    let Ok(logs) = fs::read_dir(layout::data("logs")) else { return Ok(None) };
    fs::create_dir_all(&target)?;
    for log in logs.flatten().filter(|entry| entry.file_type().is_ok_and(|t| t.is_file())) {
        fs::copy(log.path(), target.join(log.file_name()))?;
    }
    Ok(Some(target.display().to_string()))
}
