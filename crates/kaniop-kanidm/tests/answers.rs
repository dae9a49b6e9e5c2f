//! Answers that a sane server does not give: a listener that plays one scenario, and what the client makes of it.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use kaniop_core::entry::{Attr, Collection, Step, Value};
use kaniop_core::reason::Reason;
use kaniop_kanidm::{Class, Client, Endpoint, Error, Image, Operation, Outcome, Requests, Trust};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use secrecy::SecretString;
use uuid::Uuid;

const HOST: &str = "idm.example.test";
const ID: Uuid = Uuid::from_u128(0xa);

type Stream = StreamOwned<ServerConnection, std::net::TcpStream>;

/// A listener that reads a request on each connection and answers as the scenario says, then closes.
struct Scenario {
    address: SocketAddr,
    trust: Trust,
    requests: Mutex<Receiver<String>>,
    counted: Arc<Requests>,
}

impl Scenario {
    fn play(answer: impl Fn(&mut Stream) + Send + 'static) -> Self {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed([HOST.to_owned()]).unwrap();
        let trust = Trust::from_secret(None, cert.pem().as_bytes()).unwrap();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
        let address = listener.local_addr().unwrap();
        let (tell, requests) = channel();
        thread::spawn(move || {
            for connection in listener.incoming() {
                let mut stream = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), connection.unwrap());
                let Some(request) = read_request(&mut stream) else { continue };
                if tell.send(request).is_err() {
                    return;
                }
                answer(&mut stream);
            }
        });
        Self { address, trust, requests: Mutex::new(requests), counted: Arc::default() }
    }

    /// A whole answer with this status line, these header lines and this body.
    fn answering(status: &'static str, headers: &'static str, body: &'static str) -> Self {
        Self::play(move |stream| {
            let length = body.len();
            let text =
                format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}");
            send(stream, text.as_bytes());
        })
    }

    fn client(&self) -> Client {
        let origin = format!("https://{HOST}").parse().unwrap();
        let (address, trust, requests) = (self.address, self.trust.clone(), self.counted.clone());
        Client::new(&Endpoint { origin, address, trust, requests }, SecretString::from("s3cret-token")).unwrap()
    }

    /// All requests that arrived.
    fn seen(&self) -> Vec<String> {
        self.requests.lock().unwrap().try_iter().collect()
    }
}

fn send(stream: &mut Stream, bytes: &[u8]) {
    // The client may have hung up, which is part of some scenarios.
    let _ = stream.write_all(bytes).and_then(|()| stream.flush());
}

/// Head and body of one request.
fn read_request(stream: &mut Stream) -> Option<String> {
    let (mut text, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut piece).ok().filter(|read| *read > 0)?;
        text.extend_from_slice(&piece[..read]);
        let request = String::from_utf8_lossy(&text).into_owned();
        let Some((head, body)) = request.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
        if body.len() >= length {
            return Some(request);
        }
    }
}

