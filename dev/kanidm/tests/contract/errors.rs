//! Statuses and bodies, one row for each documented failure.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Site, entry};

const UUID: &str = "5a1b7c3e-0f4d-4f0e-8d5e-6b64657600b1";
/// Within the range that built-in entries have.
const BUILT_IN: &str = "00000000-0000-0000-0000-000000000999";

#[tokio::test]
async fn failures_have_the_documented_statuses_and_bodies() {
    let server = Site::new().start();
    let token = server.session("idm_admin").await;
    let admin = server.session("admin").await;
    let person = |name: &str| entry(&[("name", name), ("displayname", "Someone")]);
    server.must(Method::POST, "/v1/person", &token, person("ada")).await;
    server.must(Method::POST, "/v1/person", &token, person("grace")).await;
    server.must(Method::POST, "/v1/group", &token, entry(&[("name", "crew"), ("uuid", UUID)])).await;

    let patch = |name: &str, value: &str| entry(&[(name, value)]);
    let scim_person = json!({"class": ["person", "account", "object"], "name": "ada", "displayname": "Ada"});
    let large = json!({"attrs": {"name": ["x".repeat(2_500_000)]}});
    let conflict = json!(["name", "spn"]);
    let rows: Vec<(Method, &str, &str, Value, u16, Value)> = vec![
        (Method::GET, "/v1/person", "", Value::Null, 401, json!("notauthenticated")),
        (Method::GET, "/v1/person", "garbage", Value::Null, 401, json!("notauthenticated")),
        (Method::GET, "/v1/person/nobody", &token, Value::Null, 200, Value::Null),
        (Method::GET, "/v1/nowhere", &token, Value::Null, 404, json!("Route not found")),
        (Method::GET, "/v1/group/nobody/_attr/member", &token, Value::Null, 200, Value::Null),
        (Method::PATCH, "/v1/person/nobody", &token, patch("displayname", "x"), 404, json!("nomatchingentries")),
        (Method::DELETE, "/v1/person/nobody", &token, Value::Null, 404, json!("nomatchingentries")),
        (Method::PUT, "/v1/group/nobody/_attr/member", &token, json!(["ada"]), 404, json!("nomatchingentries")),
        (
            Method::POST,
            "/v1/person",
            &token,
            entry(&[("name", "bo")]),
            400,
            json!({"schemaviolation": {"missingmustattribute": ["displayname"]}}),
        ),
        (
            Method::PATCH,
            "/v1/person/ada",
            &token,
            patch("shoe_size", "44"),
            400,
            json!({"invalidattributename": "shoe_size"}),
        ),
        (
            Method::PUT,
            "/v1/group/crew/_attr/member",
            &token,
            json!(["ghost"]),
            500,
            json!({"plugin": {"referentialintegrity": "Uuid referenced not found in database"}}),
        ),
        (
            Method::POST,
            "/v1/group",
            &token,
            entry(&[("name", "other"), ("uuid", UUID)]),
            500,
            json!({"plugin": {"base": "Uuid duplicate found in database"}}),
        ),
        (
            Method::POST,
            "/v1/group",
            &token,
            entry(&[("name", "other"), ("uuid", BUILT_IN)]),
            403,
            json!("accessdenied"),
        ),
        (
            Method::POST,
            "/v1/person",
            &token,
            entry(&[("name", "bo"), ("displayname", "Bo"), ("legalname", "B")]),
            403,
            json!("accessdenied"),
        ),
        (Method::POST, "/v1/person", &token, person("ada"), 409, conflict.clone()),
        (Method::POST, "/v1/person", &token, person("crew"), 409, conflict.clone()),
        (Method::PATCH, "/v1/person/grace", &token, patch("name", "ada"), 409, conflict.clone()),
        (Method::POST, "/scim/v1/Entry", &token, scim_person, 409, conflict),
        (Method::POST, "/v1/person", &admin, person("eve"), 403, json!("accessdenied")),
        (Method::POST, "/v1/person", &token, large, 413, Value::Null),
        (Method::PUT, "/v1/oauth2/any/_attr/displayname", &token, json!(["x"]), 405, json!("")),
        (
            Method::GET,
            "/scim/v1/Entry?count=5&startIndex=99999",
            &token,
            Value::Null,
            500,
            json!("sc0029paginationoutofbounds"),
        ),
    ];
    for (method, path, token, body, status, expected) in rows {
        let (got, answer) = server.call(method.clone(), path, token, body).await;
        assert_eq!(got.as_u16(), status, "{method} {path}: {answer}");
        match status {
            409 => assert_eq!(answer["conflicting_attributes"], expected, "{method} {path}: {answer}"),
            413 => {}
            _ => assert_eq!(answer, expected, "{method} {path}"),
        }
    }
}

