//! The components of the development cluster and their command lines. Pure: it starts nothing.

use super::layout::{self, DATA, NETNS_FILE, NODE, NODE_IP, POD_CIDR, SERVICE_CIDR, data_text};

/// Components that should get time to close their files. The others keep nothing.
pub(crate) const DATABASES: [&str; 2] = ["etcd", "containerd"];

/// One long-running program of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Component {
    /// Names its log and its processes.
    pub(crate) name: &'static str,
    /// Program and arguments, to be run inside of the network namespace.
    pub(crate) argv: Vec<String>,
}

impl Component {
    fn new(name: &'static str, argv: Vec<String>) -> Self {
        Self { name, argv }
    }

    /// The command line that enters the network namespace first.
    ///
    /// `nsenter`, not `ip netns exec`: the latter mounts /sys anew, and the kubelet then finds no
    /// control groups.
    pub(crate) fn inside(&self) -> Vec<String> {
        let enter = ["nsenter".to_owned(), format!("--net={NETNS_FILE}"), "--".to_owned()];
        enter.into_iter().chain(self.argv.iter().cloned()).collect()
    }
}

/// All components, in the order of their start.
///
/// `bridge_filter` says whether the kernel shows traffic between pods to iptables; where it does
/// not, answers of a service's pod must be led back through the node.
pub(crate) fn all(bridge_filter: bool) -> Vec<Component> {
    vec![
        Component::new("etcd", etcd()),
        Component::new("containerd", words(&["containerd", "--config", &data_text("conf/containerd.toml")])),
        Component::new("apiserver", apiserver()),
        Component::new("controller-manager", controller_manager()),
        Component::new("scheduler", scheduler()),
        Component::new("kubelet", kubelet()),
        Component::new("proxy", proxy(bridge_filter)),
        Component::new("dns", kube("coredns", &["-conf", &data_text("conf/Corefile")])),
        Component::new("storage", storage()),
    ]
}

/// The copy of the `kube` binary that the components run: rebuilding does not disturb them.
pub(crate) fn kube_binary() -> String {
    data_text("bin/kube")
}

fn etcd() -> Vec<String> {
    kube(
        "etcd",
        &[
            &format!("--data-dir={DATA}/etcd"),
            "--listen-client-urls=http://127.0.0.1:2379",
            "--advertise-client-urls=http://127.0.0.1:2379",
            "--listen-peer-urls=http://127.0.0.1:2380",
            // A cluster that may be lost at a power cut is worth starting in a second.
            "--unsafe-no-fsync",
            "--log-level=warn",
        ],
    )
}

fn apiserver() -> Vec<String> {
    let pki = data_text("pki");
    kube(
        "kube-apiserver",
        &[
            "--etcd-servers=http://127.0.0.1:2379",
            &format!("--advertise-address={NODE_IP}"),
            &format!("--service-cluster-ip-range={SERVICE_CIDR}"),
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged",
            &format!("--client-ca-file={pki}/ca.crt"),
            &format!("--tls-cert-file={pki}/server.crt"),
            &format!("--tls-private-key-file={pki}/server.key"),
            &format!("--kubelet-client-certificate={pki}/apiserver-kubelet.crt"),
            &format!("--kubelet-client-key={pki}/apiserver-kubelet.key"),
            // Else exec and logs would look for the node's name in DNS.
            "--kubelet-preferred-address-types=InternalIP",
            "--service-account-issuer=https://kubernetes.default.svc",
            &format!("--service-account-key-file={pki}/sa.pub"),
            &format!("--service-account-signing-key-file={pki}/sa.key"),
        ],
    )
}

fn controller_manager() -> Vec<String> {
    let pki = data_text("pki");
    kube(
        "kube-controller-manager",
        &[
            &format!("--kubeconfig={DATA}/conf/controller-manager.kubeconfig"),
            "--leader-elect=false",
            "--use-service-account-credentials",
            &format!("--service-account-private-key-file={pki}/sa.key"),
            &format!("--root-ca-file={pki}/ca.crt"),
            &format!("--cluster-signing-cert-file={pki}/ca.crt"),
            &format!("--cluster-signing-key-file={pki}/ca.key"),
            &format!("--flex-volume-plugin-dir={DATA}/kubelet/plugins"),
        ],
    )
}

fn scheduler() -> Vec<String> {
    kube("kube-scheduler", &[&format!("--kubeconfig={DATA}/conf/scheduler.kubeconfig"), "--leader-elect=false"])
}

fn kubelet() -> Vec<String> {
    kube(
        "kubelet",
        &[
            &format!("--kubeconfig={DATA}/conf/kubelet.kubeconfig"),
            &format!("--config={DATA}/conf/kubelet.json"),
            &format!("--root-dir={DATA}/kubelet"),
            &format!("--cert-dir={DATA}/kubelet/pki"),
            &format!("--hostname-override={NODE}"),
            &format!("--node-ip={NODE_IP}"),
        ],
    )
}

fn proxy(bridge_filter: bool) -> Vec<String> {
    let mut argv = kube(
        "kube-proxy",
        &[
            &format!("--kubeconfig={DATA}/conf/proxy.kubeconfig"),
            &format!("--hostname-override={NODE}"),
            &format!("--cluster-cidr={POD_CIDR}"),
            "--proxy-mode=iptables",
            // The limit is the machine's, not the namespace's to change.
            "--conntrack-max-per-core=0",
        ],
    );
    if !bridge_filter {
        argv.push("--masquerade-all".to_owned());
    }
    argv
}

fn storage() -> Vec<String> {
    let volumes = layout::data_text("volumes");
    kube("storage", &["-kubeconfig", &data_text("conf/storage.kubeconfig"), "-root", &volumes, "-node", NODE])
}

fn kube(component: &str, flags: &[&str]) -> Vec<String> {
    let start = [kube_binary(), component.to_owned()];
    start.into_iter().chain(flags.iter().map(|flag| (*flag).to_owned())).collect()
}

fn words(argv: &[&str]) -> Vec<String> {
    argv.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(name: &str, bridge_filter: bool) -> Vec<String> {
        all(bridge_filter).into_iter().find(|component| component.name == name).unwrap().inside()
    }

    #[test]
    fn every_component_runs_inside_the_network_namespace() {
        for component in all(true) {
            assert_eq!(component.inside()[..3], ["nsenter", "--net=/run/netns/kaniop-dev", "--"]);
        }
    }

    #[test]
    fn the_databases_are_components() {
        let names: Vec<_> = all(true).iter().map(|component| component.name).collect();
        assert!(DATABASES.iter().all(|name| names.contains(name)));
    }

    #[test]
    fn services_are_led_through_the_node_where_bridges_are_not_filtered() {
        assert!(argv("proxy", false).contains(&"--masquerade-all".to_owned()));
        assert!(!argv("proxy", true).contains(&"--masquerade-all".to_owned()));
    }
}
