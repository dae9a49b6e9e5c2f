//! The Services: one for clients, one without an address that gives each node a name in DNS, and where it is asked for one with an address for each node.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kaniop_api::kanidm::{IpFamily, NodeServices, ReplicaGroup, ServiceType};

use super::template::rendered;
use super::validate::ValidatedCluster;
use super::{labels, metadata, names};

/// Label that Kubernetes itself gives each pod of a StatefulSet.
const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";

/// The Service that clients use: every node that serves.
pub(super) fn client(cluster: &ValidatedCluster) -> Service {
    let options = cluster.spec.service.clone().unwrap_or_default();
    let mut metadata = metadata(cluster, cluster.name.clone());
    metadata.labels = Some(labels::under(options.additional_labels.as_ref(), metadata.labels.unwrap_or_default()));
    metadata.annotations = options.annotations.clone();
    let type_ = match options.type_ {
        None | Some(ServiceType::ClusterIP) => "ClusterIP",
        Some(ServiceType::NodePort) => "NodePort",
        Some(ServiceType::LoadBalancer) => "LoadBalancer",
    };
    Service {
        metadata,
        spec: Some(ServiceSpec {
            type_: Some(type_.to_owned()),
            selector: Some(labels::servers(&cluster.name)),
            ports: Some(std::iter::once(https(cluster)).chain(ldaps(cluster)).collect()),
            ip_families: ip_families(cluster),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// The headless Service of the StatefulSets. It lists nodes that do not serve yet too, for those are the ones that look for a primary.
pub(super) fn peers(cluster: &ValidatedCluster) -> Service {
    Service {
        metadata: metadata(cluster, names::peer_service(&cluster.name)),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            selector: Some(labels::servers(&cluster.name)),
            publish_not_ready_addresses: Some(true),
            ports: Some(vec![https(cluster), replication()]),
            ip_families: ip_families(cluster),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// The Services by which nodes of elsewhere reach the nodes of this group, one each.
pub(super) fn of_nodes(cluster: &ValidatedCluster, group: &ReplicaGroup) -> Vec<Service> {
    let options = group.services.as_ref();
    options
        .into_iter()
        .flat_map(|options| (0..group.replicas).map(|ordinal| node(cluster, group, options, ordinal)))
        .collect()
}

fn node(cluster: &ValidatedCluster, group: &ReplicaGroup, options: &NodeServices, ordinal: i32) -> Service {
    let pod = names::pod(&cluster.name, &group.name, ordinal);
    let own = |template: &String| rendered(template, &pod, ordinal, &cluster.spec.domain);
    let mut metadata = metadata(cluster, pod.clone());
    let ours = labels::under(Some(&labels::group(&cluster.name, &group.name)), metadata.labels.unwrap_or_default());
    metadata.labels = Some(labels::under(options.additional_labels.as_ref(), ours));
    let templates = options.annotations_template.as_ref();
    metadata.annotations =
        templates.map(|templates| templates.iter().map(|(key, template)| (key.clone(), own(template))).collect());
    Service {
        metadata,
        spec: Some(ServiceSpec {
            type_: Some("LoadBalancer".to_owned()),
            selector: Some([(POD_NAME.to_owned(), pod)].into()),
            // Clients must not be served yet by a node that has to replicate first.
            publish_not_ready_addresses: Some(true),
            ports: Some(vec![replication()]),
            ip_families: ip_families(cluster),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// Families of addresses, where another one is asked for than what nearly every cluster has.
fn ip_families(cluster: &ValidatedCluster) -> Option<Vec<String>> {
    (cluster.spec.ip_family == IpFamily::Ipv6).then(|| vec!["IPv6".to_owned()])
}

fn ldaps(cluster: &ValidatedCluster) -> Option<ServicePort> {
    cluster.spec.ldap_port_name.as_ref().map(|name| port(name, names::LDAP_PORT))
}

fn replication() -> ServicePort {
    port("replication", names::REPLICATION_PORT)
}

fn https(cluster: &ValidatedCluster) -> ServicePort {
    port(&cluster.spec.port_name, names::HTTPS_PORT)
}

fn port(name: &str, port: i32) -> ServicePort {
    ServicePort {
        name: Some(name.to_owned()),
        port,
        // Written out although it is the default: server-side apply tells ports apart by number and protocol.
        protocol: Some("TCP".to_owned()),
        // By number: pods that were started under an earlier port name go on being reached.
        target_port: Some(IntOrString::Int(port)),
        ..ServicePort::default()
    }
}
