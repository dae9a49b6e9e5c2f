use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::{StreamExt, stream};
use kaniop_core::picture::content::{ContentError, Kind, LARGEST};
use kaniop_core::picture::source::SourceError;
use kaniop_kanidm::Class;
use rustls::RootCertStore;

use super::*;
use crate::scenario::pictures::{ADDRESS, HOST, Pictures};

const SVG: &str = "<svg xmlns='http://www.w3.org/2000/svg'/>";
/// A GIF of one pixel.
const GIF: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

fn routes<const N: usize>(answers: [(&str, Response); N]) -> Router {
    answers.into_iter().fold(Router::new(), |router, (path, answer)| {
        let (head, body) = answer.into_parts();
        let body = futures::executor::block_on(axum::body::to_bytes(body, usize::MAX)).unwrap();
        let again = move || std::future::ready((head.status, head.headers.clone(), body.clone()));
        router.route(path, get(again))
    })
}

fn moved(to: &str) -> Response {
    (StatusCode::FOUND, [(LOCATION, to.to_owned())]).into_response()
}

async fn refusal(host: &Pictures, path: &str) -> Error {
    fetch(&host.url(path), None, &host.rules).await.unwrap_err()
}

fn validators(etag: &str, last_modified: &str) -> Validators {
    Validators { etag: Some(etag.to_owned()), last_modified: Some(last_modified.to_owned()) }
}

/// A port that nobody connects to: whoever does is found waiting.
fn deserted() -> (TcpListener, u16) {
    let listener = TcpListener::bind(SocketAddr::new(ADDRESS, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

fn is_deserted(listener: &TcpListener) -> bool {
    listener.accept().is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

#[tokio::test]
async fn a_picture_is_fetched_with_its_kind_its_hash_and_its_validators() {
    let headers = [(CONTENT_TYPE, "text/plain"), (ETAG, "\"1\""), (LAST_MODIFIED, "Tue, 01 Dec 2026 08:00:00 GMT")];
    let host = Pictures::serve(routes([("/logo", (headers, GIF).into_response())])).await;
    let fetched = fetch(&host.url("/logo?size=1#top"), None, &host.rules).await.unwrap();
    let Fetched::Image { bytes, kind, sha256, validators: found } = fetched else { panic!("{fetched:?}") };
    assert_eq!((bytes.as_slice(), kind), (GIF, Kind::Gif));
    assert_eq!(sha256, "6c63cc5063ac82d8bbc925f9a31adf3a87f1510c021e0fde51854d60484b5019");
    assert_eq!(found, validators("\"1\"", "Tue, 01 Dec 2026 08:00:00 GMT"));
}

#[tokio::test]
async fn a_request_says_nothing_but_what_it_asks_for() {
    let first = ([(LOCATION, "/b"), (SET_COOKIE, "a=b; Path=/")], StatusCode::SEE_OTHER).into_response();
    let host = Pictures::serve(routes([("/a", first), ("/b", SVG.into_response())])).await;
    fetch(&host.url("/a"), None, &host.rules).await.unwrap();
    let asked = host.asked.lock().unwrap();
    assert_eq!(asked.len(), 2);
    for (path, headers) in asked.iter() {
        let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "host", "user-agent"], "{path}");
    }
}

#[test]
fn a_proxy_in_the_environment_is_not_asked() {
    let (proxy, port) = deserted();
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "picture::tests::a_picture_is_fetched_with_its_kind_its_hash_and_its_validators"]);
    for name in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        again.env(name, format!("http://127.0.0.1:{port}"));
    }
    let output = again.env_remove("NO_PROXY").env_remove("no_proxy").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert!(is_deserted(&proxy));
}

#[tokio::test]
async fn only_https_is_spoken() {
    let host = Pictures::serve(routes([("/logo", GIF.into_response())])).await;
    let error = fetch(&host.url("/logo").replace("https", "http"), None, &host.rules).await.unwrap_err();
    assert!(matches!(error, Error::Source(SourceError::NotHttps)), "{error}");
    assert_eq!(error.class(), Class::Blocked);
    assert!(host.names.asked().is_empty());
}

