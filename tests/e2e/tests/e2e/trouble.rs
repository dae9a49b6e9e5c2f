//! What goes wrong is said, with what to do; and nothing hangs.

use std::time::Duration;

use kaniop_e2e::certificate::Authority;
use kaniop_e2e::cluster::Cluster;
use kaniop_e2e::{PATIENCE, condition, eventually};
use serde_json::json;

use super::{group, kanidm, person};

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_certificate_for_another_host_is_refused_and_said_and_the_right_one_cures_it() {
    let (cluster, space, host) = (Cluster::connect().await, "e2e-wrong-host", "idm.wrong-host.test");
    cluster.namespace(space).await;
    let authority = Authority::default();
    cluster.apply(&authority.secret(space, "idm-tls", "elsewhere.test", &authority.pem)).await;
    cluster.apply(&kanidm(space, "idm", host)).await;
    let message = not_trusted(&cluster, space).await;
    assert!(message.contains(host) || message.contains("idm-tls"), "{message}");

    cluster.apply(&authority.secret(space, "idm-tls", host, &authority.pem)).await;
    cluster.ready("Kanidm", space, "idm").await;
    cluster.delete_namespace(space, PATIENCE).await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_pod_that_started_with_a_wrong_certificate_takes_over_the_right_one_that_is_put_back() {
    let (cluster, space, host) = (Cluster::connect().await, "e2e-put-back", "idm.put-back.test");
    cluster.namespace(space).await;
    let authority = Authority::default();
    let right = authority.secret(space, "idm-tls", host, &authority.pem);
    cluster.apply(&right).await;
    cluster.apply(&kanidm(space, "idm", host)).await;
    cluster.ready("Kanidm", space, "idm").await;
    cluster.apply(&authority.secret(space, "idm-tls", "elsewhere.test", &authority.pem)).await;
    cluster.says("Kanidm", space, "idm", "False CertificateInvalid").await;
    // As a drain of its node does.
    let pods = cluster.api("Pod", space);
    let before = pods.get("idm-default-0").await.unwrap().metadata.uid;
    pods.delete("idm-default-0", &Default::default()).await.unwrap();
    eventually("the pod runs again", PATIENCE, || async {
        let pod = pods.get_opt("idm-default-0").await.unwrap().ok_or("gone")?;
        let ready = pod.data["status"]["containerStatuses"][0]["ready"] == true;
        if pod.metadata.uid != before && ready { Ok(()) } else { Err("not yet") }
    })
    .await;
    cluster.apply(&right).await;
    cluster.ready("Kanidm", space, "idm").await;
    cluster.delete_namespace(space, PATIENCE).await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_certificate_by_another_authority_is_refused_and_said() {
    let (cluster, space, host) = (Cluster::connect().await, "e2e-wrong-authority", "idm.wrong-authority.test");
    cluster.namespace(space).await;
    let (authority, other) = (Authority::default(), Authority::default());
    cluster.apply(&authority.secret(space, "idm-tls", host, &other.pem)).await;
    cluster.apply(&kanidm(space, "idm", host)).await;
    not_trusted(&cluster, space).await;
    assert!(
        cluster.api("Secret", space).get_opt("idm-operator-token").await.unwrap().is_none(),
        "no credential is made for a server that is not trusted"
    );
    cluster.delete_namespace(space, PATIENCE).await;
}

/// Waits until the Kanidm says that the certificate is at fault.
async fn not_trusted(cluster: &Cluster, space: &str) -> String {
    let api = cluster.api("Kanidm", space);
    eventually("Ready blames the certificate", PATIENCE, || async {
        let object = api.get("idm").await.map_err(|error| error.to_string())?;
        match condition(&object, "Ready") {
            Some((status, reason, message)) if status != "True" && reason == "CertificateInvalid" => Ok(message),
            other => Err(format!("{other:?}")),
        }
    })
    .await
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn an_image_that_does_not_exist_is_named() {
    let (cluster, space) = (Cluster::connect().await, "e2e-no-image");
    cluster.namespace(space).await;
    let authority = Authority::default();
    cluster.apply(&authority.secret(space, "idm-tls", "idm.no-image.test", &authority.pem)).await;
    let mut broken = kanidm(space, "idm", "idm.no-image.test");
    broken["spec"]["image"] = "localhost/there-is-no-such-server:1.10.0".into();
    cluster.apply(&broken).await;
    let (_, message) = cluster.says("Kanidm", space, "idm", "False ImageUnavailable").await;
    assert!(message.contains("there-is-no-such-server"), "{message}");
    cluster.delete_namespace(space, PATIENCE).await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn identities_of_a_kanidm_that_does_not_exist_say_so_and_can_be_deleted() {
    let (cluster, space) = (Cluster::connect().await, "e2e-no-kanidm");
    cluster.namespace(space).await;
    cluster.apply(&person(space, "nobody", "nowhere", "Nobody")).await;
    let (_, message) = cluster.says("KanidmPersonAccount", space, "nobody", "False KanidmNotFound").await;
    assert!(message.contains("nowhere"), "{message}");
    cluster.delete("KanidmPersonAccount", space, "nobody").await;
    cluster.delete_namespace(space, PATIENCE).await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_namespace_that_the_kanidm_does_not_select_is_refused_until_it_is_selected() {
    let (cluster, space) = (Cluster::connect().await, "e2e-stranger");
    let server = super::shared(&cluster).await;
    cluster.namespace(space).await;
    let mut stranger = person(space, "stranger", "kanidm", "Stranger");
    stranger["spec"]["kanidmRef"]["namespace"] = super::SHARED.into();
    cluster.apply(&stranger).await;
    cluster.says("KanidmPersonAccount", space, "stranger", "False NamespaceNotSelected").await;
    assert!(!server.names("person").await.contains(&"stranger".to_owned()));

    let mut open = super::quickstart().into_iter().find(|object| object["kind"] == "Kanidm").unwrap();
    open["spec"]["personNamespaceSelector"] = json!({"matchLabels": {"kubernetes.io/metadata.name": space}});
    cluster.apply(&open).await;
    cluster.ready("KanidmPersonAccount", space, "stranger").await;
    assert_eq!(server.values("/v1/person/stranger", "displayname").await, ["Stranger"]);
    cluster.delete("KanidmPersonAccount", space, "stranger").await;
    cluster.delete_namespace(space, PATIENCE).await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_namespace_with_everything_in_it_can_be_deleted() {
    let (cluster, space, host) = (Cluster::connect().await, "e2e-everything", "idm.everything.test");
    cluster.namespace(space).await;
    let authority = Authority::default();
    cluster.apply(&authority.secret(space, "idm-tls", host, &authority.pem)).await;
    cluster.apply(&kanidm(space, "idm", host)).await;
    cluster.apply(&person(space, "linus", "idm", "Linus")).await;
    cluster.apply(&group(space, "kernel", "idm", &["linus"])).await;
    cluster.ready("KanidmGroup", space, "kernel").await;
    // Five minutes is the longest that an entry may hold up its namespace; with everything well it is seconds.
    cluster.delete_namespace(space, Duration::from_secs(330)).await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_paused_kanidm_is_left_alone_and_says_so() {
    let cluster = Cluster::connect().await;
    let server = super::shared(&cluster).await;
    let mut paused = super::quickstart().into_iter().find(|object| object["kind"] == "Kanidm").unwrap();
    paused["spec"]["paused"] = true.into();
    cluster.apply(&paused).await;
    let api = cluster.api("Kanidm", super::SHARED);
    eventually("Ready says Paused", PATIENCE, || async {
        let object = api.get("kanidm").await.map_err(|error| error.to_string())?;
        match condition(&object, "Ready") {
            Some((_, reason, _)) if reason == "Paused" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    server.put("/v1/person/ada", "displayname", &["Changed While Paused"]).await;
    // Nothing must happen within two intervals: waiting is the measurement here.
    tokio::time::sleep(super::interval() * 2).await;
    assert_eq!(server.values("/v1/person/ada", "displayname").await, ["Changed While Paused"]);

    super::shared(&cluster).await;
    eventually("the displayname is back", PATIENCE, || async {
        let found = server.values("/v1/person/ada", "displayname").await;
        if found == ["Ada Lovelace"] { Ok(()) } else { Err(found) }
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn one_value_that_the_server_refuses_is_named_keeps_no_other_back_and_loops_nothing() {
    let cluster = Cluster::connect().await;
    let server = super::shared(&cluster).await;
    let mut odd = person(super::SHARED, "odd", "kanidm", "Odd");
    odd["spec"]["personAttributes"]["legalname"] = json!("Odd Person");
    // The server keeps small numbers for itself.
    odd["spec"]["posixAttributes"] = json!({"gidnumber": 5, "loginshell": "/bin/sh"});
    cluster.apply(&odd).await;
    let (first, message) = cluster.says("KanidmPersonAccount", super::SHARED, "odd", "False InvalidValue").await;
    assert!(message.contains("posixAttributes.gidnumber") && !message.contains("loginshell:"), "{message}");
    assert_eq!(server.values("/v1/person/odd", "legalname").await, ["Odd Person"]);
    assert_eq!(server.values("/v1/person/odd", "loginshell").await, ["/bin/sh"]);
    // A pass that woke itself would write again within milliseconds.
    let marker = person(super::SHARED, "marker", "kanidm", "Marker");
    cluster.apply(&marker).await;
    cluster.ready("KanidmPersonAccount", super::SHARED, "marker").await;
    let again = cluster.api("KanidmPersonAccount", super::SHARED).get("odd").await.unwrap();
    assert_eq!(first.metadata.resource_version, again.metadata.resource_version);
    odd["spec"]["posixAttributes"]["gidnumber"] = json!(70999);
    cluster.apply(&odd).await;
    cluster.ready("KanidmPersonAccount", super::SHARED, "odd").await;
    for name in ["odd", "marker"] {
        cluster.delete("KanidmPersonAccount", super::SHARED, name).await;
    }
}
