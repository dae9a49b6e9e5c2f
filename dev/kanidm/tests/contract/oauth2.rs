//! OAuth2 clients, the domain's settings, pictures and the recycle bin.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Server, Site, entry};

async fn client(server: &Server, token: &str, path: &str, name: &str) {
    let body =
        entry(&[("name", name), ("displayname", name), ("oauth2_rs_origin_landing", "https://shop.example.com/")]);
    server.must(Method::POST, path, token, body).await;
}

#[tokio::test]
async fn maps_of_a_client_are_shown_by_group_and_removed_again() {
    let server = Site::new().start();
    let token = server.session("idm_admin").await;
    client(&server, &token, "/v1/oauth2/_basic", "shop").await;
    server.must(Method::POST, "/v1/group", &token, entry(&[("name", "buyers")])).await;
    let scopes = json!(["openid", "email"]);
    server.must(Method::POST, "/v1/oauth2/shop/_scopemap/buyers", &token, scopes.clone()).await;
    server.must(Method::POST, "/v1/oauth2/shop/_sup_scopemap/buyers", &token, json!(["groups"])).await;
    server.must(Method::POST, "/v1/oauth2/shop/_claimmap/tier/buyers", &token, json!(["gold"])).await;
    server.must(Method::POST, "/v1/oauth2/shop/_claimmap/tier", &token, json!("csv")).await;

    let (_, shop) = server.get("/v1/oauth2/shop", &token).await;
    let attrs = &shop["attrs"];
    assert_eq!(attrs["oauth2_rs_scope_map"], json!(["buyers@idm.example.com: {\"email\", \"openid\"}"]));
    assert!(attrs["oauth2_rs_sup_scope_map"].is_array() && attrs["oauth2_rs_claim_map"].is_array(), "{shop}");

    for path in ["_scopemap/buyers", "_sup_scopemap/buyers", "_claimmap/tier/buyers"] {
        server.must(Method::DELETE, &format!("/v1/oauth2/shop/{path}"), &token, Value::Null).await;
    }
    let (_, shop) = server.get("/v1/oauth2/shop", &token).await;
    assert!(shop["attrs"]["oauth2_rs_scope_map"].is_null(), "{shop}");
    assert!(!shop.to_string().contains("gold"), "{shop}");
}

#[tokio::test]
async fn purging_a_secret_makes_a_new_one_and_a_public_client_has_none() {
    let server = Site::new().start();
    let token = server.session("idm_admin").await;
    client(&server, &token, "/v1/oauth2/_basic", "shop").await;
    client(&server, &token, "/v1/oauth2/_public", "app").await;
    let secret = "/v1/oauth2/shop/_basic_secret";
    let first = server.must(Method::GET, secret, &token, Value::Null).await;
    assert!(first.is_string());
    let purge = json!({"attrs": {"oauth2_rs_basic_secret": []}});
    server.must(Method::PATCH, "/v1/oauth2/shop", &token, purge).await;
    let second = server.must(Method::GET, secret, &token, Value::Null).await;
    assert!(second.is_string() && first != second);
    let (_, shop) = server.get("/v1/oauth2/shop", &token).await;
    assert_eq!(shop["attrs"]["oauth2_rs_basic_secret"], json!(["hidden"]));
    assert_eq!(server.must(Method::GET, "/v1/oauth2/app/_basic_secret", &token, Value::Null).await, Value::Null);
}

#[tokio::test]
async fn switches_of_later_servers_are_stored_and_survive_a_restart() {
    let server = Site::new().start();
    let token = server.session("idm_admin").await;
    client(&server, &token, "/v1/oauth2/_public", "app").await;
    let switches = json!({"attrs": {
        "oauth2_consent_prompt_enable": ["false"], "oauth2_refresh_token_expiry": ["7200"],
        "oauth2_strict_redirect_uri": ["true"], "oauth2_allow_localhost_redirect": ["true"],
        "oauth2_rs_origin": ["https://a.example.com/", "https://b.example.com/"]
    }});
    server.must(Method::PATCH, "/v1/oauth2/app", &token, switches.clone()).await;
    let (_, _, site) = server.stop();
    let server = site.start();
    let token = server.session("idm_admin").await;
    let (_, app) = server.get("/v1/oauth2/app", &token).await;
    for (name, value) in switches["attrs"].as_object().unwrap() {
        let stored = app["attrs"][name].as_array().unwrap();
        let wanted = value.as_array().unwrap();
        assert!(stored.len() == wanted.len() && wanted.iter().all(|v| stored.contains(v)), "{name}: {stored:?}");
    }
}

