//! Asks a Kanidm server over HTTPS as any client would. It shares no code with the operator: what it sees is evidence.
//!
//! The connection goes to a given address while the certificate is verified for the given host name; nothing is ever accepted unverified.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use ureq::Agent;
use ureq::config::Config;
use ureq::http::{Response, Uri};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Names the login that is going on.
const SESSION: &str = "x-kanidm-auth-session-id";

/// Why the server could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No answer, or none that TLS lets us trust.
    #[error("no trusted answer from {url}: {source}")]
    NoAnswer {
        /// What was asked.
        url: String,
        /// What went wrong; boxed, for it is large.
        source: Box<ureq::Error>,
    },
    /// The certificates to trust are no PEM.
    #[error("the authority's certificate cannot be read: {0}")]
    Authority(String),
    /// The server refused.
    #[error("{url} answered {status}: {body}")]
    Refused {
        /// What was asked.
        url: String,
        /// HTTP status.
        status: u16,
        /// What the server said; never a credential.
        body: String,
    },
    /// The login did not go as it should.
    #[error("login as {0} did not end in a token")]
    Login(String),
}

/// A server at an address, trusted by an authority.
#[derive(Clone, Debug)]
pub struct Server {
    agent: Agent,
    base: String,
}

/// A server after login.
#[derive(Clone)]
pub struct Session {
    server: Server,
    bearer: String,
}

#[derive(Debug)]
struct Fixed(SocketAddr);

impl Resolver for Fixed {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut all = self.empty();
        all.push(self.0);
        Ok(all)
    }
}

impl Server {
    /// The server at `address` that shows a certificate for `host`, signed by an authority in `authority` (PEM).
    ///
    /// # Errors
    /// When `authority` holds no certificate.
    pub fn new(address: SocketAddr, host: &str, authority: &str) -> Result<Self, Error> {
        let roots = authorities(authority)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&roots))
            .unversioned_rustls_crypto_provider(provider)
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .build();
        let agent = Agent::with_parts(config, DefaultConnector::default(), Fixed(address));
        Ok(Self { agent, base: format!("https://{host}") })
    }

    /// Logs in by password. Sessions of the built-in administrators may write for an hour.
    ///
    /// # Errors
    /// When the server does not answer or refuses.
    pub fn login(&self, name: &str, password: &str) -> Result<Session, Error> {
        let url = format!("{}/v1/auth", self.base);
        let step = |session: Option<&str>, body: Value| -> Result<(Option<String>, Value), Error> {
            let mut request = self.agent.post(&url);
            if let Some(session) = session {
                request = request.header(SESSION, session).header("cookie", format!("auth-session-id={session}"));
            }
            let answer = request.send_json(json!({ "step": body })).map_err(|e| no_answer(&url, e))?;
            let session = answer.headers().get(SESSION).and_then(|value| value.to_str().ok()).map(str::to_owned);
            Ok((session, read(&url, answer)?))
        };
        let lost = || Error::Login(name.to_owned());
        let init = json!({"init2": {"username": name, "issue": "token", "privileged": true}});
        let (session, _) = step(None, init)?;
        let session = session.ok_or_else(lost)?;
        step(Some(&session), json!({"begin": "password"}))?;
        let (_, last) = step(Some(&session), json!({"cred": {"password": password}}))?;
        let bearer = last["state"]["success"].as_str().ok_or_else(lost)?.to_owned();
        Ok(Session { server: self.clone(), bearer })
    }

    /// Whoever shows this token.
    #[must_use]
    pub fn bearer(&self, token: &str) -> Session {
        Session { server: self.clone(), bearer: token.to_owned() }
    }

    /// Does what an OAuth2 client does with its name and secret: has a token given to it, and asks what that token is worth. `None` when the server
    /// refuses name or secret; else the server's answer, whose `active` is true and whose `client_id` is the client. The server keeps a session of a
    /// quarter of an hour for each token.
    ///
    /// # Errors
    /// When the server does not answer, or refuses for another reason.
    pub fn introspect(&self, client_id: &str, client_secret: &str) -> Result<Option<Value>, Error> {
        let authorization = format!("Basic {}", BASE64.encode(format!("{client_id}:{client_secret}")));
        let ask = |path: &str, form: [(&str, &str); 1]| -> Result<Option<Value>, Error> {
            let url = format!("{}{path}", self.base);
            let request = self.agent.post(&url).header("authorization", &authorization);
            let answer = request.send_form(form).map_err(|e| no_answer(&url, e))?;
            if answer.status().as_u16() == 401 { Ok(None) } else { read(&url, answer).map(Some) }
        };
        let Some(bought) = ask("/oauth2/token", [("grant_type", "client_credentials")])? else { return Ok(None) };
        let token = bought["access_token"].as_str().ok_or_else(|| Error::Login(client_id.to_owned()))?;
        ask("/oauth2/token/introspect", [("token", token)])
    }

    /// Anything that needs no login.
    ///
    /// # Errors
    /// When the server does not answer or refuses.
    pub fn get(&self, path: &str) -> Result<Value, Error> {
        let url = format!("{}{path}", self.base);
        let answer = self.agent.get(&url).call().map_err(|e| no_answer(&url, e))?;
        read(&url, answer)
    }
}

