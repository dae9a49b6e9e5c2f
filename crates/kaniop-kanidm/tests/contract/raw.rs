//! Requests as the server knows them, without the client: for JSON that the client has no words for yet, and for OAuth2 clients, which ask for
//! themselves.

use reqwest::{Certificate, Client, Method, Response, StatusCode};
use secrecy::ExposeSecret;
use serde_json::{Value as Json, json};
use uuid::Uuid;

use crate::server::{HOST, Shared};

const ENTRY: &str = "/scim/v1/Entry";

/// The operator's account on the shared server.
pub struct Raw {
    client: Client,
    base: String,
    token: String,
}

impl Raw {
    pub fn of(shared: &Shared) -> Self {
        // Another test may have been first.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let root = Certificate::from_pem(shared.authority.pem().as_bytes()).unwrap();
        let address = shared.server.address;
        let client = Client::builder().tls_certs_only([root]).resolve(HOST, address).no_proxy().build().unwrap();
        let base = format!("https://{HOST}:{}", address.port());
        Self { client, base, token: shared.token.expose_secret().to_owned() }
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Json>) -> (StatusCode, Json) {
        let request = self.client.request(method, format!("{}{path}", self.base)).bearer_auth(&self.token);
        let request = match body {
            Some(body) => request.header("content-type", "application/json").body(body.to_string()),
            None => request,
        };
        read(request.send().await.unwrap()).await
    }

    /// Sets and purges attributes; the entry afterwards, or the refusal.
    pub async fn put(&self, id: Uuid, mut attrs: Json) -> Result<Json, (StatusCode, Json)> {
        attrs["id"] = json!(id);
        match self.call(Method::PUT, ENTRY, Some(&attrs)).await {
            (StatusCode::OK, entry) => Ok(entry),
            refusal => Err(refusal),
        }
    }

    /// The attributes of one entry, as the list of all entries of this class shows them.
    pub async fn listed(&self, class: &str, id: Uuid, attributes: &str) -> Json {
        let mut url = reqwest::Url::parse(&format!("{}{ENTRY}", self.base)).unwrap();
        let filter = format!("class eq \"{class}\"");
        url.query_pairs_mut().append_pair("filter", &filter).append_pair("attributes", attributes);
        let response = self.client.get(url).bearer_auth(&self.token).send().await.unwrap();
        let (status, list) = read(response).await;
        assert_eq!(status, StatusCode::OK, "{list}");
        let found = list["resources"].as_array().unwrap().iter().find(|entry| entry["id"] == json!(id));
        found.unwrap_or_else(|| panic!("{id} is not among {list}")).clone()
    }

    /// Sets values of a v1 attribute.
    pub async fn set(&self, path: &str, values: Json) {
        let (status, answer) = self.call(Method::PUT, path, Some(&values)).await;
        assert_eq!(status, StatusCode::OK, "{path}: {answer}");
    }

    /// Sends JSON that must be taken.
    pub async fn post(&self, path: &str, body: Json) -> Json {
        let (status, answer) = self.call(Method::POST, path, Some(&body)).await;
        assert_eq!(status, StatusCode::OK, "{path}: {answer}");
        answer
    }

    /// An OAuth2 client asks for itself, by its name and its secret.
    pub async fn as_client(&self, id: &str, secret: &str, path: &str, form: &str) -> (StatusCode, Json) {
        let request = self.client.post(format!("{}{path}", self.base)).basic_auth(id, Some(secret));
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(form.to_owned());
        read(request.send().await.unwrap()).await
    }

    /// Anything that needs no login.
    pub async fn get(&self, path: &str) -> (StatusCode, Json) {
        read(self.client.get(format!("{}{path}", self.base)).send().await.unwrap()).await
    }
}

async fn read(response: Response) -> (StatusCode, Json) {
    let status = response.status();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Json::String(text)))
}
