//! The server in a pod, as far as the operator's own account goes: the admin socket behind the node helper, logins, API tokens. It also answers
//! lists, which it takes only with a token that it knows.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use axum_server::tls_rustls::RustlsConfig;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Faults;
use crate::leader::Guard;

/// Tells the addresses of this process's servers apart.
static SERVERS: AtomicU16 = AtomicU16::new(0);

/// What the server holds and what was done to it.
#[derive(Default)]
pub(crate) struct Held {
    /// UUID of its domain.
    pub(crate) domain: Uuid,
    /// Passwords by account.
    pub(crate) passwords: BTreeMap<String, String>,
    /// How often the built-in administrators were reset.
    pub(crate) resets: usize,
    /// API tokens by token: id and label.
    pub(crate) tokens: BTreeMap<String, (Uuid, String)>,
    /// Members of `idm_admins`.
    pub(crate) admins: BTreeSet<String>,
    /// Service accounts.
    pub(crate) accounts: BTreeSet<String>,
    /// Login attempts.
    pub(crate) logins: usize,
    /// What the node helper says of backups: a listing, or nothing, and then it fails.
    pub(crate) backups: Option<Value>,
    /// How often it was asked for them.
    pub(crate) asked_for_backups: usize,
    /// The lease that is lost when the tokens are listed.
    pub(crate) lapse: Option<Guard>,
    sessions: BTreeSet<String>,
    drawn: u128,
}

/// The server.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) held: Arc<Mutex<Held>>,
    /// Address of its pod.
    pub(crate) ip: Ipv4Addr,
    /// Certificate and key, PEM.
    pub(crate) certificate: (String, String),
    faults: Arc<Faults>,
}

type Answer = (StatusCode, HeaderMap, Json<Value>);

impl Node {
    /// Serves on a loopback address of its own, at the port that every pod has, until the test ends.
    pub(crate) async fn start(faults: Arc<Faults>) -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let certified = rcgen::generate_simple_self_signed(["idm.example.com".to_owned()]).unwrap();
        let certificate = (certified.cert.pem(), certified.signing_key.serialize_pem());
        let tls = RustlsConfig::from_pem(certificate.0.clone().into_bytes(), certificate.1.clone().into_bytes())
            .await
            .unwrap();
        let (ip, listener) = own_address();
        let node = Self { held: Arc::default(), ip, certificate, faults };
        node.held.lock().unwrap().domain = Uuid::from_u128(1);
        let routes = Router::new()
            .route("/v1/auth", post(auth))
            .route("/v1/service_account", post(create_account))
            .route("/v1/service_account/{name}", get(account))
            .route("/v1/service_account/{name}/_api_token", get(tokens).post(issue))
            .route("/v1/service_account/{name}/_api_token/{id}", delete(revoke))
            .route("/v1/group/idm_admins/_attr/member", post(add_member))
            .route("/scim/v1/Entry", get(list))
            .with_state(node.clone());
        tokio::spawn(axum_server::from_tcp_rustls(listener, tls).unwrap().serve(routes.into_make_service()));
        node
    }

    /// What the node helper prints when it is asked for this.
    pub(crate) fn helper(&self, arguments: &[String]) -> Value {
        let mut held = self.held.lock().unwrap();
        let words: Vec<_> = arguments.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["/kaniop/kaniop", "node", "report"] => {
                json!({"ok": {"domain": {"name": "idm.example.com", "displayname": "idm", "uuid": held.domain, "level": 11}}})
            }
            ["/kaniop/kaniop", "node", "recover-accounts", names @ ..] => {
                held.resets += 1;
                let made: BTreeMap<_, _> =
                    names.iter().map(|name| ((*name).to_owned(), held.draw("password"))).collect();
                held.passwords.extend(made.clone());
                held.sessions.clear();
                json!({"ok": made})
            }
            ["/kaniop/kaniop", "node", "backups", "--patience", _] => {
                held.asked_for_backups += 1;
                held.backups
                    .clone()
                    .map_or_else(|| json!({"error": "the disk is gone"}), |listing| json!({"ok": listing}))
            }
            other => json!({"error": format!("unknown: {other:?}")}),
        }
    }

    async fn answer(&self, act: impl FnOnce(&mut Held) -> Answer) -> Answer {
        let fate = self.faults.arrives().await;
        let answer = act(&mut self.held.lock().unwrap());
        self.faults.carried_out(fate).await;
        answer
    }

    /// Answers somebody who is logged in.
    async fn answer_known(&self, headers: &HeaderMap, act: impl FnOnce(&mut Held) -> Answer) -> Answer {
        let bearer = headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let bearer = bearer.unwrap_or_default().to_owned();
        self.answer(|held| {
            let known = held.sessions.contains(&bearer) || held.tokens.contains_key(&bearer);
            if known { act(held) } else { says(401, json!("notauthenticated")) }
        })
        .await
    }
}

