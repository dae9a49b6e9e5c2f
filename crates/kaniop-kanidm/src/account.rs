//! What the operator does about accounts beside entries: who it is, its API tokens, the groups that it needs. Tokens are told once and never
//! shown again; which of them should live is decided elsewhere.

use jiff::Timestamp;
use reqwest::Method;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use uuid::Uuid;

use crate::client::Client;
use crate::error::Error;
use crate::http::Call;
use crate::requests::Operation;

/// What a token may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// Reading.
    ReadOnly,
    /// Reading and writing.
    ReadWrite,
    /// Synchronisation from another directory; never issued by us.
    #[serde(other)]
    Other,
}

/// An API token of a service account, as the server lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiToken {
    /// Identifies it for revocation.
    pub token_id: Uuid,
    /// As given when it was issued.
    pub label: String,
    /// When it ends.
    pub expiry: Option<Timestamp>,
    /// When it was issued.
    pub issued_at: Option<Timestamp>,
    /// What it may be used for.
    pub purpose: Purpose,
}

/// The wire form: times are seconds since 1970.
#[derive(Deserialize)]
struct Listed {
    token_id: Uuid,
    label: String,
    expiry: Option<i64>,
    issued_at: Option<i64>,
    purpose: Purpose,
}

impl From<Listed> for ApiToken {
    fn from(listed: Listed) -> Self {
        let time = |seconds: Option<i64>| seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
        Self {
            token_id: listed.token_id,
            label: listed.label,
            expiry: time(listed.expiry),
            issued_at: time(listed.issued_at),
            purpose: listed.purpose,
        }
    }
}

impl Client {
    /// SPN of the account that this client acts as; `None` when the server does not know the token (any more).
    ///
    /// # Errors
    /// Whatever a request can meet, but for the refusal of the token.
    pub async fn whoami(&self) -> Result<Option<String>, Error> {
        let answer = match self.send(Call::new(Operation::Read, Method::GET, ["v1", "self"])).await {
            Ok(answer) => answer,
            Err(Error::Unauthenticated) => return Ok(None),
            Err(error) => return Err(error),
        };
        let me: Json = answer.decode("the account itself")?;
        let spn = me["youare"]["attrs"]["spn"][0].as_str();
        spn.map(|spn| Some(spn.to_owned())).ok_or_else(|| answer.undecodable("the account itself", &"no SPN"))
    }

    /// Makes sure that a service account of this name exists, managed by a group (name, SPN or UUID). One that exists is left as it is.
    ///
    /// # Errors
    /// Whatever a request can meet; [`Error::Conflict`] when something else has the name.
    pub async fn ensure_service_account(&self, name: &str, displayname: &str, managed_by: &str) -> Result<(), Error> {
        let conflict = match self.create_service_account(name, displayname, managed_by).await {
            Err(conflict @ Error::Conflict { .. }) => conflict,
            outcome => return outcome,
        };
        let read = Call::new(Operation::Read, Method::GET, ["v1", "service_account", name]);
        match self.send(read).await?.decode("a service account")? {
            Json::Null => Err(conflict),
            _ => Ok(()),
        }
    }

    /// The API tokens of a service account (name, SPN or UUID).
    ///
    /// # Errors
    /// Whatever a request can meet.
    pub async fn api_tokens(&self, account: &str) -> Result<Vec<ApiToken>, Error> {
        let call = Call::new(Operation::Other, Method::GET, ["v1", "service_account", account, "_api_token"]);
        let listed: Vec<Listed> = self.send(call).await?.decode("a list of API tokens")?;
        Ok(listed.into_iter().map(ApiToken::from).collect())
    }

    /// Issues an API token. It is not safe to repeat: each call makes one more.
    ///
    /// # Errors
    /// Whatever a request can meet.
    pub async fn issue_api_token(
        &self,
        account: &str,
        label: &str,
        purpose: Purpose,
        expiry: Option<Timestamp>,
    ) -> Result<SecretString, Error> {
        let body = json!({
            "label": label,
            "expiry": expiry.map(Timestamp::as_second),
            "read_write": purpose == Purpose::ReadWrite,
            "compact": false,
        });
        let call =
            Call::new(Operation::Other, Method::POST, ["v1", "service_account", account, "_api_token"]).body(body);
        self.send(call).await?.decode_secret("an API token")
    }

    /// Revokes an API token; one that is gone already counts as revoked. The server accepts a token until five minutes after its issue even so.
    ///
    /// # Errors
    /// Whatever a request can meet.
    pub async fn revoke_api_token(&self, account: &str, token_id: Uuid) -> Result<(), Error> {
        let id = token_id.to_string();
        let call = Call::new(Operation::Other, Method::DELETE, ["v1", "service_account", account, "_api_token", &id]);
        match self.send(call).await {
            Ok(_) | Err(Error::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Adds one member to a group, both by name, SPN or UUID; a member that is in it already is no error.
    ///
    /// # Errors
    /// Whatever a request can meet.
    pub async fn add_member(&self, group: &str, account: &str) -> Result<(), Error> {
        let call =
            Call::new(Operation::Write, Method::POST, ["v1", "group", group, "_attr", "member"]).body(json!([account]));
        self.send(call).await.map(drop)
    }
}
