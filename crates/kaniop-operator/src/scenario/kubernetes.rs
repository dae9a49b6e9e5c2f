//! An API server that holds one object: enough for the calls of one pass.

use std::sync::{Arc, Mutex};

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value as Json, json};

use super::Faults;

/// The object and what was done to it.
#[derive(Default)]
pub(crate) struct Held {
    /// The object; null when it is gone.
    pub(crate) object: Json,
    /// Reasons of the Events, in order.
    pub(crate) events: Vec<String>,
    /// Calls that change something, Events apart.
    pub(crate) writes: usize,
    /// Whether the definition of the kind is being deleted.
    pub(crate) definition_going: bool,
}

/// The API server.
#[derive(Clone)]
pub(crate) struct Kubernetes {
    pub(crate) held: Arc<Mutex<Held>>,
    faults: Arc<Faults>,
}

impl Kubernetes {
    pub(crate) fn holding(object: Json, faults: Arc<Faults>) -> Self {
        Self { held: Arc::new(Mutex::new(Held { object, ..Held::default() })), faults }
    }

    pub(crate) fn client(&self) -> kube::Client {
        let server = self.clone();
        kube::Client::new(tower::service_fn(move |request| server.clone().serve(request)), "default")
    }

    async fn serve(self, request: Request<Body>) -> Result<Response<Body>, std::convert::Infallible> {
        let fate = self.faults.arrives().await;
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let body: Json = serde_json::from_slice(&body).unwrap_or(Json::Null);
        let (status, answer) = self.answer(&parts.method, parts.uri.path(), &body);
        self.faults.carried_out(fate).await;
        let body = Body::from(serde_json::to_vec(&answer_or_status(status, answer)).unwrap());
        Ok(Response::builder().status(status).header("content-type", "application/json").body(body).unwrap())
    }

    fn answer(&self, method: &Method, path: &str, body: &Json) -> (StatusCode, Json) {
        let mut held = self.held.lock().unwrap();
        if path.contains("/events") {
            held.events.push(body["reason"].as_str().unwrap_or_default().to_owned());
            return (StatusCode::CREATED, body.clone());
        }
        if path.contains("/customresourcedefinitions/") {
            let going = held.definition_going.then_some("2026-01-01T00:00:00Z");
            return (StatusCode::OK, metadata(json!({"name": "crd", "deletionTimestamp": going})));
        }
        if path.starts_with("/api/v1/namespaces/") {
            return (StatusCode::OK, metadata(json!({"name": "default"})));
        }
        if held.object.is_null() {
            return (StatusCode::NOT_FOUND, Json::Null);
        }
        assert_eq!(method, Method::PATCH, "{path}");
        held.writes += 1;
        if path.ends_with("/status") {
            held.object["status"] = body["status"].clone();
        } else {
            assert_eq!(
                body["metadata"]["resourceVersion"], held.object["metadata"]["resourceVersion"],
                "a stale write"
            );
            held.object["metadata"]["finalizers"] = body["metadata"]["finalizers"].clone();
        }
        let version = held.object["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() + 1;
        held.object["metadata"]["resourceVersion"] = json!(version.to_string());
        let meta = &held.object["metadata"];
        let answer = held.object.clone();
        if !meta["deletionTimestamp"].is_null() && meta["finalizers"].as_array().is_none_or(Vec::is_empty) {
            held.object = Json::Null;
        }
        (StatusCode::OK, answer)
    }
}

fn metadata(meta: Json) -> Json {
    json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": meta})
}

fn answer_or_status(status: StatusCode, answer: Json) -> Json {
    if status.is_success() {
        return answer;
    }
    json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": status.as_u16(), "message": "not found"})
}
