//! What can go wrong while talking to Kanidm: what it means, whether trying again helps, and a text for people.
//!
//! A refusal is told by HTTP status and the JSON that the server sends with it. No text here ever holds a password or a token.

use std::time::Duration;

use kaniop_core::reason::Reason;
use rustls::CertificateError;
use rustls::pki_types::UnixTime;
use serde_json::Value as Json;

/// How an error is dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Trying again later may help.
    Retry,
    /// Somebody has to change something first.
    Blocked,
    /// Should never happen: a defect of ours, or an answer that we do not know.
    Bug,
}

/// What is wrong with a server's certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateProblem {
    /// It is from an authority that is not trusted, and not the one in the Secret either.
    #[error(
        "is from an authority that is not trusted. Put the authority's certificate into the TLS Secret as ca.crt, \
         or make sure that the server has loaded the certificate of that Secret"
    )]
    UnknownIssuer,
    /// It is for other host names.
    #[error("is for another host{}. Issue it for the host of the origin", presented(.0))]
    WrongHost(
        /// The names that it is for, as far as TLS tells.
        Vec<String>,
    ),
    /// Its time is over.
    #[error("has expired{}. Renew it", at(.0.as_ref()))]
    Expired(
        /// When.
        Option<jiff::Timestamp>,
    ),
    /// Its time has not come.
    #[error("is not valid yet{}. Check the clocks", at(.0.as_ref()))]
    NotYetValid(
        /// From when on.
        Option<jiff::Timestamp>,
    ),
    /// Anything else that TLS objects to.
    #[error("is not acceptable: {0}")]
    Other(String),
}

fn presented(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) }
}

fn at(time: Option<&jiff::Timestamp>) -> String {
    time.map(|time| format!(" ({time})")).unwrap_or_default()
}

fn timestamp(time: UnixTime) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_second(i64::try_from(time.as_secs()).ok()?).ok()
}

impl From<&CertificateError> for CertificateProblem {
    fn from(error: &CertificateError) -> Self {
        match error {
            CertificateError::UnknownIssuer => Self::UnknownIssuer,
            CertificateError::NotValidForName => Self::WrongHost(Vec::new()),
            CertificateError::NotValidForNameContext { presented, .. } => Self::WrongHost(presented.clone()),
            CertificateError::Expired => Self::Expired(None),
            CertificateError::ExpiredContext { not_after, .. } => Self::Expired(timestamp(*not_after)),
            CertificateError::NotValidYet => Self::NotYetValid(None),
            CertificateError::NotValidYetContext { not_before, .. } => Self::NotYetValid(timestamp(*not_before)),
            other => Self::Other(other.to_string()),
        }
    }
}

