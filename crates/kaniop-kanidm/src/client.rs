//! The client of one node: reads entries and carries out planned steps, one request each. It retries nothing and keeps nothing between calls
//! but the connection and the version that the server last named.

use kaniop_core::entry::{Attr, Collection, Entry, Step};
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use crate::error::Error;
use crate::http::{Answer, Call, Endpoint, Http};
use crate::requests::Operation;
use crate::{login, scim};

/// Talks to one node as one account. Cheap to clone; clones share connections.
#[derive(Clone, Debug)]
pub struct Client {
    http: Http,
    token: Option<HeaderValue>,
}

impl Client {
    /// A client that shows this token.
    ///
    /// # Errors
    /// [`Error::Endpoint`] when the origin is unusable, [`Error::Unauthenticated`] when no server could have issued such a token.
    pub fn new(endpoint: &Endpoint, token: SecretString) -> Result<Self, Error> {
        Self::anonymous(endpoint)?.with_token(&token)
    }

    /// A client without a token.
    ///
    /// # Errors
    /// [`Error::Endpoint`] when the origin is unusable.
    pub fn anonymous(endpoint: &Endpoint) -> Result<Self, Error> {
        Ok(Self { http: Http::new(endpoint)?, token: None })
    }

    /// Logs in by password: one attempt, three requests. Each wrong one makes the server lock the account for a while.
    ///
    /// # Errors
    /// [`Error::LoginDenied`] when the server refuses the account or the password, or has locked the account.
    pub async fn login(endpoint: &Endpoint, account: &str, password: &SecretString) -> Result<Self, Error> {
        let client = Self::anonymous(endpoint)?;
        let token = login::login(&client.http, account, password).await?;
        client.with_token(&token)
    }

    fn with_token(mut self, token: &SecretString) -> Result<Self, Error> {
        let value = HeaderValue::try_from(format!("Bearer {}", token.expose_secret().trim()));
        let mut value = value.map_err(|_| Error::Unauthenticated)?;
        value.set_sensitive(true);
        self.token = Some(value);
        Ok(self)
    }

    /// The server's version as its last answer to this client or a clone named it.
    #[must_use]
    pub fn server_version(&self) -> Option<String> {
        self.http.version()
    }

    /// Whether the node answers HTTPS requests. It says nothing about its database or replication.
    ///
    /// # Errors
    /// Whatever a request can meet.
    pub async fn status(&self) -> Result<bool, Error> {
        self.send(Call::new(Operation::Other, Method::GET, ["status"])).await?.decode("its status")
    }

    /// The URL under which people reach the server.
    #[must_use]
    pub fn origin(&self) -> &url::Url {
        self.http.origin()
    }

    /// All entries of all collections, with these attributes, in one request.
    ///
    /// # Errors
    /// Whatever a request can meet; [`Error::Busy`] for a login session when there are more than 1,024 entries (an API token has no such limit).
    pub async fn entries(&self, attrs: &[Attr]) -> Result<Vec<Entry>, Error> {
        let call = Call::new(Operation::List, Method::GET, ["scim", "v1", "Entry"])
            .query("filter", scim::everything())
            .query("attributes", scim::attributes(attrs));
        let answer = self.send(call).await?;
        let list: scim::List = answer.decode("a list of entries")?;
        let entries = list.resources.iter().filter_map(|object| scim::entry(object, attrs).transpose());
        entries.collect::<Result<_, _>>().map_err(|why| answer.undecodable("a list of entries", &why))
    }

    /// The entry of this name with these attributes; `None` when there is none that this account can see.
    ///
    /// # Errors
    /// Whatever a request can meet.
    pub async fn entry_named(&self, name: &str, attrs: &[Attr]) -> Result<Option<Entry>, Error> {
        let call = Call::new(Operation::Read, Method::GET, ["scim", "v1", "Entry"])
            .query("filter", format!("name eq {}", json!(name)))
            .query("attributes", scim::attributes(attrs));
        let answer = self.send(call).await?;
        let list: scim::List = answer.decode("a list of entries")?;
        let entries = list.resources.iter().filter_map(|object| scim::entry(object, attrs).transpose());
        entries.take(1).next().transpose().map_err(|why| answer.undecodable("a list of entries", &why))
    }

