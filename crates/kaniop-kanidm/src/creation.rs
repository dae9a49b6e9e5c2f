//! Entries whose UUID the server draws, service accounts and OAuth2 clients: making them, and finding an entry again by its name. Whether one
//! that is found is ours is decided elsewhere.

use kaniop_core::entry::{Attr, Entry};
use reqwest::Method;
use serde_json::{Value as Json, json};
use url::Url;
use uuid::Uuid;

use crate::client::Client;
use crate::error::Error;
use crate::http::{Answer, Call};
use crate::requests::Operation;
use crate::scim::{self, List};

/// An OAuth2 client that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct NewOAuth2Client<'a> {
    /// Whether it has no secret. It cannot be changed later.
    pub public: bool,
    /// Its name, which is its `client_id`.
    pub name: &'a str,
    /// Its name for people.
    pub displayname: &'a str,
    /// Where people are sent to.
    pub landing: &'a Url,
    /// A UUID of our choice. Kanidm 1.7 denies it ([`Error::AccessDenied`]) and draws one by itself when there is none.
    pub uuid: Option<Uuid>,
}

impl Client {
    /// Makes an OAuth2 client and answers its UUID, in two requests. When the second is lost, [`Client::entry_named`] finds what was made.
    ///
    /// # Errors
    /// Whatever a request can meet; [`Error::Conflict`] when something has the name already, [`Error::AccessDenied`] for a UUID of our choice
    /// where the server does not take one.
    pub async fn create_oauth2(&self, client: &NewOAuth2Client<'_>) -> Result<Uuid, Error> {
        let mut attrs = json!({
            "name": [client.name],
            "displayname": [client.displayname],
            "oauth2_rs_origin_landing": [client.landing.as_str()],
        });
        if let Some(uuid) = client.uuid {
            attrs["uuid"] = json!([uuid]);
        }
        let kind = if client.public { "_public" } else { "_basic" };
        let create = Call::new(Operation::Create, Method::POST, ["v1", "oauth2", kind]).body(json!({ "attrs": attrs }));
        self.send(create).await?;
        self.uuid_of_new(client.name).await
    }

    /// Makes a service account, managed by a group or an account (name, SPN or UUID), and answers its UUID, in two requests. When the second is
    /// lost, [`Client::entry_named`] finds what was made. Only members of the managing group can issue tokens for it.
    ///
    /// # Errors
    /// Whatever a request can meet; [`Error::Conflict`] when something has the name already.
    pub async fn create_service_account(&self, name: &str, displayname: &str, managed_by: &str) -> Result<Uuid, Error> {
        self.post_service_account(name, displayname, managed_by).await?;
        self.uuid_of_new(name).await
    }

    /// The server draws the UUID: the built-in administrators may not choose that of a service account.
    pub(crate) async fn post_service_account(
        &self,
        name: &str,
        displayname: &str,
        managed_by: &str,
    ) -> Result<(), Error> {
        let attrs = json!({ "name": [name], "displayname": [displayname], "entry_managed_by": [managed_by] });
        let call =
            Call::new(Operation::Create, Method::POST, ["v1", "service_account"]).body(json!({ "attrs": attrs }));
        self.send(call).await.map(drop)
    }

    /// The entry of this name (no SPN) with these attributes; `None` when there is none that this account can see, or none of a known collection.
    ///
    /// # Errors
    /// Whatever a request can meet.
    pub async fn entry_named(&self, name: &str, attrs: &[Attr]) -> Result<Option<Entry>, Error> {
        let (answer, list) = self.list_named(name, scim::attributes(attrs)).await?;
        let mut entries = list.resources.iter().filter_map(|object| scim::entry(object, attrs).transpose());
        entries.next().transpose().map_err(|why| answer.undecodable("an entry", &why))
    }

    async fn uuid_of_new(&self, name: &str) -> Result<Uuid, Error> {
        let (answer, list) = self.list_named(name, "name".to_owned()).await?;
        let Some(entry) = list.resources.first() else { return Err(Error::NotFound) };
        let id = entry.get("id").and_then(Json::as_str).and_then(|id| Uuid::parse_str(id).ok());
        id.ok_or_else(|| answer.undecodable("an entry", &"an entry without a UUID as its id"))
    }

    async fn list_named(&self, name: &str, attributes: String) -> Result<(Answer, List), Error> {
        let call = Call::new(Operation::Read, Method::GET, ["scim", "v1", "Entry"])
            .query("filter", format!("name eq {}", json!(name)))
            .query("attributes", attributes);
        let answer = self.send(call).await?;
        let list = answer.decode("a list of entries")?;
        Ok((answer, list))
    }
}
