//! The pod of a server: hardened, so that it runs under Pod Security *restricted*, with the node helper copied in beside a server image that
//! holds nothing but the server. What users add is merged in; what they may not take away stays.

mod check;
mod merge;

use std::iter;

use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EmptyDirVolumeSource, EnvVar, EnvVarSource, ObjectFieldSelector, PodSecurityContext,
    PodSpec, SeccompProfile, SecretVolumeSource, SecurityContext, Volume, VolumeMount,
};
use kaniop_api::kanidm::{DnsPolicy, KanidmSpec, PullPolicy, ReplicaGroup};

use super::storage::Storage;
use super::validate::ValidatedCluster;
use super::{names, probes};
use crate::backup::SWITCHES;

pub(super) use check::check;

/// The account that nothing else on a node uses: the server's, and the group of its files.
const NOBODY: i64 = 65532;
/// A clean stop takes a second; the rest is for disks that are slow to write back.
const GRACE_SECONDS: i64 = 60;
/// Environment of the server that the operator decides from the spec. The server would follow these rather than its file, so a user's entry of
/// such a name does not count: it stands before ours in the list, and the last one wins.
const OURS: [&str; 14] = [
    "POD_NAME",
    "KANIDM_CONFIG",
    "KANIDM_DOMAIN",
    "KANIDM_ORIGIN",
    "KANIDM_DB_PATH",
    "KANIDM_TLS_CHAIN",
    "KANIDM_TLS_KEY",
    "KANIDM_BINDADDRESS",
    "KANIDM_LDAPBINDADDRESS",
    "KANIDM_ADMIN_BIND_PATH",
    "KANIDM_ROLE",
    "KANIDM_LOG_LEVEL",
    "KANIDM_REPLICATION_ORIGIN",
    "KANIDM_REPLICATION_BINDADDRESS",
];

/// The pod of every node of this group, but for its database volume when that comes from a claim.
pub(super) fn spec(cluster: &ValidatedCluster, group: &ReplicaGroup, storage: &Storage, helper_image: &str) -> PodSpec {
    let asked = &cluster.spec;
    let security = asked.security_context.clone().unwrap_or_else(hardened);
    // The kubelet gives Secret files to root and to the pod's fsGroup. Without one, a server that is not root can only read what all can read.
    let mode = if security.fs_group.is_some() { 0o440 } else { 0o444 };
    let options = asked.pod_template.as_ref();
    let (beside, before) = (asked.containers.as_ref(), asked.init_containers.as_ref());
    let helper = merge::helper(helper(group, helper_image), merge::named(before, names::HELPER_CONTAINER));
    let server =
        merge::server(server(cluster, group), merge::named(beside, names::SERVER_CONTAINER), cluster.backup.is_some());
    let host_network = asked.host_network.filter(|asked| *asked);
    PodSpec {
        host_network,
        init_containers: Some(iter::once(helper).chain(merge::others(before, names::HELPER_CONTAINER)).collect()),
        containers: iter::once(server).chain(merge::others(beside, names::SERVER_CONTAINER)).collect(),
        volumes: Some(volumes(cluster, storage, mode)),
        security_context: Some(security),
        image_pull_secrets: asked.image_pull_secrets.clone(),
        // The server never speaks to Kubernetes.
        automount_service_account_token: Some(asked.automount_service_account_token.unwrap_or(false)),
        enable_service_links: Some(asked.enable_service_links.unwrap_or(false)),
        termination_grace_period_seconds: Some(
            options.and_then(|options| options.termination_grace_period_seconds).unwrap_or(GRACE_SECONDS),
        ),
        priority_class_name: options.and_then(|options| options.priority_class_name.clone()),
        // Kubernetes' own default would have a pod in its machine's network resolve names as that does, which knows no Services.
        dns_policy: asked
            .dns_policy
            .map(dns_policy)
            .or(host_network.map(|_| "ClusterFirstWithHostNet"))
            .map(str::to_owned),
        dns_config: asked.dns_config.clone(),
        host_aliases: asked.host_aliases.clone(),
        host_users: asked.host_users,
        runtime_class_name: asked.runtime_class_name.clone(),
        node_selector: group.node_selector.clone(),
        affinity: group.affinity.clone(),
        tolerations: group.tolerations.clone(),
        topology_spread_constraints: group.topology_spread_constraints.clone(),
        ..PodSpec::default()
    }
}

