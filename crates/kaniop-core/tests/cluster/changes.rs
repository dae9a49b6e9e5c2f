//! Which children a change of each field changes: those and no others, from whatever spec the change is made. So a change of what clients see
//! restarts no server, and whatever a server reads at its start does.

use std::collections::{BTreeMap, BTreeSet};

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
const SERVICE: &[&str] = &["Service"];
const OPENED: &[&str] = &["NetworkPolicy", "Secret"];
const INGRESS: &[&str] = &["Ingress"];
const ROUTE: &[&str] = &["HTTPRoute"];

const fn row(field: &'static str, value: &'static str, kinds: &'static [&'static str], restarts: bool) -> Row {
    Row { field, value, kinds, restarts }
}

/// The fields in the order of the CRD, each with a value that differs from its default. The value of one that is in a map or list is that of the
/// inner field.
const ROWS: &[Row] = &[
    row("adoptionNamespaceSelector", "{}", NOTHING, false),
    row("automountServiceAccountToken", "true", SET, true),
    row("backup.schedule", "0 3 * * *", &["Secret"], false),
    row("backup.versions", "3", &["Secret"], false),
    row("containers", "[{name: beside, image: i}]", SET, true),
    row("disableUpgradeChecks", "true", NOTHING, false),
    row("dnsConfig", "{nameservers: [192.0.2.1]}", SET, true),
    row("dnsPolicy", "Default", SET, true),
    row(
        "domain",
        "example.com",
        &["BackendTLSPolicy", "HTTPRoute", "Ingress", "Secret", "Service", "StatefulSet"],
        true,
    ),
    row("enableServiceLinks", "true", SET, true),
    row("env", "[{name: A, value: b}]", SET, true),
    row("gateway.annotations", "{a: b}", ROUTE, false),
    row(
        "gateway.backendTlsPolicy",
        "{validation: {wellKnownCaCertificates: System}}",
        &["BackendTLSPolicy", "HTTPRoute"],
        false,
    ),
    row("externalReplicationNodes[].automaticRefresh", "true", OPENED, false),
    row("externalReplicationNodes[].certificate", "{name: b, key: b}", OPENED, false),
    row("externalReplicationNodes[].hostname", "b.example.com", OPENED, false),
    row("externalReplicationNodes[].name", "b", OPENED, false),
    row("externalReplicationNodes[].port", "9444", OPENED, false),
    row("externalReplicationNodes[].type", "pull", OPENED, false),
    row("gateway.hostnames", "[a.example.com]", ROUTE, false),
    row("gateway.parentRefs", "[{name: b}]", ROUTE, false),
    row("gateway.rules", "[{}]", ROUTE, false),
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
    // Where the servers have no Secret of their own, it is theirs too.
    row("ingress.tlsSecretName", "shown", &["Ingress", "StatefulSet"], true),
    row("initContainers", "[{name: before, image: i}]", SET, true),
    row("ipFamily", "ipv6", &["Secret", "Service", "StatefulSet"], true),
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
    row("regionIngress.region", "b", INGRESS, false),
    row("regionIngress.tlsSecretName", "a", INGRESS, false),
    row("replicaGroups[].affinity", "{nodeAffinity: {}}", SET, true),
    row("replicaGroups[].name", "other", &["Secret", "Service", "StatefulSet"], true),
    row("replicaGroups[].nodeSelector", "{a: b}", SET, true),
    row("replicaGroups[].primaryNode", "true", NOTHING, false),
    row("replicaGroups[].replicas", "0", &["Secret", "Service", "StatefulSet"], false),
    row("replicaGroups[].resources", "{requests: {cpu: 1}}", SET, true),
    row("replicaGroups[].role", "write_replica_no_ui", SET_AND_FILES, true),
    row(
        "replicaGroups[].services",
        "{annotationsTemplate: {a: '{pod_name}.{domain}'}}",
        &["NetworkPolicy", "Service"],
        false,
    ),
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

/// What a part of the spec needs to be one, besides the field that is set in it.
const LEAST: &[(&str, &str)] = &[
    ("backup", "{schedule: '0 2 * * *'}"),
    ("externalReplicationNodes", "[{name: a, hostname: a.example.com, port: 8444, certificate: {name: a, key: b}}]"),
    ("gateway", "{parentRefs: [{name: a}]}"),
    ("regionIngress", "{region: a}"),
];

/// Fields without which some others have no effect, or none on one of their children: only nodes on claims replicate and have backups, for instance.
const BASES: &[&[&str]] = &[
    &[],
    &["storage.volumeClaimTemplate", "replicaGroups[].primaryNode"],
    &["networkPolicy.enabled"],
    &["networkPolicy.enabled", "storage.volumeClaimTemplate"],
    &[
        "gateway.backendTlsPolicy",
        "ingress.annotations",
        "networkPolicy.enabled",
        "podDisruptionBudget.enabled",
        "regionIngress.annotations",
        "replicaGroups[].services",
    ],
];

/// Sets a field.
fn set(spec: &mut Value, row: &Row) {
    let outer = row.field.split('.').next().unwrap().trim_end_matches("[]");
    if let Some((_, least)) = LEAST.iter().find(|(name, _)| *name == outer && spec[outer].is_null()) {
        spec[outer] = serde_norway::from_str(least).unwrap();
    }
    *place(spec, row.field) = serde_norway::from_str(row.value).unwrap();
}

/// A field in a spec.
fn place<'a>(spec: &'a mut Value, field: &str) -> &'a mut Value {
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
        set(&mut object["spec"], row);
    }
    object
}

