//! Mutual TLS between nodes. A peer is known by its one certificate and by nothing else: no authority vouches for it.

use std::sync::Arc;

use openssl::pkey::{PKey, Private};
use openssl::x509::X509;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::ReplicationError;
use crate::config::Peer;

/// Certificate and key of this node.
pub struct Identity {
    /// As the engine keeps it.
    pub x509: X509,
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Takes what the engine keeps.
    ///
    /// # Errors
    /// When it cannot be written in DER form.
    pub fn new(key: &PKey<Private>, x509: X509) -> Result<Self, ReplicationError> {
        Ok(Self {
            certificate: CertificateDer::from(x509.to_der()?),
            key: PrivatePkcs8KeyDer::from(key.private_key_to_pkcs8()?).into(),
            x509,
        })
    }
}

/// Lets in those peers that may pull from us; nothing when there are none.
///
/// # Errors
/// When a certificate cannot serve as a root.
pub fn acceptor(identity: &Identity, peers: &[Peer]) -> Result<Option<TlsAcceptor>, ReplicationError> {
    let consumers: Vec<&Peer> = peers.iter().filter(|peer| peer.consumes_ours).collect();
    if consumers.is_empty() {
        return Ok(None);
    }
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots(consumers)?)).build()?;
    let config = ServerConfig::builder()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![identity.certificate.clone()], identity.key.clone_key())?;
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}

/// Connects to one supplier and believes no other.
///
/// # Errors
/// When a certificate cannot serve as a root.
pub fn connector(identity: &Identity, supplier: &Peer) -> Result<TlsConnector, ReplicationError> {
    let config = ClientConfig::builder()
        .with_root_certificates(roots([supplier])?)
        .with_client_auth_cert(vec![identity.certificate.clone()], identity.key.clone_key())?;
    Ok(TlsConnector::from(Arc::new(config)))
}

fn roots<'a>(peers: impl IntoIterator<Item = &'a Peer>) -> Result<RootCertStore, rustls::Error> {
    let mut roots = RootCertStore::empty();
    peers.into_iter().try_for_each(|peer| roots.add(peer.certificate.clone()))?;
    Ok(roots)
}
