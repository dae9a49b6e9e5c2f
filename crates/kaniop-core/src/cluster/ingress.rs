//! The Ingresses: one for the domain, one for a region. Both lead to the Service that clients use, which speaks HTTPS only; how a controller is told
//! so is in the user's annotations, for each has its own words for it.

use std::collections::BTreeMap;

use k8s_openapi::api::networking::v1::{
    HTTPIngressPath, HTTPIngressRuleValue, Ingress, IngressBackend, IngressRule, IngressServiceBackend, IngressSpec,
    IngressTLS, ServiceBackendPort,
};

use super::validate::ValidatedCluster;
use super::{metadata, names};

/// What one Ingress is to be.
struct Way<'a> {
    name: String,
    host: String,
    more_hosts: &'a [String],
    secret: String,
    class: Option<&'a String>,
    annotations: Option<&'a BTreeMap<String, String>>,
}

/// The Ingress of the domain, if the spec asks for one.
pub(super) fn of_domain(cluster: &ValidatedCluster) -> Option<Ingress> {
    let options = cluster.spec.ingress.as_ref()?;
    Some(ingress(
        cluster,
        Way {
            name: cluster.name.clone(),
            host: cluster.spec.domain.clone(),
            more_hosts: options.extra_tls_hosts.as_deref().unwrap_or_default(),
            secret: options.tls_secret_name.clone().unwrap_or_else(|| names::tls_secret(&cluster.name)),
            class: options.ingress_class_name.as_ref(),
            annotations: options.annotations.as_ref(),
        },
    ))
}

/// The Ingress of the region, if the spec asks for one.
pub(super) fn of_region(cluster: &ValidatedCluster) -> Option<Ingress> {
    let options = cluster.spec.region_ingress.as_ref()?;
    Some(ingress(
        cluster,
        Way {
            name: names::region_ingress(&cluster.name, &options.region),
            host: names::region_host(&options.region, &cluster.spec.domain),
            more_hosts: &[],
            secret: options.tls_secret_name.clone().unwrap_or_else(|| names::region_tls_secret(&cluster.name)),
            class: options.ingress_class_name.as_ref(),
            annotations: options.annotations.as_ref(),
        },
    ))
}

fn ingress(cluster: &ValidatedCluster, way: Way<'_>) -> Ingress {
    let mut metadata = metadata(cluster, way.name);
    metadata.annotations = way.annotations.cloned();
    let service = IngressServiceBackend {
        name: cluster.name.clone(),
        // By number: the port's name is the user's, and may change.
        port: Some(ServiceBackendPort { number: Some(names::HTTPS_PORT), name: None }),
    };
    let path = HTTPIngressPath {
        path: Some("/".to_owned()),
        path_type: "Prefix".to_owned(),
        backend: IngressBackend { service: Some(service), resource: None },
    };
    let hosts = std::iter::once(&way.host).chain(way.more_hosts).cloned().collect();
    Ingress {
        metadata,
        spec: Some(IngressSpec {
            ingress_class_name: way.class.cloned(),
            tls: Some(vec![IngressTLS { hosts: Some(hosts), secret_name: Some(way.secret) }]),
            rules: Some(vec![IngressRule {
                host: Some(way.host),
                http: Some(HTTPIngressRuleValue { paths: vec![path] }),
            }]),
            default_backend: None,
        }),
        status: None,
    }
}
