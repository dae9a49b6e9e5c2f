//! Labels and annotations of the children: how each of them is found again, and by whom. Keys are API and never change.

use std::collections::BTreeMap;

/// Which Kanidm a child belongs to.
pub const CLUSTER: &str = "kanidm.kaniop.rs/cluster";
/// Which replica group a pod belongs to.
pub const REPLICA_GROUP: &str = "kanidm.kaniop.rs/replica-group";
/// What a Secret with credentials holds. Secrets with this label are never pruned: their content cannot be built again.
pub const SECRET_TYPE: &str = "kaniop.rs/secret-type";
/// Value of [`SECRET_TYPE`] for the passwords of the built-in administrators.
pub const ADMIN_PASSWORDS: &str = "admin-passwords";
/// Value of [`SECRET_TYPE`] for the operator's own API token.
pub const OPERATOR_TOKEN: &str = "operator-token";
/// Value of [`SECRET_TYPE`] for the replication certificate of a node.
pub const REPLICA_CERTIFICATE: &str = "replica-cert";
/// On a Secret with a node's replication certificate: which pod it is of.
pub const REPLICA: &str = "kanidm.kaniop.rs/replica";
/// Name of the application.
pub const APP_NAME: &str = "app.kubernetes.io/name";
/// Name of the instance.
pub const APP_INSTANCE: &str = "app.kubernetes.io/instance";
/// Which controller made the child.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Value of [`MANAGED_BY`] for everything that the cluster controller makes.
pub const MANAGER: &str = "kaniop-kanidm";

/// On the pod template: hash of the certificate and key that the pods started with.
pub const TLS_HASH: &str = "kanidm.kaniop.rs/tls-secret-hash";
/// On the pod template: hash of the group's server configuration.
pub const CONFIG_HASH: &str = "kanidm.kaniop.rs/config-hash";
/// On the pod template: hash of everything that a server must be restarted for.
pub const TEMPLATE_HASH: &str = "kanidm.kaniop.rs/template-hash";

/// On every child: hash of the manifest as it was applied last.
pub const APPLIED_HASH: &str = "kaniop.rs/applied-hash";
/// On a claim of the database: the size that the operator asked for when it made it larger. Whoever asks for more takes over.
pub const GROWN_TO: &str = "kanidm.kaniop.rs/grown-to";
/// On a Secret with credentials: when they were made.
pub const ROTATED_AT: &str = "kaniop.rs/last-rotation-time";

/// On a Secret with credentials: UUID of the domain that they are for.
pub const DOMAIN_UUID: &str = "kanidm.kaniop.rs/domain-uuid";

/// Labels of every child of the Kanidm of this name.
#[must_use]
pub fn common(cluster: &str) -> BTreeMap<String, String> {
    owned([(APP_NAME, "kanidm"), (APP_INSTANCE, cluster), (MANAGED_BY, MANAGER), (CLUSTER, cluster)])
}

/// Labels that tell the servers of a Kanidm from everything else: what its Services select.
#[must_use]
pub fn servers(cluster: &str) -> BTreeMap<String, String> {
    owned([(APP_NAME, "kanidm"), (CLUSTER, cluster)])
}

/// Labels that tell the servers of one group from everything else: what its StatefulSet selects.
#[must_use]
pub fn group(cluster: &str, group: &str) -> BTreeMap<String, String> {
    let mut labels = servers(cluster);
    labels.extend(owned([(APP_INSTANCE, cluster), (REPLICA_GROUP, group)]));
    labels
}

/// Labels as a label selector of the Kubernetes API.
#[must_use]
pub fn selector(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

/// User's labels or annotations under our own, which win.
#[must_use]
pub fn under(theirs: Option<&BTreeMap<String, String>>, ours: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut all = theirs.cloned().unwrap_or_default();
    all.extend(ours);
    all
}

fn owned<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_label_never_replaces_one_of_ours() {
        let theirs = owned([(CLUSTER, "other"), ("team", "a")]);
        let all = under(Some(&theirs), common("idm"));
        assert_eq!((all[CLUSTER].as_str(), all["team"].as_str()), ("idm", "a"));
    }

    #[test]
    fn servers_are_selected_by_labels_that_every_pod_of_a_group_carries() {
        let pod = group("idm", "default");
        assert!(servers("idm").iter().all(|(key, value)| pod.get(key) == Some(value)));
        assert_eq!(selector(&servers("idm")), "app.kubernetes.io/name=kanidm,kanidm.kaniop.rs/cluster=idm");
    }
}