#[tokio::test]
async fn localhost_redirects_are_for_public_clients_only() {
    let server = Site::new().start();
    let token = server.session("idm_admin").await;
    client(&server, &token, "/v1/oauth2/_basic", "shop").await;
    let switch = json!({"attrs": {"oauth2_allow_localhost_redirect": ["true"]}});
    assert_eq!(server.call(Method::PATCH, "/v1/oauth2/shop", &token, switch).await.0, StatusCode::BAD_REQUEST);
    // OAuth2 clients are no business of the domain's administrator.
    let admin = server.session("admin").await;
    let body = entry(&[("name", "x"), ("displayname", "x"), ("oauth2_rs_origin_landing", "https://x.example.com")]);
    assert_eq!(server.post("/v1/oauth2/_basic", &admin, body).await.0, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn the_domain_is_the_business_of_admin() {
    let server = Site::new().start();
    let admin = server.session("admin").await;
    let path = "/v1/domain/_attr/domain_display_name";
    server.must(Method::PUT, path, &admin, json!(["Example"])).await;
    assert_eq!(server.must(Method::GET, path, &admin, Value::Null).await, json!(["Example"]));
    let (_, domain) = server.get("/v1/domain", &admin).await;
    assert_eq!(domain[0]["attrs"]["version"], json!(["11"]));
    let idm = server.session("idm_admin").await;
    assert!(server.call(Method::PUT, path, &idm, json!(["Mine"])).await.0.is_client_error());
    assert_eq!(server.must(Method::GET, path, &admin, Value::Null).await, json!(["Example"]));
}

#[tokio::test]
async fn a_picture_can_be_set_seen_and_removed_and_rubbish_is_refused() {
    let server = Site::new().start();
    let token = server.session("idm_admin").await;
    client(&server, &token, "/v1/oauth2/_basic", "shop").await;
    let upload = |bytes: Vec<u8>, kind: &str| {
        let part = reqwest::multipart::Part::bytes(bytes).file_name("logo.svg").mime_str(kind).unwrap();
        let form = reqwest::multipart::Form::new().part("image", part);
        server.client.post(server.url("/v1/oauth2/shop/_image")).bearer_auth(&token).multipart(form).send()
    };
    let svg = br#"<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>"#.to_vec();
    assert_eq!(upload(svg.clone(), "image/svg+xml").await.unwrap().status(), StatusCode::OK);
    let shown = server.client.get(server.url("/ui/images/oauth2/shop")).send().await.unwrap();
    assert_eq!(shown.headers()["content-type"], "image/svg+xml");
    assert_eq!(shown.bytes().await.unwrap(), svg);
    assert_eq!(upload(b"rubbish".to_vec(), "image/png").await.unwrap().status(), StatusCode::BAD_REQUEST);
    assert_eq!(upload(svg, "text/plain").await.unwrap().status(), StatusCode::BAD_REQUEST);
    server.must(Method::DELETE, "/v1/oauth2/shop/_image", &token, Value::Null).await;
    assert_eq!(server.get("/ui/images/oauth2/shop", "").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_was_deleted_can_be_revived() {
    let server = Site::new().start();
    let token = server.session("idm_admin").await;
    server.must(Method::POST, "/v1/group", &token, entry(&[("name", "crew")])).await;
    let (_, crew) = server.get("/v1/group/crew", &token).await;
    let id = crew["attrs"]["uuid"][0].as_str().unwrap().to_owned();
    server.must(Method::DELETE, "/v1/group/crew", &token, Value::Null).await;

    let admin = server.session("admin").await;
    let (_, gone) = server.get(&format!("/v1/recycle_bin/{id}"), &admin).await;
    assert_eq!(gone["attrs"]["name"], json!(["crew"]));
    server.must(Method::POST, &format!("/v1/recycle_bin/{id}/_revive"), &admin, Value::Null).await;
    assert_eq!(server.get("/v1/group/crew", &token).await.1["attrs"]["uuid"], json!([id]));
}
