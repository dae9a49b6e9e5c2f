//! Builds the binaries of `dev/cluster` (`kube` and `helm`), only when their sources have changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow};

use crate::command::output;
use crate::report::{note, phase};
use crate::tools;
use crate::workspace::{digest_files, holds, output_folder, root, write};

/// The built binaries and a digest of what they were built from.
pub(crate) struct Binaries {
    pub(crate) kube: PathBuf,
    pub(crate) helm: PathBuf,
    pub(crate) stamp: String,
}

/// What the Go tool prints when a registry cannot be reached.
const UNREACHABLE: &[&str] = &[
    "dial tcp",
    "no such host",
    "connection refused",
    "i/o timeout",
    "proxyconnect",
    "TLS handshake timeout",
    "network is unreachable",
    "module lookup disabled",
];

/// Where the binaries are; builds them when they are missing or older than their sources.
///
/// # Errors
/// In one line when Go is not installed or no module proxy answers.
pub(crate) fn binaries() -> Result<Binaries> {
    let source = root().join("dev/cluster");
    let stamp = digest_files(&inputs(&source)?)?;
    let folder = output_folder("dev-cluster")?;
    let built = Binaries { kube: folder.join("kube"), helm: folder.join("helm"), stamp };
    let record = folder.join("built-from");
    if holds(&record, &built.stamp) && built.kube.is_file() && built.helm.is_file() {
        return Ok(built);
    }
    note("building Kubernetes from source: about 5 minutes the first time, seconds when only our own part has changed");
    let version = kubernetes_version(&fs::read_to_string(source.join("go.mod"))?)?;
    phase("build kube", || go_build(&source, ".", &built.kube, &version))?;
    phase("build helm", || go_build(&source, "helm.sh/helm/v3/cmd/helm", &built.helm, &version))?;
    write(&record, &built.stamp)?;
    Ok(built)
}

fn go_build(source: &Path, package: &str, target: &Path, version: &str) -> Result<()> {
    // Renamed into place: an interrupted build leaves no half a binary under the final name.
    let unfinished = target.with_extension("unfinished");
    let flags = format!("-s -w {}", version_flags(version));
    let mut go = Command::new("go");
    go.args(["build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", &flags, "-o"])
        .arg(&unfinished)
        .arg(package)
        .current_dir(source)
        .env("PATH", tools::search_path())
        .env("CGO_ENABLED", "0");
    output(&mut go).map_err(|e| unreachable(&e.to_string()).unwrap_or(e))?;
    fs::rename(&unfinished, target).with_context(|| format!("create {}", target.display()))
}

/// Everything that decides what the binaries are.
fn inputs(source: &Path) -> Result<Vec<PathBuf>> {
    let listed = fs::read_dir(source).with_context(|| format!("read {}", source.display()))?;
    let mut files = listed.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.retain(|file| matches!(file.extension().and_then(|e| e.to_str()), Some("go" | "mod" | "sum")));
    files.sort();
    Ok(files)
}

/// The version of Kubernetes that a go.mod requires, `v1.34.4` for instance.
fn kubernetes_version(go_mod: &str) -> Result<String> {
    let mut words = go_mod.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let required = words.find_map(|line| match line[..] {
        ["k8s.io/kubernetes", version] | ["require", "k8s.io/kubernetes", version] => Some(version.to_owned()),
        _ => None,
    });
    required.ok_or_else(|| anyhow!("dev/cluster/go.mod does not require k8s.io/kubernetes"))
}

/// Linker flags that make the components report their version: charts ask for it.
fn version_flags(version: &str) -> String {
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let set = |package: &str, name: &str, value: &str| format!("-X {package}.{name}={value} ");
    ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"]
        .iter()
        .map(|package| {
            set(package, "gitVersion", version) + &set(package, "gitMajor", major) + &set(package, "gitMinor", minor)
        })
        .collect()
}

/// The one line for a registry that cannot be reached, if that is what `said` is about.
fn unreachable(said: &str) -> Option<anyhow::Error> {
    let line = said.lines().find(|line| UNREACHABLE.iter().any(|mark| line.contains(mark)))?;
    Some(anyhow!("cannot reach a Go module proxy (see `go env GOPROXY`): {}", line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_comes_from_go_mod() {
        let text = "module x\n\nrequire (\n\tk8s.io/kubectl v0.34.0\n\tk8s.io/kubernetes v1.34.4\n)\n";
        assert_eq!(kubernetes_version(text).unwrap(), "v1.34.4");
        assert!(kubernetes_version("module x\n").is_err());
        let flags = version_flags("v1.34.4");
        assert!(flags.contains("-X k8s.io/component-base/version.gitMinor=34 "), "{flags}");
    }

    #[test]
    fn an_unreachable_registry_is_one_line() {
        let said = "go failed (exit status: 1):\n    x: reading y: dial tcp 10.0.0.1:443: i/o timeout\n    more";
        let text = unreachable(said).unwrap().to_string();
        assert!(text.contains("module proxy") && !text.contains('\n'), "{text}");
        assert!(unreachable("go failed:\n    main.go:3: undefined: x").is_none());
    }

    #[test]
    fn the_inputs_are_the_sources_and_the_locked_versions() {
        let names: Vec<_> = inputs(&root().join("dev/cluster")).unwrap();
        let names: Vec<_> = names.iter().filter_map(|file| file.file_name()?.to_str()).collect();
        assert!(names.contains(&"go.sum") && names.contains(&"main.go") && !names.contains(&"README.md"));
    }
}