#[tokio::test]
async fn a_mail_of_somebody_else_is_a_conflict_and_ones_own_is_not() {
    let server = Site::new().start();
    let token = server.session("idm_admin").await;
    for name in ["ada", "grace"] {
        let body = json!({"attrs": {"name": [name], "displayname": [name], "mail": [format!("{name}@example.com")]}});
        server.must(Method::POST, "/v1/person", &token, body).await;
    }
    let mails = |mails: &[&str]| json!({"attrs": {"mail": mails}});
    let (status, answer) =
        server.call(Method::PATCH, "/v1/person/ada", &token, mails(&["ada@example.com", "grace@example.com"])).await;
    assert_eq!((status, &answer["conflicting_attributes"]), (StatusCode::CONFLICT, &json!(["mail"])));
    server.must(Method::PATCH, "/v1/person/ada", &token, mails(&["ada@example.com", "a@example.com"])).await;
}

#[tokio::test]
async fn a_deleted_uuid_stays_taken_until_it_is_purged() {
    let server = Site::new().start();
    let token = server.session("idm_admin").await;
    let group = |name: &str| entry(&[("name", name), ("uuid", UUID)]);
    server.must(Method::POST, "/v1/group", &token, group("crew")).await;
    server.must(Method::DELETE, "/v1/group/crew", &token, Value::Null).await;
    let (status, answer) = server.post("/v1/group", &token, group("crew")).await;
    assert_eq!(status.as_u16(), 500);
    assert_eq!(answer, json!({"plugin": {"base": "Uuid duplicate found in database"}}));
}

#[tokio::test]
async fn removing_no_values_at_all_removes_every_value() {
    let server = Site::new().start();
    let token = server.session("idm_admin").await;
    server.must(Method::POST, "/v1/person", &token, entry(&[("name", "ada"), ("displayname", "Ada")])).await;
    server.must(Method::POST, "/v1/group", &token, entry(&[("name", "crew"), ("member", "ada")])).await;
    let path = "/v1/group/crew/_attr/member";
    server.must(Method::DELETE, path, &token, json!(["idm_admin"])).await;
    assert_eq!(server.must(Method::GET, path, &token, Value::Null).await, json!(["ada@idm.example.com"]));
    server.must(Method::DELETE, path, &token, json!([])).await;
    assert_eq!(server.must(Method::GET, path, &token, Value::Null).await, Value::Null);
}

#[tokio::test]
async fn errors_are_json_that_calls_itself_plain_text() {
    let server = Site::new().start();
    let response = server.client.get(server.url("/v1/person")).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
    assert_eq!(response.headers()["www-authenticate"], "Bearer");
    assert_eq!(response.text().await.unwrap(), "\"notauthenticated\"");
}

#[tokio::test]
async fn a_change_with_one_bad_attribute_changes_nothing() {
    let server = Site::new().start();
    let token = server.session("idm_admin").await;
    server.must(Method::POST, "/v1/person", &token, entry(&[("name", "ada"), ("displayname", "Ada")])).await;
    let bad = entry(&[("displayname", "Changed"), ("shoe_size", "44")]);
    assert_eq!(server.call(Method::PATCH, "/v1/person/ada", &token, bad).await.0.as_u16(), 400);
    let (_, ada) = server.get("/v1/person/ada", &token).await;
    assert_eq!(ada["attrs"]["displayname"], json!(["Ada"]));
}

#[tokio::test]
async fn answers_carry_the_version_and_an_operation_id_but_not_on_status() {
    let server = Site::new().start();
    for (path, version) in [("/v1/self", Some("1.7.4")), ("/status", None)] {
        let response = server.client.get(server.url(path)).send().await.unwrap();
        assert!(response.headers().contains_key("x-kanidm-opid"), "{path}");
        let told = response.headers().get("x-kanidm-version").map(|v| v.to_str().unwrap().to_owned());
        assert_eq!(told.as_deref(), version, "{path}");
    }
    assert_eq!(server.get("/status", "").await, (StatusCode::OK, json!(true)));
}

#[tokio::test]
async fn every_request_is_counted_by_its_route() {
    let server = Site::new().start();
    let token = server.session("idm_admin").await;
    let before = server.get("/dev/requests", "").await.1;
    server.must(Method::GET, "/v1/person/ada", &token, Value::Null).await;
    server.must(Method::GET, "/v1/person/grace", &token, Value::Null).await;
    let after = server.get("/dev/requests", "").await.1;
    let count = |counts: &Value| counts["GET /v1/person/{id}"].as_u64().unwrap_or(0);
    assert_eq!(count(&after) - count(&before), 2);
    assert_eq!(before["POST /v1/auth"], json!(3));
    assert_eq!(after, server.get("/dev/requests", "").await.1, "looking is not counted");
}
