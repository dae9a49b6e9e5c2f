//! Which children a change of each field changes: those and no others, from whatever spec the change is made. So a change of what clients see
//! restarts no server, and whatever a server reads at its start does.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::subsequence;
use serde_json::json;

use super::*;

/// What a change of a field may change: kinds of children, and whether servers are restarted.
struct Row {
    field: &'static str,
    value: &'static str,
    kinds: &'static [&'static str],
    restarts: bool,
}

const NOTHING: &[&str] = &[];
const SET: &[&str] = &["StatefulSet"];
const SET_AND_FILES: &[&str] = &["Secret", "StatefulSet"];
const SERVERS: &[&str] = &["Secret", "Service", "StatefulSet"];
const SERVICE: &[&str] = &["Service"];
const INGRESS: &[&str] = &["Ingress"];
const ROUTE: &[&str] = &["HTTPRoute"];

const fn row(field: &'static str, value: &'static str, kinds: &'static [&'static str], restarts: bool) -> Row {
    Row { field, value, kinds, restarts }
}

/// The fields by name, each with a value that differs from its default.
const ROWS: &[Row] = &[
    row("adoptionNamespaceSelector", "{}", NOTHING, false),
    row("automountServiceAccountToken", "true", SET, true),
    row("backup.schedule", "0 4 * * *", SET_AND_FILES, true),
    row("backup.versions", "3", SET_AND_FILES, true),
    row("containers", "[{name: beside, image: i}]", SET, true),
    row("disableUpgradeChecks", "true", NOTHING, false),
    row("dnsConfig", "{nameservers: [192.0.2.1]}", SET, true),
    row("dnsPolicy", "Default", SET, true),
    row("domain", "example.com", &["BackendTLSPolicy", "HTTPRoute", "Ingress", "Secret", "StatefulSet"], true),
    row("enableServiceLinks", "true", SET, true),
    row("env", "[{name: A, value: b}]", SET, true),
    row("gateway.annotations", "{a: b}", ROUTE, false),
    row(
        "gateway.backendTlsPolicy",
        "{validation: {wellKnownCaCertificates: System}}",
        &["BackendTLSPolicy", "HTTPRoute"],
        false,
    ),
    row("gateway.hostnames", "[a.idm.example.com]", ROUTE, false),
    row("gateway.parentRefs", "[{name: other}]", ROUTE, false),
    row("gateway.rules", "[{matches: []}]", ROUTE, false),
    row("groupNamespaceSelector", "{}", NOTHING, false),
    row("hostAliases", "[{ip: 192.0.2.1, hostnames: [a]}]", SET, true),
    row("hostNetwork", "true", SET, true),
    row("hostUsers", "false", SET, true),
    row("identityDefaults.adoptionPolicy", "Adopt", NOTHING, false),
    row("identityDefaults.deletionPolicy", "Retain", NOTHING, false),
    row("image", "kanidm/server:1.10.4", SET, true),
    row("imagePullPolicy", "Always", SET, true),
    row("imagePullSecrets", "[{name: a}]", SET, true),
    row("ingress.annotations", "{a: b}", INGRESS, false),
    row("ingress.extraTlsHosts", "[a.example.com]", INGRESS, false),
    row("ingress.ingressClassName", "a", INGRESS, false),
    row("ingress.tlsSecretName", "b", &["Ingress", "StatefulSet"], true),
    row("initContainers", "[{name: before, image: i}]", SET, true),
    row("ipFamily", "ipv6", SERVERS, true),
    row("ldapPortName", "ldaps", &["NetworkPolicy", "Secret", "Service", "StatefulSet"], true),
    row("logLevel", "debug", SET_AND_FILES, true),
    row("minReadySeconds", "10", SET, false),
    row("networkPolicy.enabled", "true", &["NetworkPolicy"], false),
    row("oauth2ClientNamespaceSelector", "{}", NOTHING, false),
    row("origin", "https://a.idm.example.com", SET_AND_FILES, true),
    row("paused", "true", NOTHING, false),
    row("persistentVolumeClaimRetentionPolicy", "{whenDeleted: Delete}", SET, false),
    row("personNamespaceSelector", "{}", NOTHING, false),
    row("podDisruptionBudget.enabled", "true", &["PodDisruptionBudget"], false),
    row("podTemplate.annotations", "{a: b}", SET, true),
    row("podTemplate.labels", "{a: b}", SET, true),
    row("podTemplate.priorityClassName", "a", SET, true),
    row("podTemplate.terminationGracePeriodSeconds", "90", SET, true),
    row("portName", "web", &["Service", "StatefulSet"], true),
    row("regionIngress.annotations", "{a: b}", INGRESS, false),
    row("regionIngress.ingressClassName", "a", INGRESS, false),
    row("regionIngress.region", "us", INGRESS, false),
    row("regionIngress.tlsSecretName", "b", INGRESS, false),
    row("replicaGroups[].affinity", "{nodeAffinity: {}}", SET, true),
    row("replicaGroups[].name", "other", SERVERS, true),
    row("replicaGroups[].nodeSelector", "{a: b}", SET, true),
    row("replicaGroups[].primaryNode", "true", NOTHING, false),
    row("replicaGroups[].replicas", "0", SERVERS, false),
    row("replicaGroups[].resources", "{requests: {cpu: 1}}", SET, true),
    row("replicaGroups[].role", "write_replica_no_ui", SET_AND_FILES, true),
    row("replicaGroups[].services", "{additionalLabels: {a: b}}", &["NetworkPolicy", "Service"], false),
    row("replicaGroups[].statefulSetAnnotations", "{a: b}", SET, false),
    row("replicaGroups[].tolerations", "[{operator: Exists}]", SET, true),
    row(
        "replicaGroups[].topologySpreadConstraints",
        "[{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]",
        SET,
        true,
    ),
    row("runtimeClassName", "a", SET, true),
    row("securityContext", "{fsGroup: 7}", SET, true),
    row("service.additionalLabels", "{a: b}", SERVICE, false),
    row("service.annotations", "{a: b}", SERVICE, false),
    row("service.type", "NodePort", SERVICE, false),
    row("serviceAccountNamespaceSelector", "{}", NOTHING, false),
    row("storage.emptyDir", "{sizeLimit: 1Gi}", SET_AND_FILES, true),
    row("storage.ephemeral", "{}", SET_AND_FILES, true),
    row(
        "storage.volumeClaimTemplate",
        "{spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}",
        SET_AND_FILES,
        true,
    ),
    row("tlsSecretName", "a", SET, true),
    row("volumeMounts", "[{name: tls, mountPath: /b}]", SET, true),
    row("volumes", "[{name: a, emptyDir: {}}]", SET, true),
];

