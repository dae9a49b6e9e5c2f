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
        let (route, attrs) = wire(name, newcomer);
        let call = Call::new(Operation::Create, Method::POST, route.iter().copied()).body(json!({ "attrs": attrs }));
        self.send(call).await.map(drop)
    }
}

fn wire(name: &str, newcomer: &Newcomer) -> (&'static [&'static str], Json) {
    match newcomer {
        Newcomer::ServiceAccount { displayname, managed_by } => (
            &["v1", "service_account"],
            json!({ "name": [name], "displayname": [displayname], "entry_managed_by": [managed_by] }),
        ),
        Newcomer::OAuth2Client { displayname, landing, public } => (
            if *public { &["v1", "oauth2", "_public"] } else { &["v1", "oauth2", "_basic"] },
            json!({ "name": [name], "displayname": [displayname], "oauth2_rs_origin_landing": [landing] }),
        ),
    }
}
