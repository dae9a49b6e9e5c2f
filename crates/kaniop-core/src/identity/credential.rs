//! Credentials of identities: which Secrets an object is to have, what is to be done about each, and how it looks when that is done.
//!
//! Nothing here sees a server: whoever carries a decision out brings the credential back, and the manifest that stores it follows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kaniop_api::service_account::TokenPurpose;
use kaniop_api::shared::{MetadataTemplate, SecretRotation};
use uuid::Uuid;

use super::Finding;
use crate::cluster::labels;
use crate::name::fingerprint;
use crate::reason::Reason;

/// On an object: asks for new credentials. Whatever its value is becomes the time at which that was seen.
pub const FORCE_ROTATION: &str = "kaniop.rs/force-secret-rotation";
/// On a Secret: whether its credential is made anew by itself.
pub const ROTATION_ENABLED: &str = "kaniop.rs/rotation-enabled";
/// On a Secret: how long its credential lives, in days.
pub const ROTATION_PERIOD: &str = "kaniop.rs/rotation-period-days";
/// On a Secret: hash of its content as we wrote it, so that an edited one is seen.
pub const CONTENT_HASH: &str = "kaniop.rs/content-hash";
/// On a Secret with an API token: what the server calls the token.
pub const TOKEN_ID: &str = "kaniop.rs/token-id";
/// On a Secret with an API token: label of the token.
pub const TOKEN_LABEL: &str = "apitoken.kaniop.rs/label";
/// On a Secret: UUID of the entry that its credential is for. A credential of an entry that was made anew is another one.
pub const ENTRY: &str = "credential.kaniop.rs/entry-uuid";
/// On every Secret of an identity: name of the object.
pub const ACCOUNT: &str = "credential.kaniop.rs/account";

/// Longest value of a label.
pub const LONGEST_LABEL: usize = 63;

/// What kind of credential it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// The secret of an OAuth2 client: the server shows it again.
    ClientSecret {
        /// The client's id.
        id: String,
        /// More keys for the id.
        id_aliases: BTreeSet<String>,
        /// More keys for the secret.
        secret_aliases: BTreeSet<String>,
    },
    /// An API token: shown once, told apart by its label.
    ApiToken {
        /// Its label.
        label: String,
        /// What it may be used for.
        purpose: TokenPurpose,
        /// When it ends.
        expiry: Option<Timestamp>,
    },
    /// A password: shown once.
    Password,
}

/// A Secret that an object is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// What is in it.
    pub credential: Credential,
    /// When it is made anew by itself.
    pub rotation: Option<SecretRotation>,
    /// The user's own labels and annotations.
    pub template: MetadataTemplate,
}

/// An API token that the server lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveToken {
    /// What the server calls it.
    pub id: Uuid,
    /// Its label.
    pub label: String,
    /// What it may be used for; `None` for a purpose that we never ask for.
    pub purpose: Option<TokenPurpose>,
    /// When it ends.
    pub expiry: Option<Timestamp>,
}

/// What is known when it is decided.
#[derive(Debug)]
pub struct Known<'a> {
    /// The Secret of that name, if it is there and the object's own.
    pub secret: Option<&'a Secret>,
    /// UID of the object.
    pub owner: &'a str,
    /// UUID of the entry that the credential is for.
    pub entry: Uuid,
    /// The account's tokens.
    pub live: &'a [LiveToken],
    /// Credentials older than this are to be made anew. One of just this age was made in the pass that noted the time, and is not made again.
    pub forced: Option<Timestamp>,
    /// Now.
    pub now: Timestamp,
}

/// What is to be done about one Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// It holds the right credential.
    Keep(Held),
    /// The server has the credential, the Secret does not.
    Read,
    /// A credential is to be made. These tokens are revoked before, so that there are never two.
    Make {
        /// Tokens of the same label.
        revoke: Vec<Uuid>,
    },
    /// Nothing can be done: what the user has to know.
    Refused(Finding),
}

/// A credential and what is known of it. Its value is never shown for debugging.
#[derive(Clone, PartialEq, Eq)]
pub struct Held {
    /// The secret, token or password.
    pub value: String,
    /// When it was made.
    pub made: Timestamp,
    /// What the server calls the token.
    pub token: Option<Uuid>,
    /// Other tokens of the same label, which somebody who was cut short left behind.
    pub stray: Vec<Uuid>,
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("made", &self.made).field("token", &self.token).finish_non_exhaustive()
    }
}

