//! An API server that holds any objects by path and applies as the real one does, as far as field ownership goes: every field that is applied
//! belongs to who applied it, and whoever edits one otherwise takes it over. What was deleted is gone when its finalizers are, with all that belongs to it.

mod store;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::response::IntoResponse;
use axum::routing::any;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value as Json, json};

use super::Faults;
use super::fleet::Fleet;
use super::node::Node;

/// What the server holds and what was done to it.
#[derive(Default)]
pub(crate) struct Held {
    /// Objects by path.
    pub(crate) objects: BTreeMap<String, Json>,
    /// Writes, in order, as `METHOD path`; Events apart.
    pub(crate) writes: Vec<String>,
    /// Reasons of the Events, in order.
    pub(crate) events: Vec<String>,
    /// The Events as they were sent.
    pub(crate) told: Vec<Json>,
    /// Refuse the next write with this status and reason.
    pub(crate) refuse: Option<(u16, &'static str)>,
    /// Refuse every write to this path, as a quota does.
    pub(crate) full: Option<String>,
    /// Refuse to show this path, as a role does that lacks the right.
    pub(crate) hidden: Option<String>,
    /// Fail whatever is asked of StatefulSets.
    pub(crate) broken: bool,
    /// Refuse to start processes in pods, with this status.
    pub(crate) refuse_exec: Option<u16>,
    /// Version of the newest change.
    pub(crate) version: u64,
    uids: usize,
}

/// What runs in the pods.
#[derive(Clone)]
pub(crate) enum Pods {
    /// The same node in each.
    Alike(Node),
    /// A node in each that knows the others.
    Fleet(Fleet),
}

impl From<Node> for Pods {
    fn from(node: Node) -> Self {
        Self::Alike(node)
    }
}

impl From<Fleet> for Pods {
    fn from(fleet: Fleet) -> Self {
        Self::Fleet(fleet)
    }
}

/// The server.
#[derive(Clone)]
pub(crate) struct Shelf {
    pub(crate) held: Arc<Mutex<Held>>,
    faults: Arc<Faults>,
    pods: Option<Pods>,
}

impl Default for Shelf {
    fn default() -> Self {
        Self { held: Arc::default(), faults: Arc::new(Faults::none()), pods: None }
    }
}

impl Shelf {
    /// An API server without any pods.
    pub(crate) fn failing(faults: Arc<Faults>) -> Self {
        Self { faults, ..Self::default() }
    }

    /// An API server in front of these pods.
    pub(crate) fn before(pods: impl Into<Pods>, faults: Arc<Faults>) -> Self {
        Self { held: Arc::default(), faults, pods: Some(pods.into()) }
    }

    /// Serves in memory: everything but processes in pods.
    pub(crate) fn client(&self) -> kube::Client {
        let server = self.clone();
        let serve = move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                Ok::<_, std::convert::Infallible>(
                    server.serve(&parts.method, &parts.uri, is_merge(&parts.headers), &body).await.map(Body::from),
                )
            }
        };
        kube::Client::new(tower::service_fn(serve), "default")
    }

    /// Serves on loopback until the test ends: a process in a pod needs a real connection.
    pub(crate) async fn connected_client(&self) -> kube::Client {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let routes = Router::new()
            .route("/api/v1/namespaces/{namespace}/pods/{pod}/exec", any(exec))
            .fallback(any(|State(shelf): State<Self>, method: Method, uri: http::Uri, headers: HeaderMap, body: Bytes| async move {
                shelf.serve(&method, &uri, is_merge(&headers), &body).await.map(axum::body::Body::from)
            }))
            .with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        let mut config = kube::Config::new(url.parse().unwrap());
        config.default_retry = false;
        kube::Client::try_from(config).unwrap()
    }

    /// Puts an object there, as somebody else's.
    pub(crate) fn put(&self, path: &str, mut object: Json) {
        let mut held = self.held.lock().unwrap();
        held.uids += 1;
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("uid-{}", held.uids));
        }
        held.store(path, object);
    }

    /// Somebody else changes an object; a change of its spec is a new generation.
    pub(crate) fn change(&self, path: &str, change: impl FnOnce(&mut Json)) {
        let mut held = self.held.lock().unwrap();
        let old = held.objects[path].clone();
        let mut object = old.clone();
        change(&mut object);
        if object["spec"] != old["spec"] {
            object["metadata"]["generation"] = json!(old["metadata"]["generation"].as_u64().unwrap_or(0) + 1);
        }
        held.store(path, object);
    }

    /// Somebody deletes an object.
    pub(crate) fn delete(&self, path: &str) {
        self.held.lock().unwrap().delete(path);
    }

    pub(crate) fn get(&self, path: &str) -> Option<Json> {
        self.held.lock().unwrap().objects.get(path).cloned()
    }

    /// Somebody else edits a field, which is theirs from then on.
    pub(crate) fn edit(&self, path: &str, pointer: &str, value: Json) {
        let mut held = self.held.lock().unwrap();
        let mut object = held.objects[path].clone();
        *object.pointer_mut(pointer).unwrap() = value;
        let books = pointer.replace('/', "/f:");
        let of = path;
        let mut path = format!("/metadata/managedFields/0/fieldsV1{books}");
        // A parent of which nothing is left goes too: an empty one would mean the whole of it.
        while let Some((parent, field)) = path.rsplit_once('/') {
            let owned = object.pointer_mut(parent).unwrap().as_object_mut().unwrap();
            owned.remove(field).unwrap();
            if !owned.is_empty() {
                break;
            }
            path = parent.to_owned();
        }
        held.store(of, object);
    }

    pub(crate) fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.held.lock().unwrap().writes)
    }

    async fn serve(&self, method: &Method, uri: &http::Uri, merge: bool, body: &[u8]) -> Response<Vec<u8>> {
        let fate = self.faults.arrives().await;
        let body: Json = serde_json::from_slice(body).unwrap_or(Json::Null);
        let (status, answer) = self.held.lock().unwrap().answer(method, uri, merge, &body);
        self.faults.carried_out(fate).await;
        let body = serde_json::to_vec(&answer).unwrap();
        Response::builder().status(status).header("content-type", "application/json").body(body).unwrap()
    }
}