/// A field in a spec, with what the API asks for beside it.
fn place<'a>(spec: &'a mut Value, field: &str) -> &'a mut Value {
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    for (outer, beside, needed) in [
        ("backup", "/backup", json!({"schedule": "0 3 * * *"})),
        ("backup", "/storage", json!({"volumeClaimTemplate": claim})),
        ("backup", "/replicaGroups/0/primaryNode", json!(true)),
        ("gateway", "/gateway", json!({"parentRefs": [{"name": "a"}]})),
        ("regionIngress", "/regionIngress", json!({"region": "eu"})),
    ] {
        let is_absent = spec.pointer(beside).is_none_or(|found| found.is_null() || *found == json!(false));
        if field.starts_with(outer) && is_absent {
            let (parent, name) = beside.rsplit_once('/').unwrap();
            spec.pointer_mut(parent).unwrap()[name] = needed;
        }
    }
    let mut place = spec;
    for part in field.split('.') {
        place = match part.strip_suffix("[]") {
            Some(list) => &mut place[list][0],
            None => &mut place[part],
        };
    }
    place
}

/// A spec with these fields.
fn with<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Value {
    let mut object = serde_json::to_value(minimal()).unwrap();
    object["spec"]["replicaGroups"] = json!([{"name": "default", "replicas": 1}]);
    for row in rows {
        *place(&mut object["spec"], row.field) = serde_norway::from_str(row.value).unwrap();
    }
    object
}

