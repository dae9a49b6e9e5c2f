//! One HTTPS request to one node, under a deadline, with its answer read whole: no retries, no redirects, no proxy, no cookies.

use std::error::Error as StdError;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use reqwest::multipart::Form;
use reqwest::tls::TlsInfo;
use reqwest::{Method, StatusCode, redirect, retry};
use serde::de::DeserializeOwned;
use url::{Host, Url};

use crate::certificate::CertificateProblem;
use crate::error::Error;
use crate::requests::{Operation, Outcome, Requests};
use crate::trust::Trust;

const CONNECT: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(30);
/// An idle connection outlives a few passes of the operator, and a pod's address is not kept for long after the pod.
const IDLE: Duration = Duration::from_secs(90);
/// Beyond this an answer is refused: 100,000 entries with a few attributes take some 30 MiB.
const LARGEST: usize = 64 << 20;
/// More than this the server refuses, but it hangs up at once, and the refusal is mostly lost with the connection.
const LARGEST_SENT: usize = 2 << 20;

/// A node of a Kanidm server: the connection goes to `address`, while the certificate must fit the host of `origin`.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The server's origin, `https` and a host name.
    pub origin: Url,
    /// Where the node listens.
    pub address: SocketAddr,
    /// Which certificates are accepted.
    pub trust: Trust,
    /// Counts the requests of all clients of this endpoint.
    pub requests: Arc<Requests>,
}

/// One request.
pub(crate) struct Call {
    pub operation: Operation,
    pub method: Method,
    pub path: Vec<String>,
    pub query: Vec<(&'static str, String)>,
    pub headers: HeaderMap,
    /// JSON.
    pub body: Option<String>,
    /// A file, in place of JSON.
    pub form: Option<Form>,
}

impl Call {
    pub fn new<'p>(operation: Operation, method: Method, path: impl IntoIterator<Item = &'p str>) -> Self {
        let path = path.into_iter().map(str::to_owned).collect();
        Self { operation, method, path, query: Vec::new(), headers: HeaderMap::new(), body: None, form: None }
    }

    pub fn body(mut self, body: impl Into<serde_json::Value>) -> Self {
        self.body = Some(body.into().to_string());
        self
    }

    pub fn form(mut self, form: Form) -> Self {
        self.form = Some(form);
        self
    }

    pub fn query(mut self, name: &'static str, value: String) -> Self {
        self.query.push((name, value));
        self
    }

    pub fn header(mut self, name: &'static str, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }
}

/// A whole answer.
pub(crate) struct Answer {
    pub headers: HeaderMap,
    /// The certificate that was shown, DER, where somebody wants to know.
    pub certificate: Option<Vec<u8>>,
    body: Vec<u8>,
}

impl Answer {
    pub fn decode<T: DeserializeOwned>(&self, what: &'static str) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| self.undecodable(what, &error))
    }

    /// The same for what holds a secret, which the parser's own text could quote.
    pub fn decode_secret<T: DeserializeOwned>(&self, what: &'static str) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|_| self.undecodable(what, &"its form is another"))
    }

    pub fn undecodable(&self, what: &'static str, why: &dyn std::fmt::Display) -> Error {
        Error::Undecodable { what, why: why.to_string(), opid: opid(&self.headers) }
    }
}

/// Sends requests to one endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    inner: reqwest::Client,
    base: Url,
    origin: Arc<Url>,
    authority: HeaderValue,
    server: Arc<str>,
    requests: Arc<Requests>,
    version: Arc<Mutex<Option<String>>>,
}

impl Http {
    pub fn origin(&self) -> &Url {
        &self.origin
    }

    pub fn new(endpoint: &Endpoint) -> Result<Self, Error> {
        Self::of(endpoint, reqwest::Client::builder().pool_idle_timeout(IDLE))
    }

    /// The same with a connection of its own for each request, whose answer tells the certificate that was shown.
    pub fn once(endpoint: &Endpoint) -> Result<Self, Error> {
        Self::of(endpoint, reqwest::Client::builder().pool_max_idle_per_host(0).tls_info(true))
    }

