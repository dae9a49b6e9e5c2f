//! Logins, API tokens, and what lets a person set a credential.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Server, Site, entry};

async fn service_account(server: &Server, token: &str, name: &str) {
    let body = entry(&[("name", name), ("displayname", name), ("entry_managed_by", "idm_admin")]);
    server.must(Method::POST, "/v1/service_account", token, body).await;
}

#[tokio::test]
async fn a_login_works_by_cookie_as_well_as_by_header() {
    let server = Site::new().start();
    let password = server.recover("admin");
    let mut cookie = None;
    let mut state = Value::Null;
    for step in [
        json!({"init2": {"username": "admin", "issue": "token", "privileged": true}}),
        json!({"begin": "password"}),
        json!({"cred": {"password": password}}),
    ] {
        let mut request = server.client.post(server.url("/v1/auth")).json(&json!({"step": step}));
        if let Some(pair) = &cookie {
            request = request.header("cookie", pair);
        }
        let response = request.send().await.unwrap();
        let set = response.headers()["set-cookie"].to_str().unwrap().to_owned();
        assert!(set.starts_with("auth-session-id="), "{set}");
        cookie = set.split(';').next().map(str::to_owned);
        state = response.json::<Value>().await.unwrap()["state"].take();
    }
    let token = state["success"].as_str().unwrap();
    assert_eq!(server.get("/v1/auth/valid", token).await.0, StatusCode::OK);
    let (_, me) = server.get("/v1/self", token).await;
    assert_eq!(me["youare"]["attrs"]["name"], json!(["admin"]));
}

#[tokio::test]
async fn the_bare_session_id_of_the_body_does_not_continue_a_login() {
    let server = Site::new().start();
    let init = json!({"step": {"init2": {"username": "admin", "issue": "token", "privileged": true}}});
    let begun = server.must(Method::POST, "/v1/auth", "", init).await;
    let request = server.client.post(server.url("/v1/auth")).json(&json!({"step": {"begin": "password"}}));
    let id = begun["sessionid"].as_str().unwrap();
    let response = request.header("x-kanidm-auth-session-id", id).send().await.unwrap();
    assert!(!response.status().is_success());
}