impl Session {
    /// Reads. A missing entry is `null`.
    ///
    /// # Errors
    /// When the server does not answer or refuses.
    pub fn get(&self, path: &str) -> Result<Value, Error> {
        let url = format!("{}{path}", self.server.base);
        let request = self.server.agent.get(&url).header("authorization", self.authorization());
        read(&url, request.call().map_err(|e| no_answer(&url, e))?)
    }

    /// The values of an attribute of an entry; none when the entry or the attribute is missing.
    ///
    /// # Errors
    /// When the server does not answer or refuses.
    pub fn values(&self, path: &str, attribute: &str) -> Result<Vec<String>, Error> {
        let entry = self.get(path)?;
        let values = entry["attrs"][attribute].as_array().into_iter().flatten();
        Ok(values.filter_map(|value| value.as_str().map(str::to_owned)).collect())
    }

    /// Replaces the values of an attribute, behind the operator's back.
    ///
    /// # Errors
    /// When the server does not answer or refuses.
    pub fn put(&self, path: &str, attribute: &str, values: &[&str]) -> Result<(), Error> {
        let url = format!("{}{path}/_attr/{attribute}", self.server.base);
        let request = self.server.agent.put(&url).header("authorization", self.authorization());
        read(&url, request.send_json(json!(values)).map_err(|e| no_answer(&url, e))?).map(drop)
    }

    /// Posts, behind the operator's back.
    ///
    /// # Errors
    /// When the server does not answer or refuses.
    pub fn post(&self, path: &str, body: &Value) -> Result<Value, Error> {
        let url = format!("{}{path}", self.server.base);
        let request = self.server.agent.post(&url).header("authorization", self.authorization());
        read(&url, request.send_json(body).map_err(|e| no_answer(&url, e))?)
    }

    /// Deletes, behind the operator's back.
    ///
    /// # Errors
    /// When the server does not answer or refuses.
    pub fn delete(&self, path: &str) -> Result<(), Error> {
        let url = format!("{}{path}", self.server.base);
        let request = self.server.agent.delete(&url).header("authorization", self.authorization());
        read(&url, request.call().map_err(|e| no_answer(&url, e))?).map(drop)
    }

    fn authorization(&self) -> String {
        format!("Bearer {}", self.bearer)
    }
}

fn authorities(pem: &str) -> Result<Vec<ureq::tls::Certificate<'static>>, Error> {
    let mut found = Vec::new();
    for item in parse_pem(pem.as_bytes()) {
        if let PemItem::Certificate(certificate) = item.map_err(|e| Error::Authority(e.to_string()))? {
            found.push(certificate.to_owned());
        }
    }
    if found.is_empty() { Err(Error::Authority("there is none in it".to_owned())) } else { Ok(found) }
}

fn no_answer(url: &str, error: ureq::Error) -> Error {
    Error::NoAnswer { url: url.to_owned(), source: Box::new(error) }
}

fn read(url: &str, mut answer: Response<ureq::Body>) -> Result<Value, Error> {
    let status = answer.status().as_u16();
    let body = answer.body_mut().read_to_string().map_err(|e| no_answer(url, e))?;
    if status != 200 {
        return Err(Error::Refused { url: url.to_owned(), status, body });
    }
    // `/status` and others may answer without a body.
    Ok(serde_json::from_str(&body).unwrap_or(Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_an_authority_nothing_is_trusted() {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        assert!(matches!(Server::new(address, "idm.example.com", "no certificate"), Err(Error::Authority(_))));
    }
}