/// The children, or none where the fields do not go together.
fn made(object: &Value) -> Option<Vec<Value>> {
    let kanidm: Kanidm = serde_json::from_value(object.clone()).unwrap();
    let cluster = validate(&kanidm).ok()?;
    Some(manifests(&build(&cluster, &fresh())))
}

/// Kinds of the children that are not in both.
fn difference(before: &[Value], after: &[Value]) -> BTreeSet<String> {
    let only_in = |these: &[Value], those: &[Value]| -> Vec<String> {
        let lonely = these.iter().filter(|child| !those.contains(child));
        lonely.map(|child| child["kind"].as_str().unwrap().to_owned()).collect()
    };
    only_in(before, after).into_iter().chain(only_in(after, before)).collect()
}

fn hashes(children: &[Value]) -> BTreeSet<String> {
    let annotations = children.iter().map(|child| &child["spec"]["template"]["metadata"]["annotations"]);
    annotations
        .filter_map(|annotations| annotations["kanidm.kaniop.rs/template-hash"].as_str())
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_field_has_a_row_or_is_carried_out_later() {
    let rows: BTreeSet<_> = ROWS.iter().map(|row| row.field.to_owned()).collect();
    assert_eq!(rows.len(), ROWS.len());
    let carried_out: BTreeSet<_> = fields::fields().into_iter().filter(|field| !fields::is_later(field)).collect();
    assert_eq!(rows, carried_out);
}

#[test]
fn a_field_changes_exactly_the_children_in_its_row_and_restarts_servers_only_where_it_says_so() {
    // Some fields reach a child only where there is one that they are about.
    let of = |fields: &[&str]| -> Vec<&Row> { ROWS.iter().filter(|row| fields.contains(&row.field)).collect() };
    let every_way = [
        "gateway.backendTlsPolicy",
        "ingress.annotations",
        "networkPolicy.enabled",
        "regionIngress.region",
        "replicaGroups[].services",
    ];
    let bases = [vec![], of(&["storage.volumeClaimTemplate"]), of(&["networkPolicy.enabled"]), of(&every_way)];
    let mut wrong = Vec::new();
    for row in ROWS {
        let (mut kinds, mut restarts) = (BTreeSet::new(), false);
        for base in &bases {
            let before = made(&with(base.iter().copied())).unwrap();
            // From the smallest spec none may be refused; fields that exclude each other are from others.
            let Some(after) = made(&with(base.iter().copied().chain([row]))) else {
                assert!(!base.is_empty(), "{} is refused", row.field);
                continue;
            };
            kinds.extend(difference(&before, &after));
            restarts |= hashes(&before) != hashes(&after);
        }
        if kinds != row.kinds.iter().map(|kind| (*kind).to_owned()).collect() || restarts != row.restarts {
            wrong.push(format!("{}: {kinds:?}, restarts: {restarts}", row.field));
        }
    }
    assert!(wrong.is_empty(), "what the rows should say: {wrong:#?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn from_any_spec_a_field_changes_no_other_children_than_from_the_smallest(
        (base, change) in (subsequence((0..ROWS.len()).collect::<Vec<_>>(), 0..ROWS.len()), 0..ROWS.len())
    ) {
        let others = base.iter().filter(|index| **index != change).map(|index| &ROWS[*index]);
        let base = with(others);
        let mut changed = base.clone();
        let row = &ROWS[change];
        *place(&mut changed["spec"], row.field) = serde_norway::from_str(row.value).unwrap();
        let (Some(before), Some(after)) = (made(&base), made(&changed)) else { return Ok(()) };
        let differing = difference(&before, &after);
        prop_assert!(differing.iter().all(|kind| row.kinds.contains(&kind.as_str())), "{}: {:?}", row.field, differing);
        prop_assert!(row.restarts || hashes(&before) == hashes(&after), "{} restarts", row.field);
    }
}
