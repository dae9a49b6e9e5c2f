//! A node's `server.toml` (version 2), and the Secret that holds one for each pod. Serialised by a library, never concatenated: values of
//! users cannot reach another key.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kaniop_api::kanidm::{LogLevel, ReplicaGroup, Role};
use serde::Serialize;

use super::validate::ValidatedCluster;
use super::{metadata, names};
use crate::backup::{OnlineBackup, online_backup};
use crate::name::fingerprint;

/// The server's file, keys in its own spelling. It refuses keys that it does not know, so nothing is added without looking them up.
#[derive(Serialize)]
struct ServerConfig<'a> {
    version: &'static str,
    domain: &'a str,
    origin: String,
    bindaddress: &'static str,
    db_path: &'static str,
    adminbindpath: &'static str,
    tls_chain: &'static str,
    tls_key: &'static str,
    role: &'static str,
    log_level: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    online_backup: Option<OnlineBackup>,
}

/// `server.toml` of the nodes of this group.
#[must_use]
pub fn server_toml(cluster: &ValidatedCluster, group: &ReplicaGroup) -> String {
    let config = ServerConfig {
        version: "2",
        domain: &cluster.spec.domain,
        origin: cluster.origin.to_string(),
        bindaddress: "0.0.0.0:8443",
        db_path: "/data/kanidm.db",
        adminbindpath: names::SOCKET_PATH,
        tls_chain: "/etc/kanidm/tls/tls.crt",
        tls_key: "/etc/kanidm/tls/tls.key",
        role: role(group.role),
        log_level: log_level(cluster.spec.log_level),
        // A group has one node at most, so its file is that of its pod 0.
        online_backup: online_backup(cluster, &names::pod(&cluster.name, &group.name, 0)),
    };
    // Texts, numbers and one table of them always serialise: the only errors of the library are for shapes that this struct cannot have.
    toml::to_string(&config).unwrap_or_default()
}

/// The Secret with the file of every pod. A Secret, because later files hold the certificates of peers.
pub(super) fn secret(cluster: &ValidatedCluster) -> Secret {
    let mut data = BTreeMap::new();
    for group in &cluster.spec.replica_groups {
        let file = server_toml(cluster, group);
        for ordinal in 0..group.replicas {
            let pod = names::pod(&cluster.name, &group.name, ordinal);
            data.insert(names::config_key(&pod), ByteString(file.clone().into_bytes()));
        }
    }
    Secret {
        metadata: metadata(cluster, names::config_secret(&cluster.name)),
        type_: Some("Opaque".to_owned()),
        data: Some(data),
        ..Secret::default()
    }
}

/// Hash of a group's configuration, which does not depend on the number of its nodes: scaling must not restart any.
pub(super) fn group_hash(cluster: &ValidatedCluster, group: &ReplicaGroup) -> String {
    fingerprint([server_toml(cluster, group).as_bytes()])
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
