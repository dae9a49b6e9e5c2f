//! The children of a Kanidm, whole, from specs as people write them; and what must hold for every spec.
#![allow(clippy::unwrap_used, reason = "a test that cannot read its own fixture has failed")]

#[path = "cluster/changes.rs"]
mod changes;
#[path = "cluster/fields.rs"]
mod fields;
#[path = "cluster/growth.rs"]
mod growth;
#[path = "cluster/network.rs"]
mod network;
#[path = "cluster/pods.rs"]
mod pods;
#[path = "cluster/replication.rs"]
mod replication;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Secret;
use kaniop_api::Kanidm;
use kaniop_core::cluster::gateway::Installed;
use kaniop_core::cluster::image::DEFAULT_IMAGE;
use kaniop_core::cluster::version::image_of;
use kaniop_core::cluster::{
    Certificates, Child, Images, Surroundings, build, refused_changes, template_hash, validate,
};
use serde_json::Value;

const HELPER: &str = "example.com/kaniop:1";
const HASH: &str = "hash-of-certificate-and-key";

fn kanidm(yaml: &str) -> Kanidm {
    serde_norway::from_str(yaml).unwrap()
}

fn minimal() -> Kanidm {
    kanidm(include_str!("cluster/minimal.yaml"))
}

fn older_release() -> StatefulSet {
    serde_norway::from_str(include_str!("cluster/older-release.yaml")).unwrap()
}

fn children(kanidm: &Kanidm, around: &Surroundings<'_>) -> Vec<Child> {
    build(&validate(kanidm).unwrap(), around)
}

fn manifests(children: &[Child]) -> Vec<Value> {
    let manifest = |child: &Child| {
        let mut value = child.manifest.clone();
        if let Some(secret) = child.read::<Secret>() {
            // Shown as text: a golden file is for reading.
            let files = secret.data.into_iter().flatten();
            let files = files.map(|(key, file)| (key, String::from_utf8(file.0).unwrap().into()));
            value["data"] = Value::Object(files.collect());
        }
        value
    };
    children.iter().map(manifest).collect()
}

fn statefulset(kanidm: &Kanidm, around: &Surroundings<'_>) -> Option<StatefulSet> {
    children(kanidm, around).iter().find_map(Child::read)
}

fn fresh() -> Surroundings<'static> {
    static NOTHING_KNOWN: Certificates = Certificates::new();
    Surroundings {
        helper_image: HELPER,
        tls_hash: Some(HASH),
        live: &[],
        gateway: Installed::default().with("v1", &["HTTPRoute", "BackendTLSPolicy"]),
        domain: None,
        certificates: &NOTHING_KNOWN,
        primary_serves: true,
        images: Images::Wanted,
    }
}

/// Every spec of this folder, by the name of its file.
fn specs() -> Vec<(String, Kanidm)> {
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster")).unwrap();
    let files = folder.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|of| of == "yaml"));
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        text.contains("\nkind: Kanidm\n").then(|| (name, kanidm(&text)))
    };
    let mut specs: Vec<_> = files.filter_map(read).collect();
    specs.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(specs.len() > 3);
    specs
}

#[test]
fn every_spec_gives_its_children_whole() {
    for (name, kanidm) in specs() {
        insta::assert_yaml_snapshot!(name, manifests(&children(&kanidm, &fresh())));
    }
}

#[test]
fn without_a_certificate_no_server_is_made_but_everything_else_is() {
    let around = Surroundings { tls_hash: None, ..fresh() };
    let kinds: Vec<_> = manifests(&children(&minimal(), &around)).iter().map(|child| child["kind"].clone()).collect();
    assert_eq!(kinds, ["Secret", "Service", "Service"]);
}

#[test]
fn what_cannot_be_changed_in_a_statefulset_is_taken_from_the_live_one() {
    let live = [older_release()];
    let around = Surroundings { tls_hash: None, live: &live, ..fresh() };
    let mut kanidm = minimal();
    kanidm.spec.storage = serde_norway::from_str(
        "{volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}}}",
    )
    .unwrap();
    insta::assert_yaml_snapshot!("older-release", manifests(&children(&kanidm, &around)[3..]));
    let cluster = validate(&kanidm).unwrap();
    assert_eq!(refused_changes(&cluster, &live, None), Ok(vec![]), "1024Mi is 1Gi");
}

