//! The link with which a person sets a first credential: when one is handed out, and how it is stored until it was used.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kaniop_api::person::ResetDelivery;

use super::credential::{CONTENT_HASH, Holder, annotation, content_hash, text};
use crate::condition::{Statement, Truth};
use crate::reason::Reason;

/// Name of the condition that speaks of credentials.
pub const CONDITION: &str = "CredentialReady";

/// What is known of a person's credentials and the link.
#[derive(Debug)]
pub struct Known<'a> {
    /// Where links go.
    pub delivery: ResetDelivery,
    /// Whether the person has any credential.
    pub has_credential: bool,
    /// The Secret with the link, if it is there and the object's own.
    pub secret: Option<&'a Secret>,
    /// UID of the object.
    pub owner: &'a str,
    /// Until when a link that was sent by mail works, if one was.
    pub sent_until: Option<Timestamp>,
    /// Now.
    pub now: Timestamp,
}

/// What is to be done about the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing.
    Keep,
    /// A link is to be made and stored.
    Issue,
    /// A link is to be sent by the server.
    Send,
    /// The Secret has done its work.
    Remove,
}

/// A link. Never shown for debugging.
#[derive(Clone, PartialEq, Eq)]
pub struct Link {
    /// Where the server is reached by people.
    pub origin: String,
    /// What makes the link work.
    pub token: String,
    /// Until when it does.
    pub expires: Timestamp,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("expires", &self.expires).finish_non_exhaustive()
    }
}

/// Decides; says what is to be said of it, once it is done, and after how long that changes.
#[must_use]
pub fn next(known: &Known<'_>) -> (Next, Option<Statement>, Option<Duration>) {
    if known.has_credential {
        let next = if known.secret.is_some() { Next::Remove } else { Next::Keep };
        return (next, Some(say(Truth::True, Reason::CredentialExists, "the person has a credential")), None);
    }
    match known.delivery {
        // A link that is not to be stored (any more) goes, and with it what was said of it.
        ResetDelivery::None | ResetDelivery::Email if known.secret.is_some() => (Next::Remove, None, None),
        ResetDelivery::None => (Next::Keep, None, None),
        ResetDelivery::Email => match known.sent_until {
            Some(until) => open(known.delivery, until, known.now),
            None => (Next::Send, None, None),
        },
        ResetDelivery::Secret => match known.secret.and_then(|secret| expiry(secret, known.owner)) {
            Some(until) => open(known.delivery, until, known.now),
            None => (Next::Issue, None, None),
        },
    }
}

/// What is said of a link that works until then.
#[must_use]
pub fn open(delivery: ResetDelivery, until: Timestamp, now: Timestamp) -> (Next, Option<Statement>, Option<Duration>) {
    match Duration::try_from(until.duration_since(now)) {
        Ok(left) if !left.is_zero() => {
            let message = format!("a link for setting the first credential works until {until}");
            (Next::Keep, Some(say(Truth::False, Reason::ResetLinkOpen, message)), Some(left))
        }
        _ => {
            let again = match delivery {
                ResetDelivery::Email => "set credentialReset.delivery to None and back",
                ResetDelivery::Secret | ResetDelivery::None => "delete its Secret",
            };
            let message =
                format!("the link for setting the first credential ended at {until} unused; {again} to get a new one");
            (Next::Keep, Some(say(Truth::False, Reason::ResetLinkExpired, message)), None)
        }
    }
}

fn say(truth: Truth, reason: Reason, message: impl Into<String>) -> Statement {
    Statement::new(CONDITION, truth, reason, message)
}

/// Until when the link in the Secret works, if nobody edited it.
fn expiry(secret: &Secret, owner: &str) -> Option<Timestamp> {
    let (url, token, expires) = (text(secret, "url")?, text(secret, "token")?, text(secret, "expires")?);
    let intact = annotation(secret, CONTENT_HASH)? == content_hash(owner, &[&*url, &token, &expires].join("\0"));
    expires.parse().ok().filter(|_| intact)
}

impl Link {
    fn url(&self) -> String {
        format!("{}/ui/reset?token={}", self.origin.trim_end_matches('/'), self.token)
    }

    /// The Secret with this link.
    #[must_use]
    pub fn secret(&self, holder: &Holder, name: &str) -> Secret {
        let (url, expires) = (self.url(), self.expires.to_string());
        let hash = content_hash(&holder.owner.uid, &[&*url, &self.token, &expires].join("\0"));
        let mut metadata = holder.metadata(name);
        metadata.annotations = Some(BTreeMap::from([(CONTENT_HASH.to_owned(), hash)]));
        let data = [("url", url), ("token", self.token.clone()), ("expires", expires)];
        let data = data.into_iter().map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes()))).collect();
        Secret { metadata, data: Some(data), type_: Some("Opaque".to_owned()), ..Secret::default() }
    }
}

#[cfg(test)]
mod tests;
