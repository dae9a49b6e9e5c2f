//! The NetworkPolicy: who may reach which port of the servers. What the servers themselves may reach is not limited.

use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::validate::ValidatedCluster;
use super::{labels, metadata, names};

/// The policy, if the spec asks for it. Clients' ports are open to everybody, the operator and the kubelet among them; the replication port is for the
/// other nodes, which are somewhere unknown as soon as nodes of elsewhere take part.
pub(super) fn policy(cluster: &ValidatedCluster) -> Option<NetworkPolicy> {
    cluster.spec.network_policy.filter(|policy| policy.enabled)?;
    let servers = LabelSelector { match_labels: Some(labels::servers(&cluster.name)), match_expressions: None };
    let mut clients = vec![tcp(names::HTTPS_PORT)];
    clients.extend(cluster.spec.ldap_port_name.as_ref().map(|_| tcp(names::LDAP_PORT)));
    let nodes = (!replicates_outside(cluster))
        .then(|| vec![NetworkPolicyPeer { pod_selector: Some(servers.clone()), ..NetworkPolicyPeer::default() }]);
    Some(NetworkPolicy {
        metadata: metadata(cluster, cluster.name.clone()),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(servers),
            policy_types: Some(vec!["Ingress".to_owned()]),
            ingress: Some(vec![
                NetworkPolicyIngressRule { ports: Some(clients), from: None },
                NetworkPolicyIngressRule { ports: Some(vec![tcp(names::REPLICATION_PORT)]), from: nodes },
            ]),
            egress: None,
        }),
    })
}

fn replicates_outside(cluster: &ValidatedCluster) -> bool {
    let spec = &cluster.spec;
    spec.external_replication_nodes.as_ref().is_some_and(|nodes| !nodes.is_empty())
        || spec.replica_groups.iter().any(|group| group.services.is_some())
}

fn tcp(port: i32) -> NetworkPolicyPort {
    NetworkPolicyPort {
        port: Some(IntOrString::Int(port)),
        protocol: Some("TCP".to_owned()),
        ..NetworkPolicyPort::default()
    }
}
