//! Which claims are asked for more room, and what is said of the others.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kaniop_core::cluster::ValidatedCluster;
use kaniop_core::cluster::growth::{Class, Growth, classes, growth};

use super::*;

fn storage(size: &str) -> Value {
    serde_json::json!({"volumeClaimTemplate": {"spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": {"requests": {"storage": size}},
    }}})
}

/// A cluster of three nodes that asks for this size.
fn cluster(size: &str) -> ValidatedCluster {
    let mut kanidm = minimal();
    kanidm.spec.storage = serde_json::from_value(storage(size)).unwrap();
    let mut cluster = validate(&kanidm).unwrap();
    cluster.spec.replica_groups[0].replicas = 3;
    cluster
}

/// The StatefulSet of when the spec asked for 1Gi.
fn live() -> [StatefulSet; 1] {
    let mut kanidm = minimal();
    kanidm.spec.storage = serde_json::from_value(storage("1Gi")).unwrap();
    [statefulset(&kanidm, &fresh()).unwrap()]
}

/// A claim that asks for `size` and has `capacity`.
fn claim(ordinal: u8, size: &str, capacity: &str) -> PersistentVolumeClaim {
    serde_json::from_value(serde_json::json!({
        "metadata": {
            "name": format!("kanidm-data-idm-default-{ordinal}"), "namespace": "default", "uid": format!("uid-{ordinal}"),
            "resourceVersion": "7", "labels": {"kanidm.kaniop.rs/cluster": "idm"},
        },
        "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": size}}},
        "status": {"phase": "Bound", "capacity": {"storage": capacity}},
    }))
    .unwrap()
}

fn judged(size: &str, claims: &[PersistentVolumeClaim], class: Option<Class>) -> Growth {
    let classes = class.map(|class| ("fast".to_owned(), class)).into_iter().collect();
    growth(&cluster(size), &live(), claims, &classes)
}

#[test]
fn every_claim_that_is_too_small_asks_for_what_the_spec_says_under_its_uid_and_version() {
    let claims = [claim(0, "1Gi", "1Gi"), claim(1, "2048Mi", "2Gi"), claim(2, "1536Mi", "2Gi")];
    let growth = judged("2Gi", &claims, Some(Class::Allows));
    let larger: Vec<_> =
        growth.larger.iter().map(|larger| (larger.claim.as_str(), larger.from.as_str(), larger.to.as_str())).collect();
    assert_eq!(larger, [("kanidm-data-idm-default-0", "1Gi", "2Gi"), ("kanidm-data-idm-default-2", "1536Mi", "2Gi")]);
    assert_eq!((growth.larger[0].uid.as_deref(), growth.larger[0].version.as_deref()), (Some("uid-0"), Some("7")));
    assert_eq!((growth.refused, growth.under_way), (vec![], vec![]));
}

#[test]
fn a_class_is_read_only_when_a_claim_has_to_grow() {
    let (cluster, live) = (cluster("2Gi"), live());
    assert!(classes(&cluster, &live, &[claim(0, "2Gi", "1Gi")]).is_empty());
    assert_eq!(
        classes(&cluster, &live, &[claim(0, "1Gi", "1Gi"), claim(1, "1Gi", "1Gi")]).into_iter().collect::<Vec<_>>(),
        ["fast"]
    );
}

#[test]
fn what_cannot_grow_is_told_once_for_all_claims_of_a_class_with_the_way_out() {
    let claims = [claim(0, "1Gi", "1Gi"), claim(1, "1Gi", "1Gi")];
    for (class, said) in [
        (
            Class::Refuses,
            "for their StorageClass 'fast' does not allow it. They stay at 1Gi: 'kanidm-data-idm-default-0', 'kanidm-data-idm-default-1'. \
         Set allowVolumeExpansion: true on 'fast', if its driver can, or set requests.storage back to 1Gi",
        ),
        (Class::Gone, "StorageClass 'fast' does not exist"),
    ] {
        let growth = judged("2Gi", &claims, Some(class));
        assert!(growth.larger.is_empty());
        assert_eq!(growth.refused.len(), 1);
        assert!(growth.refused[0].to_string().contains(said), "{:?}", growth.refused);
    }
    let mut without = claim(0, "1Gi", "1Gi");
    without.spec.as_mut().unwrap().storage_class_name = None;
    let refused = judged("2Gi", &[without], None).refused;
    assert!(refused[0].message.contains("they have no StorageClass"), "{refused:?}");
}

