//! The admin socket.

use kaniop_core::reason::Reason;
use kaniop_kanidm::node::Socket;
use kaniop_kanidm::{Class, Client, Error, Trust};

use crate::server::{Authority, HOST, Server, Until, shared};

#[tokio::test]
#[ignore = "needs a server"]
async fn the_socket_tells_the_domain_more_than_once_on_one_connection() {
    let mut socket = Socket::connect(&shared().server.socket()).await.unwrap();
    let domain = socket.domain().await.unwrap();
    assert_eq!(domain.name, "example.test");
    assert!(domain.level >= 11 && !domain.uuid.is_nil(), "{domain:?}");
    assert_eq!(socket.domain().await.unwrap(), domain);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_recovered_password_logs_in_and_voids_the_one_before() {
    let authority = Authority::new();
    let server = Server::start(authority.issue(HOST, Until::Ages)).await;
    let trust = Trust::from_secret(Some(authority.pem().as_bytes()), server.tls.chain.as_bytes()).unwrap();
    let mut socket = Socket::connect(&server.socket()).await.unwrap();
    let old = socket.recover_account("admin").await.unwrap();
    let session = Client::login(&server.endpoint(trust.clone()), "admin", &old).await.unwrap();
    assert_eq!(session.whoami().await.unwrap().as_deref(), Some("admin@example.test"));
    let new = socket.recover_account("admin").await.unwrap();
    let renewed = Client::login(&server.endpoint(trust.clone()), "admin", &new).await.unwrap();
    assert_eq!(renewed.whoami().await.unwrap().as_deref(), Some("admin@example.test"));
    let error = Client::login(&server.endpoint(trust), "admin", &old).await.unwrap_err();
    assert!(matches!(error, Error::LoginDenied { .. }), "{error:?}");
}

#[tokio::test]
#[ignore = "needs a server"]
async fn recovering_an_unknown_account_is_refused_and_named() {
    let mut socket = Socket::connect(&shared().server.socket()).await.unwrap();
    let error = socket.recover_account("nobody-of-this-name").await.unwrap_err();
    assert!(matches!(error, Error::SocketRefused { .. }), "{error:?}");
    assert!(error.to_string().contains("nobody-of-this-name"), "{error}");
    assert_eq!(error.class(), Class::Retry);
}

#[tokio::test]
async fn a_missing_socket_means_that_the_server_has_not_finished_starting() {
    let folder = tempfile::tempdir().unwrap();
    let error = Socket::connect(&folder.path().join("kanidmd.sock")).await.unwrap_err();
    assert!(error.to_string().contains("has not finished starting"), "{error}");
    assert_eq!((error.class(), error.reason()), (Class::Retry, Reason::ConnectionFailed));
}
