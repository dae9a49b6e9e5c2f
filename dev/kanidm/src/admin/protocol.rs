//! The words of the admin socket, exactly as the real server spells them.

use kanidm_proto::internal::{DomainInfo, DomainUpgradeCheckReport};
use serde::{Deserialize, Serialize};

/// What can be asked.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// Sets a new random password and lifts expiry.
    RecoverAccount {
        /// Name of the account.
        name: String,
    },
    /// Expires an account.
    DisableAccount {
        /// Name of the account.
        name: String,
    },
    /// The replication certificate.
    ShowReplicationCertificate,
    /// Its dates and subject.
    ShowReplicationCertificateMetadata,
    /// A new replication certificate.
    RenewReplicationCertificate,
    /// Replaces this server's content by its supplier's.
    RefreshReplicationConsumer,
    /// The domain.
    DomainShow,
    /// What stands in the way of the next level.
    DomainUpgradeCheck,
    /// Lifts the level.
    DomainRaise,
    /// Runs a migration again.
    DomainRemigrate {
        /// The level, or all.
        level: Option<u32>,
    },
    /// Reads the TLS files again.
    Reload,
}

/// What is answered.
#[derive(Debug, Serialize, Deserialize)]
pub enum Response {
    /// The new password, in clear.
    RecoverAccount {
        /// 48 characters.
        password: String,
    },
    /// The certificate.
    ShowReplicationCertificate {
        /// Base64url of the DER form.
        cert: String,
    },
    /// About the certificate.
    ShowReplicationCertificateMetadata {
        /// RFC 3339.
        not_before: String,
        /// RFC 3339.
        not_after: String,
        /// Distinguished name.
        subject: String,
        /// Whether `not_after` has passed.
        expired: bool,
    },
    /// The report.
    DomainUpgradeCheck {
        /// Empty items mean that nothing stands in the way.
        report: DomainUpgradeCheckReport,
    },
    /// The new level.
    DomainRaise {
        /// The level.
        level: u32,
    },
    /// The domain.
    DomainShow {
        /// Name, display name, UUID and level.
        domain_info: DomainInfo,
    },
    /// Done.
    Success,
    /// Not done, without a reason.
    Error,
}
