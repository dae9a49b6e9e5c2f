//! The server's own certificate: read at start and again at each reload.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Why the certificate cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is missing or is not PEM.
    #[error("{key} {path} cannot be read as PEM: {reason}")]
    Unreadable {
        /// `tls_chain` or `tls_key`.
        key: &'static str,
        /// The file.
        path: String,
        /// What went wrong.
        reason: String,
    },
    /// Chain and key are readable and yet make no server.
    #[error("tls_chain and tls_key do not make a TLS server: {0}")]
    Unusable(#[from] rustls::Error),
}

/// Reads chain and key.
///
/// # Errors
/// When a file is unreadable, or key and certificate do not belong together.
pub fn load(chain: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let unreadable = |name: &'static str, path: &Path, reason: String| TlsError::Unreadable {
        key: name,
        path: path.display().to_string(),
        reason,
    };
    let certificates = CertificateDer::pem_file_iter(chain)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| unreadable("tls_chain", chain, e.to_string()))?;
    if certificates.is_empty() {
        return Err(unreadable("tls_chain", chain, "it holds no certificate".to_owned()));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|e| unreadable("tls_key", key, e.to_string()))?;
    let mut config = ServerConfig::builder().with_no_client_auth().with_single_cert(certificates, private)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
