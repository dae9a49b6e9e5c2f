//! What each request does.
//!
//! An answer of `"Error"` carries no reason, as in the real server; the reason is in the log.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kanidmd_lib::prelude::OperationError;
use openssl::asn1::{Asn1Time, Asn1TimeRef};
use openssl::x509::{X509, X509NameRef};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::protocol::{Request, Response};
use crate::release;
use crate::replication::{Replication, Unanswered};
use crate::server::Running;

/// Why a request failed; only for the log.
#[derive(Debug, thiserror::Error)]
enum AdminError {
    #[error("the engine refused: {0:?}")]
    Engine(OperationError),
    #[error("replication.origin is not configured, so there is no replication")]
    NoReplication,
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    #[error("{0} is not implemented in this development server")]
    NotImplemented(&'static str),
    #[error("the certificate cannot be read: {0}")]
    Certificate(#[from] openssl::error::ErrorStack),
    #[error("the certificate has no usable date: {0}")]
    Date(String),
}

impl From<OperationError> for AdminError {
    fn from(error: OperationError) -> Self {
        Self::Engine(error)
    }
}

/// Carries a request out.
pub async fn answer(running: &Running, request: Request) -> Response {
    let name = format!("{request:?}");
    match carry_out(running, request).await {
        Ok(response) => response,
        Err(error) => {
            tracing::error!(request = %name, %error, "an admin request failed");
            Response::Error
        }
    }
}

async fn carry_out(running: &Running, request: Request) -> Result<Response, AdminError> {
    let engine = &running.engine;
    Ok(match request {
        Request::RecoverAccount { name } => {
            Response::RecoverAccount { password: engine.write(move |w, _| w.recover_account(&name, None)).await? }
        }
        Request::DisableAccount { name } => {
            engine.write(move |w, _| w.disable_account(&name)).await?;
            Response::Success
        }
        Request::DomainShow => Response::DomainShow { domain_info: engine.read(|r, _| r.qs_read.domain_info()).await? },
        Request::DomainUpgradeCheck => {
            let mut report = engine.read(|r, _| r.qs_read.domain_upgrade_check()).await?;
            // The engine names the level after its own release.
            report.upgrade_level = release::played().level + 1;
            Response::DomainUpgradeCheck { report }
        }
        Request::Reload => {
            // A success even then, as in the real server; the old certificate stays in use.
            if let Err(error) = running.reload() {
                tracing::error!(%error, "the TLS files cannot be used");
            }
            Response::Success
        }
        Request::ShowReplicationCertificate => Response::ShowReplicationCertificate {
            cert: URL_SAFE_NO_PAD.encode(replication(running)?.certificate().await?.to_der()?),
        },
        Request::ShowReplicationCertificateMetadata => metadata(&replication(running)?.certificate().await?)?,
        Request::RenewReplicationCertificate => {
            replication(running)?.renew().await?;
            Response::Success
        }
        Request::RefreshReplicationConsumer => {
            replication(running)?.refresh().await?;
            Response::Success
        }
        Request::DomainRaise => return Err(AdminError::NotImplemented("raising the domain level")),
        Request::DomainRemigrate { .. } => return Err(AdminError::NotImplemented("remigration")),
    })
}

fn replication(running: &Running) -> Result<&Replication, AdminError> {
    running.replication.as_ref().ok_or(AdminError::NoReplication)
}

fn metadata(certificate: &X509) -> Result<Response, AdminError> {
    let not_after = instant(certificate.not_after())?;
    Ok(Response::ShowReplicationCertificateMetadata {
        not_before: text(instant(certificate.not_before())?)?,
        not_after: text(not_after)?,
        subject: subject(certificate.subject_name()),
        expired: not_after < OffsetDateTime::now_utc(),
    })
}

fn instant(time: &Asn1TimeRef) -> Result<OffsetDateTime, AdminError> {
    let since = Asn1Time::from_unix(0)?.diff(time)?;
    let seconds = i64::from(since.days) * 86_400 + i64::from(since.secs);
    OffsetDateTime::from_unix_timestamp(seconds).map_err(|e| AdminError::Date(e.to_string()))
}

fn text(time: OffsetDateTime) -> Result<String, AdminError> {
    time.format(&Rfc3339).map_err(|e| AdminError::Date(e.to_string()))
}

fn subject(name: &X509NameRef) -> String {
    name.entries()
        .map(|entry| {
            let key = entry.object().nid().short_name().unwrap_or("?");
            let value = entry.data().to_string().unwrap_or_default();
            format!("{key}={value}")
        })
        .collect::<Vec<_>>()
        .join(",")
}