    fn of(endpoint: &Endpoint, builder: reqwest::ClientBuilder) -> Result<Self, Error> {
        let (base, host) = base(endpoint)?;
        let inner = builder
            .tls_backend_preconfigured(endpoint.trust.config())
            .https_only(true)
            .http1_only()
            .resolve(&host, endpoint.address)
            .user_agent(concat!("kaniop/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .no_proxy()
            .referer(false)
            .connect_timeout(CONNECT)
            .timeout(WHOLE)
            .build()
            .map_err(|error| Error::Endpoint(format!("the HTTPS client cannot be set up: {error}")))?;
        Ok(Self {
            inner,
            base,
            origin: Arc::new(endpoint.origin.clone()),
            authority: HeaderValue::try_from(endpoint.origin.authority())
                .map_err(|_| Error::Endpoint(format!("{} has no usable host", endpoint.origin)))?,
            server: format!("{} at {}", endpoint.origin.as_str().trim_end_matches('/'), endpoint.address).into(),
            requests: endpoint.requests.clone(),
            version: Arc::default(),
        })
    }

    /// The server's version as its last answer gave it.
    pub fn version(&self) -> Option<String> {
        self.version.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends one request; every status but 2xx is an error.
    pub async fn send(&self, call: Call) -> Result<Answer, Error> {
        match self.ask(call).await? {
            (status, answer) if status.is_success() => Ok(answer),
            (status, answer) => Err(Error::refused(status.as_u16(), &answer.body, opid(&answer.headers))),
        }
    }

    /// Sends one request and takes its answer, whatever its status.
    pub async fn ask(&self, call: Call) -> Result<(StatusCode, Answer), Error> {
        if call.body.as_ref().is_some_and(|body| body.len() > LARGEST_SENT) {
            return Err(Error::TooLarge);
        }
        let operation = call.operation;
        let sent = self.exchange(call).await;
        let outcome = match &sent {
            Ok((status, _)) if status.is_success() => Outcome::Done,
            Ok(_) => Outcome::Refused,
            Err(_) => Outcome::Lost,
        };
        self.requests.add(operation, outcome);
        sent
    }

    async fn exchange(&self, call: Call) -> Result<(StatusCode, Answer), Error> {
        let mut request = self.inner.request(call.method, self.url(&call.path, &call.query)?).headers(call.headers);
        // The URL has the node's port; to the server it is its origin that was asked.
        request = request.header(HOST, &self.authority).header(ACCEPT, "application/json");
        if let Some(body) = call.body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        if let Some(form) = call.form {
            request = request.multipart(form);
        }
        let mut response = request.send().await.map_err(|error| self.lost(&error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let certificate =
            response.extensions().get::<TlsInfo>().and_then(TlsInfo::peer_certificate).map(<[u8]>::to_vec);
        if let Some(version) = text(&headers, "x-kanidm-version") {
            *self.version.lock().unwrap_or_else(PoisonError::into_inner) = Some(version);
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.lost(&error))? {
            if body.len() + chunk.len() > LARGEST {
                return Err(Error::AnswerTooLarge { server: self.server.to_string(), limit: LARGEST });
            }
            body.extend_from_slice(&chunk);
        }
        Ok((status, Answer { headers, certificate, body }))
    }

    fn url(&self, path: &[String], query: &[(&str, String)]) -> Result<Url, Error> {
        // A segment of dots would climb out of the route that it belongs into.
        if path.iter().any(|segment| segment.is_empty() || segment.chars().all(|c| c == '.')) {
            return Err(Error::Endpoint(format!("/{} is not a path of a Kanidm server", path.join("/"))));
        }
        let mut url = self.base.clone();
        let rootless = |()| Error::Endpoint(format!("{} has no path", self.base));
        url.path_segments_mut().map_err(rootless)?.clear().extend(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    fn lost(&self, error: &reqwest::Error) -> Error {
        let server = self.server.to_string();
        if let Some(problem) = CertificateProblem::find(error) {
            return Error::Certificate { server, problem };
        }
        match (error.is_timeout(), error.is_connect()) {
            (true, true) => Error::Unreachable { server, why: format!("no connection within {} s", CONNECT.as_secs()) },
            (true, false) => Error::TimedOut { server, seconds: WHOLE.as_secs() },
            (false, true) => Error::Unreachable { server, why: root_cause(error) },
            (false, false) => Error::Interrupted { server, why: root_cause(error) },
        }
    }
}

/// The URL that leads to the node while its host is the origin's, and that host.
fn base(endpoint: &Endpoint) -> Result<(Url, String), Error> {
    let refuse = |why: &str| Error::Endpoint(format!("{} cannot be the server's origin: {why}", endpoint.origin));
    if endpoint.origin.scheme() != "https" {
        return Err(refuse("it must begin with https://"));
    }
    let Some(Host::Domain(host)) = endpoint.origin.host() else {
        return Err(refuse("it must have a host name"));
    };
    if !endpoint.origin.username().is_empty() || endpoint.origin.password().is_some() {
        return Err(Error::Endpoint("the server's origin must not have a user or a password in it".to_owned()));
    }
    let host = host.to_owned();
    let mut base = endpoint.origin.clone();
    base.set_port(Some(endpoint.address.port())).map_err(|()| refuse("it takes no port"))?;
    Ok((base, host))
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

fn opid(headers: &HeaderMap) -> Option<String> {
    text(headers, "x-kanidm-opid")
}

fn root_cause(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