#[test]
fn a_change_of_storage_that_cannot_be_made_is_told_and_the_live_storage_is_kept() {
    let live = [older_release()];
    let around = Surroundings { live: &live, ..fresh() };
    for (storage, said) in [
        (
            "{volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 512Mi}}}}}",
            "were made with 1Gi, and a volume cannot become smaller",
        ),
        (
            "{volumeClaimTemplate: {spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}}}",
            "cannot be changed",
        ),
        ("{emptyDir: {}}", "would lose it"),
    ] {
        let mut kanidm = minimal();
        kanidm.spec.storage = serde_norway::from_str(storage).unwrap();
        let refused = refused_changes(&validate(&kanidm).unwrap(), &live, None).unwrap();
        assert!(refused[0].to_string().contains(said), "{storage}: {refused:?}");
        let made = statefulset(&kanidm, &around).unwrap().spec.unwrap();
        assert_eq!(made.volume_claim_templates, live[0].spec.as_ref().unwrap().volume_claim_templates);
    }
}

#[test]
fn a_larger_claim_is_not_refused_and_the_template_stays_as_it_was() {
    let live = [older_release()];
    let mut kanidm = minimal();
    kanidm.spec.storage = serde_norway::from_str(
        "{volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}}}",
    )
    .unwrap();
    assert_eq!(refused_changes(&validate(&kanidm).unwrap(), &live, None), Ok(vec![]));
    let made = statefulset(&kanidm, &Surroundings { live: &live, ..fresh() }).unwrap().spec.unwrap();
    assert_eq!(made.volume_claim_templates, live[0].spec.as_ref().unwrap().volume_claim_templates);
}

#[test]
fn a_database_without_a_claim_does_not_get_one_later() {
    let live = [statefulset(&minimal(), &fresh()).unwrap()];
    let mut kanidm = minimal();
    kanidm.spec.storage = serde_norway::from_str(
        "{volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}",
    )
    .unwrap();
    let refused = refused_changes(&validate(&kanidm).unwrap(), &live, None).unwrap();
    assert!(refused[0].message.contains("was made without a claim"), "{refused:?}");
    let made = statefulset(&kanidm, &Surroundings { live: &live, ..fresh() }).unwrap();
    assert_eq!(made, live[0]);
}

#[test]
fn renaming_the_group_of_the_only_node_is_refused_before_anything_is_applied() {
    let live = [statefulset(&minimal(), &fresh()).unwrap()];
    let mut kanidm = minimal();
    kanidm.spec.replica_groups[0].name = "other".to_owned();
    let refused = refused_changes(&validate(&kanidm).unwrap(), &live, None).unwrap_err();
    assert!(refused[0].message.contains("'idm-default' belongs to a group that is gone"), "{refused:?}");
}

#[test]
fn a_new_helper_image_reaches_the_pods_without_restarting_any() {
    let before = statefulset(&minimal(), &fresh()).unwrap();
    let after = statefulset(&minimal(), &Surroundings { helper_image: "example.com/kaniop:2", ..fresh() }).unwrap();
    assert_eq!(template_hash(&before).unwrap(), template_hash(&after).unwrap());
    let image = |set: &StatefulSet| {
        let pod = set.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
        pod.init_containers.as_ref().unwrap()[0].image.clone()
    };
    assert_eq!((image(&before).as_deref(), image(&after).as_deref()), (Some(HELPER), Some("example.com/kaniop:2")));
}

#[test]
fn whatever_a_server_reads_at_its_start_restarts_it_when_it_changes() {
    type Change = fn(&mut Kanidm);
    let before = statefulset(&minimal(), &fresh()).unwrap();
    let changes: [(&str, Change); 4] = [
        ("image", |kanidm| kanidm.spec.image = Some("kanidm/server:1.10.4".to_owned())),
        ("server.toml", |kanidm| kanidm.spec.origin = Some("https://a.idm.example.com".to_owned())),
        ("environment", |kanidm| kanidm.spec.env = serde_norway::from_str("[{name: A, value: b}]").unwrap()),
        ("pod", |kanidm| kanidm.spec.replica_groups[0].node_selector = Some([("a".to_owned(), "b".to_owned())].into())),
    ];
    for (what, change) in changes {
        let mut kanidm = minimal();
        change(&mut kanidm);
        let after = statefulset(&kanidm, &fresh()).unwrap();
        assert_ne!(template_hash(&before), template_hash(&after), "{what}");
    }
    let renewed = statefulset(&minimal(), &Surroundings { tls_hash: Some("another"), ..fresh() }).unwrap();
    assert_eq!(
        template_hash(&before),
        template_hash(&renewed),
        "a server reads its certificate again when it is told to"
    );
    let mut scaled = minimal();
    scaled.spec.replica_groups[0].replicas = 0;
    assert_eq!(
        template_hash(&before),
        template_hash(&statefulset(&scaled, &fresh()).unwrap()),
        "scaling restarts nothing"
    );
}

