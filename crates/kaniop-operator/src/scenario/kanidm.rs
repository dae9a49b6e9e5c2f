//! A Kanidm server that holds entries in memory and answers the SCIM routes over HTTPS, as far as a pass needs them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use axum_server::tls_rustls::RustlsConfig;
use kaniop_kanidm::{Endpoint, Trust};
use serde_json::{Map, Value, json};

use super::Faults;
use crate::targets::Connection;

/// The entries and what was done to them.
#[derive(Default)]
pub(crate) struct Held {
    /// Entries by UUID.
    pub(crate) entries: BTreeMap<String, Map<String, Value>>,
    /// UUIDs that were deleted, and stay taken.
    pub(crate) recycled: Vec<String>,
    /// Creations that were carried out.
    pub(crate) created: usize,
    /// Changes and deletions that were carried out.
    pub(crate) changed: usize,
    /// Answer every request with this status and body instead.
    pub(crate) refuse: Option<(u16, Value)>,
}

/// The server.
#[derive(Clone)]
pub(crate) struct Kanidm {
    pub(crate) held: Arc<Mutex<Held>>,
    faults: Arc<Faults>,
    pub(crate) connection: Connection,
}

type Answer = (StatusCode, Json<Value>);

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
        let server = Self {
            held: Arc::default(),
            faults,
            connection: Connection { endpoint, token: "token".to_owned().into() },
        };
        let routes = Router::new()
            .route("/scim/v1/Entry", get(list).post(create).put(change))
            .route("/scim/v1/Entry/{uuid}", get(read).delete(delete))
            .with_state(server.clone());
        tokio::spawn(axum_server::from_tcp_rustls(listener, tls).unwrap().serve(routes.into_make_service()));
        server
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

fn ok(value: impl Into<Value>) -> Answer {
    (StatusCode::OK, Json(value.into()))
}

async fn list(State(server): State<Kanidm>, RawQuery(query): RawQuery) -> Answer {
    let asks_for_credentials = query.is_some_and(|query| query.contains("primary_credential"));
    server
        .answer(|held| {
            let of = |entry: &&Map<String, Value>| !asks_for_credentials || entry.contains_key("primary_credential");
            ok(json!({"resources": held.entries.values().filter(of).collect::<Vec<_>>()}))
        })
        .await
}

async fn read(State(server): State<Kanidm>, Path(uuid): Path<String>) -> Answer {
    server
        .answer(|held| match held.entries.get(&uuid) {
            Some(entry) => ok(entry.clone()),
            None => (StatusCode::NOT_FOUND, Json(json!("nomatchingentries"))),
        })
        .await
}

async fn create(State(server): State<Kanidm>, Json(mut body): Json<Map<String, Value>>) -> Answer {
    server
        .answer(|held| {
            let uuid = body["uuid"].as_str().unwrap().to_owned();
            let name = body["name"].as_str().unwrap().to_owned();
            if held.entries.contains_key(&uuid) || held.recycled.contains(&uuid) {
                let error = json!({"plugin": {"base": "Uuid duplicate found in database"}});
                return (StatusCode::INTERNAL_SERVER_ERROR, Json(error));
            }
            if held.entries.values().any(|entry| entry["name"] == body["name"]) {
                let error = json!({"error": "duplicate", "conflicting_attributes": ["name", "spn"]});
                return (StatusCode::CONFLICT, Json(error));
            }
            body.remove("uuid");
            body.insert("id".to_owned(), json!(uuid));
            body.insert("spn".to_owned(), json!(format!("{name}@example.com")));
            held.created += 1;
            held.entries.insert(uuid, body.clone());
            ok(body)
        })
        .await
}

async fn change(State(server): State<Kanidm>, Json(body): Json<Map<String, Value>>) -> Answer {
    server
        .answer(|held| {
            let Some(entry) = held.entries.get_mut(body["id"].as_str().unwrap()) else {
                return (StatusCode::NOT_FOUND, Json(json!("nomatchingentries")));
            };
            for (name, value) in body {
                if value.is_null() { drop(entry.remove(&name)) } else { drop(entry.insert(name, value)) }
            }
            held.changed += 1;
            ok(entry.clone())
        })
        .await
}

async fn delete(State(server): State<Kanidm>, Path(uuid): Path<String>) -> Answer {
    server
        .answer(|held| match held.entries.remove(&uuid) {
            Some(_) => {
                held.changed += 1;
                held.recycled.push(uuid);
                ok(Value::Null)
            }
            None => (StatusCode::NOT_FOUND, Json(json!("nomatchingentries"))),
        })
        .await
}
