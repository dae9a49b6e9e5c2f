//! A Kanidm server that holds entries in memory and answers over HTTPS, as far as a pass needs it. What it does about credentials is in
//! `credentials`.

mod credentials;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use axum_server::tls_rustls::RustlsConfig;
use kaniop_kanidm::{Endpoint, Trust};
use serde_json::{Map, Value, json};

pub(crate) use self::credentials::Credentials;
use super::Faults;
use crate::targets::Connection;

/// An entry as the server shows it.
pub(crate) type Entry = Map<String, Value>;

/// The entries and what was done to them.
#[derive(Default)]
pub(crate) struct Held {
    /// Entries by UUID.
    pub(crate) entries: BTreeMap<String, Entry>,
    /// UUIDs that were deleted, and stay taken.
    pub(crate) recycled: Vec<String>,
    /// Creations that were carried out.
    pub(crate) created: usize,
    /// Changes and deletions that were carried out, those of credentials apart.
    pub(crate) changed: usize,
    /// Credentials and what was done to them.
    pub(crate) credentials: Credentials,
    /// Answer every request with this status and body instead.
    pub(crate) refuse: Option<(u16, Value)>,
    /// Refuse creations and changes that set one of these attributes.
    pub(crate) dislikes: Vec<&'static str>,
    drawn: u128,
}

/// The server.
#[derive(Clone)]
pub(crate) struct Kanidm {
    pub(crate) held: Arc<Mutex<Held>>,
    faults: Arc<Faults>,
    pub(crate) connection: Connection,
}

/// What the operator shows to be let in.
pub(crate) const OPERATOR_TOKEN: &str = "bearer-of-the-operator";

type Answer = (StatusCode, Json<Value>);
type Body = Json<Value>;

impl Kanidm {
    /// Serves on loopback until the test ends.
    pub(crate) async fn start(faults: Arc<Faults>) -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let certified = rcgen::generate_simple_self_signed(["idm.example.com".to_owned()]).unwrap();
        let (cert, key) = (certified.cert.pem(), certified.signing_key.serialize_pem());
        let tls = RustlsConfig::from_pem(cert.clone().into_bytes(), key.into_bytes()).await.unwrap();
        let listener = std::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        listener.set_nonblocking(true).unwrap();
        let endpoint = Endpoint {
            origin: "https://idm.example.com".parse().unwrap(),
            address: listener.local_addr().unwrap(),
            trust: Trust::from_secret(None, cert.as_bytes()).unwrap(),
            requests: Arc::default(),
        };
        let token = OPERATOR_TOKEN.to_owned().into();
        let server = Self { held: Arc::default(), faults, connection: Connection { endpoint, token } };
        let routes = Router::new()
            .route("/scim/v1/Entry", get(list).post(create).put(change))
            .route("/scim/v1/Entry/{uuid}", get(read).delete(delete))
            .route("/v1/{kind}/{uuid}/_attr/{attr}", post(append).delete(take))
            .merge(credentials::routes())
            .with_state(server.clone());
        tokio::spawn(axum_server::from_tcp_rustls(listener, tls).unwrap().serve(routes.into_make_service()));
        server
    }

    /// An entry that somebody made by hand.
    pub(crate) fn put(&self, entry: &Value) {
        let entry = entry.as_object().unwrap().clone();
        let uuid = entry["id"].as_str().unwrap().to_owned();
        self.held.lock().unwrap().entries.insert(uuid, entry);
    }

    async fn answer(&self, act: impl FnOnce(&mut Held) -> Answer) -> Answer {
        let fate = self.faults.arrives().await;
        let answer = {
            let mut held = self.held.lock().unwrap();
            match held.refuse.clone() {
                Some((status, body)) => (StatusCode::from_u16(status).unwrap(), Json(body)),
                None => act(&mut held),
            }
        };
        self.faults.carried_out(fate).await;
        answer
    }
}

impl Held {
    /// UUID of the entry of this name.
    fn uuid_of(&self, name: &str) -> Option<String> {
        self.entries.iter().find(|(_, entry)| entry["name"] == name).map(|(uuid, _)| uuid.clone())
    }

    /// The entries of this name: at most one, if all is well.
    pub(crate) fn named(&self, name: &str) -> Vec<&Entry> {
        self.entries.values().filter(|entry| entry["name"] == name).collect()
    }

    fn refusal(&self, body: &Entry) -> Option<Answer> {
        let disliked = self.dislikes.iter().find(|attr| body.contains_key(**attr))?;
        Some((StatusCode::BAD_REQUEST, Json(json!({ "invalidattribute": disliked }))))
    }

    fn draw(&mut self) -> String {
        self.drawn += 1;
        uuid::Uuid::from_u128((0xd << 100) | self.drawn).to_string()
    }

    /// Creates an entry, with a name that nobody else has.
    fn admit(&mut self, uuid: String, mut entry: Entry) -> Answer {
        lower(&mut entry);
        if !self.named(entry["name"].as_str().unwrap()).is_empty() {
            return taken();
        }
        entry.insert("spn".to_owned(), json!(spn(&entry["name"])));
        entry.insert("id".to_owned(), json!(uuid));
        self.created += 1;
        self.entries.insert(uuid, entry.clone());
        ok(entry)
    }