#[test]
fn an_image_that_is_blocked_enters_no_statefulset_while_everything_else_goes_through() {
    let live = [statefulset(&minimal(), &fresh()).unwrap()];
    let mut kanidm = minimal();
    kanidm.spec.image = Some("kanidm/server:1.12.0".to_owned());
    kanidm.spec.env = serde_norway::from_str("[{name: A, value: b}]").unwrap();
    let kept = Surroundings { live: &live, images: Images::Kept(None), ..fresh() };
    insta::assert_yaml_snapshot!("blocked-image", manifests(&children(&kanidm, &kept)[3..]));
    assert_ne!(template_hash(&live[0]), template_hash(&statefulset(&kanidm, &kept).unwrap()), "the environment counts");
    kanidm.spec.env = None;
    assert_eq!(statefulset(&kanidm, &kept).unwrap(), live[0], "nothing else was asked for");
}

#[test]
fn a_statefulset_that_is_made_while_an_image_is_blocked_gets_the_one_that_runs_or_served_last_or_is_not_made() {
    let live = [statefulset(&minimal(), &fresh()).unwrap()];
    let mut kanidm = minimal();
    kanidm.spec.image = Some("kanidm/server:1.12.0".to_owned());
    kanidm.spec.replica_groups.push(serde_norway::from_str("{name: other, replicas: 0}").unwrap());
    let images = |live: &[StatefulSet], served| -> Vec<String> {
        let around = Surroundings { live, images: Images::Kept(served), ..fresh() };
        let sets = children(&kanidm, &around);
        let sets = sets.iter().filter_map(Child::read::<StatefulSet>);
        sets.map(|set| image_of(&set).unwrap().to_owned()).collect()
    };
    assert_eq!(images(&live, None), [DEFAULT_IMAGE, DEFAULT_IMAGE]);
    assert_eq!(images(&[], Some("kanidm/server:1.10.4")), ["kanidm/server:1.10.4", "kanidm/server:1.10.4"]);
    assert_eq!(images(&[], None), Vec::<String>::new());
}

#[test]
fn building_again_from_what_was_built_changes_nothing() {
    for (_, kanidm) in specs() {
        let first = statefulset(&kanidm, &fresh()).unwrap();
        let live = [first.clone()];
        assert_eq!(statefulset(&kanidm, &Surroundings { live: &live, ..fresh() }).unwrap(), first);
    }
}

#[test]
fn a_default_image_is_resolved_once_and_survives_an_upgrade_of_the_operator() {
    let mut kanidm = minimal();
    assert_eq!(validate(&kanidm).unwrap().image.as_str(), kaniop_core::cluster::image::DEFAULT_IMAGE);
    kanidm.status = serde_norway::from_str("{version: {image: 'kanidm/server:1.9.3'}}").unwrap();
    assert_eq!(validate(&kanidm).unwrap().image.as_str(), "kanidm/server:1.9.3");
    kanidm.spec.image = Some("kanidm/server:1.10.4".to_owned());
    assert_eq!(validate(&kanidm).unwrap().image.as_str(), "kanidm/server:1.10.4");
}

#[test]
fn every_error_of_the_user_is_told_at_once_in_words() {
    let yaml = "
metadata: {name: My_Idm, namespace: default}
spec:
  domain: Example.com
  origin: http://example.com
  image: 'kanidm/server:'
  portName: '8443'
  volumes: [{name: tls}, {name: a}, {name: a}]
  volumeMounts: [{name: a, mountPath: /data}, {name: a, mountPath: /etc/kanidm/config/more}, {name: a, mountPath: /}, {name: a, mountPath: /b}]
  containers:
    - {name: kanidm, image: elsewhere, ports: [{name: '8443', containerPort: 1}], volumeMounts: [{name: a, mountPath: /b/}]}
    - {name: node, image: i}
    - {name: both}
  initContainers:
    - {name: node, volumeMounts: [{name: a, mountPath: /kaniop}]}
    - {name: kanidm, image: i}
    - {name: both, image: i}
    - {name: both, image: i}
  tlsSecretName: TLS
  storage: {volumeClaimTemplate: {spec: {resources: {requests: {storage: big}}}}}
  replicaGroups:
    - {name: a, replicas: 2, role: read_only_replica, primaryNode: true}
    - {name: a, replicas: -1, primaryNode: true}
    - {name: -b-, replicas: 0}
apiVersion: kaniop.rs/v1beta1
kind: Kanidm
";
    let refusals: Vec<_> = validate(&kanidm(yaml)).unwrap_err().iter().map(ToString::to_string).collect();
    insta::assert_yaml_snapshot!("refusals", refusals);
}