/// Runs the node helper: one message for what it prints, one for how it ended.
async fn exec(State(shelf): State<Shelf>, uri: http::Uri, upgrade: WebSocketUpgrade) -> axum::response::Response {
    const STDOUT: u8 = 1;
    const STATUS: u8 = 3;
    let fate = shelf.faults.arrives().await;
    if let Some(code) = shelf.held.lock().unwrap().refuse_exec {
        return StatusCode::from_u16(code).unwrap().into_response();
    }
    let query = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let command: Vec<_> = query.filter(|(key, _)| key == "command").map(|(_, word)| word.into_owned()).collect();
    let pod = uri.path().split('/').rev().nth(1).unwrap_or_default();
    let printed = match shelf.pods.as_ref().unwrap() {
        Pods::Alike(node) => node.helper(&command),
        Pods::Fleet(fleet) => fleet.helper(pod, &command),
    };
    shelf.faults.carried_out(fate).await;
    let message = |channel: u8, json: &Json| Message::Binary([&[channel], json.to_string().as_bytes()].concat().into());
    let (stdout, status) = (message(STDOUT, &printed), message(STATUS, &json!({"status": "Success"})));
    upgrade.protocols(["v4.channel.k8s.io"]).on_upgrade(|mut socket| async move {
        for message in [stdout, status, Message::Close(None)] {
            // Somebody who has heard enough may be gone.
            let _ = socket.send(message).await;
        }
    })
}

impl Held {
    fn answer(&mut self, method: &Method, uri: &http::Uri, merge: bool, body: &Json) -> (StatusCode, Json) {
        let path = uri.path();
        if path.contains("/events") {
            self.events.push(body["reason"].as_str().unwrap_or_default().to_owned());
            self.told.push(body.clone());
            return (StatusCode::CREATED, body.clone());
        }
        if self.broken && path.contains("/statefulsets") {
            return refused(500, "InternalError");
        }
        if method == Method::GET && self.hidden.as_deref() == Some(path) {
            return refused(403, "Forbidden");
        }
        if method == Method::GET {
            return match self.objects.get(path) {
                Some(object) => (StatusCode::OK, object.clone()),
                None if is_list(path) => (StatusCode::OK, self.list(path, uri.query().unwrap_or_default())),
                None => refused(404, "NotFound"),
            };
        }
        if self.full.as_deref() == Some(path) {
            return refused(403, "Forbidden");
        }
        if uri.query().is_some_and(|query| query.contains("dryRun=All")) {
            return (StatusCode::OK, body.clone());
        }
        self.writes.push(format!("{method} {path}"));
        if let Some((code, reason)) = self.refuse.take() {
            return refused(code, reason);
        }
        if method == Method::DELETE {
            let exact = |object: &Json| body["preconditions"]["uid"] == object["metadata"]["uid"];
            return match self.objects.get(path) {
                Some(object) if exact(object) => (StatusCode::OK, self.delete(path).unwrap()),
                Some(_) => refused(409, "Conflict"),
                None => refused(404, "NotFound"),
            };
        }
        assert_eq!(method, Method::PATCH, "{path}");
        if merge { self.merge(path, body) } else { self.apply(path, body) }
    }

    fn list(&self, path: &str, query: &str) -> Json {
        let selector = url::form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "labelSelector");
        let selector = selector.map(|(_, value)| value.into_owned()).unwrap_or_default();
        let matches = |object: &Json| {
            selector.split(',').filter(|term| !term.is_empty()).all(|term| {
                match (term.strip_prefix('!'), term.split_once('=')) {
                    (Some(key), _) => object["metadata"]["labels"][key].is_null(),
                    (None, Some((key, value))) => object["metadata"]["labels"][key] == value,
                    (None, None) => !object["metadata"]["labels"][term].is_null(),
                }
            })
        };
        let within =
            |key: &str| key.strip_prefix(path).is_some_and(|rest| rest.starts_with('/') && !rest[1..].contains('/'));
        let items: Vec<_> = self
            .objects
            .iter()
            .filter(|(key, object)| within(key) && matches(object))
            .map(|(_, object)| object)
            .collect();
        json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items})
    }
}

fn is_merge(headers: &HeaderMap) -> bool {
    headers.get("content-type").is_some_and(|kind| kind == "application/merge-patch+json")
}

/// Whether a path names all objects of a kind instead of one.
fn is_list(path: &str) -> bool {
    let segments: Vec<_> = path.trim_start_matches('/').split('/').collect();
    let group = if segments[0] == "api" { 2 } else { 3 };
    match segments.get(group..).unwrap_or_default() {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest.len() == 1,
        rest => rest.len() == 1,
    }
}

fn refused(code: u16, reason: &str) -> (StatusCode, Json) {
    let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": reason, "code": code, "message": "no"});
    (StatusCode::from_u16(code).unwrap(), status)
}