/// Why a request to Kanidm did not do what it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The origin or another part of the address is unusable.
    #[error("{0}")]
    Endpoint(String),
    /// The TLS Secret is unusable.
    #[error("{0}")]
    Trust(String),
    /// The server showed a certificate that is not accepted.
    #[error("the certificate of {server} {problem}")]
    Certificate {
        /// Origin and address.
        server: String,
        /// What is wrong with it.
        problem: CertificateProblem,
    },
    /// No connection: refused, no route, no TLS, or not in time.
    #[error("{server} cannot be reached: {why}")]
    Unreachable {
        /// Origin and address.
        server: String,
        /// The cause at the bottom.
        why: String,
    },
    /// A connection, but no whole answer in time.
    #[error("{server} did not answer within {seconds} s")]
    TimedOut {
        /// Origin and address.
        server: String,
        /// The deadline.
        seconds: u64,
    },
    /// The connection broke in the middle: whether the server did it is unknown.
    #[error("the connection to {server} broke off: {why}")]
    Interrupted {
        /// Origin and address.
        server: String,
        /// The cause at the bottom.
        why: String,
    },
    /// An answer that is too long to be read.
    #[error("the answer of {server} is longer than {} MiB and was not read", .limit >> 20)]
    AnswerTooLarge {
        /// Origin and address.
        server: String,
        /// The most that is read, in bytes.
        limit: usize,
    },
    /// The token is not accepted (any more), or there is none.
    #[error("the server does not accept the token (any more): it was revoked, has expired, or its account is gone")]
    Unauthenticated,
    /// A login was refused.
    #[error("the server refused the login of {account}: {why}")]
    LoginDenied {
        /// Who.
        account: String,
        /// As the server put it.
        why: String,
    },
    /// The account may not do this.
    #[error("the server refused: the operator's account may not do this. Check that it is a member of {}", crate::OPERATOR_GROUPS.join(", "))]
    AccessDenied,
    /// Another entry has these values, which must be unique.
    #[error("another entry has the same {}", unique(.attributes))]
    Conflict {
        /// The server's names of the attributes.
        attributes: Vec<String>,
    },
    /// An entry of this UUID exists, or existed: a deleted one keeps its UUID.
    #[error("an entry of this UUID exists already, or was deleted a short while ago")]
    UuidTaken,
    /// A reference leads nowhere.
    #[error("something that is referred to does not exist on the server")]
    UnknownReference,
    /// The server refuses a value.
    #[error("the server refuses {}: {why}", field(.attribute.as_deref()))]
    InvalidValue {
        /// The server's name of the attribute, where it says.
        attribute: Option<String>,
        /// As the server put it.
        why: String,
    },
    /// The entry that should be changed is not there.
    #[error("the server has no such entry (any more)")]
    NotFound,
    /// The request is larger than the server takes.
    #[error("the request is larger than the server takes (2 MiB): too many values at once")]
    TooLarge,
    /// The server is overloaded or has trouble of its own.
    #[error("the server could not carry out the request now (HTTP {status}{})", detail(.why, .opid.as_deref()))]
    Busy {
        /// HTTP status.
        status: u16,
        /// As the server put it.
        why: String,
        /// The server's id of the operation, for its logs.
        opid: Option<String>,
    },
    /// An answer that we do not know.
    #[error("the server answered what Kaniop does not know (HTTP {status}{}). Please report it", detail(.why, .opid.as_deref()))]
    Unexpected {
        /// HTTP status.
        status: u16,
        /// As the server put it.
        why: String,
        /// The server's id of the operation, for its logs.
        opid: Option<String>,
    },
    /// A successful answer that does not have the documented form.
    #[error("the server's answer cannot be understood as {what}: {why}{}. Please report it", detail("", .opid.as_deref()))]
    Undecodable {
        /// What it should have been.
        what: &'static str,
        /// What is wrong.
        why: String,
        /// The server's id of the operation, for its logs.
        opid: Option<String>,
    },
    /// The admin socket cannot be used.
    #[error("{0}")]
    Socket(String),
    /// The server answered on the admin socket that it could not do it, without a reason.
    #[error("the server refused on its admin socket to {what}; its log says why")]
    SocketRefused {
        /// What was asked.
        what: String,
    },
}

fn unique(names: &[String]) -> String {
    if names.is_empty() { "name or other value that must be unique".to_owned() } else { names.join(", ") }
}

fn field(attribute: Option<&str>) -> String {
    attribute.map_or_else(|| "a value".to_owned(), |name| format!("the value of {name}"))
}

fn detail(why: &str, opid: Option<&str>) -> String {
    let why = if why.is_empty() { String::new() } else { format!(", {why}") };
    opid.map_or_else(|| why.clone(), |opid| format!("{why}, operation {opid}"))
}

impl Error {
    /// How it is dealt with.
    #[must_use]
    pub const fn class(&self) -> Class {
        match self {
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Interrupted { .. }
            | Self::NotFound
            | Self::Busy { .. }
            | Self::Socket(_)
            | Self::SocketRefused { .. } => Class::Retry,
            Self::Endpoint(_)
            | Self::Trust(_)
            | Self::Certificate { .. }
            | Self::Unauthenticated
            | Self::LoginDenied { .. }
            | Self::AccessDenied
            | Self::Conflict { .. }
            | Self::UuidTaken
            | Self::UnknownReference
            | Self::InvalidValue { .. }
            | Self::TooLarge => Class::Blocked,
            Self::AnswerTooLarge { .. } | Self::Unexpected { .. } | Self::Undecodable { .. } => Class::Bug,
        }
    }

