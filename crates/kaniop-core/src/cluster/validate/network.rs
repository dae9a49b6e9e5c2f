//! What can be wrong in how clients and other nodes are to reach the servers.

use kaniop_api::kanidm::{BackendTlsValidation, GatewayOptions, KanidmSpec, NodeServices, ReplicaGroup};

use super::super::names;
use super::super::template::{rendered, unknown_variables};
use super::{Refusal, check_port_name, is_dns_name, is_label};

/// Every error of the user in these parts of the spec, in the order of its fields.
pub(super) fn check(cluster: &str, spec: &KanidmSpec, errors: &mut Vec<Refusal>) {
    for group in &spec.replica_groups {
        if let Some(services) = &group.services {
            check_services(cluster, spec, group, services, errors);
        }
    }
    check_ldap(spec, errors);
    check_ingresses(cluster, spec, errors);
    if let Some(gateway) = &spec.gateway {
        check_gateway(gateway, errors);
    }
    if spec.network_policy.is_some_and(|policy| policy.enabled) && spec.host_network == Some(true) {
        let message = "Kubernetes applies no NetworkPolicy to pods in their machine's network: take it out, or take spec.hostNetwork out";
        errors.push(Refusal::new("spec.networkPolicy", message));
    }
}

fn check_services(
    cluster: &str,
    spec: &KanidmSpec,
    group: &ReplicaGroup,
    services: &NodeServices,
    errors: &mut Vec<Refusal>,
) {
    let field = format!("spec.replicaGroups[{}].services", group.name);
    let hostname = services.replication_hostname_template.as_deref();
    let hostname = hostname.map(|template| ("replicationHostnameTemplate".to_owned(), template));
    let annotations = services.annotations_template.iter().flatten();
    let annotations = annotations.map(|(key, template)| (format!("annotationsTemplate[{key}]"), template.as_str()));
    for (part, template) in annotations.chain(hostname.clone()) {
        for unknown in unknown_variables(template) {
            let message =
                format!("'{{{unknown}}}' stands for nothing; use {{replica_index}}, {{pod_name}} or {{domain}}");
            errors.push(Refusal::new(format!("{field}.{part}"), message));
        }
    }
    let Some((part, template)) = hostname.filter(|(_, template)| unknown_variables(template).is_empty()) else {
        return;
    };
    // The longest name is that of the last node.
    let last = (group.replicas - 1).max(0);
    let pod_name = names::pod(cluster, &group.name, last);
    let host = rendered(template, &pod_name, last, &spec.domain);
    if !is_dns_name(&host) {
        let message = format!("'{host}', which node {last} would get, is not a lower-case DNS name");
        errors.push(Refusal::new(format!("{field}.{part}"), message));
    }
    let names_its_node = rendered(template, "a", 0, &spec.domain) != rendered(template, "b", 1, &spec.domain);
    if group.replicas > 1 && !names_its_node {
        let message = "all nodes would get the same name: use {replica_index} or {pod_name} in it";
        errors.push(Refusal::new(format!("{field}.{part}"), message));
    }
}

fn check_ldap(spec: &KanidmSpec, errors: &mut Vec<Refusal>) {
    let Some(name) = &spec.ldap_port_name else { return };
    check_port_name("spec.ldapPortName", name, errors);
    if *name == spec.port_name {
        let message =
            format!("'{name}' is the name of the HTTPS port (spec.portName): use another one, for example ldaps");
        errors.push(Refusal::new("spec.ldapPortName", message));
    }
}

fn check_ingresses(cluster: &str, spec: &KanidmSpec, errors: &mut Vec<Refusal>) {
    if let Some(ingress) = &spec.ingress {
        check_secret("spec.ingress.tlsSecretName", ingress.tls_secret_name.as_deref(), errors);
        for host in ingress.extra_tls_hosts.iter().flatten() {
            check_host("spec.ingress.extraTlsHosts", host, errors);
        }
    }
    let Some(regional) = &spec.region_ingress else { return };
    let region = &regional.region;
    if !is_label(region) {
        let message = format!("'{region}' cannot be part of a host: use lower-case letters, digits and '-'");
        errors.push(Refusal::new("spec.regionIngress.region", message));
    }
    let host = names::region_host(region, &spec.domain);
    if host.len() > 253 {
        let message = format!("the host '{host}' would have more than 253 characters: use a shorter name");
        errors.push(Refusal::new("spec.regionIngress.region", message));
    }
    if names::region_ingress(cluster, region).len() > 253 {
        let message = "the Ingress '<name>-<region>' would have more than 253 characters: use a shorter name";
        errors.push(Refusal::new("spec.regionIngress.region", message));
    }
    check_secret("spec.regionIngress.tlsSecretName", regional.tls_secret_name.as_deref(), errors);
}

fn check_gateway(gateway: &GatewayOptions, errors: &mut Vec<Refusal>) {
    if gateway.parent_refs.is_empty() {
        errors.push(Refusal::new("spec.gateway.parentRefs", "name at least one Gateway"));
    }
    for host in gateway.hostnames.iter().flatten() {
        check_host("spec.gateway.hostnames", host, errors);
    }
    let Some(policy) = &gateway.backend_tls_policy else { return };
    let BackendTlsValidation { hostname, well_known_ca_certificates, ca_certificate_refs } = &policy.validation;
    let field = "spec.gateway.backendTlsPolicy.validation";
    if let Some(host) = hostname.as_ref().filter(|host| !is_dns_name(host)) {
        let message = format!("'{host}' is not a lower-case DNS name without wildcard");
        errors.push(Refusal::new(format!("{field}.hostname"), message));
    }
    let refs = ca_certificate_refs.as_ref().is_some_and(|refs| !refs.is_empty());
    if refs == well_known_ca_certificates.is_some() {
        let message =
            "name either caCertificateRefs or wellKnownCaCertificates: System, so that the Gateway knows whom to trust";
        errors.push(Refusal::new(field, message));
    }
}

fn check_secret(field: &str, name: Option<&str>, errors: &mut Vec<Refusal>) {
    if let Some(name) = name.filter(|name| !is_dns_name(name)) {
        errors.push(Refusal::new(field, format!("'{name}' cannot be the name of a Secret")));
    }
}

fn check_host(field: &str, host: &str, errors: &mut Vec<Refusal>) {
    if !is_dns_name(host.strip_prefix("*.").unwrap_or(host)) {
        let message = format!("'{host}' is not a lower-case DNS name; only its first label may be '*'");
        errors.push(Refusal::new(field, message));
    }
}