#[test]
fn a_class_that_may_not_be_read_is_left_to_the_api_server() {
    assert_eq!(judged("2Gi", &[claim(0, "1Gi", "1Gi")], Some(Class::Unknown)).larger.len(), 1);
}

#[test]
fn a_claim_without_a_volume_waits_for_one() {
    let mut pending = claim(0, "1Gi", "1Gi");
    pending.status = serde_norway::from_str("{phase: Pending}").unwrap();
    let growth = judged("2Gi", &[pending], Some(Class::Allows));
    assert!(growth.larger.is_empty() && growth.refused.is_empty());
    assert_eq!(growth.under_way, ["Claim 'kanidm-data-idm-default-0' asks for 2Gi instead of 1Gi once it is bound."]);
}

#[test]
fn how_far_a_claim_is_comes_from_its_own_status() {
    for (conditions, said) in [
        ("[]", "its driver has not begun yet"),
        ("[{type: Resizing, status: 'True'}]", "its volume is being resized"),
        ("[{type: Resizing, status: 'False'}]", "its driver has not begun yet"),
        ("[{type: FileSystemResizePending, status: 'True'}]", "only when pod 'idm-default-0' starts again"),
        ("[{type: ControllerResizeError, status: 'True', message: no room.}]", "its driver fails: no room."),
    ] {
        let mut growing = claim(0, "2Gi", "1Gi");
        growing.status.as_mut().unwrap().conditions = serde_norway::from_str(conditions).unwrap();
        let told = judged("2Gi", &[growing], None).under_way.join("");
        assert!(
            told.starts_with("Claim 'kanidm-data-idm-default-0' grows from 1Gi to 2Gi: ") && told.contains(said),
            "{told}"
        );
    }
    assert_eq!(judged("2Gi", &[claim(0, "2Gi", "2Gi")], None), Growth::default());
}

#[test]
fn a_claim_that_no_pod_of_the_spec_has_grows_where_it_can_and_is_not_talked_about() {
    let left_over = |size| claim(7, size, "1Gi");
    assert_eq!(judged("2Gi", &[left_over("1Gi")], Some(Class::Allows)).larger.len(), 1);
    assert_eq!(judged("2Gi", &[left_over("1Gi")], Some(Class::Refuses)), Growth::default());
    assert_eq!(judged("2Gi", &[left_over("2Gi")], None), Growth::default());
}

#[test]
fn a_smaller_size_is_refused_only_where_the_operator_made_the_claim_larger() {
    let mut grown = claim(0, "4Gi", "4Gi");
    assert_eq!(judged("2Gi", &[grown.clone()], None), Growth::default(), "made larger by hand");
    grown.metadata.annotations = Some([("kanidm.kaniop.rs/grown-to".to_owned(), "4096Mi".to_owned())].into());
    let refused = judged("2Gi", &[grown], None).refused;
    assert!(refused[0].message.contains("up to 4Gi, and a volume cannot become smaller"), "{refused:?}");
}

#[test]
fn a_template_that_differs_in_more_than_its_size_is_refused_as_a_whole_and_no_claim_grows() {
    let mut cluster = cluster("2Gi");
    let mut kanidm = minimal();
    let mut storage = storage("2Gi");
    storage["volumeClaimTemplate"]["spec"]["accessModes"] = serde_json::json!(["ReadWriteMany"]);
    kanidm.spec.storage = serde_json::from_value(storage).unwrap();
    cluster.storage = validate(&kanidm).unwrap().storage;
    assert_eq!(
        growth(&cluster, &live(), &[claim(0, "1Gi", "1Gi")], &std::collections::BTreeMap::new()),
        Growth::default()
    );
    assert_eq!(refused_changes(&cluster, &live(), None).unwrap().len(), 1);
}