/// Ours, the database when it is not on a claim, then the user's.
fn volumes(cluster: &ValidatedCluster, storage: &Storage, mode: i32) -> Vec<Volume> {
    let helper = EmptyDirVolumeSource::default();
    let ours = [
        Volume { name: names::HELPER_VOLUME.to_owned(), empty_dir: Some(helper), ..Volume::default() },
        secret_volume(names::TLS_VOLUME, cluster.tls_secret.clone(), mode),
        secret_volume(names::CONFIG_VOLUME, names::config_secret(&cluster.name), mode),
    ];
    let database = match storage {
        Storage::Volume(volume) => Some(Volume::clone(volume)),
        Storage::Claim(_) => None,
    };
    ours.into_iter().chain(database).chain(cluster.spec.volumes.iter().flatten().cloned()).collect()
}

const fn dns_policy(policy: DnsPolicy) -> &'static str {
    match policy {
        DnsPolicy::ClusterFirst => "ClusterFirst",
        DnsPolicy::ClusterFirstWithHostNet => "ClusterFirstWithHostNet",
        DnsPolicy::Default => "Default",
        DnsPolicy::None => "None",
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
        env: Some(environment(&[], false)),
        // The same as the server's: it runs before it, so the pod reserves nothing more, and quotas that ask for resources are content.
        resources: group.resources.clone(),
        security_context: Some(confined()),
        volume_mounts: Some(vec![
            mount(names::HELPER_VOLUME, names::HELPER_PATH, false),
            mount(names::CONFIG_VOLUME, names::CONFIG_PATH, true),
        ]),
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
        env: Some(environment(cluster.spec.env.as_deref().unwrap_or_default(), cluster.backup.is_some())),
        ports: Some(own_ports(&cluster.spec)),
        resources: group.resources.clone(),
        security_context: Some(confined()),
        startup_probe: Some(probes::startup()),
        readiness_probe: Some(probes::readiness()),
        liveness_probe: Some(probes::liveness()),
        volume_mounts: Some(merge::mounts(own_mounts(), cluster.spec.volume_mounts.as_deref().unwrap_or_default())),
        ..Container::default()
    }
}

fn own_mounts() -> Vec<VolumeMount> {
    vec![
        mount(names::DATA, names::DATA_PATH, false),
        mount(names::TLS_VOLUME, names::TLS_PATH, true),
        mount(names::CONFIG_VOLUME, names::CONFIG_PATH, true),
        mount(names::HELPER_VOLUME, names::HELPER_PATH, true),
    ]
}

fn own_ports(spec: &KanidmSpec) -> Vec<ContainerPort> {
    let ldaps = spec.ldap_port_name.as_ref().map(|name| port(name, names::LDAP_PORT));
    [port(&spec.port_name, names::HTTPS_PORT), port("replication", names::REPLICATION_PORT)]
        .into_iter()
        .chain(ldaps)
        .collect()
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
fn environment(asked: &[EnvVar], makes_backups: bool) -> Vec<EnvVar> {
    // Without spec.backup somebody may still make backups by these.
    let switches = if makes_backups { SWITCHES.as_slice() } else { &[] };
    let is_ours = |name: &str| OURS.contains(&name) || switches.contains(&name);
    let is_last = |index: usize, name: &str| !asked.iter().skip(index + 1).any(|later| later.name == name);
    let theirs = asked
        .iter()
        .enumerate()
        .filter(|(index, var)| is_last(*index, &var.name) && !is_ours(&var.name))
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
    SecurityContext { read_only_root_filesystem: Some(true), ..merge::restricted() }
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