#[tokio::test]
async fn redirects_lead_to_the_same_host_over_https_and_nowhere_else() {
    let other = SourceError::Elsewhere("other.example.com".to_owned());
    for (location, why) in [
        ("https://other.example.com/logo", RedirectProblem::Target(other)),
        ("http://pictures.example.com/logo", RedirectProblem::Target(SourceError::NotHttps)),
        ("https://127.0.0.1/logo", RedirectProblem::Target(SourceError::Address)),
        ("https://kubernetes.default.svc/", {
            RedirectProblem::Target(SourceError::Local("kubernetes.default.svc".to_owned()))
        }),
        ("https://u:p@pictures.example.com/", RedirectProblem::Target(SourceError::Credentials)),
        ("/moved", RedirectProblem::TooMany(3)),
    ] {
        let host = Pictures::serve(routes([("/moved", moved(location))])).await;
        host.names.answer("other.example.com", &[ADDRESS]);
        let error = refusal(&host, "/moved").await;
        assert!(matches!(&error, Error::Redirect { host, why: found } if host == HOST && *found == why), "{error}");
        assert_eq!(error.class(), Class::Blocked);
        assert_eq!(host.names.asked(), [HOST], "{location}");
        assert_eq!(host.paths().len(), if location == "/moved" { 4 } else { 1 }, "{location}");
    }
    let host = Pictures::serve(routes([("/moved", StatusCode::MOVED_PERMANENTLY.into_response())])).await;
    let error = refusal(&host, "/moved").await;
    assert!(matches!(error, Error::Redirect { why: RedirectProblem::Nowhere, .. }), "{error}");
}

#[tokio::test]
async fn a_name_is_looked_up_once_however_many_redirects_follow() {
    let host = Pictures::serve(routes([
        ("/a", moved("/b")),
        ("/b", moved("c")),
        ("/c", moved("./d")),
        ("/d", SVG.into_response()),
    ]))
    .await;
    // Whoever rules a name can let it mean another address a moment after it was judged.
    host.names.answer(HOST, &["10.0.0.1".parse().unwrap()]);
    fetch(&host.url("/a"), None, &host.rules).await.unwrap();
    assert_eq!(host.paths(), ["/a", "/b", "/c", "/d"]);
    assert_eq!(host.names.asked(), [HOST]);
    let error = refusal(&host, "/a").await;
    assert!(matches!(error, Error::NotPublic { .. }), "{error}");
}

#[tokio::test]
async fn the_longest_picture_is_taken_and_a_longer_one_is_not() {
    let of_length = |length: usize| format!("{SVG}{}", " ".repeat(length - SVG.len())).into_response();
    let answers = [("/longest", of_length(LARGEST)), ("/longer", of_length(LARGEST + 1))];
    let host = Pictures::serve(routes(answers)).await;
    let fetched = fetch(&host.url("/longest"), None, &host.rules).await.unwrap();
    assert!(matches!(fetched, Fetched::Image { bytes, kind: Kind::Svg, .. } if bytes.len() == LARGEST));
    let error = refusal(&host, "/longer").await;
    assert!(matches!(error, Error::Content { why: ContentError::TooLarge, .. }), "{error}");
    assert_eq!(error.class(), Class::Blocked);
}

#[tokio::test]
async fn a_body_without_end_is_read_no_further_than_a_picture_may_be_long() {
    let sent = Arc::new(AtomicUsize::new(0));
    let count = sent.clone();
    let endless = move || {
        let count = count.clone();
        let body = stream::repeat(()).map(move |()| {
            count.fetch_add(1 << 10, Ordering::Relaxed);
            Ok::<_, Infallible>([b' '; 1 << 10].to_vec())
        });
        std::future::ready(Body::from_stream(body))
    };
    let host = Pictures::serve(Router::new().route("/endless", get(endless))).await;
    let error = refusal(&host, "/endless").await;
    assert!(matches!(error, Error::Content { why: ContentError::TooLarge, .. }), "{error}");
    // The rest lies in the buffers of two sockets.
    assert!(sent.load(Ordering::Relaxed) < 64 << 20);
}

