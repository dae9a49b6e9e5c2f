//! Installs the operator by its chart and removes it again, on the cluster of demo and end-to-end tests; and says what went on there
//! when something failed. What is installed is the product as users get it: nothing is patched.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::cluster::{Cluster, layout, require_root};
use crate::command::{output, output_with_input, succeeds, tail};
use crate::images::Images;
use crate::outside;
use crate::ownership::{self, Kind, Thing};
use crate::report::{note, phase};
use crate::workspace::{output_folder, root, write};

/// Namespace of the operator.
pub(crate) const NAMESPACE: &str = "kaniop-system";
/// Name of the Helm release, and by it of the Deployment.
pub(crate) const RELEASE: &str = "kaniop";

/// Keeps other demos and test runs off the cluster until the answer is dropped.
///
/// # Errors
/// When one of them is at it, or we may not work on that cluster at all.
pub(crate) fn claim(cluster: &Cluster) -> Result<File> {
    let path = if cluster.is_external() {
        output_folder("demo")?.join("in-use")
    } else {
        require_root("the development cluster")?;
        PathBuf::from(format!("{}.in-use", layout::RUN))
    };
    claim_file(&path)
}

fn claim_file(path: &Path) -> Result<File> {
    let file = File::create(path).with_context(|| format!("create {}", path.display()))?;
    if file.try_lock().is_err() {
        bail!("another demo or test run is using the cluster: wait until it has ended");
    }
    Ok(file)
}

/// Whether the cluster runs and lets us in.
pub(crate) fn answers(cluster: &Cluster) -> bool {
    succeeds(&mut cluster.kubectl(["get", "--raw=/readyz", "--request-timeout=5s"]))
}

/// Whether the operator is installed.
fn installed(cluster: &Cluster) -> bool {
    succeeds(&mut cluster.helm(["status", RELEASE, "--namespace", NAMESPACE]))
}

/// Installs or upgrades the operator and waits until it is ready. `interval` in seconds, the chart's own when absent.
///
/// # Errors
/// When a Kaniop is there that is not ours, before anything is changed; when the cluster refuses something or the operator does not become
/// ready; its logs are shown then.
pub(crate) fn install(cluster: &Cluster, images: &Images, interval: Option<u32>) -> Result<()> {
    ownership::refuse_others(&ownership::look(cluster, &[NAMESPACE])?)?;
    let crds = root().join("charts/kaniop/crds");
    phase("definitions of the kinds", || {
        let items: Vec<_> = manifests(&crds)?.into_iter().map(ownership::mark).collect();
        apply(cluster, &json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string())?;
        output(cluster.kubectl(["wait", "--for=condition=Established", "--timeout=60s", "-f"]).arg(&crds))
    })?;
    phase("operator", || {
        namespace(cluster, NAMESPACE)?;
        let mut helm = cluster.helm(["upgrade", RELEASE]);
        helm.arg(root().join("charts/kaniop"));
        helm.args(["--install", "--skip-crds", "--namespace", NAMESPACE, "--wait", "--timeout=3m"]);
        helm.args(values(images).iter().map(|value| format!("--set-string={value}")));
        helm.args(interval.map(|seconds| format!("--set=interval={seconds}")));
        output(&mut helm)
    })
    .inspect_err(|_| explain(cluster, &[NAMESPACE], "install"))?;
    Ok(())
}

fn values(images: &Images) -> Vec<String> {
    let (repository, tag) = images.operator.rsplit_once(':').unwrap_or((&images.operator, ""));
    vec![
        format!("image.repository={repository}"),
        format!("image.tag={tag}"),
        // The tag is always the same: without this a rebuilt operator would not be rolled out.
        format!("podAnnotations.kaniop\\.rs/build={}", images.operator_digest),
    ]
}

/// Removes the kinds, with every object of them, and the operator, as far as we made them. The entries on servers that still run stay.
///
/// # Errors
/// When the cluster refuses, or objects are not released.
pub(crate) fn uninstall(cluster: &Cluster) -> Result<()> {
    let things = ownership::look(cluster, &[NAMESPACE])?;
    if let Some(spared) = ownership::spared(&things) {
        note(format!("left alone, because neither demo nor tests made it: {spared}"));
    }
    remove(cluster, &things)
}

/// Removes those of the definitions and of the operator's namespace that are among these things and ours.
///
/// # Errors
/// As [`uninstall`].
pub(crate) fn remove(cluster: &Cluster, things: &[Thing]) -> Result<()> {
    // The definitions go first: while they do, the operator releases the objects, which without it would stay for ever.
    let definitions = ownership::ours(things, Kind::Definition);
    if !definitions.is_empty() {
        phase("remove the kinds", || {
            let delete = ["delete", "customresourcedefinitions", "--ignore-not-found", "--timeout=3m"];
            output(cluster.kubectl(delete).args(&definitions))
        })?;
    }
    if !ownership::ours(things, Kind::Namespace).contains(&NAMESPACE) {
        return Ok(());
    }
    phase("remove the operator", || {
        if installed(cluster) {
            output(&mut cluster.helm(["uninstall", RELEASE, "--namespace", NAMESPACE, "--wait", "--timeout=2m"]))?;
        }
        output(&mut cluster.kubectl(["delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=2m"])).map(drop)
    })
}

