//! SCIM: one list gives everything, one PUT changes many attributes.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Server, Site, entry};

const LIST: &str = "/scim/v1/Entry";
const UUID: &str = "5a1b7c3e-0f4d-4f0e-8d5e-6b64657600c1";

async fn person(server: &Server, token: &str, name: &str, mail: &str) {
    let body = json!({"attrs": {"name": [name], "displayname": [name], "mail": [mail]}});
    server.must(Method::POST, "/v1/person", token, body).await;
}

/// The names that a query finds, in the order of the answer.
async fn names(server: &Server, token: &str, query: &str) -> Vec<String> {
    let response = server.client.get(format!("{}?{query}", server.url(LIST))).bearer_auth(token).send().await.unwrap();
    let status = response.status();
    let answer: Value = response.json().await.unwrap();
    assert_eq!(status, StatusCode::OK, "{query}: {answer}");
    let resources = answer["resources"].as_array().unwrap();
    resources.iter().map(|r| r["name"].as_str().unwrap_or_default().to_owned()).collect()
}

fn filter(text: &str) -> String {
    serde_urlencoded::to_string([("filter", text), ("sortBy", "name"), ("attributes", "name,mail,class")]).unwrap()
}

#[tokio::test]
async fn the_operators_that_the_engine_has_find_what_they_should() {
    let server = Site::new().start();
    let token = server.session("idm_admin").await;
    for name in ["ada", "alan", "grace"] {
        person(&server, &token, name, &format!("{name}@example.com")).await;
    }
    let body = json!({"attrs": {"name": ["crew"], "member": ["ada"]}});
    server.must(Method::POST, "/v1/group", &token, body).await;
    let date = json!({"attrs": {"account_expire": ["2030-01-01T00:00:00Z"]}});
    server.must(Method::PATCH, "/v1/person/alan", &token, date).await;

    let people = "class eq \"person\"";
    for (text, expected) in [
        (people.to_owned(), &["ada", "alan", "grace"][..]),
        (format!("{people} and name co \"la\""), &["alan"]),
        (format!("{people} and name sw \"a\""), &["ada", "alan"]),
        (format!("{people} and name ew \"ce\""), &["grace"]),
        (format!("{people} and account_expire pr"), &["alan"]),
        (format!("{people} and not (name eq \"alan\")"), &["ada", "grace"]),
        ("member eq \"ada\"".to_owned(), &["crew"]),
        ("(name eq \"ada\" or name eq \"crew\")".to_owned(), &["ada", "crew"]),
    ] {
        assert_eq!(names(&server, &token, &filter(&text)).await, expected, "{text}");
    }
}

#[tokio::test]
async fn a_list_is_cut_after_the_whole_search_and_sorted_upwards_whatever_is_asked_for() {
    let server = Site::new().start();
    let token = server.session("idm_admin").await;
    for name in ["ada", "alan", "grace"] {
        person(&server, &token, name, &format!("{name}@example.com")).await;
    }
    let query = "filter=class%20eq%20%22person%22&sortBy=name&sortOrder=descending&startIndex=2&count=2";
    let (_, answer) = server.get(&format!("{LIST}?{query}"), &token).await;
    assert_eq!(answer["totalResults"], json!(3));
    assert_eq!((&answer["startIndex"], &answer["itemsPerPage"]), (&json!(2), &json!(2)));
    assert_eq!(answer["schemas"], json!([]));
    assert_eq!(names(&server, &token, query).await, ["alan", "grace"]);
}

#[tokio::test]
async fn filters_that_the_engine_cannot_read_are_refused_and_the_server_lives() {
    let server = Site::new().start();
    let token = server.session("idm_admin").await;
    let deep = format!("{}name eq \"ada\"{}", "(".repeat(1000), ")".repeat(1000));
    let long = vec!["name eq \"ada\""; 40].join(" or ");
    for (text, status) in [(deep, 400), (long, 500), ("name is ada".to_owned(), 400)] {
        let (got, answer) = server.get(&format!("{LIST}?{}", filter(&text)), &token).await;
        assert_eq!(got.as_u16(), status, "{answer}");
    }
    for (text, status, body) in [
        ("name ne \"ada\"", 500, json!("filtergeneration")),
        ("mail eq \"ada@example.com\"", 400, json!({"invalidattribute": "mail"})),
        ("spn eq \"ada@idm.example.com\"", 400, json!({"invalidattribute": "spn"})),
        ("account_expire lt \"2031-01-01T00:00:00Z\"", 400, json!({"invalidattribute": "account_expire"})),
        ("shoe_size eq \"44\"", 400, json!({"invalidattributename": "shoe_size"})),
    ] {
        let (got, answer) = server.get(&format!("{LIST}?{}", filter(text)), &token).await;
        assert_eq!((got.as_u16(), answer), (status, body), "{text}");
    }
    assert_eq!(server.get("/status", "").await.1, json!(true));
}