#[tokio::test]
async fn a_picture_that_trickles_in_is_not_waited_for() {
    let trickle = || {
        let body = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Some((Ok::<_, Infallible>(" "), ()))
        });
        std::future::ready(Body::from_stream(body))
    };
    let routes = Router::new().route("/trickle", get(trickle)).route("/never", get(std::future::pending::<()>));
    let host = Pictures::serve(routes).await;
    let limit = Duration::from_millis(500);
    for path in ["/trickle", "/never"] {
        let error = fetch(&host.url(path), None, &host.rules.clone().within(limit)).await.unwrap_err();
        assert!(matches!(error, Error::TimedOut { limit: said, .. } if said == limit), "{error}");
        assert_eq!(error.class(), Class::Retry);
    }
    assert_eq!(Rules::new(Vec::new()).unwrap().whole, Duration::from_secs(10));
}

#[tokio::test]
async fn a_host_that_never_begins_to_speak_is_not_waited_for() {
    let host = Pictures::serve(Router::new()).await;
    let (silent, port) = deserted();
    let url = format!("https://{HOST}:{port}/");
    let rules = host.rules.clone().within(Duration::from_millis(500));
    let error = fetch(&url, None, &rules).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. } | Error::TimedOut { .. }), "{error}");
    assert_eq!(error.class(), Class::Retry);
    assert!(!is_deserted(&silent));
}

#[tokio::test]
async fn the_content_counts_and_not_what_it_is_called() {
    let called = |kind: &'static str, body: &'static str| ([(CONTENT_TYPE, kind)], body).into_response();
    let script = "<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>";
    let host = Pictures::serve(routes([
        ("/page.png", called("image/png", "<!DOCTYPE html><html>Sign in</html>")),
        ("/text.gif", called("image/gif", "no picture")),
        ("/script.svg", called("image/svg+xml", script)),
        ("/empty.png", called("image/png", "")),
        ("/logo.txt", called("text/plain", SVG)),
    ]))
    .await;
    for (path, said) in [
        ("/page.png", "outermost element is not <svg>"),
        ("/text.gif", "neither PNG, JPEG"),
        ("/script.svg", "may run programs"),
        ("/empty.png", "is empty"),
    ] {
        let error = refusal(&host, path).await;
        assert!(matches!(error, Error::Content { .. }) && error.to_string().contains(said), "{error}");
        assert_eq!(error.class(), Class::Blocked);
    }
    let fetched = fetch(&host.url("/logo.txt"), None, &host.rules).await.unwrap();
    assert!(matches!(fetched, Fetched::Image { kind: Kind::Svg, .. }));
}

#[tokio::test]
async fn an_address_that_is_not_public_is_not_connected_to() {
    let (inside, port) = deserted();
    let rules = |names: &Arc<Told>| Rules::for_test(names.clone(), RootCertStore::empty(), Vec::new());
    for address in ["127.0.0.1", "[::1]", "2130706433", "[::ffff:127.0.0.1]", "10.0.0.1", "169.254.169.254"] {
        let names = Arc::new(Told::default());
        let error = fetch(&format!("https://{address}:{port}/"), None, &rules(&names)).await.unwrap_err();
        assert!(matches!(error, Error::Source(SourceError::Address)), "{error}");
        assert!(names.asked().is_empty());
    }
    let url = format!("https://{HOST}:{port}/?signature=secret");
    for addresses in [
        &["127.0.0.1"][..],
        &["::1"],
        &["::ffff:127.0.0.1"],
        &["64:ff9b::127.0.0.1"],
        &["10.0.0.1"],
        &["169.254.169.254"],
        &["fd00:ec2::254"],
        &["1.1.1.1", "127.0.0.1"],
        &["127.0.0.1", "2606:4700:4700::1111"],
    ] {
        let names = Arc::new(Told::default());
        names.answer(HOST, &addresses.iter().map(|address| address.parse().unwrap()).collect::<Vec<_>>());
        let error = fetch(&url, None, &rules(&names)).await.unwrap_err();
        assert!(matches!(error, Error::NotPublic { .. }), "{addresses:?}: {error}");
        assert_eq!(error.class(), Class::Blocked);
        assert!(!addresses.iter().any(|address| error.to_string().contains(address)), "{error}");
    }
    assert!(is_deserted(&inside));
}

