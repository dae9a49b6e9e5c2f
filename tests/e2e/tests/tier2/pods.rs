//! What users add to the pods, and volumes that grow, as a real API server takes them: defaults, lists by key, Pod Security, admission of claims.

use kaniop_e2e::certificate::Authority;
use kaniop_e2e::cluster::Cluster;
use kaniop_e2e::eventually;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::operator::Operator;
use super::{SOON, cluster, minimal, space, stands_still};

/// A Kanidm with its certificate, and the StatefulSet that it gets.
async fn statefulset(cluster: &Cluster, space: &str, spec: &Value) -> DynamicObject {
    let authority = Authority::default();
    cluster.apply(&authority.secret(space, "idm-tls", "idm.example.com", &authority.pem)).await;
    let mut kanidm = minimal("Kanidm", space, "idm");
    kanidm["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    cluster.apply(&kanidm).await;
    let sets = cluster.api("StatefulSet", space);
    eventually("the StatefulSet", SOON, || async { sets.get_opt("idm-default").await.unwrap().ok_or("absent") }).await
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test"]
async fn whatever_is_added_to_a_pod_is_applied_once_and_admitted_where_pod_security_is_restricted() {
    let cluster = cluster().await;
    let space = space(&cluster, "t2-pods").await;
    let _operator = Operator::start(&space, "pods-only");
    let spec = json!({
        "env": [{"name": "A", "value": "b"}],
        "volumes": [{"name": "scratch", "emptyDir": {}}],
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
        "containers": [
            {"name": "kanidm", "ports": [{"containerPort": 9000}], "resources": {"limits": {"memory": "1024Mi"}},
             "readinessProbe": {"tcpSocket": {"port": 8443}}, "securityContext": {"runAsUser": 1000}},
            {"name": "beside", "image": "example.com/beside:1", "ports": [{"containerPort": 9100}], "stdin": false},
        ],
        "initContainers": [{"name": "before", "image": "example.com/before:1", "restartPolicy": "Always"}],
        "podTemplate": {"annotations": {"a": "b"}, "labels": {"c": "d"}, "terminationGracePeriodSeconds": 0},
        "dnsConfig": {"nameservers": ["192.0.2.53"], "options": [{"name": "ndots", "value": "2"}]},
        "dnsPolicy": "None",
        "hostAliases": [{"ip": "192.0.2.7", "hostnames": ["mail.example.com"]}],
        "minReadySeconds": 10,
        "enableServiceLinks": true,
        "automountServiceAccountToken": true,
    });
    let set = statefulset(&cluster, &space, &spec).await;
    cluster.says("Kanidm", &space, "idm", "False PodsNotReady").await;
    // Two looks of the operator are the measurement.
    stands_still(&cluster, &space).await;

    let template = &set.data["spec"]["template"];
    let mut metadata = template["metadata"].clone();
    metadata["name"] = json!("by-hand");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]});
    let pods = cluster.api("Pod", &space);
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let admitted = eventually("the namespace's own account", SOON, || async {
        // Before that exists no pod is taken at all.
        let made = pods.create(&dry_run, &serde_json::from_value(pod.clone()).unwrap()).await;
        made.map_err(|error| error.to_string())
    })
    .await;
    assert_eq!(admitted.labels()["c"], "d");
    let mut privileged = pod.clone();
    privileged["spec"]["containers"][1]["securityContext"] = json!({"privileged": true});
    let refused = pods.create(&dry_run, &serde_json::from_value(privileged).unwrap()).await.unwrap_err();
    assert!(refused.to_string().contains("violates PodSecurity"), "{refused}");
    cluster.delete("Kanidm", &space, "idm").await;
}

/// One class that lets volumes grow, and one that does not.
async fn two_classes(cluster: &Cluster) {
    for (name, allows) in [("t2-fixed", false), ("t2-growing", true)] {
        cluster
            .apply(&json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
                "provisioner": "example.com/none", "allowVolumeExpansion": allows,
            }))
            .await;
    }
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test"]
async fn a_claim_grows_as_far_as_the_api_server_lets_it() {
    let cluster = cluster().await;
    let space = space(&cluster, "t2-growth").await;
    two_classes(&cluster).await;
    let storage = |size: &str| {
        json!({"storage": {"volumeClaimTemplate": {"spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "t2-growing", "resources": {"requests": {"storage": size}},
        }}}})
    };
    let _operator = Operator::start(&space, "growth-only");
    let set = statefulset(&cluster, &space, &storage("1Gi")).await;
    let claims: Api<DynamicObject> = cluster.api("PersistentVolumeClaim", &space);
    // Two claims as the StatefulSet's controller makes them: one of a class that lets volumes grow, one that somebody moved to another.
    for (ordinal, class) in [(0, "t2-growing"), (1, "t2-fixed")] {
        let name = format!("kanidm-data-idm-default-{ordinal}");
        let labels = &set.data["spec"]["selector"]["matchLabels"];
        cluster
            .apply(&json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": space, "labels": labels},
                "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": {"requests": {"storage": "1Gi"}}},
            }))
            .await;
        let bound = json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}});
        claims.patch_status(&name, &PatchParams::default(), &Patch::Merge(&bound)).await.unwrap();
    }
    statefulset(&cluster, &space, &storage("2048Mi")).await;
    let asks =
        |claim: &DynamicObject| claim.data["spec"]["resources"]["requests"]["storage"].as_str().unwrap().to_owned();
    let grown = eventually("a claim of 2Gi", SOON, || async {
        let claim = claims.get("kanidm-data-idm-default-0").await.unwrap();
        if asks(&claim) == "2Gi" { Ok(claim) } else { Err(asks(&claim)) }
    })
    .await;
    assert_eq!(grown.annotations()["kanidm.kaniop.rs/grown-to"], "2048Mi");
    assert_eq!(asks(&claims.get("kanidm-data-idm-default-1").await.unwrap()), "1Gi");
    let kanidms = cluster.api("Kanidm", &space);
    eventually("Progressing tells of it", SOON, || async {
        let kanidm = kanidms.get("idm").await.unwrap();
        let told = kaniop_e2e::condition(&kanidm, "Progressing").ok_or("no condition")?;
        if told.2.contains("grows from 1Gi to 2Gi") { Ok(()) } else { Err("another message") }
    })
    .await;
    // The volume follows: nobody but the claim says so.
    let followed = json!({"status": {"capacity": {"storage": "2Gi"}}});
    claims.patch_status("kanidm-data-idm-default-0", &PatchParams::default(), &Patch::Merge(&followed)).await.unwrap();
    eventually("Progressing has nothing more to tell of it", SOON, || async {
        let kanidm = kanidms.get("idm").await.unwrap();
        let told = kaniop_e2e::condition(&kanidm, "Progressing").ok_or("no condition")?;
        if told.2.contains("grows") { Err("still growing") } else { Ok(()) }
    })
    .await;
    let after = cluster.api("StatefulSet", &space).get("idm-default").await.unwrap();
    assert_eq!(
        (after.uid(), &after.data["spec"]["volumeClaimTemplates"]),
        (set.uid(), &set.data["spec"]["volumeClaimTemplates"])
    );
    cluster.delete("Kanidm", &space, "idm").await;
}
