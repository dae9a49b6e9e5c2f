//! How clients and other nodes reach the servers.

use std::collections::BTreeSet;

use kaniop_core::cluster::gateway::missing;
use serde_json::json;

use super::*;

fn everything() -> Kanidm {
    kanidm(include_str!("network.yaml"))
}

/// The smallest spec with these fields, which may be of the whole spec or of its group.
fn with(spec: Value, group: Value) -> Kanidm {
    let mut kanidm = serde_json::to_value(minimal()).unwrap();
    let fields = |into: &mut Value, from: Value| {
        into.as_object_mut().unwrap().extend(from.as_object().unwrap().clone());
    };
    fields(&mut kanidm["spec"], spec);
    fields(&mut kanidm["spec"]["replicaGroups"][0], group);
    serde_json::from_value(kanidm).unwrap()
}

fn names(children: &[Child]) -> Vec<String> {
    children.iter().map(|child| format!("{} {}", child.kind.kind, child.name())).collect()
}

/// Which children two specs differ in: made, removed or changed.
fn changed(before: &Kanidm, after: &Kanidm) -> BTreeSet<String> {
    let (before, after) = (children(before, &fresh()), children(after, &fresh()));
    let lacks = |children: &[Child], child: &Child| !children.contains(child);
    let gone = before.iter().filter(|child| lacks(&after, child));
    let come = after.iter().filter(|child| lacks(&before, child));
    gone.chain(come).flat_map(|child| names(std::slice::from_ref(child))).collect()
}

#[test]
fn what_is_not_asked_for_is_decided_by_name_and_domain() {
    let kanidm = with(
        json!({
            "ingress": {}, "regionIngress": {"region": "eu"},
            "gateway": {"parentRefs": [{"name": "public"}],
                "backendTlsPolicy": {"validation": {"wellKnownCaCertificates": "System"}}},
        }),
        json!({"services": {}}),
    );
    let made = children(&kanidm, &fresh());
    let ways: Vec<_> = made.into_iter().filter(|child| child.apart).collect();
    insta::assert_yaml_snapshot!("network-defaults", manifests(&ways));
}

#[test]
fn each_node_has_a_service_of_its_own_that_changes_with_its_templates_only() {
    let nodes: BTreeSet<_> = ["Service my-idm-main-0", "Service my-idm-main-1"].map(str::to_owned).into();
    for (field, value) in [("annotationsTemplate", json!({"a": "{pod_name}"})), ("additionalLabels", json!({"a": "b"}))]
    {
        let mut after = serde_json::to_value(everything()).unwrap();
        after["spec"]["replicaGroups"][0]["services"][field] = value;
        assert_eq!(changed(&everything(), &serde_json::from_value(after).unwrap()), nodes, "{field}");
    }
    let mut scaled = everything();
    scaled.spec.replica_groups[0].replicas = 1;
    let differs = changed(&everything(), &scaled);
    assert!(differs.contains("Service my-idm-main-1") && !differs.contains("Service my-idm-main-0"), "{differs:?}");
    assert!(differs.contains("PodDisruptionBudget my-idm"), "one node needs none");
}

#[test]
fn a_pod_in_its_machines_network_still_finds_services() {
    let pod = |spec: Value| statefulset(&with(spec, json!({})), &fresh()).unwrap().spec.unwrap().template.spec.unwrap();
    let host = pod(json!({"hostNetwork": true}));
    assert_eq!((host.host_network, host.dns_policy.as_deref()), (Some(true), Some("ClusterFirstWithHostNet")));
    let own = pod(json!({"hostNetwork": true, "dnsPolicy": "Default"}));
    assert_ne!(own.dns_policy.as_deref(), Some("ClusterFirstWithHostNet"));
    let usual = pod(json!({"hostNetwork": false}));
    assert_eq!((usual.host_network, usual.dns_policy), (None, None));
}

