//! Creation of the entries that the server creates in ways of their own, drawing their UUIDs itself: service accounts and OAuth2 clients.

use kaniop_core::entry::Newcomer;
use reqwest::Method;
use serde_json::{Value as Json, json};

use crate::client::Client;
use crate::error::Error;
use crate::http::Call;
use crate::requests::Operation;

impl Client {
    /// Creates an entry of this name.
    ///
    /// # Errors
    /// Whatever a request can meet; [`Error::Conflict`] when the name is taken.
    pub async fn create_newcomer(&self, name: &str, newcomer: &Newcomer) -> Result<(), Error> {
        match newcomer {
            Newcomer::ServiceAccount { displayname, managed_by } => {
                self.create_service_account(name, displayname, &managed_by.to_string()).await
            }
            Newcomer::OAuth2Client { displayname, landing, public } => {
                let attrs =
                    json!({ "name": [name], "displayname": [displayname], "oauth2_rs_origin_landing": [landing] });
                let kind = if *public { "_public" } else { "_basic" };
                self.create_with(["v1", "oauth2", kind], attrs).await
            }
        }
    }

    /// Creates a service account that a group or an account (name, SPN or UUID) manages.
    pub(crate) async fn create_service_account(
        &self,
        name: &str,
        displayname: &str,
        managed_by: &str,
    ) -> Result<(), Error> {
        let attrs = json!({ "name": [name], "displayname": [displayname], "entry_managed_by": [managed_by] });
        self.create_with(["v1", "service_account"], attrs).await
    }

    async fn create_with<'p>(&self, path: impl IntoIterator<Item = &'p str>, attrs: Json) -> Result<(), Error> {
        let call = Call::new(Operation::Create, Method::POST, path).body(json!({ "attrs": attrs }));
        self.send(call).await.map(drop)
    }
}