#[tokio::test]
async fn one_address_that_is_not_public_spoils_the_others() {
    let host = Pictures::serve(routes([("/logo", GIF.into_response())])).await;
    for other in ["10.0.0.1", "fe80::1"] {
        let names = Arc::new(Told::default());
        names.answer(HOST, &[ADDRESS, other.parse().unwrap()]);
        let rules = Rules { names: names::Names::Told(names), ..host.rules.clone() };
        let error = fetch(&host.url("/logo"), None, &rules).await.unwrap_err();
        assert!(matches!(error, Error::NotPublic { .. }), "{error}");
    }
    assert!(host.paths().is_empty());
}

#[tokio::test]
async fn networks_that_the_caller_keeps_for_itself_are_not_connected_to() {
    let names = Arc::new(Told::default());
    names.answer(HOST, &["198.41.0.4".parse().unwrap()]);
    let rules = Rules::for_test(names, RootCertStore::empty(), Vec::new());
    let rules = Rules { refused: vec!["198.41.0.0/24".parse().unwrap()].into(), ..rules };
    let error = fetch(&format!("https://{HOST}/"), None, &rules).await.unwrap_err();
    assert!(matches!(error, Error::NotPublic { .. }), "{error}");
}

#[tokio::test]
async fn another_address_of_the_host_is_tried_when_one_refuses() {
    let host = Pictures::serve(routes([("/logo", GIF.into_response())])).await;
    let unused: IpAddr = [127, 0, 0, 2].into();
    let names = Arc::new(Told::default());
    names.answer(HOST, &[unused, ADDRESS]);
    let rules = Rules { names: names::Names::Told(names), excepted: vec![unused, ADDRESS], ..host.rules.clone() };
    fetch(&host.url("/logo"), None, &rules).await.unwrap();
}

/// Answers 304 to whoever shows both validators of this picture.
async fn conditional(headers: HeaderMap) -> Response {
    let (etag, date) = ("\"1\"", "Tue, 01 Dec 2026 08:00:00 GMT");
    let shows = |name: HeaderName, value: &str| headers.get(name).is_some_and(|shown| shown == value);
    if shows(IF_NONE_MATCH, etag) && shows(IF_MODIFIED_SINCE, date) {
        return StatusCode::NOT_MODIFIED.into_response();
    }
    ([(ETAG, etag), (LAST_MODIFIED, date)], SVG).into_response()
}

#[tokio::test]
async fn a_picture_that_the_host_knows_to_be_the_same_is_not_fetched_again() {
    let host =
        Pictures::serve(Router::new().route("/logo", get(conditional)).route("/a", get(async || moved("/logo")))).await;
    for path in ["/logo", "/a"] {
        let first = fetch(&host.url(path), None, &host.rules).await.unwrap();
        let Fetched::Image { validators, .. } = first else { panic!("{first:?}") };
        let again = fetch(&host.url(path), Some(&validators), &host.rules).await.unwrap();
        assert_eq!(again, Fetched::Unchanged);
        let older = Validators { etag: Some("\"0\"".to_owned()), ..validators };
        let changed = fetch(&host.url(path), Some(&older), &host.rules).await.unwrap();
        assert!(matches!(changed, Fetched::Image { .. }), "{changed:?}");
    }
}

#[tokio::test]
async fn an_answer_that_nothing_has_changed_counts_only_where_it_was_asked_for() {
    let host = Pictures::serve(routes([("/logo", StatusCode::NOT_MODIFIED.into_response())])).await;
    let broken = validators("\"1\"\r\nHost: other.example.com", "\u{0}");
    for known in [None, Some(&Validators::default()), Some(&broken)] {
        let error = fetch(&host.url("/logo"), known, &host.rules).await.unwrap_err();
        assert!(matches!(error, Error::Status { status: 304, .. }), "{error}");
    }
}

