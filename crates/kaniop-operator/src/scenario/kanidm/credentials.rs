//! Accounts that the server creates in ways of its own, and all credentials. Each value that it ever tells is written down, so that a test can
//! look for it where it must not be.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::{Path, State};
use axum::routing::{delete, get, patch, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::{Answer, Body, Entry, Held, Kanidm, missing, ok};

/// An API token that lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) id: String,
    pub(crate) label: String,
    pub(crate) value: String,
    expiry: Value,
    purpose: &'static str,
}

/// Credentials, by the UUID of whom they let in, and what was done to them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Credentials {
    pub(crate) tokens: BTreeMap<String, Vec<Token>>,
    /// Secrets of OAuth2 clients and passwords of service accounts.
    pub(crate) secrets: BTreeMap<String, String>,
    /// People who have set a credential.
    pub(crate) set: BTreeSet<String>,
    /// Every value that was ever told.
    pub(crate) told: Vec<String>,
    pub(crate) issued: usize,
    pub(crate) revoked: usize,
    /// Passwords that were generated.
    pub(crate) generated: usize,
    /// Client secrets that were drawn anew.
    pub(crate) redrawn: usize,
    /// Links that were handed out.
    pub(crate) links: usize,
    /// Links that were sent by mail.
    pub(crate) mails: usize,
}

impl Credentials {
    /// A value that nobody could guess.
    fn draw(&mut self, what: &str) -> String {
        let value = format!("{what}-{:016x}", fastrand::u64(..));
        self.told.push(value.clone());
        value
    }

    pub(super) fn can_log_in(&self, uuid: &str) -> bool {
        self.set.contains(uuid)
    }

    pub(super) fn forget(&mut self, uuid: &str) {
        self.tokens.remove(uuid);
        self.secrets.remove(uuid);
        self.set.remove(uuid);
    }

    /// What an entry shows of its credentials: which tokens live.
    pub(super) fn shown(&self, uuid: &str) -> Option<(String, Value)> {
        let live = self.tokens.get(uuid).filter(|live| !live.is_empty())?;
        let ids: Vec<_> = live.iter().map(|token| json!({"token_id": token.id, "label": token.label})).collect();
        Some(("api_token_session".to_owned(), ids.into()))
    }

    /// A token that somebody else issued.
    pub(crate) fn put_token(&mut self, uuid: &str, label: &str) -> Token {
        let id = uuid::Uuid::from_u128((0xe << 100) | u128::from(fastrand::u64(..))).to_string();
        let (label, value) = (label.to_owned(), self.draw("token"));
        let token = Token { id, label, value, expiry: Value::Null, purpose: "readonly" };
        self.tokens.entry(uuid.to_owned()).or_default().push(token.clone());
        token
    }

    /// How many requests changed any credential.
    pub(crate) fn writes(&self) -> usize {
        self.issued + self.revoked + self.generated + self.redrawn + self.links + self.mails
    }
}

pub(super) fn routes() -> Router<Kanidm> {
    Router::new()
        .route("/v1/service_account", post(create_account))
        .route("/v1/oauth2/_basic", post(create_client))
        .route("/v1/oauth2/_public", post(create_public_client))
        .route("/v1/oauth2/{name}", patch(redraw))
        .route("/v1/oauth2/{name}/_basic_secret", get(secret))
        .route("/v1/service_account/{uuid}/_api_token", get(tokens).post(issue))
        .route("/v1/service_account/{uuid}/_api_token/{id}", delete(revoke))
        .route("/v1/service_account/{uuid}/_credential/_generate", get(generate))
        .route("/v1/person/{uuid}/_credential/_update_intent/{ttl}", get(link))
        .route("/v1/person/{uuid}/_credential/_update_intent_send", post(mail))
}

async fn create_account(State(server): State<Kanidm>, Json(body): Body) -> Answer {
    server.answer(|held| created(held, &body, &["object", "account", "service_account"], |_, _| {})).await
}

async fn create_public_client(State(server): State<Kanidm>, Json(body): Body) -> Answer {
    server.answer(|held| created(held, &body, &["object", "account", "oauth2_resource_server"], |_, _| {})).await
}

async fn create_client(State(server): State<Kanidm>, Json(body): Body) -> Answer {
    let class = ["object", "account", "oauth2_resource_server"];
    let with_secret = |credentials: &mut Credentials, uuid: String| {
        let secret = credentials.draw("client-secret");
        credentials.secrets.insert(uuid, secret);
    };
    server.answer(|held| created(held, &body, &class, with_secret)).await
}

