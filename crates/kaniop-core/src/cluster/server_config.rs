//! A node's `server.toml` (version 2), and the Secret that holds one for each pod. Serialised by a library, never concatenated: values of
//! users cannot reach another key.
//!
//! What is alike for all nodes of a group is told apart from what is a node's own: the first is a part of the pods' template, the second is not,
//! so that another peer of the primary restarts the primary alone.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kaniop_api::kanidm::{IpFamily, LogLevel, ReplicaGroup, Role};
use serde::Serialize;

use super::nodes::Node;
use super::replication::{self, Replication};
use super::validate::ValidatedCluster;
use super::{Surroundings, metadata, names, statefulset};
use crate::backup::{OnlineBackup, online_backup};
use crate::name::fingerprint;

/// The server's file, keys in its own spelling. It refuses keys that it does not know, so nothing is added without looking them up.
#[derive(Serialize)]
struct ServerConfig<'a> {
    version: &'static str,
    domain: &'a str,
    origin: String,
    bindaddress: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ldapbindaddress: Option<&'static str>,
    db_path: &'static str,
    adminbindpath: &'static str,
    tls_chain: &'static str,
    tls_key: &'static str,
    role: &'static str,
    log_level: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    online_backup: Option<OnlineBackup>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replication: Option<Replication<'a>>,
}

/// `server.toml` of a node.
#[must_use]
pub fn server_toml(cluster: &ValidatedCluster, node: &Node<'_>, around: &Surroundings<'_>) -> String {
    let possible = replication::is_possible(&statefulset::storage(cluster, node.group, around));
    let bindaddress = addresses(cluster.spec.ip_family).replication;
    let replication = possible.then(|| replication::of_node(cluster, node, around.certificates, bindaddress));
    let online_backup = online_backup(cluster, &node.pod);
    in_toml(&ServerConfig { online_backup, replication, ..of_group(cluster, node.group) })
}

/// Digest of a node's file, as the init container notes it when the server is started.
#[must_use]
pub fn digest(file: &[u8]) -> String {
    fingerprint([file])
}

/// Where the server listens.
struct Addresses {
    https: &'static str,
    ldaps: &'static str,
    replication: &'static str,
}

const fn addresses(family: IpFamily) -> Addresses {
    match family {
        IpFamily::Ipv4 => Addresses { https: "0.0.0.0:8443", ldaps: "0.0.0.0:3636", replication: "0.0.0.0:8444" },
        // Such a socket is reached over IPv4 too, where the pod has an address of that family.
        IpFamily::Ipv6 => Addresses { https: "[::]:8443", ldaps: "[::]:3636", replication: "[::]:8444" },
    }
}

fn of_group<'a>(cluster: &'a ValidatedCluster, group: &ReplicaGroup) -> ServerConfig<'a> {
    let Addresses { https, ldaps, .. } = addresses(cluster.spec.ip_family);
    ServerConfig {
        version: "2",
        domain: &cluster.spec.domain,
        origin: cluster.origin.to_string(),
        bindaddress: https,
        ldapbindaddress: cluster.spec.ldap_port_name.as_ref().map(|_| ldaps),
        db_path: "/data/kanidm.db",
        adminbindpath: names::SOCKET_PATH,
        tls_chain: "/etc/kanidm/tls/tls.crt",
        tls_key: "/etc/kanidm/tls/tls.key",
        role: role(group.role),
        log_level: log_level(cluster.spec.log_level),
        online_backup: None,
        replication: None,
    }
}

/// Texts, numbers and tables of them always serialise: the only errors of the library are for shapes that this struct cannot have.
fn in_toml(config: &ServerConfig<'_>) -> String {
    toml::to_string(config).unwrap_or_default()
}

/// The Secret with the file of every node, and the domain that it must hold before it serves. A Secret, because certificates of peers are in it.
pub(super) fn secret(cluster: &ValidatedCluster, around: &Surroundings<'_>) -> Secret {
    let mut data = BTreeMap::new();
    let several = cluster.nodes().count() > 1;
    for node in cluster.nodes() {
        let file = server_toml(cluster, &node, around);
        data.insert(names::config_key(&node.pod), ByteString(file.into_bytes()));
        // An only node may begin anew. Where there are others, one with another domain is a stranger, and while none is known, only the primary
        // can be right.
        if several && !(node.is_primary && around.domain.is_none()) {
            let domain = around.domain.map(|domain| domain.to_string()).unwrap_or_default();
            data.insert(names::domain_key(&node.pod), ByteString(domain.into_bytes()));
        }
    }
    Secret {
        metadata: metadata(cluster, names::config_secret(&cluster.name)),
        type_: Some("Opaque".to_owned()),
        data: Some(data),
        ..Secret::default()
    }
}

/// Digest of each node's file, by pod.
#[must_use]
pub fn digests(cluster: &ValidatedCluster, around: &Surroundings<'_>) -> BTreeMap<String, String> {
    cluster.nodes().map(|node| (node.pod.clone(), digest(server_toml(cluster, &node, around).as_bytes()))).collect()
}

/// Hash of what all nodes of a group are started with, however many there are and whoever their peers are.
pub(super) fn group_hash(cluster: &ValidatedCluster, group: &ReplicaGroup) -> String {
    fingerprint([in_toml(&of_group(cluster, group)).as_bytes()])
}

/// The spelling of the file, which is not that of the environment.
const fn role(role: Role) -> &'static str {
    match role {
        Role::WriteReplica => "WriteReplica",
        Role::WriteReplicaNoUi => "WriteReplicaNoUI",
        Role::ReadOnlyReplica => "ReadOnlyReplica",
    }
}

const fn log_level(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Trace => "trace",
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
    }
}
