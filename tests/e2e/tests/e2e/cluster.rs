//! The Kanidm cluster as an administrator runs it: certificates renewed, releases stepped, volumes grown, children lost and edited.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use kaniop_e2e::certificate::Authority;
use kaniop_e2e::cluster::Cluster;
use kaniop_e2e::server::Bystander;
use kaniop_e2e::{PATIENCE, condition, eventually, example, setting};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::{kanidm, person};

/// A Kanidm of one node on a claim.
fn lasting(space: &str, host: &str) -> Value {
    let mut object = kanidm(space, "idm", host);
    object["spec"]["storage"] = claim("64Mi");
    object
}

fn claim(size: &str) -> Value {
    json!({"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}}})
}

async fn begin(cluster: &Cluster, space: &str, host: &str) -> Authority {
    cluster.namespace(space).await;
    let authority = Authority::default();
    cluster.apply(&authority.secret(space, "idm-tls", host, &authority.pem)).await;
    authority
}

async fn uid(cluster: &Cluster, space: &str, pod: &str) -> Option<String> {
    cluster.api("Pod", space).get(pod).await.unwrap().metadata.uid
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_release_is_stepped_by_one_and_neither_skipped_nor_taken_back() {
    let next = setting("KANIOP_KANIDM_NEXT_IMAGE");
    if next.is_empty() {
        println!("skipped: this image cannot play the release after it");
        return;
    }
    let (cluster, space, host) = (Cluster::connect().await, "e2e-upgrade", "idm.upgrade.test");
    begin(&cluster, space, host).await;
    let mut object = lasting(space, host);
    cluster.apply(&object).await;
    cluster.apply(&person(space, "carol", "idm", "Carol")).await;
    cluster.ready("Kanidm", space, "idm").await;
    cluster.ready("KanidmPersonAccount", space, "carol").await;
    let first = uid(&cluster, space, "idm-default-0").await;

    // Two at once are refused, and the server runs on; whatever else was changed is carried out.
    let (repository, _) = next.rsplit_once(':').unwrap();
    object["spec"]["image"] = format!("{repository}:1.9").into();
    object["spec"]["service"] = json!({"additionalLabels": {"team": "identity"}});
    cluster.apply(&object).await;
    eventually("the skip is refused", PATIENCE, || async {
        let seen = cluster.api("Kanidm", space).get("idm").await.unwrap();
        match condition(&seen, "UpgradeBlocked") {
            Some((status, _, message)) if status == "True" && message.contains("1.8") => Ok(()),
            other => Err(other),
        }
    })
    .await;
    let service = cluster.api("Service", space).get("idm").await.unwrap();
    assert_eq!(service.metadata.labels.unwrap()["team"], "identity");
    assert_eq!(uid(&cluster, space, "idm-default-0").await, first);

    object["spec"]["image"] = next.as_str().into();
    cluster.apply(&object).await;
    eventually("the next release runs", PATIENCE, || async {
        let seen = cluster.ready("Kanidm", space, "idm").await;
        let tag = seen.data["status"]["version"]["imageTag"].clone();
        if tag == "1.8" && uid(&cluster, space, "idm-default-0").await != first { Ok(()) } else { Err(tag) }
    })
    .await;
    let server = Bystander::of(&cluster, space, "idm", host).await;
    assert_eq!(server.values("/v1/person/carol", "displayname").await, ["Carol"]);

    let second = uid(&cluster, space, "idm-default-0").await;
    object["spec"]["image"] = setting("KANIOP_KANIDM_IMAGE").into();
    cluster.apply(&object).await;
    eventually("the way back is refused", PATIENCE, || async {
        let seen = cluster.api("Kanidm", space).get("idm").await.unwrap();
        match condition(&seen, "UpgradeBlocked") {
            Some((status, _, message)) if status == "True" && message.contains("restore") => Ok(()),
            other => Err(other),
        }
    })
    .await;
    assert_eq!(uid(&cluster, space, "idm-default-0").await, second);
    cluster.delete_namespace(space, PATIENCE).await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_renewed_certificate_is_served_within_a_minute_and_no_login_fails_meanwhile() {
    let (cluster, space, host) = (Cluster::connect().await, "e2e-renewal", "idm.renewal.test");
    cluster.namespace(space).await;
    let (former, later) = (Authority::default(), Authority::default());
    // Clients trust both, so that no login fails for the client's own sake.
    let both = format!("{}{}", former.pem, later.pem);
    cluster.apply(&former.secret(space, "idm-tls", host, &both)).await;
    cluster.apply(&lasting(space, host)).await;
    cluster.ready("Kanidm", space, "idm").await;
    let before = uid(&cluster, space, "idm-default-0").await;

    let (stop, logins) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let loop_ = {
        let (cluster, stop, logins) = (Cluster::connect().await, stop.clone(), logins.clone());
        tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                // Panics where a login fails.
                Bystander::of(&cluster, space, "idm", host).await;
                logins.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        })
    };
    cluster.apply(&later.secret(space, "idm-tls", host, &both)).await;
    eventually("the renewed certificate is shown", Duration::from_secs(100), || async {
        let renewed = Bystander::is_signed_by(&cluster, (space, "idm"), host, &later.pem).await;
        if renewed { Ok(()) } else { Err("the former") }
    })
    .await;
    cluster.ready("Kanidm", space, "idm").await;
    stop.store(true, Ordering::Relaxed);
    loop_.await.expect("no login failed");
    assert!(logins.load(Ordering::Relaxed) > 10);
    assert_eq!(uid(&cluster, space, "idm-default-0").await, before, "no pod was restarted");
    cluster.delete_namespace(space, PATIENCE).await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_server_that_logs_everything_is_set_up_like_any_other() {
    let (cluster, space, host) = (Cluster::connect().await, "e2e-trace", "idm.trace.test");
    begin(&cluster, space, host).await;
    let mut object = kanidm(space, "idm", host);
    object["spec"]["logLevel"] = "trace".into();
    cluster.apply(&object).await;
    cluster.ready("Kanidm", space, "idm").await;
    // With the passwords from its Secret.
    Bystander::of(&cluster, space, "idm", host).await;
    cluster.delete_namespace(space, PATIENCE).await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_larger_claim_is_asked_for_and_a_smaller_one_is_refused() {
    let (cluster, space, host) = (Cluster::connect().await, "e2e-growth", "idm.growth.test");
    begin(&cluster, space, host).await;
    let mut object = lasting(space, host);
    cluster.apply(&object).await;
    cluster.ready("Kanidm", space, "idm").await;
    let set = cluster.api("StatefulSet", space).get("idm-default").await.unwrap().metadata.uid;

    object["spec"]["storage"] = claim("128Mi");
    cluster.apply(&object).await;
    let claims = cluster.api("PersistentVolumeClaim", space);
    eventually("the claim asks for more", PATIENCE, || async {
        let request =
            claims.get("kanidm-data-idm-default-0").await.unwrap().data["spec"]["resources"]["requests"]["storage"]
                .clone();
        if request == "128Mi" { Ok(()) } else { Err(request) }
    })
    .await;
    object["spec"]["storage"] = claim("32Mi");
    cluster.apply(&object).await;
    let (_, message) = cluster.says("Kanidm", space, "idm", "False InvalidSpec").await;
    assert!(message.contains("volumeClaimTemplate"), "{message}");
    assert_eq!(cluster.api("StatefulSet", space).get("idm-default").await.unwrap().metadata.uid, set);
    cluster.delete_namespace(space, PATIENCE).await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn every_child_that_is_deleted_or_edited_comes_back() {
    let (cluster, space, host) = (Cluster::connect().await, "e2e-children", "idm.children.test");
    begin(&cluster, space, host).await;
    let mut object = lasting(space, host);
    let ways = example("examples/ingress").remove(1);
    object["spec"]["ingress"] = ways["spec"]["ingress"].clone();
    assert!(object["spec"]["ingress"].is_object());
    object["spec"]["tlsSecretName"] = "idm-tls".into();
    object["spec"]["networkPolicy"] = json!({"enabled": true});
    object["spec"]["podDisruptionBudget"] = json!({"enabled": true});
    cluster.apply(&object).await;
    cluster.ready("Kanidm", space, "idm").await;
    let children = [
        ("Secret", "idm-config"),
        ("Service", "idm"),
        ("Service", "idm-peers"),
        ("Ingress", "idm"),
        ("NetworkPolicy", "idm"),
        ("PodDisruptionBudget", "idm"),
        ("StatefulSet", "idm-default"),
    ];
    for (kind, name) in children {
        let api = cluster.api(kind, space);
        let before = api.get(name).await.unwrap().metadata;
        let owner = &before.labels.as_ref().unwrap()["kanidm.kaniop.rs/cluster"];
        assert_eq!(owner, "idm");
        let edit = json!({"metadata": {"labels": {"app.kubernetes.io/name": "somebody-elses"}}});
        api.patch(name, &PatchParams::default(), &Patch::Merge(&edit)).await.unwrap();
        eventually(&format!("{kind} {name} is put back"), PATIENCE, || async {
            let labels = api.get(name).await.unwrap().metadata.labels.unwrap();
            if labels["app.kubernetes.io/name"] == "kanidm" { Ok(()) } else { Err(labels) }
        })
        .await;
        api.delete(name, &Default::default()).await.unwrap();
        eventually(&format!("{kind} {name} comes back"), PATIENCE, || async {
            match api.get_opt(name).await.unwrap() {
                Some(now) if now.metadata.uid != before.uid => Ok(()),
                other => Err(other.map(|now| now.metadata.deletion_timestamp)),
            }
        })
        .await;
    }
    cluster.ready("Kanidm", space, "idm").await;
    cluster.delete_namespace(space, PATIENCE).await;
}