/// The objects in the files of a folder, in the order of their names.
///
/// # Errors
/// When one of them cannot be read or is no YAML.
pub(crate) fn manifests(folder: &Path) -> Result<Vec<Value>> {
    let listed = fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    let mut files = listed.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    let mut manifests = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        manifests.extend(outside::objects(&text).with_context(|| format!("in {}", file.display()))?);
    }
    Ok(manifests)
}

/// Makes a namespace of ours, if it is not there, that refuses every pod with more rights than it needs. Whoever calls it has made sure that
/// there is none of somebody else's.
///
/// # Errors
/// When the cluster refuses.
pub(crate) fn namespace(cluster: &Cluster, name: &str) -> Result<()> {
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    apply(cluster, &ownership::mark(object).to_string())
}

/// Applies objects, as YAML or JSON.
///
/// # Errors
/// With what the API server says.
pub(crate) fn apply(cluster: &Cluster, objects: &str) -> Result<()> {
    let mut apply =
        cluster.kubectl(["apply", "--server-side", "--force-conflicts", "--field-manager=kaniop-setup", "-f", "-"]);
    output_with_input(&mut apply, objects).map(drop)
}

/// Collects what went on in some namespaces into files below `target/logs/NAME`, and shows the most telling of it.
pub(crate) fn explain(cluster: &Cluster, namespaces: &[&str], name: &str) {
    match collect(cluster, namespaces, name) {
        Ok(folder) => note(format!("all of it, and more, is in {}", folder.display())),
        Err(error) => note(format!("what went on could not be collected: {error:#}")),
    }
}

fn collect(cluster: &Cluster, namespaces: &[&str], name: &str) -> Result<PathBuf> {
    let folder = output_folder("logs")?.join(name);
    fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let operator = format!("deployment/{RELEASE}");
    save(cluster, &folder, "operator.log", &["logs", "-n", NAMESPACE, &operator, "--tail=-1"], 25)?;
    save(cluster, &folder, "operator-before.log", &["logs", "-n", NAMESPACE, &operator, "--previous", "--tail=-1"], 0)?;
    save(
        cluster,
        &folder,
        "objects",
        &["get", "pods,statefulsets,services,persistentvolumeclaims,kaniop", "-A", "-o", "wide"],
        30,
    )?;
    for namespace in namespaces {
        let file = |kind: &str| format!("{namespace}.{kind}");
        let events = ["get", "events.events.k8s.io", "-n", namespace, "--sort-by=.metadata.creationTimestamp"];
        save(cluster, &folder, &file("events"), &events, 15)?;
        save(cluster, &folder, &file("describe"), &["describe", "kaniop,pods", "-n", namespace], 0)?;
        let servers = "app.kubernetes.io/name=kanidm";
        let logs = ["logs", "-n", namespace, "-l", servers, "--all-containers", "--prefix", "--tail=500"];
        save(cluster, &folder, &file("servers.log"), &logs, 10)?;
    }
    Ok(folder)
}

/// Saves what kubectl says, and shows its last lines.
fn save(cluster: &Cluster, folder: &Path, file: &str, arguments: &[&str], show: usize) -> Result<()> {
    let said = output(&mut cluster.kubectl(arguments)).unwrap_or_else(|error| format!("{error:#}\n"));
    if show > 0 && !said.trim().is_empty() {
        println!("  --- {file}{}", tail(&said, show));
    }
    write(&folder.join(file), &said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_runs_one_has_the_cluster() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in-use");
        let first = claim_file(&path).unwrap();
        let error = claim_file(&path).unwrap_err().to_string();
        assert!(error.contains("another demo or test run"), "{error}");
        drop(first);
        claim_file(&path).unwrap();
    }

    #[test]
    fn a_rebuilt_operator_of_the_same_tag_changes_the_values() {
        let images = |digest: &str| Images {
            operator: "localhost/kaniop:dev".to_owned(),
            operator_digest: digest.to_owned(),
            kanidm: String::new(),
            next: None,
        };
        let first = values(&images("1"));
        assert!(first.contains(&"image.repository=localhost/kaniop".to_owned()), "{first:?}");
        assert!(first.contains(&"image.tag=dev".to_owned()), "{first:?}");
        assert_ne!(first, values(&images("2")));
    }
}