#[test]
fn the_replication_port_is_open_to_strangers_only_where_nodes_of_elsewhere_take_part() {
    let open = |spec: Value, group: Value| {
        let made = children(&with(spec, group), &fresh());
        let policy = made.iter().find(|child| child.kind.kind == "NetworkPolicy").unwrap();
        let rules = policy.manifest["spec"]["ingress"].as_array().unwrap().clone();
        let replication = rules.iter().find(|rule| rule["ports"][0]["port"] == 8444).unwrap();
        replication["from"].is_null()
    };
    let external =
        json!([{"name": "a", "hostname": "a.example.com", "port": 8444, "certificate": {"name": "s", "key": "k"}}]);
    let storage = json!({"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}});
    let on = json!({"enabled": true});
    assert!(!open(json!({"networkPolicy": on}), json!({})));
    assert!(!open(json!({"networkPolicy": on, "externalReplicationNodes": []}), json!({})));
    assert!(open(json!({"networkPolicy": on}), json!({"services": {}})));
    assert!(open(json!({"networkPolicy": on, "externalReplicationNodes": external, "storage": storage}), json!({})));
}

#[test]
fn of_the_gateway_api_only_what_is_installed_is_made_and_what_is_missing_is_named() {
    let kanidm = everything();
    let cluster = validate(&kanidm).unwrap();
    let nothing = Installed::default();
    let route = nothing.with("v1", &["HTTPRoute"]);
    let older = route.with("v1alpha3", &["BackendTLSPolicy"]);
    for (gateway, versions, said) in [
        (nothing, vec![], Some("Kind BackendTLSPolicy")),
        (
            route,
            vec!["gateway.networking.k8s.io/v1 HTTPRoute"],
            Some("spec.gateway.backendTlsPolicy is not carried out"),
        ),
        (
            older,
            vec!["gateway.networking.k8s.io/v1 HTTPRoute", "gateway.networking.k8s.io/v1alpha3 BackendTLSPolicy"],
            None,
        ),
    ] {
        let made = children(&kanidm, &Surroundings { gateway, ..fresh() });
        let of_gateway = made.iter().filter(|child| child.kind.group == "gateway.networking.k8s.io");
        let of_gateway: Vec<_> = of_gateway
            .map(|child| format!("{} {}", child.manifest["apiVersion"].as_str().unwrap(), child.kind.kind))
            .collect();
        assert_eq!(of_gateway, versions);
        let missing = missing(&cluster, gateway);
        assert_eq!(missing.is_some(), said.is_some());
        assert!(missing.is_none_or(|missing| missing.message.contains(said.unwrap())));
    }
    let without_policy = with(json!({"gateway": {"parentRefs": [{"name": "public"}]}}), json!({}));
    let without_policy = validate(&without_policy).unwrap();
    let told = missing(&without_policy, nothing).unwrap().message;
    assert!(told.contains("Kind HTTPRoute") && told.contains("spec.gateway is not carried out"), "{told}");
    assert_eq!(missing(&without_policy, route), None);
    assert_eq!(missing(&validate(&minimal()).unwrap(), nothing), None, "nobody asked for it");
}

#[test]
fn only_ways_to_the_servers_can_fail_alone() {
    let needed: Vec<_> = children(&everything(), &fresh()).into_iter().filter(|child| !child.apart).collect();
    let expected = [
        "Secret my-idm-config",
        "Service my-idm-peers",
        "Service my-idm",
        "NetworkPolicy my-idm",
        "StatefulSet my-idm-main",
    ];
    assert_eq!(names(&needed), expected);
}

#[test]
fn every_wrong_host_name_and_template_is_told_at_once_with_the_way_out() {
    let yaml = "
metadata: {name: idm, namespace: default}
apiVersion: kaniop.rs/v1beta1
kind: Kanidm
spec:
  domain: idm.example.com
  portName: web
  ldapPortName: web
  hostNetwork: true
  networkPolicy: {enabled: true}
  ingress: {tlsSecretName: Not_A_Secret, extraTlsHosts: [ok.example.com, 'a.*.b', UPPER.example.com, '*.fine.example.com']}
  regionIngress: {region: eu.west, tlsSecretName: '-'}
  gateway:
    parentRefs: []
    hostnames: ['', 'https://idm.example.com']
    backendTlsPolicy: {validation: {hostname: '*.example.com'}}
  replicaGroups:
    - name: default
      replicas: 1
      services:
        annotationsTemplate: {a: '{pod}', b: '{\"json\": \"{pod_name}\"}', c: '{region}-{zone}'}
        replicationHostnameTemplate: '{node}.{domain}'
";
    let refusals: Vec<_> = validate(&kanidm(yaml)).unwrap_err().iter().map(ToString::to_string).collect();
    insta::assert_yaml_snapshot!("network-refusals", refusals);
}

#[test]
fn names_that_would_be_too_long_are_refused_before_anything_is_made() {
    let long = |labels: usize| vec!["a".repeat(60); labels].join(".");
    let said = |kanidm: &Kanidm| -> Vec<_> { validate(kanidm).unwrap_err().iter().map(ToString::to_string).collect() };
    let mut kanidm = with(json!({"regionIngress": {"region": "eu-west-number-one"}, "domain": long(4)}), json!({}));
    let refusals = said(&kanidm);
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    assert!(refusals[0].contains("spec.regionIngress.region") && refusals[0].contains("more than 253"), "{refusals:?}");
    kanidm.spec.region_ingress = None;
    kanidm.spec.replica_groups[0].services =
        serde_json::from_value(json!({"replicationHostnameTemplate": "{pod_name}.{domain}"})).unwrap();
    let refusals = said(&kanidm);
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    assert!(refusals[0].contains("replicationHostnameTemplate"), "{refusals:?}");
}

#[test]
fn a_backend_policy_without_or_with_two_kinds_of_trust_is_refused() {
    let validation = |validation: Value| {
        let gateway = json!({"parentRefs": [{"name": "a"}], "backendTlsPolicy": {"validation": validation}});
        validate(&with(json!({"gateway": gateway}), json!({}))).map(|_| ()).map_err(|errors| errors[0].to_string())
    };
    let refs = json!([{"kind": "ConfigMap", "name": "a"}]);
    assert_eq!(validation(json!({"caCertificateRefs": refs})), Ok(()));
    assert_eq!(validation(json!({"wellKnownCaCertificates": "System"})), Ok(()));
    for wrong in [
        json!({}),
        json!({"caCertificateRefs": []}),
        json!({"caCertificateRefs": refs, "wellKnownCaCertificates": "System"}),
    ] {
        let refused = validation(wrong).unwrap_err();
        assert!(refused.contains("either caCertificateRefs or wellKnownCaCertificates"), "{refused}");
    }
}
