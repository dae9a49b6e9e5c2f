//! What is said of the certificate in the TLS Secret: until when it is good, or why it is not.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::super::tls::Problem;
use super::{TlsSeen, World};
use crate::condition::Statement;
use crate::reason::Reason;

/// A certificate that was not renewed by then has been forgotten by whoever should.
const EXPIRES_SOON: SignedDuration = SignedDuration::from_hours(24 * 14);

/// The condition. It has no `now` in its message, so that nothing is written while nothing happens.
pub(super) fn statement(world: &World<'_>, now: Timestamp) -> Option<Statement> {
    let cluster = world.cluster.ok()?;
    let secret = &cluster.tls_secret;
    let (truth, reason, message) = match &world.tls {
        TlsSeen::Missing => (false, Reason::TlsSecretMissing, format!("Secret '{secret}' does not exist.")),
        TlsSeen::Invalid(why) => (false, Reason::TlsSecretInvalid, format!("Secret '{secret}' cannot be used: {why}.")),
        TlsSeen::Usable(usable) => match &usable.problem {
            Some(Problem { reason, text }) => {
                (false, *reason, format!("Clients refuse what Secret '{secret}' holds: {text}."))
            }
            None if now + EXPIRES_SOON >= usable.not_after => {
                let message = format!("The certificate in Secret '{secret}' ends at {}; renew it.", usable.not_after);
                (false, Reason::CertificateExpiring, message)
            }
            None => {
                let message = format!("The certificate in Secret '{secret}' is good until {}.", usable.not_after);
                (true, Reason::CertificateValid, message)
            }
        },
    };
    Some(Statement::new(super::CERTIFICATES_VALID, truth, reason, message))
}

/// Names of pods, for people.
pub(super) fn pods(pods: &BTreeSet<String>) -> String {
    pods.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}