#[tokio::test]
async fn a_changed_picture_is_seen_by_its_hash_where_the_host_has_no_validators() {
    let asked = Arc::new(AtomicUsize::new(0));
    let answer = move || std::future::ready(format!("{SVG}<!-- {} -->", asked.fetch_add(1, Ordering::Relaxed)));
    let host = Pictures::serve(Router::new().route("/logo", get(answer))).await;
    let mut hashes = Vec::new();
    for _ in 0..2 {
        let fetched = fetch(&host.url("/logo"), Some(&Validators::default()), &host.rules).await.unwrap();
        let Fetched::Image { sha256, validators, .. } = fetched else { panic!("{fetched:?}") };
        assert_eq!(validators, Validators::default());
        hashes.push(sha256);
    }
    assert_ne!(hashes[0], hashes[1]);
}

#[tokio::test]
async fn validators_that_are_no_short_text_are_not_kept() {
    let long = format!("\"{}\"", "x".repeat(300));
    let answer = ([(ETAG, long.into_bytes()), (LAST_MODIFIED, b"\xff".to_vec())], SVG).into_response();
    let host = Pictures::serve(routes([("/logo", answer)])).await;
    let fetched = fetch(&host.url("/logo"), None, &host.rules).await.unwrap();
    assert!(matches!(fetched, Fetched::Image { validators, .. } if validators == Validators::default()));
}

#[tokio::test]
async fn any_other_answer_is_told_by_its_status() {
    for (status, class) in [
        (StatusCode::NO_CONTENT, Class::Blocked),
        (StatusCode::PARTIAL_CONTENT, Class::Blocked),
        (StatusCode::MULTIPLE_CHOICES, Class::Blocked),
        (StatusCode::UNAUTHORIZED, Class::Blocked),
        (StatusCode::NOT_FOUND, Class::Blocked),
        (StatusCode::TOO_MANY_REQUESTS, Class::Retry),
        (StatusCode::SERVICE_UNAVAILABLE, Class::Retry),
    ] {
        let host = Pictures::serve(routes([("/logo", (status, [(LOCATION, "/logo")], SVG).into_response())])).await;
        let error = refusal(&host, "/logo?signature=secret").await;
        assert!(matches!(error, Error::Status { status: found, .. } if found == status.as_u16()), "{error}");
        assert_eq!(error.class(), class, "{status}");
        assert_eq!(host.paths(), ["/logo"]);
    }
}

#[tokio::test]
async fn a_host_that_is_not_there_may_come_back() {
    let host = Pictures::serve(Router::new()).await;
    let (closed, port) = deserted();
    drop(closed);
    let error = fetch(&format!("https://{HOST}:{port}/?signature=secret"), None, &host.rules).await.unwrap_err();
    assert!(matches!(&error, Error::Unreachable { why, .. } if why.contains("refused")), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
    assert_eq!(error.class(), Class::Retry);
    for (name, said) in [("unknown.example.com", "no such name"), ("empty.example.com", "has no address")] {
        host.names.answer("empty.example.com", &[]);
        let error = fetch(&format!("https://{name}/"), None, &host.rules).await.unwrap_err();
        assert!(matches!(&error, Error::Unresolved { why, .. } if why.contains(said)), "{error}");
        assert_eq!(error.class(), Class::Retry);
    }
}

#[tokio::test]
async fn a_host_must_show_a_certificate_of_its_own_from_a_trusted_authority() {
    let host = Pictures::serve(routes([("/logo", GIF.into_response())])).await;
    let untrusting = Rules { tls: Rules::new(Vec::new()).unwrap().tls, ..host.rules.clone() };
    let error = fetch(&host.url("/logo"), None, &untrusting).await.unwrap_err();
    assert!(matches!(&error, Error::Unreachable { why, .. } if why.contains("UnknownIssuer")), "{error}");
    host.names.answer("other.example.com", &[ADDRESS]);
    let error = fetch(&host.url("/logo").replace(HOST, "other.example.com"), None, &host.rules).await.unwrap_err();
    assert!(matches!(&error, Error::Unreachable { why, .. } if why.contains("not valid for name")), "{error}");
    assert!(host.paths().is_empty());
}