impl Held {
    fn draw(&mut self, what: &str) -> String {
        self.drawn += 1;
        format!("{what}-{}", self.drawn)
    }
}

/// The port is the same for every server, so each has an address of its own.
fn own_address() -> (Ipv4Addr, std::net::TcpListener) {
    loop {
        let [high, low] = SERVERS.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let process = u8::try_from(20 + std::process::id() % 200).unwrap();
        let ip = Ipv4Addr::new(127, process, high, low.max(1));
        if let Ok(listener) = std::net::TcpListener::bind(SocketAddr::from((ip, 8443))) {
            listener.set_nonblocking(true).unwrap();
            return (ip, listener);
        }
    }
}

fn says(status: u16, value: impl Into<Value>) -> Answer {
    (StatusCode::from_u16(status).unwrap(), HeaderMap::new(), Json(value.into()))
}

async fn auth(State(node): State<Node>, headers: HeaderMap, Json(body): Json<Value>) -> Answer {
    node.answer(|held| {
        let step = &body["step"];
        let mut answer = HeaderMap::new();
        let session = headers.get("x-kanidm-auth-session-id").cloned();
        if let Some(name) = step["init2"]["username"].as_str() {
            answer.insert("x-kanidm-auth-session-id", name.parse().unwrap());
            return (StatusCode::OK, answer, Json(json!({"state": {"choose": ["password"]}})));
        }
        if step["begin"] == "password" {
            return says(200, json!({"state": {"continue": ["password"]}}));
        }
        held.logins += 1;
        let account = session.as_ref().and_then(|session| session.to_str().ok()).unwrap_or_default();
        if held.passwords.get(account).is_none_or(|right| step["cred"]["password"] != **right) {
            return says(401, json!({"state": {"denied": "invalid credential state"}}));
        }
        let token = held.draw("session");
        held.sessions.insert(token.clone());
        says(200, json!({"state": {"success": token}}))
    })
    .await
}

async fn create_account(State(node): State<Node>, headers: HeaderMap, Json(body): Json<Value>) -> Answer {
    node.answer_known(&headers, |held| {
        let name = body["attrs"]["name"][0].as_str().unwrap().to_owned();
        if held.accounts.insert(name) {
            says(200, Value::Null)
        } else {
            says(409, json!({"error": "duplicate", "conflicting_attributes": ["name"]}))
        }
    })
    .await
}

async fn account(State(node): State<Node>, headers: HeaderMap, Path(name): Path<String>) -> Answer {
    let answer = |held: &mut Held| {
        says(200, if held.accounts.contains(&name) { json!({"attrs": {"name": [name]}}) } else { Value::Null })
    };
    node.answer_known(&headers, answer).await
}

async fn add_member(State(node): State<Node>, headers: HeaderMap, Json(body): Json<Value>) -> Answer {
    node.answer_known(&headers, |held| {
        held.admins.insert(body[0].as_str().unwrap().to_owned());
        says(200, Value::Null)
    })
    .await
}

async fn tokens(State(node): State<Node>, headers: HeaderMap) -> Answer {
    node.answer_known(&headers, |held| {
        if let Some(guard) = held.lapse.take() {
            guard.close();
        }
        let token = |(id, label): &(Uuid, String)| json!({"token_id": id, "label": label, "purpose": "readwrite", "expiry": null, "issued_at": 1});
        says(200, held.tokens.values().map(token).collect::<Vec<_>>())
    })
    .await
}

async fn issue(State(node): State<Node>, headers: HeaderMap, Json(body): Json<Value>) -> Answer {
    node.answer_known(&headers, |held| {
        let token = held.draw("token");
        let id = Uuid::from_u128(held.drawn);
        held.tokens.insert(token.clone(), (id, body["label"].as_str().unwrap().to_owned()));
        says(200, json!(token))
    })
    .await
}

async fn revoke(State(node): State<Node>, headers: HeaderMap, Path((_, id)): Path<(String, Uuid)>) -> Answer {
    node.answer_known(&headers, |held| {
        held.tokens.retain(|_, (known, _)| *known != id);
        says(200, Value::Null)
    })
    .await
}

async fn list(State(node): State<Node>, headers: HeaderMap) -> Answer {
    node.answer_known(&headers, |_| says(200, json!({"resources": []}))).await
}
