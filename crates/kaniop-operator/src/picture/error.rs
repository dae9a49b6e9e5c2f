//! Why a picture was not fetched, and what that means for the next try. No text here repeats the URL, which may hold a signature, or tells
//! which addresses a name has inside.

use std::error::Error as StdError;
use std::time::Duration;

use kaniop_core::picture::content::ContentError;
use kaniop_core::picture::source::SourceError;
use kaniop_kanidm::Class;

/// Why a picture was not fetched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL may not be asked.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The host's name has no address, or could not be looked up.
    #[error("the picture's host {host} was not found: {why}")]
    Unresolved {
        /// The host.
        host: String,
        /// As the resolver put it.
        why: String,
    },
    /// At least one of the host's addresses may not be asked.
    #[error("the picture's host {host} has an address that is not public: pictures are fetched from the internet only")]
    NotPublic {
        /// The host.
        host: String,
    },
    /// No connection: refused, no route, no TLS.
    #[error("the picture's host {host} cannot be reached: {why}")]
    Unreachable {
        /// The host.
        host: String,
        /// The cause at the bottom.
        why: String,
    },
    /// Not everything arrived in time.
    #[error("the picture did not arrive from {host} within {limit:?}")]
    TimedOut {
        /// The host.
        host: String,
        /// The most time that a fetch takes.
        limit: Duration,
    },
    /// The connection broke.
    #[error("the connection to the picture's host {host} broke off: {why}")]
    Interrupted {
        /// The host.
        host: String,
        /// The cause at the bottom.
        why: String,
    },
    /// The host sends on to where it is not followed.
    #[error("the picture's host {host} answers with a redirect that is not followed: {why}")]
    Redirect {
        /// The host.
        host: String,
        /// Why not.
        why: RedirectProblem,
    },
    /// Any other answer than a picture.
    #[error("the picture's host {host} answers with HTTP {status} in place of a picture")]
    Status {
        /// The host.
        host: String,
        /// HTTP status.
        status: u16,
    },
    /// What came is not a picture that the server takes.
    #[error("what {host} gave as the picture cannot be used: {why}")]
    Content {
        /// The host.
        host: String,
        /// Why not.
        why: ContentError,
    },
    /// The client cannot be set up.
    #[error("the client that fetches pictures cannot be set up: {0}")]
    Setup(String),
}

/// Why a redirect is not followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedirectProblem {
    /// Where it leads.
    #[error(transparent)]
    Target(#[from] SourceError),
    /// It leads nowhere.
    #[error("it does not say where to")]
    Nowhere,
    /// It is one of too many.
    #[error("it is one more after {0} others")]
    TooMany(
        /// How many are followed.
        usize,
    ),
}

impl Error {
    /// What the error means for the next try.
    #[must_use]
    pub const fn class(&self) -> Class {
        match self {
            Self::Unresolved { .. } | Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Interrupted { .. } => {
                Class::Retry
            }
            Self::Status { status: 408 | 425 | 429 | 500..=599, .. } => Class::Retry,
            Self::Source(_)
            | Self::NotPublic { .. }
            | Self::Redirect { .. }
            | Self::Status { .. }
            | Self::Content { .. } => Class::Blocked,
            Self::Setup(_) => Class::Bug,
        }
    }
}

/// The cause at the bottom; those above it name the URL.
pub(super) fn root_cause(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