#[tokio::test]
async fn values_come_typed_and_with_their_structure() {
    let server = Site::new().start();
    let token = server.session("idm_admin").await;
    person(&server, &token, "ada", "ada@example.com").await;
    server.must(Method::POST, "/v1/group", &token, json!({"attrs": {"name": ["crew"], "member": ["ada"]}})).await;
    let (_, ada) = server.get("/scim/v1/Person/ada", &token).await;
    assert_eq!(ada["mail"], json!([{"primary": true, "value": "ada@example.com"}]));
    let (_, crew) = server.get("/scim/v1/Entry/crew", &token).await;
    assert_eq!(crew["member"], json!([{"uuid": ada["id"], "value": "ada@idm.example.com"}]));
    assert_eq!(server.get("/scim/v1/Person/crew", &token).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn one_entry_lives_its_whole_life() {
    let server = Site::new().start();
    let token = server.session("idm_admin").await;
    person(&server, &token, "ada", "ada@example.com").await;

    let body = json!({"class": ["group", "object"], "id_ignored": null, "name": "crew", "uuid": UUID});
    let (status, _) = server.post(LIST, &token, body).await;
    assert_eq!(status.as_u16(), 400, "an unknown attribute");
    let body = json!({"class": ["group", "object"], "name": "crew", "uuid": UUID});
    let created = server.must(Method::POST, LIST, &token, body).await;
    assert_eq!((&created["id"], &created["name"]), (&json!(UUID), &json!("crew")));

    let change = json!({"id": UUID, "description": "all hands", "member": ["ada"]});
    let changed = server.must(Method::PUT, LIST, &token, change).await;
    assert_eq!(changed["description"], json!("all hands"));
    assert_eq!(changed["member"][0]["value"], json!("ada@idm.example.com"));

    for body in [json!({"name": "x"}), json!({"class": [], "name": "x"}), json!({"class": ["wobble"], "name": "x"})] {
        assert_eq!(server.post(LIST, &token, body).await, (StatusCode::FORBIDDEN, json!("accessdenied")));
    }
    assert_eq!(server.call(Method::PUT, LIST, &token, json!({"id": UUID})).await.0, StatusCode::FORBIDDEN);
    for body in [json!({"name": "x"}), json!({"id": "crew", "name": "x"})] {
        assert_eq!(server.call(Method::PUT, LIST, &token, body).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let change = json!({"id": UUID, "description": null, "name": "ada"});
    let (status, answer) = server.call(Method::PUT, LIST, &token, change).await;
    assert_eq!((status.as_u16(), &answer["conflicting_attributes"]), (409, &json!(["name", "spn"])));
    let purged = server.must(Method::PUT, LIST, &token, json!({"id": UUID, "description": null})).await;
    assert!(purged.get("description").is_none(), "{purged}");

    server.must(Method::DELETE, &format!("{LIST}/{UUID}"), &token, Value::Null).await;
    assert_eq!(server.get("/v1/group/crew", &token).await.1, Value::Null);
}

#[tokio::test]
async fn an_api_token_lists_more_than_a_session_may() {
    let server = Site::new().start();
    let session = server.session("idm_admin").await;
    server
        .must(
            Method::POST,
            "/v1/service_account",
            &session,
            json!({"attrs": {"name": ["operator"], "displayname": ["Operator"], "entry_managed_by": ["idm_admin"]}}),
        )
        .await;
    server.must(Method::POST, "/v1/group/idm_admins/_attr/member", &session, json!(["operator"])).await;
    let body = json!({"label": "test", "expiry": null, "read_write": true, "compact": false});
    let token = server.must(Method::POST, "/v1/service_account/operator/_api_token", &session, body).await;
    let token = token.as_str().unwrap();

    let many: Vec<Value> =
        (0..1100).map(|n| json!({"attrs": {"class": ["group", "object"], "name": [format!("g{n}")]}})).collect();
    server.must(Method::POST, "/v1/raw/create", token, json!({"entries": many})).await;

    let list = format!("{LIST}?filter=class%20eq%20%22group%22&attributes=name&count=5");
    let (status, answer) = server.get(&list, &session).await;
    assert_eq!((status.as_u16(), answer), (500, json!("backend")), "even with paging");
    let (status, answer) = server.get(&list, token).await;
    assert_eq!(status, StatusCode::OK);
    assert!(answer["totalResults"].as_u64().unwrap() > 1100, "{answer}");
}

#[tokio::test]
async fn a_list_of_urls_is_set_whole_with_other_attributes() {
    let server = Site::new().start();
    let token = server.session("idm_admin").await;
    let client = json!({
        "class": ["oauth2_resource_server", "oauth2_resource_server_basic", "account", "object"],
        "name": "shop", "displayname": "Shop", "oauth2_rs_origin_landing": "https://shop.example.com/",
        "oauth2_rs_origin": ["https://shop.example.com/a", "https://shop.example.com/b"]
    });
    let created = server.must(Method::POST, LIST, &token, client).await;
    assert_eq!(created["oauth2_rs_origin"].as_array().unwrap().len(), 2, "{created}");
    server.must(Method::POST, "/v1/group", &token, entry(&[("name", "buyers")])).await;

    let change = json!({
        "id": created["id"], "displayname": "The Shop",
        "oauth2_rs_origin": ["https://shop.example.com/c"],
        "oauth2_rs_scope_map": [{"group": "buyers", "scopes": ["openid", "email"]}],
        "oauth2_rs_claim_map": [{"group": "buyers", "claim": "tier", "joinChar": ",", "values": ["gold"]}],
        "oauth2_consent_prompt_enable": false, "oauth2_refresh_token_expiry": 3600
    });
    let changed = server.must(Method::PUT, LIST, &token, change).await;
    assert_eq!(changed["displayname"], json!("The Shop"));
    assert_eq!(changed["oauth2_rs_origin"], json!("https://shop.example.com/c"), "one URL is a string");
    assert_eq!(changed["oauth2_rs_scope_map"][0]["scopes"], json!(["email", "openid"]));
    assert_eq!(changed["oauth2_rs_claim_map"][0]["claim"], json!("tier"));
    assert_eq!(changed["oauth2_consent_prompt_enable"], json!(false));
    assert_eq!(changed["oauth2_refresh_token_expiry"], json!(3600));

    let purged = server.must(Method::PUT, LIST, &token, json!({"id": created["id"], "oauth2_rs_origin": []})).await;
    assert!(purged.get("oauth2_rs_origin").is_none(), "{purged}");
}
