//! OAuth2 clients that ask for themselves: which name and secret are accepted, and what the tokens are worth.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Reply, Server, Site, entry};

const TOKEN: &str = "/oauth2/token";
const INTROSPECT: &str = "/oauth2/token/introspect";
const GRANT: (&str, &str) = ("grant_type", "client_credentials");

/// A server with two clients, and a session that may manage them.
async fn start() -> (Server, String) {
    let server = Site::new().start();
    let session = server.session("idm_admin").await;
    for (path, name) in [("_basic", "shop"), ("_basic", "till"), ("_public", "app")] {
        let landing = ("oauth2_rs_origin_landing", "https://shop.example.com/");
        let body = entry(&[("name", name), ("displayname", name), landing]);
        server.must(Method::POST, &format!("/v1/oauth2/{path}"), &session, body).await;
    }
    (server, session)
}

async fn secret(server: &Server, session: &str, name: &str) -> String {
    let path = format!("/v1/oauth2/{name}/_basic_secret");
    server.must(Method::GET, &path, session, Value::Null).await.as_str().unwrap().to_owned()
}

/// Sends a form, with name and secret in the header when there are any.
async fn send(server: &Server, client: Option<(&str, &str)>, path: &str, form: &[(&str, &str)]) -> Reply {
    let mut request = server.client.post(server.url(path));
    if let Some((name, secret)) = client {
        request = request.basic_auth(name, Some(secret));
    }
    let body = serde_urlencoded::to_string(form).unwrap();
    let request = request.header("content-type", "application/x-www-form-urlencoded").body(body);
    let response = request.send().await.unwrap();
    let (status, text) = (response.status(), response.text().await.unwrap());
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

#[tokio::test]
async fn the_right_secret_buys_a_token_that_is_alive_and_others_buy_nothing() {
    let (server, session) = start().await;
    let right = secret(&server, &session, "shop").await;
    let shop = Some(("shop", right.as_str()));
    let (status, bought) = send(&server, shop, TOKEN, &[GRANT]).await;
    assert_eq!((status, &bought["token_type"], &bought["expires_in"]), (StatusCode::OK, &json!("Bearer"), &json!(900)));
    assert_eq!(bought["scope"], json!(""), "nothing was asked for");
    let token = ("token", bought["access_token"].as_str().unwrap());
    let (status, worth) = send(&server, shop, INTROSPECT, &[token]).await;
    assert_eq!((status, &worth["active"], &worth["client_id"]), (StatusCode::OK, &json!(true), &json!("shop")));
    assert_eq!(worth["username"], json!("shop@idm.example.com"));

    // As the form may have them too.
    let form = [GRANT, ("client_id", "shop"), ("client_secret", &right)];
    assert_eq!(send(&server, None, TOKEN, &form).await.0, StatusCode::OK);

    let till = secret(&server, &session, "till").await;
    for client in [None, Some(("shop", "wrong")), Some(("shop", &*till)), Some(("nobody", &*right)), Some(("app", ""))]
    {
        assert_eq!(send(&server, client, TOKEN, &[GRANT]).await.0, StatusCode::UNAUTHORIZED, "{client:?}");
    }
    for client in [None, Some(("shop", "wrong")), Some(("nobody", &*right))] {
        assert_eq!(send(&server, client, INTROSPECT, &[token]).await.0, StatusCode::UNAUTHORIZED, "{client:?}");
    }
    // Another client can prove who it is, but the token says nothing to it.
    let refused = send(&server, Some(("till", &till)), INTROSPECT, &[token]).await;
    assert_eq!(refused, (StatusCode::BAD_REQUEST, json!({"error": "invalid_request"})));
}

#[tokio::test]
async fn a_secret_that_was_reset_is_worth_nothing_at_once_and_the_new_one_is() {
    let (server, session) = start().await;
    let old = secret(&server, &session, "shop").await;
    let (_, bought) = send(&server, Some(("shop", &old)), TOKEN, &[GRANT]).await;
    let token = ("token", bought["access_token"].as_str().unwrap());
    let reset = json!({"attrs": {"oauth2_rs_basic_secret": []}});
    server.must(Method::PATCH, "/v1/oauth2/shop", &session, reset).await;
    let new = secret(&server, &session, "shop").await;
    for (path, form) in [(TOKEN, GRANT), (INTROSPECT, token)] {
        assert_eq!(send(&server, Some(("shop", &old)), path, &[form]).await.0, StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(send(&server, Some(("shop", &new)), path, &[form]).await.0, StatusCode::OK, "{path}");
    }
    let (_, worth) = send(&server, Some(("shop", &new)), INTROSPECT, &[token]).await;
    assert_eq!(worth["active"], json!(true), "what was bought before lives on");
}

#[tokio::test]
async fn a_client_that_is_renamed_or_deleted_is_known_by_its_new_name_or_not_at_all() {
    let (server, session) = start().await;
    let right = secret(&server, &session, "shop").await;
    let buy = async |name: &str| send(&server, Some((name, &right)), TOKEN, &[GRANT]).await.0;
    assert_eq!(buy("shop").await, StatusCode::OK);
    server.must(Method::PATCH, "/v1/oauth2/shop", &session, json!({"attrs": {"name": ["store"]}})).await;
    assert_eq!((buy("shop").await, buy("store").await), (StatusCode::UNAUTHORIZED, StatusCode::OK));
    server.must(Method::DELETE, "/v1/oauth2/store", &session, Value::Null).await;
    assert_eq!(buy("store").await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_token_that_is_revoked_is_alive_no_more() {
    let (server, session) = start().await;
    let right = secret(&server, &session, "shop").await;
    let shop = Some(("shop", right.as_str()));
    let (_, bought) = send(&server, shop, TOKEN, &[GRANT]).await;
    let token = ("token", bought["access_token"].as_str().unwrap());
    assert_eq!(
        send(&server, Some(("shop", "wrong")), "/oauth2/token/revoke", &[token]).await.0,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(send(&server, shop, "/oauth2/token/revoke", &[token]).await.0, StatusCode::OK);
    assert_eq!(send(&server, shop, INTROSPECT, &[token]).await.1["active"], json!(false));
}

#[tokio::test]
async fn what_cannot_be_granted_is_refused_in_the_words_of_oauth2() {
    let (server, session) = start().await;
    let right = secret(&server, &session, "shop").await;
    let shop = Some(("shop", right.as_str()));
    // Nobody gave it this scope, nor any code.
    let scope = [GRANT, ("scope", "openid")];
    assert_eq!(send(&server, shop, TOKEN, &scope).await, (StatusCode::BAD_REQUEST, json!({"error": "access_denied"})));
    let code = [
        ("grant_type", "authorization_code"),
        ("code", "made-up"),
        ("redirect_uri", "https://shop.example.com/"),
        ("code_verifier", "0123456789012345678901234567890123456789012"),
    ];
    assert_eq!(send(&server, shop, TOKEN, &code).await, (StatusCode::BAD_REQUEST, json!({"error": "invalid_request"})));
    assert_eq!(send(&server, shop, INTROSPECT, &[("token", "made-up")]).await.0, StatusCode::BAD_REQUEST);
    let (status, text) = send(&server, shop, TOKEN, &[("grant_type", "magic")]).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{text}");
}

#[tokio::test]
async fn discovery_leads_to_the_routes_that_are_here() {
    let (server, _) = start().await;
    let (status, found) = server.get("/oauth2/openid/shop/.well-known/openid-configuration", "").await;
    assert_eq!((status, &found["issuer"]), (StatusCode::OK, &json!("https://idm.example.com/oauth2/openid/shop")));
    for (name, path) in [
        ("token_endpoint", TOKEN),
        ("introspection_endpoint", INTROSPECT),
        ("revocation_endpoint", "/oauth2/token/revoke"),
    ] {
        assert_eq!(found[name], json!(format!("https://idm.example.com{path}")), "{name}");
    }
    assert_eq!(server.get("/oauth2/openid/nobody/.well-known/openid-configuration", "").await.0, StatusCode::NOT_FOUND);
}