impl Wanted {
    /// Decides, and says after how long that has to be done anew although nothing happened.
    #[must_use]
    pub fn next(&self, known: &Known<'_>) -> (Next, Option<Duration>) {
        if let Credential::ApiToken { label, expiry: Some(end), .. } = &self.credential
            && *end <= known.now
        {
            let message =
                format!("apiTokens[{label}].expiry: the token ended at {end}. Set a later time or take the token out");
            return (Next::Refused(Finding { reason: Reason::Expired, message }), None);
        }
        let of_label = self.tokens_of_label(known.live);
        let held = known.secret.and_then(|secret| self.held(secret, known));
        let held = held.and_then(|held| self.listed(held, &of_label));
        let due = |made| self.due(made, known.now);
        match held {
            Some(held)
                if known.forced.is_none_or(|forced| held.made >= forced) && due(held.made) != Some(Duration::ZERO) =>
            {
                let after = due(held.made).into_iter().chain(self.ends_after(known.now)).min();
                (Next::Keep(held), after)
            }
            // What the server can show again is not made anew only because the Secret lost it.
            None if self.is_shown_again() && !self.is_forced(known) => (Next::Read, None),
            _ => (Next::Make { revoke: of_label.iter().map(|token| token.id).collect() }, None),
        }
    }

    fn is_shown_again(&self) -> bool {
        matches!(self.credential, Credential::ClientSecret { .. })
    }

    fn is_forced(&self, known: &Known<'_>) -> bool {
        let made = known.secret.and_then(|secret| annotation(secret, labels::ROTATED_AT)?.parse::<Timestamp>().ok());
        known.forced.is_some_and(|forced| made.is_none_or(|made| made < forced))
    }

    /// After how long a credential of this age is made anew; zero when it is time.
    fn due(&self, made: Timestamp, now: Timestamp) -> Option<Duration> {
        let rotation = self.rotation.as_ref().filter(|rotation| rotation.enabled)?;
        let age = now.duration_since(made);
        let left = SignedDuration::from_hours(rotation.period_days.saturating_mul(24)) - age;
        Some(Duration::try_from(left).unwrap_or_default())
    }

    fn ends_after(&self, now: Timestamp) -> Option<Duration> {
        match &self.credential {
            Credential::ApiToken { expiry: Some(end), .. } => Duration::try_from(end.duration_since(now)).ok(),
            _ => None,
        }
    }

    fn tokens_of_label<'t>(&self, live: &'t [LiveToken]) -> Vec<&'t LiveToken> {
        match &self.credential {
            Credential::ApiToken { label, .. } => live.iter().filter(|token| token.label == *label).collect(),
            _ => Vec::new(),
        }
    }

    /// What the Secret holds, if nobody edited it.
    fn held(&self, secret: &Secret, known: &Known<'_>) -> Option<Held> {
        let value = text(secret, self.key())?;
        let data = self.data(&value);
        let complete =
            data.iter().all(|(key, value)| secret.data.as_ref().and_then(|seen| seen.get(key)) == Some(value));
        let hash = annotation(secret, CONTENT_HASH);
        // Releases before this one kept no hash. What the server shows again is better read again.
        let intact = hash.map_or(!self.is_shown_again(), |hash| hash == content_hash(known.owner, &value));
        let made = annotation(secret, labels::ROTATED_AT).and_then(|time| time.parse().ok());
        let made = made.or_else(|| secret.metadata.creation_timestamp.as_ref().map(|time| time.0))?;
        // A clock that was ahead once must not put every rotation off.
        let made = made.min(known.now);
        let of_entry = annotation(secret, ENTRY).is_none_or(|entry| entry == known.entry.to_string());
        let token = annotation(secret, TOKEN_ID).and_then(|id| id.parse().ok());
        (complete && intact && of_entry).then_some(Held { value, made, token, stray: Vec::new() })
    }

    /// The same, if it needs no token or the server lists the token as it should be.
    fn listed(&self, mut held: Held, of_label: &[&LiveToken]) -> Option<Held> {
        let Credential::ApiToken { purpose, expiry, .. } = &self.credential else { return Some(held) };
        let token = match held.token {
            Some(id) => of_label.iter().find(|token| token.id == id),
            None if of_label.len() == 1 => of_label.first(),
            None => None,
        }?;
        let seconds = |time: &Option<Timestamp>| time.map(Timestamp::as_second);
        let as_wanted = token.purpose == Some(*purpose) && seconds(&token.expiry) == seconds(expiry);
        held.token = Some(token.id);
        held.stray = of_label.iter().map(|other| other.id).filter(|id| *id != token.id).collect();
        as_wanted.then_some(held)
    }

    /// The key of the credential itself.
    #[must_use]
    pub fn key(&self) -> &'static str {
        match &self.credential {
            Credential::ClientSecret { .. } => "CLIENT_SECRET",
            Credential::ApiToken { .. } => "token",
            Credential::Password => "password",
        }
    }

    fn data(&self, value: &str) -> BTreeMap<String, ByteString> {
        let mut pairs = vec![(self.key(), value)];
        if let Credential::ClientSecret { id, id_aliases, secret_aliases } = &self.credential {
            pairs.push(("CLIENT_ID", id));
            pairs.extend(id_aliases.iter().map(|alias| (alias.as_str(), id.as_str())));
            pairs.extend(secret_aliases.iter().map(|alias| (alias.as_str(), value)));
        }
        pairs.into_iter().map(|(key, value)| (key.to_owned(), ByteString(value.as_bytes().to_vec()))).collect()
    }

    /// The user's labels and annotations that are the operator's own, if any.
    #[must_use]
    pub fn template_conflict(&self) -> Option<Finding> {
        let keys =
            |map: &Option<BTreeMap<String, String>>| map.iter().flat_map(BTreeMap::keys).cloned().collect::<Vec<_>>();
        let (theirs, ours) = (&self.template, self.metadata("", &Holder::default()));
        let ours = [keys(&ours.labels), keys(&ours.annotations)].concat();
        let taken = |key: &String| {
            ours.contains(key) || key.split('/').next().is_some_and(|prefix| prefix.ends_with("kaniop.rs"))
        };
        let taken: Vec<_> =
            [keys(&theirs.labels), keys(&theirs.annotations)].concat().into_iter().filter(taken).collect();
        (!taken.is_empty()).then(|| Finding {
            reason: Reason::SecretTemplateConflict,
            message: format!("secretTemplate: {} is the operator's own; take it out", taken.join(", ")),
        })
    }

    /// The Secret with this credential.
    #[must_use]
    pub fn secret(&self, holder: &Holder, held: &Held) -> Secret {
        let mut metadata = self.metadata(&self.name, holder);
        let annotations = metadata.annotations.get_or_insert_default();
        annotations.insert(labels::ROTATED_AT.to_owned(), held.made.to_string());
        annotations.insert(CONTENT_HASH.to_owned(), content_hash(&holder.owner.uid, &held.value));
        annotations.insert(ENTRY.to_owned(), holder.entry.to_string());
        annotations.extend(held.token.map(|id| (TOKEN_ID.to_owned(), id.to_string())));
        metadata.annotations = Some(labels::under(self.template.annotations.as_ref(), std::mem::take(annotations)));
        metadata.labels = Some(labels::under(self.template.labels.as_ref(), metadata.labels.unwrap_or_default()));
        Secret { metadata, data: Some(self.data(&held.value)), type_: Some("Opaque".to_owned()), ..Secret::default() }
    }

    fn metadata(&self, name: &str, holder: &Holder) -> ObjectMeta {
        let mut metadata = holder.metadata(name);
        if let Credential::ApiToken { label, .. } = &self.credential {
            metadata.labels.get_or_insert_default().insert(TOKEN_LABEL.to_owned(), label.clone());
        }
        let rotation = self.rotation.clone().unwrap_or_default();
        let annotations =
            [(ROTATION_ENABLED, rotation.enabled.to_string()), (ROTATION_PERIOD, rotation.period_days.to_string())];
        let annotations = annotations.into_iter().filter(|_| self.rotation.is_some());
        metadata.annotations = Some(annotations.map(|(key, value)| (key.to_owned(), value)).collect());
        metadata
    }
}