fn created(held: &mut Held, body: &Value, class: &[&str], then: impl FnOnce(&mut Credentials, String)) -> Answer {
    let mut entry = Entry::new();
    for (name, values) in body["attrs"].as_object().unwrap() {
        let value = if name == "entry_managed_by" { json!({"uuid": values[0]}) } else { values[0].clone() };
        entry.insert(name.clone(), value);
    }
    entry.insert("class".to_owned(), json!(class));
    let uuid = held.draw();
    let (status, answer) = held.admit(uuid.clone(), entry);
    if !status.is_success() {
        return (status, answer);
    }
    then(&mut held.credentials, uuid);
    ok(Value::Null)
}

async fn secret(State(server): State<Kanidm>, Path(name): Path<String>) -> Answer {
    server
        .answer(|held| {
            let uuid = held.uuid_of(&name).unwrap_or_default();
            ok(held.credentials.secrets.get(&uuid).cloned().map_or(Value::Null, Value::String))
        })
        .await
}

async fn redraw(State(server): State<Kanidm>, Path(name): Path<String>, Json(body): Body) -> Answer {
    server
        .answer(|held| {
            assert_eq!(body, json!({"attrs": {"oauth2_rs_basic_secret": []}}));
            let Some(uuid) = held.uuid_of(&name) else { return missing() };
            let secret = held.credentials.draw("client-secret");
            held.credentials.secrets.insert(uuid, secret);
            held.credentials.redrawn += 1;
            ok(Value::Null)
        })
        .await
}

async fn tokens(State(server): State<Kanidm>, Path(uuid): Path<String>) -> Answer {
    server
        .answer(|held| {
            let show = |token: &Token| {
                let Token { id, label, expiry, purpose, .. } = token;
                json!({"account_id": uuid, "token_id": id, "label": label, "expiry": expiry, "issued_at": 0, "purpose": purpose})
            };
            ok(held.credentials.tokens.get(&uuid).into_iter().flatten().map(show).collect::<Vec<_>>())
        })
        .await
}

async fn issue(State(server): State<Kanidm>, Path(uuid): Path<String>, Json(body): Body) -> Answer {
    server
        .answer(|held| {
            if !held.entries.contains_key(&uuid) {
                return missing();
            }
            let id = held.draw();
            let credentials = &mut held.credentials;
            let value = credentials.draw("token");
            let purpose = if body["read_write"] == true { "readwrite" } else { "readonly" };
            let label = body["label"].as_str().unwrap().to_owned();
            let token = Token { id, label, value: value.clone(), expiry: body["expiry"].clone(), purpose };
            credentials.tokens.entry(uuid).or_default().push(token);
            credentials.issued += 1;
            ok(value)
        })
        .await
}

async fn revoke(State(server): State<Kanidm>, Path((uuid, id)): Path<(String, String)>) -> Answer {
    server
        .answer(|held| {
            let live = held.credentials.tokens.entry(uuid).or_default();
            let before = live.len();
            live.retain(|token| token.id != id);
            if live.len() == before {
                return missing();
            }
            held.credentials.revoked += 1;
            ok(Value::Null)
        })
        .await
}

async fn generate(State(server): State<Kanidm>, Path(uuid): Path<String>) -> Answer {
    server
        .answer(|held| {
            if !held.entries.contains_key(&uuid) {
                return missing();
            }
            let password = held.credentials.draw("password");
            held.credentials.secrets.insert(uuid, password.clone());
            held.credentials.generated += 1;
            ok(password)
        })
        .await
}

async fn link(State(server): State<Kanidm>, Path((uuid, ttl)): Path<(String, i64)>) -> Answer {
    server
        .answer(|held| {
            if !held.entries.contains_key(&uuid) {
                return missing();
            }
            held.credentials.links += 1;
            let token = held.credentials.draw("link");
            let now = crate::clock::Clock::start().now().as_second();
            ok(json!({"token": token, "expiry_time": now + ttl}))
        })
        .await
}

async fn mail(State(server): State<Kanidm>, Path(uuid): Path<String>, Json(body): Body) -> Answer {
    server
        .answer(|held| {
            let address = held.entries.get(&uuid).map(|entry| entry["mail"][0]["value"].clone());
            if address.is_none_or(|address| address != body["email"]) {
                return missing();
            }
            held.credentials.mails += 1;
            ok(Value::Null)
        })
        .await
}
