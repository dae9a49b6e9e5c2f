//! Wrong objects are refused by the API server, with the texts that the reference gives.

use kaniop_e2e::cluster::Cluster;
use serde_json::{Value, json};

use super::{cluster, minimal, space};

/// Sets the value at a path of keys and indices.
fn with(mut object: Value, path: &str, value: Value) -> Value {
    *object.pointer_mut(path).unwrap_or_else(|| panic!("no {path}")) = value;
    object
}

fn spec(kind: &str, space: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut object = minimal(kind, space, "sample");
    change(&mut object["spec"]);
    object
}

async fn refused(cluster: &Cluster, object: &Value, expected: &str) {
    match cluster.try_apply(object).await {
        Ok(_) => panic!("{object} was accepted, but should be refused with {expected:?}"),
        Err(kube::Error::Api(status)) => {
            assert!(status.message.contains(expected), "{object}\n  expected {expected:?}\n  got {}", status.message);
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test"]
async fn wrong_kanidms_are_refused_with_the_reason() {
    let cluster = cluster().await;
    let space = space(&cluster, "t2-kanidm-rules").await;
    let kanidm = |change: &dyn Fn(&mut Value)| spec("Kanidm", &space, |spec| change(spec));
    let group = |name: &str, replicas: i32| json!({"name": name, "replicas": replicas});

    let cases: Vec<(Value, &str)> = vec![
        (kanidm(&|s| s["replicaGroups"] = json!([group("a", 2)])), "Replication not available for ephemeral storage."),
        (
            kanidm(
                &|s| s["replicaGroups"] = json!([{"name": "a", "replicas": 0, "primaryNode": true}, {"name": "b", "replicas": 0, "primaryNode": true}]),
            ),
            "at most one replica group with primaryNode: true or external node with automaticRefresh: true",
        ),
        (
            kanidm(&|s| s["replicaGroups"] = json!([group("a", 1), group("a", 0)])),
            "duplicate entries for key [name=\"a\"]",
        ),
        (kanidm(&|s| s["replicaGroups"] = json!([])), "spec.replicaGroups"),
        (kanidm(&|s| s["replicaGroups"] = json!([group("a", -1)])), "spec.replicaGroups[0].replicas"),
        (kanidm(&|s| s["domain"] = "Upper.example.com".into()), "spec.domain"),
        (kanidm(&|s| s["origin"] = "http://idm.example.com".into()), "spec.origin"),
        (kanidm(&|s| s["logLevel"] = "loud".into()), "spec.logLevel"),
        (
            with(minimal("Kanidm", &space, "x"), "/metadata/name", "a.b".into()),
            "name must consist of lower-case letters, digits and '-'",
        ),
        (
            with(minimal("Kanidm", &space, "x"), "/metadata/name", "n".repeat(49).into()),
            "name must be at most 48 characters",
        ),
        (
            with(
                with(minimal("Kanidm", &space, "x"), "/metadata/name", "n".repeat(40).into()),
                "/spec/replicaGroups/0/name",
                "g".repeat(12).into(),
            ),
            "name and the longest replica group name together must be at most 51 characters",
        ),
    ];
    for (object, expected) in cases {
        refused(&cluster, &object, expected).await;
    }
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test"]
async fn what_cannot_change_is_refused_when_it_changes() {
    let cluster = cluster().await;
    let space = space(&cluster, "t2-immutable").await;
    for kind in ["Kanidm", "KanidmGroup", "KanidmPersonAccount", "KanidmOAuth2Client", "KanidmServiceAccount"] {
        cluster.apply(&minimal(kind, &space, "sample")).await;
    }
    refused(
        &cluster,
        &spec("Kanidm", &space, |s| s["domain"] = "other.example.com".into()),
        "Domain cannot be changed.",
    )
    .await;
    refused(&cluster, &spec("KanidmOAuth2Client", &space, |s| s["public"] = true.into()), "Public cannot be changed.")
        .await;
    for kind in ["KanidmGroup", "KanidmPersonAccount", "KanidmOAuth2Client", "KanidmServiceAccount"] {
        refused(&cluster, &spec(kind, &space, |s| s["kanidmRef"]["name"] = "other".into()), "Value is immutable").await;
        refused(&cluster, &spec(kind, &space, |s| s["kanidmName"] = "other".into()), "kanidmName cannot be changed.")
            .await;
    }
    let mut named = minimal("KanidmGroup", &space, "named");
    named["spec"]["kanidmName"] = "a.b".into();
    cluster.apply(&named).await;
    named["spec"]["kanidmName"] = "a.c".into();
    refused(&cluster, &named, "kanidmName cannot be changed.").await;
    named["spec"].as_object_mut().unwrap().remove("kanidmName");
    refused(&cluster, &named, "kanidmName cannot be changed.").await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test"]
async fn wrong_people_and_groups_are_refused_with_the_reason() {
    let cluster = cluster().await;
    let space = space(&cluster, "t2-identity-rules").await;
    let twice = json!(["a@example.com", "A@example.com"]);
    let unique = "mail addresses must be unique, whatever their case";
    refused(&cluster, &spec("KanidmGroup", &space, |s| s["mail"] = twice.clone()), unique).await;
    refused(&cluster, &spec("KanidmPersonAccount", &space, |s| s["personAttributes"]["mail"] = twice.clone()), unique)
        .await;
    refused(
        &cluster,
        &spec("KanidmPersonAccount", &space, |s| s["personAttributes"]["displayname"] = "".into()),
        "displayname",
    )
    .await;
    refused(&cluster, &spec("KanidmPersonAccount", &space, |s| s["personAttributes"] = json!({})), "displayname").await;
    refused(
        &cluster,
        &spec("KanidmPersonAccount", &space, |s| s["personAttributes"]["accountExpire"] = "tomorrow".into()),
        "accountExpire",
    )
    .await;
    refused(&cluster, &spec("KanidmGroup", &space, |s| s["kanidmRef"] = json!({})), "spec.kanidmRef.name").await;
    let hour = "privilegeExpiry must be at most 3600 seconds (1 hour)";
    refused(&cluster, &spec("KanidmGroup", &space, |s| s["accountPolicy"] = json!({"privilegeExpiry": 3601})), hour)
        .await;
}

/// Puts a value into a spec.
type Set = fn(&mut Value, Value);

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test"]
async fn wrong_oauth2_clients_are_refused_with_the_reason() {
    let cluster = cluster().await;
    let space = space(&cluster, "t2-oauth2-rules").await;
    let scopes = |groups: &[&str]| groups.iter().map(|g| json!({"group": g, "scopes": ["openid"]})).collect::<Value>();
    let uuid = "00000000-0000-0000-0000-000000000001";
    let cases: [(Set, Value, &str); 9] = [
        (|s, v| s["scopeMap"] = v, scopes(&["staff", "Staff"]), "groups must be unique, whatever their case"),
        (|s, v| s["supScopeMap"] = v, scopes(&["staff", "STAFF"]), "groups must be unique, whatever their case"),
        (|s, v| s["scopeMap"] = v, scopes(&[uuid]), "name the group by its name or SPN, not by its UUID"),
        (|s, v| s["scopeMap"] = v, json!([{"group": "staff", "scopes": []}]), "scopes"),
        (|s, v| s["allowLocalhostRedirect"] = v, json!(true), "allowLocalhostRedirect is for public clients only"),
        (|s, v| s["secretKeyAliases"] = v, json!({"clientId": ["CLIENT_SECRET"]}), "cannot be aliases"),
        (|s, v| s["secretKeyAliases"] = v, json!({"clientId": ["A"], "clientSecret": ["A"]}), "an alias of both"),
        (|s, v| s["secretKeyAliases"] = v, json!({"clientId": ["not a key"]}), "secretKeyAliases.clientId"),
        (|s, v| s["image"] = v, json!({"url": "http://example.com/logo.png"}), "image.url"),
    ];
    for (set, value, expected) in cases {
        refused(&cluster, &spec("KanidmOAuth2Client", &space, |s| set(s, value.clone())), expected).await;
    }
    let public = |set: fn(&mut Value)| {
        spec("KanidmOAuth2Client", &space, |s| {
            s["public"] = true.into();
            set(s);
        })
    };
    let pkce = "allowInsecureClientDisablePkce is for confidential clients only";
    refused(&cluster, &public(|s| s["allowInsecureClientDisablePkce"] = true.into()), pkce).await;
    let secret = "a public one has no secret";
    refused(&cluster, &public(|s| s["secretRotation"] = json!({"enabled": true})), secret).await;
    cluster.apply(&public(|s| s["allowLocalhostRedirect"] = true.into())).await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test"]
async fn wrong_service_accounts_are_refused_with_the_reason() {
    let cluster = cluster().await;
    let space = space(&cluster, "t2-account-rules").await;
    let tokens = |tokens: Value| spec("KanidmServiceAccount", &space, |s| s["apiTokens"] = tokens.clone());
    let labels = "labels must be unique, whatever their case";
    refused(&cluster, &tokens(json!([{"label": "ci"}, {"label": "CI"}])), labels).await;
    let names = json!([{"label": "a", "secretName": "same"}, {"label": "b", "secretName": "same"}]);
    refused(&cluster, &tokens(names), "secretNames must be unique").await;
    refused(&cluster, &tokens(json!([{"label": "not a label"}])), "label").await;
    refused(&cluster, &tokens(json!([{"label": "a", "purpose": "admin"}])), "purpose").await;
    let nobody = spec("KanidmServiceAccount", &space, |s| {
        s["serviceAccountAttributes"].as_object_mut().unwrap().remove("entryManagedBy");
    });
    refused(&cluster, &nobody, "entryManagedBy").await;
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test"]
async fn wrong_restores_are_refused_with_the_reason() {
    let cluster = cluster().await;
    let space = space(&cluster, "t2-restore-rules").await;
    let exact = "restoreImage needs an exact tag or a digest";
    let plain = "fileName must be the plain name of a file in /data/backups";
    let digest = format!("kanidm/server@sha256:{}", "0".repeat(64));
    let cases: [(Set, &str, Option<&str>); 12] = [
        (|s, v| s["restoreImage"] = v, "kanidm/server", Some(exact)),
        (|s, v| s["restoreImage"] = v, "kanidm/server:latest", Some(exact)),
        (|s, v| s["restoreImage"] = v, "registry.local:5000/kanidm/server", Some(exact)),
        (|s, v| s["restoreImage"] = v, "registry.local:5000/kanidm/server:latest", Some(exact)),
        (|s, v| s["restoreImage"] = v, "registry.local:5000/kanidm/server:1.10.5", None),
        (|s, v| s["restoreImage"] = v, &digest, None),
        (|s, v| s["source"]["local"]["fileName"] = v, "../kanidm.db", Some(plain)),
        (|s, v| s["source"]["local"]["fileName"] = v, "..", Some(plain)),
        (|s, v| s["source"]["local"]["fileName"] = v, "", Some("fileName")),
        (|s, v| s["source"]["local"]["fileName"] = v, "backup-2026-11-30T22:50:20.908138768Z.json.gz", None),
        (|s, v| s["targetRef"]["uid"] = v, "", Some("targetRef.uid")),
        (|s, v| s["targetRef"]["name"] = v, "", Some("targetRef.name")),
    ];
    for (number, (set, value, expected)) in cases.into_iter().enumerate() {
        let mut restore = minimal("KanidmRestore", &space, &format!("restore-{number}"));
        set(&mut restore["spec"], value.into());
        match expected {
            Some(expected) => refused(&cluster, &restore, expected).await,
            None => drop(cluster.apply(&restore).await),
        }
    }
    cluster.apply(&minimal("KanidmRestore", &space, "sample")).await;
    let changes: [Set; 3] =
        [|s, v| s["targetRef"]["uid"] = v, |s, v| s["source"]["local"]["fileName"] = v, |s, v| s["restoreImage"] = v];
    for change in changes {
        let changed = spec("KanidmRestore", &space, |s| change(s, "other:1".into()));
        refused(&cluster, &changed, "KanidmRestore spec is immutable").await;
    }
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test"]
async fn the_longest_lists_that_are_allowed_stay_within_the_cost_of_rules() {
    let cluster = cluster().await;
    let space = space(&cluster, "t2-longest").await;
    let many: Vec<_> = (0..10_000).map(|number| format!("somebody-{number}")).collect();
    let mails: Vec<_> = (0..32).map(|number| format!("{}{number}@example.com", "x".repeat(200))).collect();
    let mut group = minimal("KanidmGroup", &space, "crowd");
    group["spec"]["members"] = json!(many);
    group["spec"]["mail"] = json!(mails);
    cluster.apply(&group).await;
    let groups: Vec<_> = (0..64).map(|number| format!("{}{number}@example.com", "x".repeat(200))).collect();
    let mut client = minimal("KanidmOAuth2Client", &space, "everything");
    client["spec"]["scopeMap"] = groups.iter().map(|group| json!({"group": group, "scopes": ["openid"]})).collect();
    client["spec"]["supScopeMap"] = client["spec"]["scopeMap"].clone();
    let values: Value = groups.iter().map(|group| json!({"group": group, "values": ["a"]})).collect();
    client["spec"]["claimMap"] = (0..32).map(|n| json!({"name": format!("claim_{n}"), "valuesMap": values})).collect();
    cluster.apply(&client).await;
    let mut account = minimal("KanidmServiceAccount", &space, "everything");
    account["spec"]["apiTokens"] =
        (0..32).map(|n| json!({"label": format!("label-{n}"), "secretName": format!("secret-{n}")})).collect();
    cluster.apply(&account).await;
}
