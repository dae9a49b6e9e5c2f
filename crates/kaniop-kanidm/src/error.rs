//! What can go wrong while talking to Kanidm: what it means, whether trying again helps, and a text for people.
//!
//! A refusal is told by HTTP status and the JSON that the server sends with it. No text here ever holds a password or a token.

use std::time::Duration;

use kaniop_core::reason::Reason;
use serde_json::Value as Json;

use crate::certificate::CertificateProblem;

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
    #[error("the server refused: the operator's account may not do this. Check that it is a member of {}", kaniop_core::name::OPERATOR_GROUPS.join(", "))]
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
    /// This version of the server does not have it.
    #[error("the server{} cannot {what}: that needs Kanidm {since} or newer", .version.as_ref().map(|version| format!(" (Kanidm {version})")).unwrap_or_default())]
    Unsupported {
        /// What was asked for.
        what: &'static str,
        /// The first version that has it.
        since: &'static str,
        /// The server's version, as it names it.
        version: Option<String>,
    },
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
            | Self::TooLarge
            | Self::Unsupported { .. } => Class::Blocked,
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
            Self::Unsupported { .. } => Reason::InvalidSpec,
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
            // The families of codes by which the server says that a value in a SCIM body has the wrong form, and that one of its plug-ins refuses it.
            (_, Json::String(code)) if code.starts_with("sc00") || code.starts_with("pl00") => {
                Self::InvalidValue { attribute: None, why }
            }
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