#[tokio::test]
async fn a_request_shows_host_agent_and_token_and_takes_no_cookie() {
    let scenario = Scenario::answering("200 OK", "set-cookie: tasty=1\r\n", "true");
    let client = scenario.client();
    assert!(client.status().await.unwrap());
    assert!(client.status().await.unwrap());
    let seen = scenario.seen();
    assert_eq!(seen.len(), 2);
    for request in seen {
        let request = request.to_lowercase();
        assert!(request.starts_with("get /status http/1.1\r\n"), "{request}");
        assert!(request.contains(&format!("\r\nhost: {HOST}\r\n")), "{request}");
        assert!(request.contains(concat!("\r\nuser-agent: kaniop/", env!("CARGO_PKG_VERSION"), "\r\n")), "{request}");
        assert!(request.contains("\r\nauthorization: bearer s3cret-token\r\n"), "{request}");
        assert!(!request.contains("tasty"), "{request}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let scenario = Scenario::answering("302 Found", "location: https://elsewhere.example.test/\r\n", "");
    let error = scenario.client().entries(&[]).await.unwrap_err();
    assert!(matches!(error, Error::Unexpected { status: 302, .. }), "{error:?}");
    assert_eq!(scenario.seen().len(), 1);
}

#[tokio::test]
async fn a_connection_that_breaks_off_is_not_tried_again_by_the_client() {
    let attrs = vec![(Attr::NAME, Value::Text("staff".to_owned()))];
    let step = Step::Create { collection: Collection::Group, uuid: ID, attrs };
    let silent = Scenario::play(|_| {});
    let half = Scenario::play(|stream| send(stream, b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"id\":"));
    for scenario in [silent, half] {
        let error = scenario.client().execute(&step, &[]).await.unwrap_err();
        assert!(matches!(error, Error::Interrupted { .. }), "{error:?}");
        assert_eq!((error.class(), error.reason()), (Class::Retry, Reason::ConnectionFailed));
        assert_eq!(scenario.seen().len(), 1);
        assert_eq!(scenario.counted.count(Operation::Create, Outcome::Lost), 1);
    }
}

#[tokio::test]
async fn an_answer_without_end_is_not_read_to_its_end() {
    let scenario = Scenario::play(|stream| {
        send(stream, b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
        let piece = vec![b' '; 1 << 20];
        for _ in 0..80 {
            send(stream, &piece);
        }
    });
    let error = scenario.client().entries(&[]).await.unwrap_err();
    assert!(matches!(error, Error::AnswerTooLarge { .. }), "{error:?}");
    assert_eq!(error.class(), Class::Bug);
}

#[tokio::test]
async fn an_answer_of_another_form_is_a_bug_with_its_operation_id() {
    let page = Scenario::answering("200 OK", "x-kanidm-opid: op-7\r\n", "<html>welcome</html>");
    let error = page.client().entries(&[]).await.unwrap_err();
    assert_eq!((error.class(), error.reason()), (Class::Bug, Reason::InternalError));
    assert!(error.to_string().contains("operation op-7"), "{error}");
    let list = Scenario::answering("200 OK", "", r#"{"resources":[{"id":"no uuid"}]}"#);
    let error = list.client().entries(&[]).await.unwrap_err();
    assert!(matches!(error, Error::Undecodable { .. }), "{error:?}");
    let token = Scenario::answering("200 OK", "", r#"["s3cret-new-token"]"#);
    let error = token.client().issue_api_token("x", "y", kaniop_kanidm::Purpose::ReadOnly, None).await.unwrap_err();
    assert!(matches!(error, Error::Undecodable { .. }) && !error.to_string().contains("s3cret"), "{error}");
}

#[tokio::test]
async fn trouble_of_the_server_is_worth_another_try_and_keeps_the_operation_id_and_the_version() {
    let headers = "x-kanidm-opid: op-8\r\nx-kanidm-version: 1.10.5\r\n";
    let scenario = Scenario::answering("503 Service Unavailable", headers, "");
    let client = scenario.client();
    let error = client.entry(ID, &[]).await.unwrap_err();
    assert_eq!((error.class(), error.reason()), (Class::Retry, Reason::ConnectionFailed));
    assert!(error.to_string().contains("HTTP 503, operation op-8"), "{error}");
    assert_eq!(client.server_version().as_deref(), Some("1.10.5"));
    assert_eq!(scenario.counted.count(Operation::Read, Outcome::Refused), 1);
}

#[tokio::test]
async fn names_cannot_leave_their_place_in_the_path() {
    let scenario = Scenario::answering("200 OK", "", "[]");
    let client = scenario.client();
    client.api_tokens("a/../b?c#d").await.unwrap();
    let seen = scenario.seen();
    assert!(seen[0].starts_with("GET /v1/service_account/a%2F..%2Fb%3Fc%23d/_api_token HTTP/1.1\r\n"), "{}", seen[0]);
    for name in ["..", ".", ""] {
        assert!(client.api_tokens(name).await.is_err(), "{name:?}");
    }
    assert!(scenario.seen().is_empty());
}

#[tokio::test]
async fn neither_client_nor_errors_show_the_token() {
    let scenario = Scenario::answering("418 I'm a teapot", "", "tea");
    let client = scenario.client();
    let error = client.status().await.unwrap_err();
    for text in [format!("{client:?}"), format!("{error:?}"), error.to_string()] {
        assert!(!text.contains("s3cret"), "{text}");
    }
}

#[tokio::test]
async fn no_error_quotes_a_secret_that_came_in_an_unknown_form() {
    let scenario = Scenario::answering("200 OK", "", r#"{"token": "s3cret-new", "secret": ["s3cret-new"]}"#);
    let client = scenario.client();
    let errors = [
        client.oauth2_secret("shop").await.unwrap_err(),
        client.generate_password(ID).await.unwrap_err(),
        client.credential_reset(ID, std::time::Duration::from_secs(60)).await.unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, Error::Undecodable { .. }), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    }
}

#[tokio::test]
async fn a_picture_travels_as_a_form_with_name_and_type() {
    let scenario = Scenario::answering("200 OK", "", "null");
    let image = Image::new("logo.svg", "image/svg+xml", b"<svg/>".to_vec()).unwrap();
    scenario.client().set_oauth2_image("shop", image).await.unwrap();
    let request = scenario.seen().remove(0);
    assert!(request.starts_with("POST /v1/oauth2/shop/_image HTTP/1.1\r\n"), "{request}");
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let boundary = head.split("content-type: multipart/form-data; boundary=").nth(1).unwrap().lines().next().unwrap();
    let expected = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"image\"; filename=\"logo.svg\"\r\n\
         Content-Type: image/svg+xml\r\n\r\n<svg/>\r\n--{boundary}--\r\n"
    );
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_route_that_is_not_there_is_told_from_a_person_who_is_not() {
    let send = async |scenario: &Scenario| {
        let ttl = std::time::Duration::from_secs(60);
        scenario.client().send_credential_reset(ID, ttl, "ada@example.test").await.unwrap_err()
    };
    let old = Scenario::answering("404 Not Found", "x-kanidm-version: 1.9.4\r\n", "Route not found");
    let error = send(&old).await;
    assert!(matches!(&error, Error::Unsupported { version: Some(version), .. } if version == "1.9.4"), "{error:?}");
    let new = Scenario::answering("404 Not Found", "x-kanidm-version: 1.10.5\r\n", "\"nomatchingentries\"");
    assert_eq!(send(&new).await, Error::NotFound);
    let body = new.seen().remove(0).split_once("\r\n\r\n").unwrap().1.to_owned();
    assert_eq!(body, r#"{"email":"ada@example.test","ttl":60}"#);
}
