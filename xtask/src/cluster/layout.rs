//! Where the development cluster keeps what: folders, names and addresses. Nothing here is done.

use std::path::PathBuf;

use super::wait::Place;

/// Runtime files: sockets, containerd's state. Empty after a reboot. Also the owner in our marks.
pub(crate) const RUN: &str = "/run/kaniop-dev";
/// Data that survives a reboot, and `down --keep-data`.
pub(crate) const DATA: &str = "/var/lib/kaniop-dev";
/// Held by whoever changes the cluster. Outside of [`RUN`], which is removed while it is held.
pub(crate) const LOCK: &str = "/run/kaniop-dev.lock";
/// The network namespace.
pub(crate) const NETNS: &str = "kaniop-dev";
/// The network namespace as a file.
pub(crate) const NETNS_FILE: &str = "/run/netns/kaniop-dev";
/// The control group that all pods are below.
pub(crate) const CGROUP: &str = "kaniop-dev";
/// The node's name.
pub(crate) const NODE: &str = "dev";
/// The node's address, inside the namespace only.
pub(crate) const NODE_IP: &str = "10.250.0.1";
/// The node's network device and the other end of the pair that makes it.
pub(crate) const NODE_DEVICE: (&str, &str) = ("node0", "node0-peer");
/// Addresses of pods.
pub(crate) const POD_CIDR: &str = "10.244.0.0/16";
/// Addresses of services.
pub(crate) const SERVICE_CIDR: &str = "10.96.0.0/16";
/// The first service address: the API server's.
pub(crate) const API_SERVICE_IP: &str = "10.96.0.1";
/// The API server, from inside the namespace.
pub(crate) const API_URL: &str = "https://10.250.0.1:6443";
/// The cluster's DNS domain.
pub(crate) const DOMAIN: &str = "cluster.local";
/// Name of the CNI network; names its files below `/var/lib/cni` too.
pub(crate) const CNI_NETWORK: &str = "kaniop-dev";
/// The image of a pod's first container, which holds the pod's network open.
pub(crate) const PAUSE_IMAGE: &str = "localhost/kaniop-busybox:dev";

/// A path below [`DATA`].
pub(crate) fn data(name: &str) -> PathBuf {
    PathBuf::from(DATA).join(name)
}

/// [`data`] as text, for flags and configuration.
pub(crate) fn data_text(name: &str) -> String {
    format!("{DATA}/{name}")
}

/// containerd's socket.
pub(crate) fn socket() -> String {
    format!("{RUN}/containerd.sock")
}

/// Whose mark the cluster's components carry, and where their logs are.
pub(crate) fn place() -> Place {
    Place { owner: RUN.to_owned(), logs: data("logs") }
}