    /// The reason that a condition carries for it.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        match self {
            Self::Trust(_) => Reason::TlsSecretInvalid,
            Self::Certificate { .. } => Reason::CertificateInvalid,
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Interrupted { .. }
            | Self::NotFound
            | Self::Busy { .. }
            | Self::Socket(_)
            | Self::SocketRefused { .. } => Reason::ConnectionFailed,
            Self::Unauthenticated | Self::LoginDenied { .. } => Reason::LoginFailed,
            Self::AccessDenied => Reason::AccessDenied,
            Self::Conflict { .. } | Self::UuidTaken => Reason::EntryExists,
            Self::UnknownReference => Reason::ReferenceNotFound,
            Self::Endpoint(_) | Self::InvalidValue { .. } | Self::TooLarge => Reason::InvalidValue,
            Self::AnswerTooLarge { .. } | Self::Unexpected { .. } | Self::Undecodable { .. } => Reason::InternalError,
        }
    }

    /// What a status other than 2xx and its body mean.
    pub(crate) fn refused(status: u16, body: &[u8], opid: Option<String>) -> Self {
        let json = serde_json::from_slice::<Json>(body).unwrap_or(Json::Null);
        let why = excerpt(body);
        match (status, &json) {
            (_, json) if json.get("plugin").is_some() => Self::plugin(status, &json["plugin"], why, opid),
            (401, _) => Self::Unauthenticated,
            (403, _) => Self::AccessDenied,
            (404, Json::String(text)) if text == "nomatchingentries" => Self::NotFound,
            (409, json) => Self::Conflict { attributes: strings(&json["conflicting_attributes"]) },
            (413, _) => Self::TooLarge,
            (408 | 429 | 500..=599, _) => Self::Busy { status, why, opid },
            (400, json) => Self::InvalidValue { attribute: named(json), why },
            _ => Self::Unexpected { status, why, opid },
        }
    }

    /// The server's plug-ins refuse with 500, although the request is at fault.
    fn plugin(status: u16, plugin: &Json, why: String, opid: Option<String>) -> Self {
        if plugin.get("referentialintegrity").is_some() {
            Self::UnknownReference
        } else if plugin.get("attrunique").is_some() {
            Self::Conflict { attributes: Vec::new() }
        } else if plugin["base"].as_str().is_some_and(|text| text.starts_with("Uuid duplicate")) {
            // The only one of the base plug-in's refusals that a derived UUID can meet, and nothing but this text tells it from the others.
            Self::UuidTaken
        } else if status == 400 {
            Self::InvalidValue { attribute: None, why }
        } else {
            Self::Unexpected { status, why, opid }
        }
    }
}

/// The attribute that a schema error names.
fn named(body: &Json) -> Option<String> {
    let violation = body.get("schemaviolation").unwrap_or(body);
    violation.as_object()?.values().find_map(|value| match value {
        Json::String(name) => Some(name.clone()),
        Json::Array(_) => Some(strings(value).join(", ")).filter(|names| !names.is_empty()),
        _ => None,
    })
}

fn strings(list: &Json) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect()
}

/// The beginning of a body, on one line.
fn excerpt(body: &[u8]) -> String {
    const LONGEST: usize = 300;
    let text = String::from_utf8_lossy(body);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST { line } else { line.chars().take(LONGEST).chain(['…']).collect() }
}

/// Errors that a deadline makes of an operation on the admin socket.
pub(crate) fn socket_deadline(what: &str, deadline: Duration) -> Error {
    Error::Socket(format!("the admin socket did not {what} within {} s", deadline.as_secs()))
}
