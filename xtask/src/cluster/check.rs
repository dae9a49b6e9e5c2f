//! Proves with real pods that the development cluster does what the operator will ask of it. It
//! leaves the cluster as it was.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow, bail, ensure};

use super::wait::Wait;
use super::{layout, up};
use crate::command::{output, output_with_input};
use crate::report::phase;
use crate::workspace::root;

const NAMESPACE: &str = "kaniop-check";
const TIMEOUT: &str = "--timeout=120s";
const LIMIT: Duration = Duration::from_secs(120);

/// Runs all checks; the namespace that they use is deleted even if one fails.
///
/// # Errors
/// Of the first check that fails.
pub(crate) fn check() -> Result<()> {
    super::require_root_or_external()?;
    let result = checks();
    let removed = phase("namespace deletion", || {
        kubectl(&["delete", "namespace", NAMESPACE, "--ignore-not-found", TIMEOUT]).and_then(|_| volumes_are_gone())
    });
    result.and(removed)
}

fn checks() -> Result<()> {
    let manifest = fs::read_to_string(root().join("dev/cluster/check.yaml"))?;
    output_with_input(&mut up::kubectl(&["apply", "-f", "-"]), &manifest)?;
    phase("pods under Pod Security \"restricted\", with claims", || {
        kubectl(&["rollout", "status", "statefulset/web", TIMEOUT]).map(|_| ())
    })?;
    phase("exec, a claim written by a user that is not root, logs", exec_and_logs)?;
    phase("Job, Service, cluster DNS, the API server from a pod", job)?;
    phase("a claim outlives its pod", claim_outlives_pod)?;
    phase("a claim grows", claim_grows)?;
    phase("a privileged pod is refused", privileged_is_refused)
}

fn exec_and_logs() -> Result<()> {
    let said = in_pod("id -u; cat /data/name")?;
    ensure!(said == "65532\nweb-0\n", "the pod should run as 65532 and have written its name, but says {said:?}");
    let logs = kubectl(&["logs", "web-0"])?;
    ensure!(logs == "serving\n", "the pod's log should say \"serving\", not {logs:?}");
    Ok(())
}

fn job() -> Result<()> {
    let ended = kubectl(&["wait", "job/visit", "--for=condition=complete", TIMEOUT]);
    let logs = kubectl(&["logs", "job/visit"]).unwrap_or_default();
    ended.map_err(|e| anyhow!("{e:#}; the Job says:\n{logs}"))?;
    let pods: Vec<_> = logs.lines().filter(|line| line.starts_with("web-")).collect();
    let reached = matches!(pods[..], ["web-0" | "web-1", "web-0", "web-1"]) && logs.contains("\nok");
    ensure!(reached, "the Job should have reached the Service, both pods and the API server, but says:\n{logs}");
    Ok(())
}

fn claim_outlives_pod() -> Result<()> {
    kubectl(&["delete", "pod", "web-0", TIMEOUT])?;
    kubectl(&["rollout", "status", "statefulset/web", TIMEOUT])?;
    let said = in_pod("cat /data/name")?;
    ensure!(said == "web-0\nweb-0\n", "both lives of the pod should be in its claim, but it holds {said:?}");
    Ok(())
}

fn claim_grows() -> Result<()> {
    kubectl(&["patch", "pvc", "data-web-0", "--patch", r#"{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}"#])?;
    kubectl(&["wait", "pvc/data-web-0", "--for=jsonpath={.status.capacity.storage}=2Gi", TIMEOUT]).map(|_| ())
}

fn privileged_is_refused() -> Result<()> {
    let overrides = r#"{"spec":{"containers":[{"name":"x","image":"x","securityContext":{"privileged":true}}]}}"#;
    match kubectl(&["run", "x", "--image=x", "--overrides", overrides]) {
        Err(refused) if refused.to_string().contains("violates PodSecurity") => Ok(()),
        Err(other) => Err(other.context("refused, but not by Pod Security")),
        Ok(_) => bail!("a privileged pod was let in"),
    }
}

fn volumes_are_gone() -> Result<()> {
    let folder = layout::data("volumes");
    let ours: Vec<PathBuf> = kubectl(&[
        "get",
        "pv",
        "-o",
        r#"jsonpath={range .items[?(@.spec.claimRef.namespace=="kaniop-check")]}{.spec.local.path}{"\n"}{end}"#,
    ])?
    .lines()
    .map(PathBuf::from)
    .collect();
    let place = layout::place();
    let wait = Wait {
        place: &place,
        what: "the deletion of the volumes",
        suspect: "storage",
        alive: &["storage"],
        limit: LIMIT,
    };
    wait.until(|| Ok(ours.iter().all(|path| path.starts_with(&folder) && !path.exists())))
}

/// What a shell in the first pod says.
fn in_pod(script: &str) -> Result<String> {
    kubectl(&["exec", "web-0", "--", "sh", "-c", script])
}

fn kubectl(arguments: &[&str]) -> Result<String> {
    let mut kubectl = up::kubectl(&["--request-timeout=0", "--namespace", NAMESPACE]);
    output(kubectl.args(arguments))
}