#[test]
fn one_wrong_field_is_named_with_the_way_out() {
    type Change = fn(&mut Kanidm);
    let cases: [(Change, &str); 8] = [
        (
            |k| {
                k.metadata.name = Some("a".repeat(49));
                k.spec.replica_groups[0].name = "g".to_owned();
            },
            "metadata.name: must have at most 48 characters",
        ),
        (|k| k.spec.replica_groups[0].name = "g".repeat(49), "at most 51 characters together"),
        (|k| k.spec.origin = Some("https://other.org".to_owned()), "spec.origin: host 'other.org' must be the domain"),
        (|k| k.spec.replica_groups[0].replicas = 3, "Replication not available for ephemeral storage"),
        (
            |k| k.spec.replica_groups[0].role = kaniop_api::kanidm::Role::ReadOnlyReplica,
            "one group needs a role that takes writes",
        ),
        (
            |k| k.spec.volumes = serde_norway::from_str("[{name: kanidm-data}]").unwrap(),
            "spec.volumes: 'kanidm-data' is the name of one of the operator's own volumes: give yours another name",
        ),
        (
            |k| k.spec.containers = serde_norway::from_str("[{name: kanidm, image: 'kanidm/server:1.0.0'}]").unwrap(),
            "spec.containers[kanidm].image: 'kanidm/server:1.0.0' is not the image in spec.image",
        ),
        (|k| k.spec.replica_groups.clear(), "one group needs a role that takes writes"),
    ];
    for (change, said) in cases {
        let mut kanidm = minimal();
        change(&mut kanidm);
        let refusals = validate(&kanidm).unwrap_err();
        assert_eq!(refusals.len(), 1, "{refusals:?}");
        assert!(refusals[0].to_string().contains(said), "{refusals:?}");
    }
}

mod every_valid_spec {
    use super::*;
    use proptest::prelude::*;

    fn spec() -> impl Strategy<Value = Kanidm> {
        let storage = prop_oneof![
            Just(Value::Null),
            Just(serde_json::json!({"emptyDir": {}})),
            Just(serde_json::json!({"ephemeral": {}})),
            "[0-9]{1,3}(Mi|Gi|G|)".prop_map(|size| serde_json::json!({"volumeClaimTemplate": {"spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}}})),
        ];
        let origin =
            prop_oneof![Just(None), "https://[a-z\"\\]\\[]{0,8}\\.?example\\.com(:[0-9]{1,6})?".prop_map(Some)];
        let group =
            ("[a-z0-9-]{1,40}", 0..3_i32, any::<bool>(), prop_oneof![Just("write_replica"), Just("read_only_replica")]);
        let image = proptest::option::of("[a-z./:@0-9A-F]{1,40}");
        ("[a-z0-9-]{1,30}", prop::collection::vec(group, 0..4), origin, storage, image, ".{0,16}").prop_map(
            |(name, groups, origin, storage, image, env)| {
                let groups: Vec<_> = groups
                    .into_iter()
                    .map(|(name, replicas, primary, role)| {
                        serde_json::json!({"name": name, "replicas": replicas, "primaryNode": primary, "role": role})
                    })
                    .collect();
                let object = serde_json::json!({
                    "apiVersion": "kaniop.rs/v1beta1", "kind": "Kanidm",
                    "metadata": {"name": name, "namespace": "default", "uid": "u"},
                    "spec": {"domain": "example.com", "replicaGroups": groups, "origin": origin, "storage": storage, "image": image,
                        "env": [{"name": "KANIDM_ROLE", "value": env}, {"name": "A", "value": env}]},
                });
                serde_json::from_value(object).unwrap()
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

        #[test]
        fn is_built_with_names_that_kubernetes_takes_and_a_file_that_the_server_reads(kanidm in spec()) {
            let Ok(cluster) = validate(&kanidm) else { return Ok(()) };
            let children = build(&cluster, &fresh());
            for (child, manifest) in children.iter().zip(manifests(&children)) {
                let name = manifest["metadata"]["name"].as_str().unwrap();
                prop_assert!(name.len() <= if child.kind.kind == "StatefulSet" { 52 } else { 63 }, "{name}");
                prop_assert_eq!(&manifest["metadata"]["ownerReferences"][0]["uid"], "u");
                if child.kind.kind == "Secret" {
                    let files = manifest["data"].as_object().unwrap().iter().filter(|(key, _)| key.ends_with(".toml"));
                    for (_, file) in files {
                        let file: toml::Table = toml::from_str(file.as_str().unwrap()).unwrap();
                        prop_assert_eq!(file["domain"].as_str(), Some("example.com"));
                        prop_assert_eq!(file.len(), if file.contains_key("replication") { 11 } else { 10 });
                    }
                }
            }
            let made = statefulset(&kanidm, &fresh()).unwrap();
            let again = statefulset(&kanidm, &Surroundings { live: std::slice::from_ref(&made), ..fresh() }).unwrap();
            prop_assert_eq!(made, again);
        }
    }
}
