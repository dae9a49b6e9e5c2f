//! What can be wrong with the certificate that a server showed: found in the causes of a failed request, and put into words for people.

use std::error::Error as StdError;

use rustls::CertificateError;
use rustls::pki_types::UnixTime;

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
            // A bad signature is what an authority of the same name but another key gives, as after its renewal.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::UnknownIssuer,
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

impl CertificateProblem {
    /// What TLS objected to, wherever in the chain of causes it stands; `None` when the failure has another cause.
    pub(crate) fn find(error: &(dyn StdError + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(cause) = next {
            if let Some(rustls::Error::InvalidCertificate(problem)) = cause.downcast_ref() {
                return Some(Self::from(problem));
            }
            // An I/O error shows the cause of what it wraps, but not the thing itself.
            let wrapped = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
            next = wrapped.map(|error| error as &(dyn StdError + 'static)).or_else(|| cause.source());
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Error;

    #[test]
    fn certificate_problems_say_which() {
        let text = |problem: CertificateError| {
            let problem = CertificateProblem::from(&problem);
            Error::Certificate { server: "https://idm.example.com at 10.0.0.1:8443".to_owned(), problem }.to_string()
        };
        let expired = CertificateError::ExpiredContext {
            time: UnixTime::since_unix_epoch(Duration::from_secs(2_000_000_000)),
            not_after: UnixTime::since_unix_epoch(Duration::from_secs(1_000_000_000)),
        };
        for (problem, words) in [
            (CertificateError::UnknownIssuer, "authority that is not trusted"),
            (CertificateError::NotValidForName, "for another host. "),
            (CertificateError::Expired, "has expired. "),
            (expired, "has expired (2001-09-09T01:46:40Z). "),
            (CertificateError::NotValidYet, "not valid yet"),
            (CertificateError::BadSignature, "authority that is not trusted"),
            (CertificateError::Revoked, "not acceptable"),
        ] {
            let text = text(problem);
            assert!(text.starts_with("the certificate of https://idm.example.com at 10.0.0.1:8443 "), "{text}");
            assert!(text.contains(words), "{text}");
        }
    }
}