    /// The entry as it is shown, with what its credentials let see.
    fn shown(&self, uuid: &str) -> Option<Value> {
        let mut entry = self.entries.get(uuid)?.clone();
        entry.extend(self.credentials.shown(uuid));
        Some(entry.into())
    }
}

/// Names are kept in lower case.
fn lower(entry: &mut Entry) {
    if let Some(name) = entry.get_mut("name") {
        *name = json!(name.as_str().unwrap().to_lowercase());
    }
}

fn spn(name: &Value) -> String {
    format!("{}@example.com", name.as_str().unwrap())
}

fn ok(value: impl Into<Value>) -> Answer {
    (StatusCode::OK, Json(value.into()))
}

fn taken() -> Answer {
    let error = json!({"error": "duplicate", "conflicting_attributes": ["name", "spn"]});
    (StatusCode::CONFLICT, Json(error))
}

fn missing() -> Answer {
    (StatusCode::NOT_FOUND, Json(json!("nomatchingentries")))
}

async fn list(State(server): State<Kanidm>, RawQuery(query): RawQuery) -> Answer {
    let query = query.unwrap_or_default();
    let filter = url::form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "filter");
    let filter = filter.map(|(_, filter)| filter.into_owned()).unwrap_or_default();
    let name = filter.strip_prefix("name eq ").map(|name| serde_json::from_str::<String>(name).unwrap());
    server
        .answer(|held| {
            let of = |(uuid, entry): &(&String, &Entry)| match &name {
                Some(name) => entry["name"] == *name,
                None => !filter.contains("primary_credential") || held.credentials.can_log_in(uuid),
            };
            let found = held.entries.iter().filter(of).filter_map(|(uuid, _)| held.shown(uuid));
            ok(json!({"resources": found.collect::<Vec<_>>()}))
        })
        .await
}

async fn read(State(server): State<Kanidm>, Path(uuid): Path<String>) -> Answer {
    server.answer(|held| held.shown(&uuid).map_or_else(missing, ok)).await
}

async fn create(State(server): State<Kanidm>, Json(mut body): Json<Entry>) -> Answer {
    server
        .answer(|held| {
            if let Some(refusal) = held.refusal(&body) {
                return refusal;
            }
            let uuid = body.remove("uuid").unwrap().as_str().unwrap().to_owned();
            if held.entries.contains_key(&uuid) || held.recycled.contains(&uuid) {
                let error = json!({"plugin": {"base": "Uuid duplicate found in database"}});
                return (StatusCode::INTERNAL_SERVER_ERROR, Json(error));
            }
            held.admit(uuid, body)
        })
        .await
}

async fn change(State(server): State<Kanidm>, Json(mut body): Json<Entry>) -> Answer {
    server
        .answer(|held| {
            if let Some(refusal) = held.refusal(&body) {
                return refusal;
            }
            lower(&mut body);
            let uuid = body["id"].as_str().unwrap().to_owned();
            let name = body.get("name").and_then(Value::as_str).unwrap_or_default();
            if held.named(name).iter().any(|entry| entry["id"] != uuid) {
                return taken();
            }
            let Some(entry) = held.entries.get_mut(&uuid) else { return missing() };
            for (name, value) in body {
                if value.is_null() { drop(entry.remove(&name)) } else { drop(entry.insert(name, value)) }
            }
            entry["spn"] = json!(spn(&entry["name"]));
            held.changed += 1;
            held.shown(&uuid).map_or_else(missing, ok)
        })
        .await
}

async fn delete(State(server): State<Kanidm>, Path(uuid): Path<String>) -> Answer {
    server
        .answer(|held| {
            if held.entries.remove(&uuid).is_none() {
                return missing();
            }
            held.changed += 1;
            held.credentials.forget(&uuid);
            held.recycled.push(uuid);
            ok(Value::Null)
        })
        .await
}

type OfAttribute = Path<(String, String, String)>;

/// Adds values to an attribute: classes, or references by UUID.
async fn append(State(server): State<Kanidm>, Path((_, uuid, attr)): OfAttribute, Json(add): Body) -> Answer {
    server.answer(|held| held.adjust(&uuid, &attr, |values, value| values.push(value), &add)).await
}

/// Takes values away from one.
async fn take(State(server): State<Kanidm>, Path((_, uuid, attr)): OfAttribute, Json(gone): Body) -> Answer {
    server.answer(|held| held.adjust(&uuid, &attr, |values, value| values.retain(|old| *old != value), &gone)).await
}

impl Held {
    fn adjust(&mut self, uuid: &str, attr: &str, act: impl Fn(&mut Vec<Value>, Value), by: &Value) -> Answer {
        let Some(entry) = self.entries.get_mut(uuid) else { return missing() };
        let values = entry.entry(attr).or_insert_with(|| json!([])).as_array_mut().unwrap();
        for value in by.as_array().unwrap() {
            let value = if attr == "class" { value.clone() } else { json!({ "uuid": value }) };
            act(values, value);
        }
        self.changed += 1;
        ok(Value::Null)
    }
}
