//! The pod of a server: hardened, so that it runs under Pod Security *restricted*, with the node helper copied in beside a server image that
//! holds nothing but the server.

use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, EmptyDirVolumeSource, EnvVar, EnvVarSource, ObjectFieldSelector,
    PodSecurityContext, PodSpec, SeccompProfile, SecretVolumeSource, SecurityContext, Volume, VolumeMount,
};
use kaniop_api::kanidm::{PullPolicy, ReplicaGroup};

use super::storage::Storage;
use super::validate::ValidatedCluster;
use super::{names, probes};

/// The account that nothing else on a node uses: the server's, and the group of its files.
const NOBODY: i64 = 65532;
/// A clean stop takes a second; the rest is for disks that are slow to write back.
const GRACE_SECONDS: i64 = 60;
/// Environment of the server that the operator decides from the spec. The server would follow these rather than its file, so a user's entry of
/// such a name does not count: it stands before ours in the list, and the last one wins.
const OURS: [&str; 13] = [
    "POD_NAME",
    "KANIDM_CONFIG",
    "KANIDM_DOMAIN",
    "KANIDM_ORIGIN",
    "KANIDM_DB_PATH",
    "KANIDM_TLS_CHAIN",
    "KANIDM_TLS_KEY",
    "KANIDM_BINDADDRESS",
    "KANIDM_ADMIN_BIND_PATH",
    "KANIDM_ROLE",
    "KANIDM_LOG_LEVEL",
    "KANIDM_REPLICATION_ORIGIN",
    "KANIDM_REPLICATION_BINDADDRESS",
];

/// The pod of every node of this group, but for its database volume when that comes from a claim.
pub(super) fn spec(cluster: &ValidatedCluster, group: &ReplicaGroup, storage: &Storage, helper_image: &str) -> PodSpec {
    let security = cluster.spec.security_context.clone().unwrap_or_else(hardened);
    // The kubelet gives Secret files to root and to the pod's fsGroup. Without one, a server that is not root can only read what all can read.
    let mode = if security.fs_group.is_some() { 0o440 } else { 0o444 };
    let mut volumes = vec![
        Volume { name: "node".to_owned(), empty_dir: Some(EmptyDirVolumeSource::default()), ..Volume::default() },
        secret_volume("tls", cluster.tls_secret.clone(), mode),
        secret_volume("config", names::config_secret(&cluster.name), mode),
    ];
    if let Storage::Volume(volume) = storage {
        volumes.push(Volume::clone(volume));
    }
    PodSpec {
        init_containers: Some(vec![helper(group, helper_image)]),
        containers: vec![server(cluster, group)],
        volumes: Some(volumes),
        security_context: Some(security),
        image_pull_secrets: cluster.spec.image_pull_secrets.clone(),
        // The server never speaks to Kubernetes.
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        termination_grace_period_seconds: Some(GRACE_SECONDS),
        node_selector: group.node_selector.clone(),
        affinity: group.affinity.clone(),
        tolerations: group.tolerations.clone(),
        topology_spread_constraints: group.topology_spread_constraints.clone(),
        ..PodSpec::default()
    }
}

/// Copies the node helper from the operator's own image. Which image that is says nothing about the server, so it is no reason to restart one.
fn helper(group: &ReplicaGroup, image: &str) -> Container {
    Container {
        name: names::HELPER_CONTAINER.to_owned(),
        image: Some(image.to_owned()),
        // As arguments to the image's entry point: where the binary lies in it is its own affair.
        args: Some(words(["node", "install", names::HELPER_BINARY, names::STARTED_CONFIG])),
        // The same as the server's, for the helper reads from it which file the server starts with.
        env: Some(environment(&[])),
        // The same as the server's: it runs before it, so the pod reserves nothing more, and quotas that ask for resources are content.
        resources: group.resources.clone(),
        security_context: Some(confined()),
        volume_mounts: Some(vec![mount("node", names::HELPER_PATH, false), mount("config", names::CONFIG_PATH, true)]),
        ..Container::default()
    }
}

fn server(cluster: &ValidatedCluster, group: &ReplicaGroup) -> Container {
    Container {
        name: names::SERVER_CONTAINER.to_owned(),
        image: Some(cluster.image.to_string()),
        image_pull_policy: cluster.spec.image_pull_policy.map(|policy| {
            let name = match policy {
                PullPolicy::Always => "Always",
                PullPolicy::IfNotPresent => "IfNotPresent",
                PullPolicy::Never => "Never",
            };
            name.to_owned()
        }),
        command: Some(words(["/sbin/kanidmd", "server"])),
        env: Some(environment(cluster.spec.env.as_deref().unwrap_or_default())),
        ports: Some(vec![
            port(&cluster.spec.port_name, names::HTTPS_PORT),
            port("replication", names::REPLICATION_PORT),
        ]),
        resources: group.resources.clone(),
        security_context: Some(confined()),
        startup_probe: Some(probes::startup()),
        readiness_probe: Some(probes::readiness()),
        liveness_probe: Some(probes::liveness()),
        volume_mounts: Some(vec![
            mount(names::DATA, names::DATA_PATH, false),
            mount("tls", names::TLS_PATH, true),
            mount("config", names::CONFIG_PATH, true),
            mount("node", names::HELPER_PATH, true),
        ]),
        ..Container::default()
    }
}

fn port(name: &str, number: i32) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: number,
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    }
}

/// The user's variables, each name once (the later counts, as Kubernetes reads a list), then ours.
fn environment(asked: &[EnvVar]) -> Vec<EnvVar> {
    let is_last = |index: usize, name: &str| !asked.iter().skip(index + 1).any(|later| later.name == name);
    let theirs = asked
        .iter()
        .enumerate()
        .filter(|(index, var)| is_last(*index, &var.name) && !OURS.contains(&var.name.as_str()))
        .map(|(_, var)| var.clone());
    let pod_name = EnvVar {
        name: "POD_NAME".to_owned(),
        value: None,
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector { api_version: None, field_path: "metadata.name".to_owned() }),
            ..EnvVarSource::default()
        }),
    };
    let config = EnvVar {
        name: "KANIDM_CONFIG".to_owned(),
        value: Some(format!("{}/$(POD_NAME).toml", names::CONFIG_PATH)),
        value_from: None,
    };
    theirs.chain([pod_name, config]).collect()
}

/// What *restricted* asks of a pod, and a group of its own so that any volume driver makes the data writable.
pub(crate) fn hardened() -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(NOBODY),
        run_as_group: Some(NOBODY),
        fs_group: Some(NOBODY),
        fs_group_change_policy: Some("OnRootMismatch".to_owned()),
        seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None }),
        ..PodSecurityContext::default()
    }
}

/// What *restricted* asks of a container, and a root file system that cannot be written.
pub(crate) fn confined() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        read_only_root_filesystem: Some(true),
        capabilities: Some(Capabilities { drop: Some(words(["ALL"])), add: None }),
        ..SecurityContext::default()
    }
}

fn secret_volume(name: &str, secret: String, mode: i32) -> Volume {
    Volume {
        name: name.to_owned(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(secret),
            default_mode: Some(mode),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    }
}

pub(crate) fn mount(volume: &str, path: &str, read_only: bool) -> VolumeMount {
    VolumeMount {
        name: volume.to_owned(),
        mount_path: path.to_owned(),
        read_only: read_only.then_some(true),
        ..VolumeMount::default()
    }
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}