/// The children, or none where the fields do not go together.
fn made(object: &Value) -> Option<Vec<Value>> {
    let kanidm: Kanidm = serde_json::from_value(object.clone()).unwrap();
    let cluster = validate(&kanidm).ok()?;
    let of = |names: [&str; 2]| names.map(|name| (name.to_owned(), format!("certificate-of-{name}"))).into();
    let certificates = Certificates { nodes: BTreeMap::new(), external: of(["a", "b"]) };
    Some(manifests(&build(&cluster, &Surroundings { certificates: &certificates, ..fresh() })))
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
    for row in ROWS {
        let (mut kinds, mut restarts, mut possible) = (BTreeSet::new(), false, false);
        for base in BASES {
            let base: Vec<_> = ROWS.iter().filter(|row| base.contains(&row.field)).collect();
            let before = made(&with(base.iter().copied())).unwrap();
            // Some fields need another one or exclude it.
            let Some(after) = made(&with(base.iter().copied().chain([row]))) else { continue };
            possible = true;
            kinds.extend(difference(&before, &after));
            restarts |= hashes(&before) != hashes(&after);
        }
        assert!(possible, "{} is refused", row.field);
        assert_eq!(kinds, row.kinds.iter().map(|kind| (*kind).to_owned()).collect(), "{}", row.field);
        assert_eq!(restarts, row.restarts, "{}", row.field);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn from_any_spec_a_field_changes_no_other_children_than_from_the_smallest(
        (base, change) in (subsequence((0..ROWS.len()).collect::<Vec<_>>(), 0..ROWS.len()), 0..ROWS.len())
    ) {
        let others = base.iter().filter(|index| **index != change).map(|index| &ROWS[*index]);
        let base = with(others);
        let mut changed = base.clone();
        let row = &ROWS[change];
        set(&mut changed["spec"], row);
        let (Some(before), Some(after)) = (made(&base), made(&changed)) else { return Ok(()) };
        let differing = difference(&before, &after);
        prop_assert!(differing.iter().all(|kind| row.kinds.contains(&kind.as_str())), "{}: {:?}", row.field, differing);
        prop_assert!(row.restarts || hashes(&before) == hashes(&after), "{} restarts", row.field);
    }
}
