//! Which server certificates are accepted, and what is said of the others.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use kaniop_core::reason::Reason;
use kaniop_kanidm::node::Socket;
use kaniop_kanidm::{CertificateProblem, Class, Client, Endpoint, Error, Trust, shows};

use crate::server::{Authority, HOST, Server, Tls, Until, shared};

fn problem(error: &Error) -> &CertificateProblem {
    match error {
        Error::Certificate { problem, .. } => problem,
        other => panic!("not about the certificate: {other:?}"),
    }
}

async fn refusal(endpoint: &Endpoint) -> Error {
    let error = Client::anonymous(endpoint).unwrap().status().await.unwrap_err();
    assert_eq!((error.class(), error.reason()), (Class::Blocked, Reason::CertificateInvalid), "{error}");
    error
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_certificate_of_the_given_authority_is_accepted() {
    let shared = shared();
    assert!(Client::anonymous(&shared.endpoint()).unwrap().status().await.unwrap());
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_certificate_of_another_authority_is_refused_and_the_text_says_so() {
    let shared = shared();
    let other = Authority::new().pem();
    let trust = Trust::from_secret(Some(other.as_bytes()), shared.server.tls.chain.as_bytes()).unwrap();
    let error = refusal(&shared.server.endpoint(trust)).await;
    assert_eq!(problem(&error), &CertificateProblem::UnknownIssuer);
    assert!(error.to_string().contains("authority that is not trusted"), "{error}");
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_certificate_for_another_host_is_refused_with_the_names_it_is_for() {
    let shared = shared();
    let origin = "https://other.example.test".parse().unwrap();
    let error = refusal(&Endpoint { origin, ..shared.endpoint() }).await;
    assert!(matches!(problem(&error), CertificateProblem::WrongHost(_)), "{error}");
    assert!(error.to_string().contains("for another host") && error.to_string().contains(HOST), "{error}");
}

#[tokio::test]
#[ignore = "needs a server"]
async fn without_an_authority_exactly_the_certificate_in_the_secret_is_accepted() {
    let shared = shared();
    let pinned = Trust::from_secret(None, shared.server.tls.chain.as_bytes()).unwrap();
    assert!(Client::anonymous(&shared.server.endpoint(pinned)).unwrap().status().await.unwrap());
    let sibling = shared.authority.issue(HOST, Until::Ages);
    let trust = Trust::from_secret(None, sibling.chain.as_bytes()).unwrap();
    let error = refusal(&shared.server.endpoint(trust)).await;
    assert_eq!(problem(&error), &CertificateProblem::UnknownIssuer);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn the_certificate_in_the_secret_must_fit_the_host_too() {
    let shared = shared();
    let trust = Trust::from_secret(None, shared.server.tls.chain.as_bytes()).unwrap();
    let origin = "https://other.example.test".parse().unwrap();
    let error = refusal(&Endpoint { origin, ..shared.server.endpoint(trust) }).await;
    assert!(matches!(problem(&error), CertificateProblem::WrongHost(_)), "{error}");
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_certificate_signed_by_itself_is_accepted_when_it_is_the_one_in_the_secret() {
    let server = Server::start(Tls::self_signed(HOST)).await;
    let trust = Trust::from_secret(None, server.tls.chain.as_bytes()).unwrap();
    assert!(Client::anonymous(&server.endpoint(trust)).unwrap().status().await.unwrap());
    let trust = Trust::from_secret(None, Tls::self_signed(HOST).chain.as_bytes()).unwrap();
    refusal(&server.endpoint(trust)).await;
}

#[tokio::test]
#[ignore = "needs a server"]
async fn an_expired_certificate_is_refused_by_its_authority_and_by_itself() {
    let authority = Authority::new();
    let server = Server::start(authority.issue(HOST, Until::LongAgo)).await;
    for ca in [Some(authority.pem()), None] {
        let trust = Trust::from_secret(ca.as_ref().map(String::as_bytes), server.tls.chain.as_bytes()).unwrap();
        let error = refusal(&server.endpoint(trust)).await;
        assert!(matches!(problem(&error), CertificateProblem::Expired(_)), "{error}");
        assert!(error.to_string().contains("has expired"), "{error}");
    }
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_port_where_nobody_listens_is_unreachable_and_worth_another_try() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = Client::anonymous(&Endpoint { address, ..shared().endpoint() }).unwrap().status().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert_eq!((error.class(), error.reason()), (Class::Retry, Reason::ConnectionFailed));
    let text = error.to_string();
    assert!(text.contains(HOST) && text.contains(&address.to_string()), "{text}");
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_listener_that_says_nothing_is_given_up_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let error = Client::anonymous(&Endpoint { address, ..shared().endpoint() }).unwrap().status().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert_eq!(error.class(), Class::Retry);
}

#[test]
fn a_secret_without_a_certificate_is_refused_with_the_file_named() {
    let key_only = Tls::self_signed(HOST).key;
    let error = Trust::from_secret(None, key_only.as_bytes()).unwrap_err();
    assert_eq!((error.class(), error.reason()), (Class::Blocked, Reason::TlsSecretInvalid));
    assert!(error.to_string().contains("tls.crt"), "{error}");
    let chain = Tls::self_signed(HOST).chain;
    let error = Trust::from_secret(Some(b"nonsense"), chain.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("ca.crt"), "{error}");
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_renewed_certificate_is_shown_after_a_reload_without_a_restart_and_not_before() {
    let authority = Authority::new();
    let server = Server::start(authority.issue(HOST, Until::Ages)).await;
    let trust = Trust::from_secret(Some(authority.pem().as_bytes()), server.tls.chain.as_bytes()).unwrap();
    let endpoint = server.endpoint(trust);
    let renewed = authority.issue(HOST, Until::Ages);
    assert!(shows(&endpoint, server.tls.chain.as_bytes()).await.unwrap());
    server.put_certificate(&renewed);
    assert!(!shows(&endpoint, renewed.chain.as_bytes()).await.unwrap(), "it has not been told");
    Socket::connect(&server.socket()).await.unwrap().reload().await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !shows(&endpoint, renewed.chain.as_bytes()).await.unwrap() {
        assert!(Instant::now() < deadline, "it goes on to show the former one");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let stranger = Trust::from_secret(Some(Authority::new().pem().as_bytes()), renewed.chain.as_bytes()).unwrap();
    assert!(
        !shows(&server.endpoint(stranger), renewed.chain.as_bytes()).await.unwrap(),
        "what is refused is not shown"
    );
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_server_that_takes_entries_says_so_to_somebody_without_a_token() {
    assert!(Client::takes_entries(&shared().endpoint()).await.unwrap());
}