    /// One entry with these attributes; `None` when there is none that this account can see.
    ///
    /// # Errors
    /// Whatever a request can meet.
    pub async fn entry(&self, uuid: Uuid, attrs: &[Attr]) -> Result<Option<Entry>, Error> {
        let call = Call::new(Operation::Read, Method::GET, ["scim", "v1", "Entry", &uuid.to_string()])
            .query("attributes", scim::attributes(attrs));
        match self.send(call).await {
            Ok(answer) => decoded(&answer, attrs),
            Err(Error::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Carries out a step, in one transaction of the server (an adjustment that adds and removes takes two). Answers the entry as the server shows it
    /// afterwards, `None` after a deletion.
    /// An entry that is to be deleted and is not there counts as deleted.
    ///
    /// # Errors
    /// Whatever a request can meet; [`Error::UuidTaken`] when a creation is sent again, [`Error::NotFound`] when the entry to change is gone.
    pub async fn execute(&self, step: &Step, attrs: &[Attr]) -> Result<Option<Entry>, Error> {
        match step {
            Step::Create { collection, uuid, attrs: values } => {
                let body = scim::creation(*collection, *uuid, values);
                let call = Call::new(Operation::Create, Method::POST, ["scim", "v1", "Entry"]).body(body);
                decoded(&self.send(call).await?, attrs)
            }
            Step::CreateProvisional { name, newcomer } => {
                match self.create_newcomer(name, newcomer).await {
                    // It is there from an attempt whose answer was lost: nobody else makes such names.
                    Ok(()) | Err(Error::Conflict { .. }) => self.entry_named(name, attrs).await,
                    Err(error) => Err(error),
                }
            }
            Step::Put { uuid, attrs: values } => {
                let body = scim::change(*uuid, values);
                let call = Call::new(Operation::Write, Method::PUT, ["scim", "v1", "Entry"]).body(body);
                decoded(&self.send(call).await?, attrs)
            }
            Step::Extend { uuid, collection, class } => {
                let call = attribute(Method::POST, *collection, *uuid, "class").body(json!([class]));
                self.send(call).await?;
                self.entry(*uuid, attrs).await
            }
            Step::Adjust { uuid, collection, attr, add, remove } => {
                for (method, uuids) in [(Method::POST, add), (Method::DELETE, remove)] {
                    if !uuids.is_empty() {
                        self.send(attribute(method, *collection, *uuid, attr.name).body(json!(uuids))).await?;
                    }
                }
                self.entry(*uuid, attrs).await
            }
            Step::Delete { uuid } => {
                let call = Call::new(Operation::Delete, Method::DELETE, ["scim", "v1", "Entry", &uuid.to_string()]);
                match self.send(call).await {
                    Ok(_) | Err(Error::NotFound) => Ok(None),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Sets an attribute by the older route: SCIM takes no values of some.
    ///
    /// # Errors
    /// Whatever a request can meet.
    pub async fn set_attribute(
        &self,
        collection: Collection,
        uuid: Uuid,
        attr: Attr,
        values: &[&str],
    ) -> Result<(), Error> {
        self.send(attribute(Method::PUT, collection, uuid, attr.name).body(json!(values))).await.map(drop)
    }

    pub(crate) async fn send(&self, call: Call) -> Result<Answer, Error> {
        let call = match &self.token {
            Some(token) => call.header(AUTHORIZATION.as_str(), token.clone()),
            None => call,
        };
        self.http.send(call).await
    }
}

/// A call on some values of one attribute.
fn attribute(method: Method, collection: Collection, uuid: Uuid, name: &str) -> Call {
    let kind = match collection {
        Collection::OAuth2Client => "oauth2",
        other => other.class(),
    };
    Call::new(Operation::Write, method, ["v1", kind, &uuid.to_string(), "_attr", name])
}

fn decoded(answer: &Answer, attrs: &[Attr]) -> Result<Option<Entry>, Error> {
    match answer.decode("an entry")? {
        Json::Null => Ok(None),
        Json::Object(object) => scim::entry(&object, attrs).map_err(|why| answer.undecodable("an entry", &why)),
        _ => Err(answer.undecodable("an entry", &"it is no JSON object")),
    }
}