/// Whose Secrets they are.
#[derive(Clone, Debug, Default)]
pub struct Holder {
    /// Namespace of the object.
    pub namespace: String,
    /// Which controller makes them.
    pub manager: String,
    /// The object.
    pub owner: OwnerReference,
    /// UUID of its entry.
    pub entry: Uuid,
}

impl Holder {
    /// Metadata of a Secret of this object: found again by labels, gone with the object.
    #[must_use]
    pub fn metadata(&self, name: &str) -> ObjectMeta {
        let labels = [(labels::MANAGED_BY, &self.manager), (ACCOUNT, &self.owner.name)];
        // A name may be longer than a label's value; then it is only not found by hand.
        let labels = labels.into_iter().filter(|(_, value)| value.len() <= LONGEST_LABEL);
        ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(self.namespace.clone()),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value.clone())).collect()),
            owner_references: Some(vec![self.owner.clone()]),
            ..ObjectMeta::default()
        }
    }
}

/// Hash that tells whether a value is the one that we wrote. The values are long and random, and the owner's UID salts them.
#[must_use]
pub fn content_hash(owner: &str, value: &str) -> String {
    fingerprint([owner.as_bytes(), value.as_bytes()])
}

/// An annotation.
pub(super) fn annotation<'a>(secret: &'a Secret, key: &str) -> Option<&'a str> {
    secret.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// A key's value as text.
pub(super) fn text(secret: &Secret, key: &str) -> Option<String> {
    let value = &secret.data.as_ref()?.get(key)?.0;
    String::from_utf8(value.clone()).ok().filter(|text| !text.is_empty())
}

/// Secrets of one object that have the same name: a finding for each.
#[must_use]
pub fn doubled(wanted: &[Wanted]) -> Option<Finding> {
    let mut names = BTreeSet::new();
    let twice = wanted.iter().find(|wanted| !names.insert(&wanted.name))?;
    Some(Finding {
        reason: Reason::InvalidValue,
        message: format!(
            "two credentials would share the Secret {:?}: give one of the tokens a secretName",
            twice.name
        ),
    })
}

#[cfg(test)]
mod tests;
