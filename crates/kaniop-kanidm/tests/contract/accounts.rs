//! Logins, tokens, and who one is.

use jiff::Timestamp;
use kaniop_core::entry::{Attr, Collection, Step, Value};
use kaniop_core::reason::Reason;
use kaniop_kanidm::{Class, Client, Endpoint, Error, Operation, Outcome, Purpose};
use secrecy::{ExposeSecret, SecretString};

use crate::server::{ATTRS, DISPLAYNAME, operator_token, service_account, shared, uuid};

#[tokio::test]
#[ignore = "needs a server"]
async fn a_login_takes_three_requests_and_knows_who_it_is() {
    let shared = shared();
    let endpoint = shared.endpoint();
    let client = Client::login(&endpoint, "idm_admin", &shared.idm_admin).await.unwrap();
    assert_eq!(endpoint.requests.count(Operation::Login, Outcome::Done), 3);
    assert_eq!(client.whoami().await.unwrap().as_deref(), Some("idm_admin@example.test"));
    assert_eq!(endpoint.requests.of(Operation::Read), 1);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_wrong_password_is_denied_after_one_attempt_without_telling_it() {
    let shared = shared();
    service_account(&shared.operator(), "locked-out").await;
    for account in ["locked-out", "nobody-of-this-name"] {
        let endpoint = shared.endpoint();
        let wrong = SecretString::from("not-the-password");
        let error = Client::login(&endpoint, account, &wrong).await.unwrap_err();
        assert!(matches!(error, Error::LoginDenied { .. }), "{account}: {error:?}");
        assert_eq!((error.class(), error.reason()), (Class::Blocked, Reason::LoginFailed));
        assert!(error.to_string().contains(account) && !error.to_string().contains("not-the-password"), "{error}");
        assert!(endpoint.requests.of(Operation::Login) <= 3);
    }
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_server_names_its_version_and_an_unknown_token_is_nobody() {
    let shared = shared();
    let client = Client::new(&shared.endpoint(), SecretString::from("not.a.token")).unwrap();
    assert_eq!(client.server_version(), None);
    assert_eq!(client.whoami().await.unwrap(), None);
    let version = client.server_version().unwrap();
    assert!(version.starts_with("1."), "{version}");
    assert_eq!(Client::anonymous(&shared.endpoint()).unwrap().whoami().await.unwrap(), None);
    let error = client.entries(&[]).await.unwrap_err();
    assert_eq!((&error, error.class(), error.reason()), (&Error::Unauthenticated, Class::Blocked, Reason::LoginFailed));
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_token_lives_from_issue_to_revocation() {
    let shared = shared();
    let operator = shared.operator();
    service_account(&operator, "token-life").await;
    assert_eq!(operator.api_tokens("token-life").await.unwrap(), []);
    let expiry: Timestamp = "2100-01-01T00:00:00Z".parse().unwrap();
    let token = operator.issue_api_token("token-life", "first", Purpose::ReadWrite, Some(expiry)).await.unwrap();
    let other = operator.issue_api_token("token-life", "second", Purpose::ReadOnly, None).await.unwrap();
    assert_ne!(token.expose_secret(), other.expose_secret());
    let client = Client::new(&shared.endpoint(), token).unwrap();
    assert_eq!(client.whoami().await.unwrap().as_deref(), Some("token-life@example.test"));

    let mut listed = operator.api_tokens("token-life@example.test").await.unwrap();
    listed.sort_by(|a, b| a.label.cmp(&b.label));
    let seen: Vec<_> = listed.iter().map(|token| (token.label.as_str(), token.expiry, token.purpose)).collect();
    assert_eq!(seen, [("first", Some(expiry), Purpose::ReadWrite), ("second", None, Purpose::ReadOnly)]);
    assert!(listed.iter().all(|token| token.issued_at.is_some()));

    operator.revoke_api_token("token-life", listed[0].token_id).await.unwrap();
    operator.revoke_api_token("token-life", listed[0].token_id).await.unwrap();
    let left: Vec<_> = operator.api_tokens("token-life").await.unwrap().into_iter().map(|token| token.label).collect();
    assert_eq!(left, ["second"]);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_token_of_a_deleted_account_is_refused_at_once() {
    let shared = shared();
    let operator = shared.operator();
    let uuid = service_account(&operator, "token-end").await;
    let token = operator.issue_api_token("token-end", "only", Purpose::ReadWrite, None).await.unwrap();
    let client = Client::new(&shared.endpoint(), token).unwrap();
    assert!(client.whoami().await.unwrap().is_some());
    operator.execute(&Step::Delete { uuid }, &[]).await.unwrap();
    assert_eq!(client.whoami().await.unwrap(), None);
}

/// Whoever revokes a token to shut somebody out has to know this.
#[tokio::test]
#[ignore = "needs a server"]
async fn a_revoked_token_is_still_accepted_in_the_five_minutes_after_its_issue() {
    let shared = shared();
    let operator = shared.operator();
    service_account(&operator, "token-grace").await;
    let token = operator.issue_api_token("token-grace", "only", Purpose::ReadWrite, None).await.unwrap();
    let id = operator.api_tokens("token-grace").await.unwrap()[0].token_id;
    operator.revoke_api_token("token-grace", id).await.unwrap();
    let client = Client::new(&shared.endpoint(), token).unwrap();
    assert_eq!(client.whoami().await.unwrap().as_deref(), Some("token-grace@example.test"));
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_read_only_token_reads_but_may_not_write() {
    let shared = shared();
    let operator = shared.operator();
    let token = operator.issue_api_token("operator", "reader", Purpose::ReadOnly, None).await.unwrap();
    let reader = Client::new(&shared.endpoint(), token).unwrap();
    assert!(!reader.entries(&[]).await.unwrap().is_empty());
    let attrs = vec![(Attr::NAME, Value::Text("by-a-reader".to_owned()))];
    let step = Step::Create { collection: Collection::Group, uuid: uuid("by-a-reader"), attrs };
    let error = reader.execute(&step, &[]).await.unwrap_err();
    assert_eq!((&error, error.class(), error.reason()), (&Error::AccessDenied, Class::Blocked, Reason::AccessDenied));
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_token_without_groups_may_not_create_and_the_text_names_the_groups() {
    let shared = shared();
    let operator = shared.operator();
    service_account(&operator, "powerless").await;
    let token = operator.issue_api_token("powerless", "only", Purpose::ReadWrite, None).await.unwrap();
    let client = Client::new(&shared.endpoint(), token).unwrap();
    for (collection, name) in [(Collection::Person, "p"), (Collection::Group, "g"), (Collection::ServiceAccount, "s")] {
        let name = format!("by-powerless-{name}");
        let mut attrs = vec![(Attr::NAME, Value::Text(name.clone()))];
        if collection != Collection::Group {
            attrs.push((DISPLAYNAME, Value::Text(name.clone())));
        }
        let step = Step::Create { collection, uuid: uuid(&name), attrs };
        let error = client.execute(&step, ATTRS).await.unwrap_err();
        assert_eq!(error, Error::AccessDenied, "{collection:?}");
        assert!(error.to_string().contains(kaniop_core::name::OPERATOR_GROUPS[0]), "{error}");
    }
}

#[tokio::test]
#[ignore = "needs a server"]
async fn an_account_made_by_the_operator_can_be_the_operator() {
    let shared = shared();
    let token = operator_token(&shared.operator(), "second-operator").await;
    let second = Client::new(&shared.endpoint(), token).unwrap();
    let uuid = service_account(&second, "made-by-second").await;
    assert!(second.entry(uuid, ATTRS).await.unwrap().is_some());
    second.issue_api_token("made-by-second", "x", Purpose::ReadOnly, None).await.unwrap();
}

#[tokio::test]
#[ignore = "needs a server"]
async fn an_operator_that_lost_its_token_gets_a_new_one_from_the_administrator() {
    let shared = shared();
    let admin = Client::login(&shared.endpoint(), "idm_admin", &shared.idm_admin).await.unwrap();
    let token = admin.issue_api_token("operator", "again", Purpose::ReadWrite, None).await.unwrap();
    let client = Client::new(&shared.endpoint(), token).unwrap();
    assert_eq!(client.whoami().await.unwrap().as_deref(), Some("operator@example.test"));
    let id = admin.api_tokens("operator").await.unwrap().into_iter().find(|token| token.label == "again").unwrap();
    admin.revoke_api_token("operator", id.token_id).await.unwrap();
}

#[test]
fn an_origin_without_https_or_without_a_name_is_refused() {
    let authority = crate::server::Authority::new();
    let trust = kaniop_kanidm::Trust::from_secret(None, authority.pem().as_bytes()).unwrap();
    for (origin, word) in [
        ("http://idm.example.test", "https"),
        ("https://10.0.0.1", "host name"),
        ("https://me:s3cret@idm.example.test", "user"),
    ] {
        let endpoint = Endpoint {
            origin: origin.parse().unwrap(),
            address: "127.0.0.1:1".parse().unwrap(),
            trust: trust.clone(),
            requests: Default::default(),
        };
        let error = Client::anonymous(&endpoint).unwrap_err();
        assert!(error.to_string().contains(word) && !error.to_string().contains("s3cret"), "{error}");
    }
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_service_account_is_made_once_and_never_out_of_something_else() {
    let operator = shared().operator();
    let made = service_account(&operator, "made-once").await;
    assert_eq!(service_account(&operator, "made-once").await, made);
    let taken = crate::entries::group("made-a-group", &[]);
    operator.execute(&taken, ATTRS).await.unwrap();
    let error = operator.ensure_service_account("made-a-group", "x", "idm_admins").await.unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error:?}");
}
