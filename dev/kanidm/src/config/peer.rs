//! The peers of `[replication]`: who supplies us, whom we supply, and the certificate that each is known by.

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use openssl::x509::X509;
use rustls::pki_types::CertificateDer;
use serde::Deserialize;
use url::Url;

const BASE64_URL: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// One table `[replication."repl://host:port"]` as written.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FilePeer {
    MutualPull {
        partner_cert: String,
        #[serde(default)]
        automatic_refresh: bool,
    },
    Pull {
        supplier_cert: String,
        #[serde(default)]
        automatic_refresh: bool,
    },
    AllowPull {
        consumer_cert: String,
    },
}

/// A peer, checked.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The DNS name that its certificate must be for.
    pub host: String,
    /// Where it listens.
    pub port: u16,
    /// Its certificate: the only one it is known by.
    pub certificate: CertificateDer<'static>,
    /// Whether we pull from it.
    pub supplies_us: bool,
    /// Whether it may pull from us.
    pub consumes_ours: bool,
    /// Whether our content is replaced by its own when the two do not fit.
    pub automatic_refresh: bool,
}

impl Peer {
    /// Checks one table and its name.
    ///
    /// # Errors
    /// In words, when the name is no `repl://host:port` with a DNS name, or the certificate is none.
    pub fn new(address: &str, given: FilePeer) -> Result<Self, String> {
        let (host, port) = host_and_port(address)?;
        let (certificate, supplies_us, consumes_ours, automatic_refresh) = match given {
            FilePeer::MutualPull { partner_cert, automatic_refresh } => (partner_cert, true, true, automatic_refresh),
            FilePeer::Pull { supplier_cert, automatic_refresh } => (supplier_cert, true, false, automatic_refresh),
            FilePeer::AllowPull { consumer_cert } => (consumer_cert, false, true, false),
        };
        let certificate =
            certificate_of(&certificate).map_err(|reason| format!("the certificate of {address:?} {reason}"))?;
        Ok(Self { host, port, certificate, supplies_us, consumes_ours, automatic_refresh })
    }
}

fn certificate_of(text: &str) -> Result<CertificateDer<'static>, String> {
    let bytes = BASE64_URL.decode(text).map_err(|e| format!("is not base64url: {e}"))?;
    X509::from_der(&bytes).map_err(|e| format!("is not a certificate in DER form: {e}"))?;
    Ok(CertificateDer::from(bytes))
}

fn host_and_port(address: &str) -> Result<(String, u16), String> {
    let url = Url::parse(address).map_err(|e| format!("the peer {address:?} is not an address: {e}"))?;
    let Some(port) = url.port().filter(|_| url.scheme() == "repl") else {
        return Err(format!("the peer {address:?} must have the form repl://host:port"));
    };
    // A URL of an unknown scheme keeps an IP literal as an opaque host, so the text itself must be asked.
    let host = url.host_str().unwrap_or_default();
    if host.is_empty() || host.starts_with('[') || host.parse::<std::net::IpAddr>().is_ok() {
        return Err(format!("the peer {address:?} must be named by a DNS name, not by an IP address"));
    }
    Ok((host.to_owned(), port))
}
