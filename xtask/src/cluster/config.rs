//! The components' configuration files, as text. Rendering is pure; `write` puts them in place.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::layout::{self, API_SERVICE_IP, API_URL, CGROUP, CNI_NETWORK, DATA, DOMAIN, NODE_IP, POD_CIDR, RUN};
use super::pki;

/// Names and addresses under which the API server is reached.
pub(crate) const SERVER_NAMES: &[&str] = &[
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "localhost",
    "127.0.0.1",
    API_SERVICE_IP,
    NODE_IP,
];

/// The file for people and tests.
pub(crate) const ADMIN_KUBECONFIG: &str = "admin.kubeconfig";

/// Writes every configuration file; the certificates must be there already. Returns all that was
/// written, in order, so that the caller can tell whether anything has changed.
///
/// # Errors
/// When a file cannot be written or a certificate cannot be read.
pub(crate) fn write(cni_bin: &Path) -> Result<String> {
    let keys = layout::data("pki");
    let mut all = String::new();
    let mut put = |name: &str, content: String| -> Result<()> {
        pki::write_private(&layout::data(name), &content)?;
        all.push_str(&content);
        Ok(())
    };
    for client in pki::CLIENTS.iter().filter(|client| client.file != "admin") {
        put(&format!("conf/{}.kubeconfig", client.file), pki::kubeconfig(&keys, client.file, API_URL)?)?;
    }
    put(ADMIN_KUBECONFIG, pki::kubeconfig(&keys, "admin", API_URL)?)?;
    put("conf/containerd.toml", containerd(cni_bin)?)?;
    put("conf/kubelet.json", serde_json::to_string_pretty(&kubelet())?)?;
    put("conf/Corefile", corefile())?;
    put("cni/10-kaniop-dev.conflist", serde_json::to_string_pretty(&cni())?)?;
    Ok(all)
}

/// Makes the folders that the files and the components need.
///
/// # Errors
/// When a folder cannot be made.
pub(crate) fn folders() -> Result<()> {
    for name in ["bin", "conf", "cni", "logs", "volumes", "kubelet/plugins", "images"] {
        let path = layout::data(name);
        fs::create_dir_all(&path).with_context(|| format!("create {}", path.display()))?;
    }
    fs::create_dir_all(RUN).with_context(|| format!("create {RUN}"))
}

fn containerd(cni_bin: &Path) -> Result<String> {
    let config = json!({
        "version": 2,
        "root": format!("{DATA}/containerd"),
        "state": format!("{RUN}/containerd"),
        // "opt" would make /opt/containerd; the snapshotters need filesystems that we do not use.
        "disabled_plugins": [
            "io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
            "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
        ],
        "grpc": {"address": layout::socket()},
        "plugins": {"io.containerd.grpc.v1.cri": {
            "sandbox_image": layout::PAUSE_IMAGE,
            // Without CAP_SYS_RESOURCE a lower score is refused, and no sandbox would start.
            "restrict_oom_score_adj": true,
            // So that a pod's network namespace can be told from those of other runtimes.
            "netns_mounts_under_state_dir": true,
            "cni": {"bin_dir": cni_bin, "conf_dir": format!("{DATA}/cni")},
            "containerd": {"runtimes": {"runc": {
                "runtime_type": "io.containerd.runc.v2",
                "options": {"Root": format!("{RUN}/runc")},
            }}},
        }},
    });
    toml::to_string(&config).context("render containerd's configuration")
}

fn kubelet() -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": format!("unix://{}", layout::socket()),
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": format!("{DATA}/pki/ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        // A second kubelet on this machine would otherwise remove our pods' groups, and we its.
        "cgroupRoot": format!("/{CGROUP}"),
        "failSwapOn": false,
        "makeIPTablesUtilChains": false,
        "clusterDNS": [NODE_IP],
        "clusterDomain": DOMAIN,
        "resolvConf": "",
        "volumePluginDir": format!("{DATA}/kubelet/plugins"),
        "podLogsDir": format!("{DATA}/logs/pods"),
        // `kubectl logs` shows only the newest file: rotate late.
        "containerLogMaxSize": "100Mi",
        "evictionHard": {"memory.available": "50Mi"},
        // Images are loaded by hand and cannot be pulled again.
        "imageGCHighThresholdPercent": 100,
        "imageMinimumGCAge": "1000h",
        "syncFrequency": "10s",
        "nodeStatusUpdateFrequency": "5s",
    })
}

fn cni() -> Value {
    json!({"cniVersion": "1.0.0", "name": CNI_NETWORK, "plugins": [{
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": true,
        "hairpinMode": true,
        "ipMasq": false,
        "ipam": {
            "type": "host-local",
            "dataDir": format!("{RUN}/cni-ipam"),
            "ranges": [[{"subnet": POD_CIDR}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }]})
}

/// Names outside of the cluster do not exist: an immediate "no such name" rather than a server
/// failure, which clients would try again.
fn corefile() -> String {
    format!(
        "{DOMAIN}:53 {{\n    bind {NODE_IP}\n    ready {NODE_IP}:8181\n    errors\n    kubernetes {DOMAIN} {{\n        \
         kubeconfig {DATA}/conf/dns.kubeconfig\n        ttl 5\n    }}\n}}\n\
         .:53 {{\n    bind {NODE_IP}\n    errors\n    template ANY ANY {{\n        rcode NXDOMAIN\n    }}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containerd_keeps_everything_in_our_folders() {
        let config: toml::Table = toml::from_str(&containerd(Path::new("/usr/lib/cni")).unwrap()).unwrap();
        assert_eq!(config["root"].as_str(), Some("/var/lib/kaniop-dev/containerd"));
        assert_eq!(config["state"].as_str(), Some("/run/kaniop-dev/containerd"));
        let cri = &config["plugins"]["io.containerd.grpc.v1.cri"];
        assert_eq!(cri["restrict_oom_score_adj"].as_bool(), Some(true));
        assert_eq!(cri["cni"]["bin_dir"].as_str(), Some("/usr/lib/cni"));
    }

    #[test]
    fn the_kubelet_refuses_strangers_and_has_a_control_group_of_its_own() {
        let config = kubelet();
        assert_eq!(config["authentication"]["anonymous"]["enabled"], false);
        assert_eq!(config["authorization"]["mode"], "Webhook");
        assert_eq!(config["cgroupRoot"], "/kaniop-dev");
    }

    #[test]
    fn dns_serves_the_cluster_and_denies_the_rest() {
        let text = corefile();
        assert!(
            text.contains("kubernetes cluster.local {\n        kubeconfig /var/lib/kaniop-dev/conf/dns.kubeconfig"),
            "{text}"
        );
        assert!(text.contains("rcode NXDOMAIN"), "{text}");
    }
}
