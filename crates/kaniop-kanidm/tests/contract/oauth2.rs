//! OAuth2 clients: making, renaming, what SCIM shows and takes of them, secrets, pictures, and tokens for the values of a Secret.

use kaniop_core::entry::{Attr, Newcomer, Step};
use kaniop_kanidm::{Client, Error, Image};
use kaniop_outside::Server as Witness;
use reqwest::StatusCode;
use secrecy::ExposeSecret;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::entries::{create, group, newcomer, text};
use crate::raw::Raw;
use crate::server::{HOST, shared, uuid};

const CLASS: &str = "oauth2_resource_server";
const SWITCHES: [&str; 5] = [
    "oauth2_jwt_legacy_crypto_enable",
    "oauth2_prefer_short_username",
    "oauth2_strict_redirect_uri",
    "oauth2_consent_prompt_enable",
    "oauth2_allow_insecure_client_disable_pkce",
];

fn oauth2(public: bool) -> Newcomer {
    Newcomer::OAuth2Client { displayname: "Shop".to_owned(), landing: "https://shop.example.test".to_owned(), public }
}

async fn made(operator: &Client, name: &str, public: bool) -> Uuid {
    newcomer(operator, name, &oauth2(public)).await.unwrap()
}

async fn secret(operator: &Client, name: &str) -> String {
    operator.oauth2_secret(name).await.unwrap().unwrap().expose_secret().to_owned()
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_client_is_made_once_and_keeps_its_uuid_when_it_is_renamed() {
    let shared = shared();
    let operator = shared.operator();
    let id = made(&operator, "client-old", false).await;
    let error = newcomer(&operator, "client-old", &oauth2(false)).await.unwrap_err();
    assert!(matches!(&error, Error::Conflict { attributes } if attributes.iter().any(|a| a == "name")), "{error:?}");

    let rename = Step::Put { uuid: id, attrs: vec![(Attr::NAME, Some(text("client-new")))] };
    operator.execute(&rename, &[]).await.unwrap();
    let shown = Raw::of(shared).listed(CLASS, id, "name,spn").await;
    assert_eq!((&shown["name"], &shown["spn"]), (&json!("client-new"), &json!("client-new@example.test")));
    assert_ne!(made(&operator, "client-old", false).await, id, "the old name is free");
}

#[tokio::test]
#[ignore = "needs a server"]
async fn one_put_sets_everything_that_a_spec_can_say_and_the_list_shows_it_in_the_same_form() {
    let shared = shared();
    let (operator, raw) = (shared.operator(), Raw::of(shared));
    let id = made(&operator, "client-full", false).await;
    let buyers = create(&operator, &group("client-buyers", &[])).await;
    create(&operator, &group("client-staff", &[])).await;
    let mut wanted = json!({
        "displayname": "Everything", "description": "A client with everything",
        "oauth2_rs_origin_landing": "https://shop.example.test/home",
        "oauth2_rs_origin": ["https://shop.example.test/a", "app://back"],
        "oauth2_refresh_token_expiry": 7200,
        "oauth2_rs_scope_map": [
            {"groupUuid": buyers.uuid, "scopes": ["openid", "email"]}, {"group": "client-staff", "scopes": ["openid"]},
        ],
        "oauth2_rs_sup_scope_map": [{"group": "client-staff", "scopes": ["admin"]}],
        "oauth2_rs_claim_map": [
            {"group": "client-buyers", "claim": "tier", "joinChar": ",", "values": ["silver", "gold"]},
            {"group": "client-staff", "claim": "tier", "joinChar": ",", "values": ["lead"]},
            {"group": "client-staff", "claim": "roles", "joinChar": ";", "values": ["a"]},
            {"group": "client-staff", "claim": "words", "joinChar": " ", "values": ["b"]},
        ],
    });
    for switch in SWITCHES {
        wanted[switch] = json!(true);
    }
    let put = raw.put(id, wanted.clone()).await.unwrap();
    let attributes: Vec<_> = wanted.as_object().unwrap().keys().map(String::as_str).collect();
    let shown = raw.listed(CLASS, id, &attributes.join(",")).await;
    for name in &attributes {
        assert_eq!(put[name], shown[name], "{name}");
    }
    for name in SWITCHES {
        assert_eq!(shown[name], json!(true), "{name}");
    }
    for name in ["displayname", "description", "oauth2_rs_origin_landing", "oauth2_refresh_token_expiry"] {
        assert_eq!(shown[name], wanted[name], "{name}");
    }
    assert_eq!(texts(&shown["oauth2_rs_origin"]), ["app://back", "https://shop.example.test/a"]);
    let scopes = maps(&shown["oauth2_rs_scope_map"]);
    assert_eq!(
        scopes[0],
        json!({"group": "client-buyers@example.test", "groupUuid": buyers.uuid, "scopes": ["email", "openid"]})
    );
    assert_eq!((scopes.len(), &scopes[1]["scopes"]), (2, &json!(["openid"])));
    assert_eq!(maps(&shown["oauth2_rs_sup_scope_map"])[0]["scopes"], json!(["admin"]));
    let claims = maps(&shown["oauth2_rs_claim_map"]);
    let of = |claim: &str| claims.iter().filter(|map| map["claim"] == claim).collect::<Vec<_>>();
    assert_eq!(
        of("tier")[0],
        &json!({"group": "client-buyers@example.test", "groupUuid": buyers.uuid, "claim": "tier", "joinChar": ",", "values": ["gold", "silver"]})
    );
    assert_eq!(
        (of("tier").len(), &of("roles")[0]["joinChar"], &of("words")[0]["joinChar"]),
        (2, &json!(";"), &json!(" "))
    );
}

fn maps(json: &Json) -> Vec<Json> {
    let mut maps = json.as_array().unwrap().clone();
    maps.sort_by_key(ToString::to_string);
    maps
}

fn texts(json: &Json) -> Vec<&str> {
    let mut texts: Vec<_> = json.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    texts.sort_unstable();
    texts
}

#[tokio::test]
#[ignore = "needs a server"]
async fn null_purges_whatever_may_be_absent_and_one_url_is_shown_as_a_text() {
    let shared = shared();
    let (operator, raw) = (shared.operator(), Raw::of(shared));
    let id = made(&operator, "client-purged", false).await;
    create(&operator, &group("client-purgers", &[])).await;
    let scopes = json!([{"group": "client-purgers", "scopes": ["openid"]}]);
    let full = json!({
        "description": "x", "oauth2_rs_origin": ["https://shop.example.test/only"], "oauth2_refresh_token_expiry": 60,
        "oauth2_rs_scope_map": scopes, "oauth2_rs_sup_scope_map": scopes,
        "oauth2_rs_claim_map": [{"group": "client-purgers", "claim": "c", "joinChar": ",", "values": ["v"]}],
        SWITCHES[0]: false, SWITCHES[1]: false, SWITCHES[2]: false, SWITCHES[3]: false, SWITCHES[4]: false,
    });
    let put = raw.put(id, full.clone()).await.unwrap();
    assert_eq!(put["oauth2_rs_origin"], json!("https://shop.example.test/only"));
    let names: Vec<_> = full.as_object().unwrap().keys().cloned().collect();
    for name in &names {
        assert!(!put[name].is_null(), "{name}: {put}");
    }
    let nulls = names.iter().map(|name| (name.clone(), Json::Null)).collect();
    let purged = raw.put(id, Json::Object(nulls)).await.unwrap();
    for name in &names {
        assert!(purged[name].is_null(), "{name}: {purged}");
    }
    for name in ["name", "displayname", "oauth2_rs_origin_landing"] {
        assert!(raw.put(id, json!({ name: null })).await.is_err(), "{name} may not be absent");
    }
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_map_for_a_group_that_is_not_there_is_refused_and_changes_nothing() {
    let shared = shared();
    let (operator, raw) = (shared.operator(), Raw::of(shared));
    let id = made(&operator, "client-lonely", false).await;
    for map in [
        json!({"groupUuid": uuid("no group"), "scopes": ["openid"]}),
        json!({"group": "no-group", "scopes": ["openid"]}),
    ] {
        let refused = raw.put(id, json!({"displayname": "changed", "oauth2_rs_scope_map": [map]})).await;
        assert!(refused.is_err(), "{map}: {refused:?}");
    }
    assert_eq!(raw.listed(CLASS, id, "displayname").await["displayname"], json!("Shop"));
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_secret_is_read_by_itself_and_never_listed_and_a_reset_makes_another() {
    let shared = shared();
    let operator = shared.operator();
    let id = made(&operator, "client-secret", false).await;
    let first = secret(&operator, "client-secret").await;
    assert_eq!(secret(&operator, "client-secret").await, first, "reading does not change it");
    let listed = Raw::of(shared).listed(CLASS, id, "name,oauth2_rs_basic_secret").await;
    assert!(listed["oauth2_rs_basic_secret"].is_null() && !listed.to_string().contains(&first));
    operator.reset_oauth2_secret("client-secret").await.unwrap();
    let second = secret(&operator, "client-secret").await;
    assert_ne!(first, second);

    made(&operator, "client-secretless", true).await;
    operator.reset_oauth2_secret("client-secretless").await.unwrap();
    // These routes know names only.
    for name in ["client-secretless", "client-that-never-was", &id.to_string()] {
        assert!(operator.oauth2_secret(name).await.unwrap().is_none(), "{name}");
    }
    assert_eq!(operator.reset_oauth2_secret("client-that-never-was").await, Err(Error::NotFound));
}

/// What a workload does with the values of a Secret.
#[tokio::test]
#[ignore = "needs a server"]
async fn name_and_secret_of_a_client_buy_a_token_until_the_secret_is_reset() {
    let shared = shared();
    let (operator, raw) = (shared.operator(), Raw::of(shared));
    made(&operator, "client-buyer", false).await;
    let (status, discovery) = raw.get("/oauth2/openid/client-buyer/.well-known/openid-configuration").await;
    assert_eq!(status, StatusCode::OK);
    let path = |endpoint: &str| {
        let url: reqwest::Url = discovery[endpoint].as_str().unwrap().parse().unwrap();
        url.path().to_owned()
    };
    let (token, introspect) = (path("token_endpoint"), path("introspection_endpoint"));
    let buy = async |secret: &str| raw.as_client("client-buyer", secret, &token, "grant_type=client_credentials").await;

    let old = secret(&operator, "client-buyer").await;
    let (status, bought) = buy(&old).await;
    assert_eq!((status, &bought["token_type"]), (StatusCode::OK, &json!("Bearer")));
    let form = format!("token={}", bought["access_token"].as_str().unwrap());
    let (status, worth) = raw.as_client("client-buyer", &old, &introspect, &form).await;
    assert_eq!((status, &worth["active"], &worth["client_id"]), (StatusCode::OK, &json!(true), &json!("client-buyer")));
    assert_eq!(buy("not the secret").await.0, StatusCode::UNAUTHORIZED);

    operator.reset_oauth2_secret("client-buyer").await.unwrap();
    let new = secret(&operator, "client-buyer").await;
    assert_eq!(buy(&old).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(buy(&new).await.0, StatusCode::OK);
}

/// The witness of the end-to-end tests asks the same.
#[tokio::test]
#[ignore = "needs a server"]
async fn a_bystander_sees_whose_secret_it_has_and_when_it_is_void() {
    let shared = shared();
    let operator = shared.operator();
    made(&operator, "client-witnessed", false).await;
    let witness = Witness::new(shared.server.address, HOST, &shared.authority.pem()).unwrap();
    let ask = async |secret: String| {
        let witness = witness.clone();
        let asked = tokio::task::spawn_blocking(move || witness.introspect("client-witnessed", &secret));
        asked.await.unwrap().unwrap().map(|worth| (worth["active"].clone(), worth["client_id"].clone()))
    };
    let alive = Some((json!(true), json!("client-witnessed")));
    let old = secret(&operator, "client-witnessed").await;
    assert_eq!((ask(old.clone()).await, ask("not the secret".to_owned()).await), (alive.clone(), None));
    operator.reset_oauth2_secret("client-witnessed").await.unwrap();
    assert_eq!((ask(old).await, ask(secret(&operator, "client-witnessed").await).await), (None, alive));
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_picture_is_shown_as_a_hash_of_file_name_type_and_contents() {
    let shared = shared();
    let (operator, raw) = (shared.operator(), Raw::of(shared));
    let id = made(&operator, "client-picture", false).await;
    let shown = async || raw.listed(CLASS, id, "image").await["image"].clone();
    assert_eq!(shown().await, Json::Null);
    let svg = br#"<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>"#;
    // Its place among the types: png, jpg, gif, svg, webp.
    const SVG: [u8; 1] = [3];
    for name in ["logo.svg", "other.svg"] {
        let image = Image::new(name, "image/svg+xml", svg.to_vec()).unwrap();
        operator.set_oauth2_image("client-picture", image.clone()).await.unwrap();
        let hash = Sha256::new().chain_update(name).chain_update(SVG).chain_update(svg).finalize();
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(shown().await, json!([hash]));
        operator.set_oauth2_image("client-picture", image).await.unwrap();
        assert_eq!(shown().await, json!([hash]), "the same picture twice is one");
    }
    for _ in 0..2 {
        operator.delete_oauth2_image("client-picture").await.unwrap();
        assert_eq!(shown().await, Json::Null);
    }
    let rubbish = Image::new("logo.png", "image/png", b"this is no picture at all".to_vec()).unwrap();
    operator.set_oauth2_image("client-picture", rubbish).await.unwrap_err();
    assert_eq!(shown().await, Json::Null);
}
