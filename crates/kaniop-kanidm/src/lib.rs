//! How to talk to Kanidm: the only code that does.
//!
//! [`Client`] speaks HTTPS to one node and carries out the steps that `kaniop-core` plans; [`node`] is the protocol of the node helper and of the
//! admin socket inside a pod; [`backup`] proves the files that a server leaves. Nothing here decides what should happen, retries, or waits longer than a request's deadline.

mod account;
pub mod backup;
mod certificate;
mod client;
mod credential;
mod error;
mod http;
mod login;
mod newcomer;
pub mod node;
mod oauth2;
mod requests;
mod scim;
mod trust;

pub use account::{ApiToken, Purpose};
pub use certificate::CertificateProblem;
pub use client::Client;
pub use credential::CredentialReset;
pub use error::{Class, Error};
pub use http::Endpoint;
pub use oauth2::{Image, LARGEST_IMAGE};
pub use requests::{Operation, Outcome, Requests};
pub use trust::{Trust, check_key};