#[tokio::test]
async fn a_wrong_password_locks_the_account_for_a_moment_even_for_the_right_one() {
    let server = Site::new().start();
    let password = server.recover("admin");
    let denied = server.login("admin", "wrong").await.unwrap_err();
    assert!(denied["state"]["denied"].is_string(), "{denied}");
    let denied = server.login("admin", &password).await.unwrap_err();
    assert_eq!(denied["state"]["denied"], json!("Account is temporarily locked"));
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while server.login("admin", &password).await.is_err() {
        assert!(std::time::Instant::now() < deadline, "the lock must end");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn a_recovered_account_loses_its_password_and_its_sessions() {
    let server = Site::new().start();
    let first = server.recover("idm_admin");
    let session = server.login("idm_admin", &first).await.unwrap();
    let second = server.recover("idm_admin");
    assert_ne!(first, second);
    assert!(server.login("idm_admin", &first).await.is_err());
    let (status, _) = server.get("/v1/person", &session).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn api_tokens_are_listed_but_never_shown_again_and_can_be_revoked() {
    let server = Site::new().start();
    let session = server.session("idm_admin").await;
    service_account(&server, &session, "operator").await;
    let path = "/v1/service_account/operator/_api_token";
    let body = |label: &str, read_write: bool| json!({"label": label, "expiry": null, "read_write": read_write, "compact": false});
    let token = server.must(Method::POST, path, &session, body("main", true)).await;
    let token = token.as_str().unwrap();
    assert_eq!(server.get("/v1/auth/valid", token).await.0, StatusCode::OK);

    let list = server.must(Method::GET, path, &session, Value::Null).await;
    assert_eq!((list[0]["label"].clone(), list[0]["purpose"].clone()), (json!("main"), json!("readwrite")));
    assert!(!list.to_string().contains(token));

    let (status, _) =
        server.post(path, &session, json!({"label": "c", "expiry": null, "read_write": false, "compact": true})).await;
    assert_eq!(status, StatusCode::NOT_IMPLEMENTED);

    let id = list[0]["token_id"].as_str().unwrap();
    server.must(Method::DELETE, &format!("{path}/{id}"), &session, Value::Null).await;
    assert_eq!(server.must(Method::GET, path, &session, Value::Null).await, json!([]));

    // Within the engine's window of grace a read-only token can only read.
    let reader = server.must(Method::POST, path, &session, body("reader", false)).await;
    let denied = server.post("/v1/group", reader.as_str().unwrap(), entry(&[("name", "crew")])).await;
    assert_eq!(denied, (StatusCode::FORBIDDEN, json!("accessdenied")));
}

#[tokio::test]
async fn tokens_of_accounts_that_one_does_not_manage_cannot_be_made() {
    let server = Site::new().start();
    let session = server.session("idm_admin").await;
    service_account(&server, &session, "other").await;
    let admin = server.session("admin").await;
    let body = json!({"label": "x", "expiry": null, "read_write": true, "compact": false});
    let answer = server.post("/v1/service_account/other/_api_token", &admin, body).await;
    assert_eq!(answer, (StatusCode::FORBIDDEN, json!("accessdenied")));
}

#[tokio::test]
async fn each_look_at_a_generated_password_makes_a_new_one() {
    let server = Site::new().start();
    let session = server.session("idm_admin").await;
    service_account(&server, &session, "robot").await;
    let path = "/v1/service_account/robot/_credential/_generate";
    let first = server.must(Method::GET, path, &session, Value::Null).await;
    let second = server.must(Method::GET, path, &session, Value::Null).await;
    assert_ne!(first, second);
    server.login("robot", second.as_str().unwrap()).await.unwrap();
    let status = server.must(Method::GET, "/v1/service_account/robot/_credential/_status", &session, Value::Null).await;
    assert_eq!(status["creds"].as_array().unwrap().len(), 1, "{status}");
}

#[tokio::test]
async fn a_reset_token_lets_a_person_set_a_password() {
    let server = Site::new().start();
    let session = server.session("idm_admin").await;
    server.must(Method::POST, "/v1/person", &session, entry(&[("name", "ada"), ("displayname", "Ada")])).await;
    // Persons need two factors by default; the policy of all persons is lowered for this test.
    server.must(Method::PUT, "/v1/group/idm_all_persons/_attr/credential_type_minimum", &session, json!(["any"])).await;
    let empty = server.must(Method::GET, "/v1/person/ada/_credential/_status", &session, Value::Null).await;
    assert_eq!(empty, json!({"creds": []}));

    let intent =
        server.must(Method::GET, "/v1/person/ada/_credential/_update_intent/999999", &session, Value::Null).await;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let ttl = intent["expiry_time"].as_u64().unwrap() - now;
    assert!((86_000..=86_400).contains(&ttl), "capped at a day: {ttl}");

    let begun = server.must(Method::POST, "/v1/credential/_exchange_intent", "", intent["token"].clone()).await;
    let token = begun[0].clone();
    let password = "correct horse battery staple 42";
    let status = server.must(Method::POST, "/v1/credential/_update", "", json!([{"password": password}, token])).await;
    assert_eq!(status["can_commit"], json!(true), "{status}");
    server.must(Method::POST, "/v1/credential/_commit", "", token).await;
    server.login("ada", password).await.unwrap();
}

#[tokio::test]
async fn posix_and_ssh_keys_of_a_person() {
    let server = Site::new().start();
    let session = server.session("idm_admin").await;
    server.must(Method::POST, "/v1/person", &session, entry(&[("name", "ada"), ("displayname", "Ada")])).await;
    server.must(Method::POST, "/v1/person/ada/_unix", &session, json!({"gidnumber": null, "shell": "/bin/zsh"})).await;
    let (_, ada) = server.get("/v1/person/ada", &session).await;
    assert_eq!(ada["attrs"]["loginshell"], json!(["/bin/zsh"]));
    assert!(ada["attrs"]["gidnumber"][0].as_str().unwrap().parse::<u32>().unwrap() > 0);

    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZ8jGS5ZbZ8Z0n8W6b7cVKKjCcx7bmcyP3TxM2E2Yk1 ada@laptop";
    server.must(Method::POST, "/v1/person/ada/_ssh_pubkeys", &session, json!(["laptop", key])).await;
    let keys = server.must(Method::GET, "/v1/person/ada/_ssh_pubkeys", &session, Value::Null).await;
    assert_eq!(keys, json!([key]));
    assert_eq!(server.must(Method::GET, "/v1/person/ada/_ssh_pubkeys/laptop", &session, Value::Null).await, json!(key));
    let (status, _) = server.post("/v1/person/ada/_ssh_pubkeys", &session, json!(["desk", "rubbish"])).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    server.must(Method::DELETE, "/v1/person/ada/_ssh_pubkeys/laptop", &session, Value::Null).await;
    assert_eq!(server.must(Method::GET, "/v1/person/ada/_ssh_pubkeys", &session, Value::Null).await, json!([]));
}

#[tokio::test]
async fn a_service_account_can_be_created_with_a_mail_that_its_manager_reads() {
    let server = Site::new().start();
    let session = server.session("idm_admin").await;
    let body = json!({"attrs": {"name": ["robot"], "displayname": ["Robot"], "entry_managed_by": ["idm_admin"], "mail": ["r@example.com"]}});
    server.must(Method::POST, "/v1/service_account", &session, body).await;
    let mail = server.must(Method::GET, "/v1/service_account/robot/_attr/mail", &session, Value::Null).await;
    assert_eq!(mail, json!(["r@example.com"]));
    let (_, me) = server.get("/v1/self", &session).await;
    assert!(me["youare"]["attrs"]["last_modified_cid"].is_array(), "{me}");
}
