//! The Services: one for clients, one without an address that gives each node a name in DNS.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kaniop_api::kanidm::ServiceType;

use super::validate::ValidatedCluster;
use super::{labels, metadata, names};

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
            ports: Some(vec![https(cluster)]),
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
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

fn replication() -> ServicePort {
    ServicePort {
        name: Some("replication".to_owned()),
        port: names::REPLICATION_PORT,
        protocol: Some("TCP".to_owned()),
        target_port: Some(IntOrString::Int(names::REPLICATION_PORT)),
        ..ServicePort::default()
    }
}

fn https(cluster: &ValidatedCluster) -> ServicePort {
    ServicePort {
        name: Some(cluster.spec.port_name.clone()),
        port: names::HTTPS_PORT,
        // Written out although it is the default: server-side apply tells ports apart by number and protocol.
        protocol: Some("TCP".to_owned()),
        // By number: pods that were started under an earlier port name go on being reached.
        target_port: Some(IntOrString::Int(names::HTTPS_PORT)),
        ..ServicePort::default()
    }
}