/// The attribute that a schema error names. Outside of `schemaviolation` the server puts texts where names could stand, but for one.
fn named(body: &Json) -> Option<String> {
    let named = match body.get("schemaviolation") {
        Some(violation) => violation.as_object()?.values().next()?,
        None => body.get("invalidattributename")?,
    };
    let names = named.as_str().map_or_else(|| strings(named).join(", "), str::to_owned);
    Some(names).filter(|names| !names.is_empty())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, body: &str) -> Error {
        Error::refused(status, body.as_bytes(), Some("op-1".to_owned()))
    }

    fn invalid(attribute: Option<&str>, why: &str) -> Error {
        Error::InvalidValue { attribute: attribute.map(str::to_owned), why: why.to_owned() }
    }

    #[test]
    fn every_documented_refusal_maps_to_its_error_class_and_reason() {
        let conflict = |names: &[&str]| Error::Conflict { attributes: names.iter().map(|&n| n.to_owned()).collect() };
        let busy = |status, why: &str| Error::Busy { status, why: why.to_owned(), opid: Some("op-1".to_owned()) };
        let unexpected =
            |status, why: &str| Error::Unexpected { status, why: why.to_owned(), opid: Some("op-1".to_owned()) };
        let missing = r#"{"schemaviolation":{"missingmustattribute":["displayname"]}}"#;
        let unknown = r#"{"schemaviolation":{"invalidattribute":"nonsense"}}"#;
        let named = r#"{"invalidattributename":"nonsense"}"#;
        let syntax = r#"{"schemaviolation":{"invalidattributesyntax":"mail"}}"#;
        let value = r#"{"invalidattribute":"Invalid EmailAddress"}"#;
        let base = r#"{"plugin":{"base":"Uuid format invalid"}}"#;
        #[rustfmt::skip]
        let table = [
            (401, r#""notauthenticated""#, Error::Unauthenticated, Class::Blocked, Reason::LoginFailed),
            (401, r#""sessionexpired""#, Error::Unauthenticated, Class::Blocked, Reason::LoginFailed),
            (403, r#""accessdenied""#, Error::AccessDenied, Class::Blocked, Reason::AccessDenied),
            (404, r#""nomatchingentries""#, Error::NotFound, Class::Retry, Reason::ConnectionFailed),
            (404, "", unexpected(404, ""), Class::Bug, Reason::InternalError),
            (405, "", unexpected(405, ""), Class::Bug, Reason::InternalError),
            (409, r#"{"error":"attributeuniqueness","conflicting_attributes":["name","spn"]}"#, conflict(&["name", "spn"]), Class::Blocked, Reason::EntryExists),
            (409, r#"{"error":"?"}"#, conflict(&[]), Class::Blocked, Reason::EntryExists),
            (409, r#"{"plugin":{"attrunique":"duplicate value detected"}}"#, conflict(&[]), Class::Blocked, Reason::EntryExists),
            (400, missing, invalid(Some("displayname"), missing), Class::Blocked, Reason::InvalidValue),
            (400, unknown, invalid(Some("nonsense"), unknown), Class::Blocked, Reason::InvalidValue),
            (400, syntax, invalid(Some("mail"), syntax), Class::Blocked, Reason::InvalidValue),
            (400, named, invalid(Some("nonsense"), named), Class::Blocked, Reason::InvalidValue),
            (400, value, invalid(None, value), Class::Blocked, Reason::InvalidValue),
            (500, r#""pl0001gidoverlapssystemrange""#, invalid(None, r#""pl0001gidoverlapssystemrange""#), Class::Blocked, Reason::InvalidValue),
            (400, r#""emptyrequest""#, invalid(None, r#""emptyrequest""#), Class::Blocked, Reason::InvalidValue),
            (413, "length limit exceeded", Error::TooLarge, Class::Blocked, Reason::InvalidValue),
            (422, "unknown field", unexpected(422, "unknown field"), Class::Bug, Reason::InternalError),
            (500, r#"{"plugin":{"referentialintegrity":"Uuid referenced not found in database"}}"#, Error::UnknownReference, Class::Blocked, Reason::ReferenceNotFound),
            (500, r#"{"plugin":{"base":"Uuid duplicate found in database"}}"#, Error::UuidTaken, Class::Blocked, Reason::EntryExists),
            (500, base, unexpected(500, base), Class::Bug, Reason::InternalError),
            (500, r#""sc0010datetimesyntaxinvalid""#, invalid(None, r#""sc0010datetimesyntaxinvalid""#), Class::Blocked, Reason::InvalidValue),
            (500, r#""backend""#, busy(500, r#""backend""#), Class::Retry, Reason::ConnectionFailed),
            (408, "", busy(408, ""), Class::Retry, Reason::ConnectionFailed),
            (429, "", busy(429, ""), Class::Retry, Reason::ConnectionFailed),
            (502, "<html>", busy(502, "<html>"), Class::Retry, Reason::ConnectionFailed),
            (503, "", busy(503, ""), Class::Retry, Reason::ConnectionFailed),
            (302, "", unexpected(302, ""), Class::Bug, Reason::InternalError),
        ];
        for (status, body, error, class, reason) in table {
            let seen = refused(status, body);
            assert_eq!(seen, error, "{status} {body}");
            assert_eq!((seen.class(), seen.reason()), (class, reason), "{status} {body}");
        }
    }

    #[test]
    fn texts_name_the_attribute_the_operation_and_what_to_do() {
        let text = |status, body: &str| refused(status, body).to_string();
        assert_eq!(text(409, r#"{"conflicting_attributes":["name","spn"]}"#), "another entry has the same name, spn");
        let missing = r#"{"schemaviolation":{"missingmustattribute":["displayname"]}}"#;
        assert_eq!(text(400, missing), format!("the server refuses the value of displayname: {missing}"));
        assert!(
            text(418, "tea").ends_with("(HTTP 418, tea, operation op-1). Please report it"),
            "{}",
            text(418, "tea")
        );
        assert!(text(403, r#""accessdenied""#).contains(kaniop_core::name::OPERATOR_GROUPS[0]));
    }

    #[test]
    fn a_long_body_is_cut_and_a_body_of_bytes_does_not_matter() {
        let long = refused(500, &"ä ".repeat(5000)).to_string();
        assert!(long.chars().count() < 420 && long.contains('…'), "{long}");
        assert!(matches!(Error::refused(500, &[0xff, 0xfe], None), Error::Busy { .. }));
    }
}
