//! Service accounts, OAuth2 clients and people's first credentials: what is in the Secrets works, and nowhere else is anything of it.

use k8s_openapi::api::core::v1::Secret;
use kaniop_e2e::cluster::Cluster;
use kaniop_e2e::server::Bystander;
use kaniop_e2e::{PATIENCE, condition, eventually, example};
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;

use super::{SHARED, shared};

const WIKI: &str = "wiki-kanidm-oauth2-credentials";

async fn applied(cluster: &Cluster, folder: &str) {
    let objects = example(folder);
    for object in &objects {
        cluster.apply(object).await;
    }
    for object in &objects {
        cluster.ready(object["kind"].as_str().unwrap(), SHARED, object["metadata"]["name"].as_str().unwrap()).await;
    }
}

async fn patch(cluster: &Cluster, kind: &str, name: &str, patch: serde_json::Value) {
    cluster.api(kind, SHARED).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// Waits until a key of a Secret holds another value.
async fn changed(cluster: &Cluster, name: &str, key: &str, before: &str) -> String {
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), SHARED);
    eventually(&format!("another {key} in {name}"), PATIENCE, || async {
        let secret = secrets.get_opt(name).await.map_err(|error| error.to_string())?.ok_or("it is gone")?;
        let data = secret.data.unwrap_or_default();
        let value = data.get(key).map(|value| String::from_utf8(value.0.clone()).unwrap());
        value.filter(|value| value != before).ok_or_else(|| "the same".to_owned())
    })
    .await
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn the_secret_of_an_oauth2_client_opens_the_server_before_and_after_its_rotation_and_an_old_one_does_not() {
    let cluster = Cluster::connect().await;
    let server = shared(&cluster).await;
    applied(&cluster, "examples/single-sign-on").await;
    let id = cluster.secret(SHARED, WIKI, "CLIENT_ID").await;
    let first = cluster.secret(SHARED, WIKI, "CLIENT_SECRET").await;
    assert_eq!(id, "wiki");
    assert_eq!(cluster.secret(SHARED, WIKI, "OIDC_CLIENT_ID").await, id);
    assert_eq!(cluster.secret(SHARED, WIKI, "OIDC_CLIENT_SECRET").await, first);
    let answer = server.introspect(&id, &first).await.expect("the server takes the secret");
    assert_eq!((&answer["active"], &answer["client_id"]), (&json!(true), &json!("wiki")));

    let force = json!({"metadata": {"annotations": {"kaniop.rs/force-secret-rotation": "please"}}});
    patch(&cluster, "KanidmOAuth2Client", "wiki", force).await;
    let second = changed(&cluster, WIKI, "CLIENT_SECRET", &first).await;
    assert_eq!(cluster.secret(SHARED, WIKI, "OIDC_CLIENT_SECRET").await, second);
    assert!(server.introspect(&id, &second).await.is_some(), "the new secret opens the server");
    assert!(server.introspect(&id, &first).await.is_none(), "the old one does not");
    eventually("the annotation is gone", PATIENCE, || async {
        let wiki = cluster.api("KanidmOAuth2Client", SHARED).get("wiki").await.unwrap();
        if wiki.annotations().is_empty() { Ok(()) } else { Err(wiki.annotations().clone()) }
    })
    .await;
    let public = cluster.ready("KanidmOAuth2Client", SHARED, "phone-app").await;
    assert!(public.data["status"]["secretName"].is_null(), "a public client has no secret");

    // The maps are as the manifest says, and what is taken out goes.
    let scopes = server.values("/v1/oauth2/wiki", "oauth2_rs_scope_map").await;
    assert_eq!(scopes.len(), 1, "{scopes:?}");
    patch(&cluster, "KanidmOAuth2Client", "wiki", json!({"spec": {"scopeMap": [], "claimMap": []}})).await;
    cluster.ready("KanidmOAuth2Client", SHARED, "wiki").await;
    assert!(server.values("/v1/oauth2/wiki", "oauth2_rs_scope_map").await.is_empty());
    assert!(server.values("/v1/oauth2/wiki", "oauth2_rs_claim_map").await.is_empty());
    for (kind, name) in
        [("KanidmOAuth2Client", "wiki"), ("KanidmOAuth2Client", "phone-app"), ("KanidmGroup", "wiki-users")]
    {
        cluster.delete(kind, SHARED, name).await;
    }
    assert!(server.introspect(&id, &second).await.is_none(), "the client is gone");
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn the_tokens_of_a_service_account_work_are_repaired_when_edited_and_end_when_taken_out() {
    let cluster = Cluster::connect().await;
    let server = shared(&cluster).await;
    applied(&cluster, "examples/automation").await;
    let read = cluster.secret(SHARED, "ci-read-api-token", "token").await;
    let deploy = cluster.secret(SHARED, "ci-deploy-token", "token").await;
    for token in [&read, &deploy] {
        assert_eq!(server.whoami(token).await.as_deref(), Some("ci@idm.example.com"));
    }
    assert_eq!(server.tokens("ci").await, ["deploy", "read"]);
    let password = cluster.secret(SHARED, "ci-kanidm-service-account-credentials", "password").await;
    server.log_in("ci", &password).await;

    // Somebody edits one Secret, adds a key to it, and deletes another.
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), SHARED);
    let edit = json!({"stringData": {"token": "not-a-token", "theirs": "kept"}});
    secrets.patch("ci-read-api-token", &PatchParams::default(), &Patch::Merge(&edit)).await.unwrap();
    let repaired = changed(&cluster, "ci-read-api-token", "token", "not-a-token").await;
    assert_eq!(server.whoami(&repaired).await.as_deref(), Some("ci@idm.example.com"));
    assert_eq!(cluster.secret(SHARED, "ci-read-api-token", "theirs").await, "kept");
    secrets.delete("ci-deploy-token", &Default::default()).await.unwrap();
    changed(&cluster, "ci-deploy-token", "token", &deploy).await;
    cluster.ready("KanidmServiceAccount", SHARED, "ci").await;
    assert_eq!(server.tokens("ci").await, ["deploy", "read"], "never two of one label");

    // One token is taken out: it and its Secret go, and somebody else's token stays.
    server.issue_token("ci", "by-hand").await;
    patch(&cluster, "KanidmServiceAccount", "ci", json!({"spec": {"apiTokens": [{"label": "read"}]}})).await;
    eventually("the token that was taken out is revoked", PATIENCE, || async {
        let tokens = server.tokens("ci").await;
        if tokens == ["by-hand", "read"] { Ok(()) } else { Err(tokens) }
    })
    .await;
    eventually("its Secret is gone", PATIENCE, || async {
        if secrets.get_opt("ci-deploy-token").await.unwrap().is_none() { Ok(()) } else { Err("still there") }
    })
    .await;
    cluster.delete("KanidmServiceAccount", SHARED, "ci").await;
    let left = secrets.list(&ListParams::default().labels("credential.kaniop.rs/account=ci")).await.unwrap();
    eventually("the Secrets are gone with their object", PATIENCE, || async {
        for secret in &left.items {
            if secrets.get_opt(&secret.name_any()).await.unwrap().is_some() {
                return Err(secret.name_any());
            }
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_person_without_any_credential_gets_a_link_once_and_a_new_one_only_when_asked() {
    let cluster = Cluster::connect().await;
    let _server: Bystander = shared(&cluster).await;
    cluster.apply(&super::person(SHARED, "rosalind", "kanidm", "Rosalind")).await;
    let ready = cluster.ready("KanidmPersonAccount", SHARED, "rosalind").await;
    let name = "rosalind-credential-reset";
    assert_eq!(ready.data["status"]["secretName"], name);
    assert_eq!(
        condition(&ready, "CredentialReady").map(|(status, reason, _)| (status, reason)),
        Some(("False".to_owned(), "ResetLinkOpen".to_owned()))
    );
    let (url, token) = (cluster.secret(SHARED, name, "url").await, cluster.secret(SHARED, name, "token").await);
    assert_eq!(url, format!("https://idm.example.com/ui/reset?token={token}"));
    let text = serde_json::to_string(&ready).unwrap();
    assert!(!text.contains(&token), "nothing of the link is in the object");
    for event in cluster.events(SHARED, "KanidmPersonAccount", "rosalind").await {
        assert!(!event.note.unwrap_or_default().contains(&token), "nothing of the link is in an event");
    }
    // A change of the person makes no new link; deleting the Secret does.
    cluster.apply(&super::person(SHARED, "rosalind", "kanidm", "Rosalind Franklin")).await;
    cluster.ready("KanidmPersonAccount", SHARED, "rosalind").await;
    assert_eq!(cluster.secret(SHARED, name, "token").await, token);
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), SHARED);
    secrets.delete(name, &Default::default()).await.unwrap();
    changed(&cluster, name, "token", &token).await;
    cluster.delete("KanidmPersonAccount", SHARED, "rosalind").await;
}
