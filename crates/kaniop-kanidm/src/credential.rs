//! Credentials of accounts: passwords that the server generates, what an account can log in with, and links by which people set their own. API
//! tokens are in `account`.

use std::collections::BTreeSet;
use std::time::Duration;

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
use crate::scim;

/// What somebody needs to set credentials for a person: a token that is told once, and when it ends.
#[derive(Debug)]
pub struct CredentialReset {
    /// Anybody who has it can set the person's credentials. The page to enter it is `<origin>/ui/reset?token=…`.
    pub token: SecretString,
    /// When it ends; the server decides (five minutes to a day).
    pub expires: Timestamp,
}

/// The wire form: the time is seconds since 1970.
#[derive(Deserialize)]
struct Intent {
    token: SecretString,
    expiry_time: i64,
}

#[derive(Deserialize)]
struct Status {
    creds: Vec<Detail>,
}

#[derive(Deserialize)]
struct Detail {
    uuid: Uuid,
}

impl Client {
    /// Makes the server generate a new password for a service account; the old one is void at once. Only the account's managers may.
    ///
    /// # Errors
    /// Whatever a request can meet.
    pub async fn generate_password(&self, service_account: Uuid) -> Result<SecretString, Error> {
        let id = service_account.to_string();
        let call = Call::new(Operation::Other, Method::GET, ["v1", "service_account", &id, "_credential", "_generate"]);
        self.send(call).await?.decode_secret("a password")
    }

    /// The UUID of a service account's password, which is another one after each generation; `None` when it has none. Only the account's managers
    /// see it.
    ///
    /// # Errors
    /// Whatever a request can meet.
    pub async fn service_account_password(&self, service_account: Uuid) -> Result<Option<Uuid>, Error> {
        let id = service_account.to_string();
        let call = Call::new(Operation::Other, Method::GET, ["v1", "service_account", &id, "_credential", "_status"]);
        let status: Status = self.send(call).await?.decode("the credentials of an account")?;
        Ok(status.creds.first().map(|detail| detail.uuid))
    }

    /// All people that can log in: with a password, with or without a second factor, or with a passkey, attested or not. One request.
    ///
    /// # Errors
    /// Whatever a request can meet.
    pub async fn people_with_credentials(&self) -> Result<BTreeSet<Uuid>, Error> {
        // What the server tells of one person's credentials leaves out passkeys. No list ever shows a credential, but their presence can be asked for.
        let credentials = "primary_credential pr or passkeys pr or attested_passkeys pr";
        self.found(format!("class eq \"person\" and ({credentials})")).await
    }

    /// All service accounts that have a password, among those that this client's account manages. One request.
    ///
    /// # Errors
    /// Whatever a request can meet.
    pub async fn service_accounts_with_password(&self) -> Result<BTreeSet<Uuid>, Error> {
        self.found("class eq \"service_account\" and primary_credential pr".to_owned()).await
    }

    async fn found(&self, filter: String) -> Result<BTreeSet<Uuid>, Error> {
        let call = Call::new(Operation::List, Method::GET, ["scim", "v1", "Entry"])
            .query("filter", filter)
            .query("attributes", "class".to_owned());
        let answer = self.send(call).await?;
        let list: scim::List = answer.decode("a list of entries")?;
        let ids = list.resources.iter().map(|entry| Uuid::parse_str(entry.get("id").and_then(Json::as_str)?).ok());
        let ids: Option<_> = ids.collect();
        ids.ok_or_else(|| answer.undecodable("a list of entries", &"an entry without a UUID as its id"))
    }

    /// Issues a token by which a person's credentials can be set. It is not safe to repeat: each call makes one more, and none can be revoked.
    ///
    /// # Errors
    /// Whatever a request can meet.
    pub async fn credential_reset(&self, person: Uuid, ttl: Duration) -> Result<CredentialReset, Error> {
        let (id, ttl) = (person.to_string(), ttl.as_secs().to_string());
        let path = ["v1", "person", &id, "_credential", "_update_intent", &ttl];
        let answer = self.send(Call::new(Operation::Other, Method::GET, path)).await?;
        let what = "a credential reset";
        let intent: Intent = answer.decode_secret(what)?;
        let expires = Timestamp::from_second(intent.expiry_time).map_err(|error| answer.undecodable(what, &error))?;
        Ok(CredentialReset { token: intent.token, expires })
    }

    /// Makes the server send such a token to one of the person's mail addresses. Nobody else sees it.
    ///
    /// # Errors
    /// Whatever a request can meet; [`Error::Unsupported`] before Kanidm 1.10.
    pub async fn send_credential_reset(&self, person: Uuid, ttl: Duration, mail: &str) -> Result<(), Error> {
        let id = person.to_string();
        let call =
            Call::new(Operation::Other, Method::POST, ["v1", "person", &id, "_credential", "_update_intent_send"])
                .body(json!({ "ttl": ttl.as_secs(), "email": mail }));
        match self.send(call).await {
            // A missing person has a body that says so, and is another error; this is a missing route.
            Err(Error::Unexpected { status: 404 | 405, .. }) => Err(Error::Unsupported {
                what: "send credential resets by mail",
                since: "1.10",
                version: self.server_version(),
            }),
            outcome => outcome.map(drop),
        }
    }
}
