//! Which server certificates are accepted. The host name and the dates are verified in every case; nothing here can switch that off.
//!
//! A private authority (`ca.crt`) is the only root when it is given. Without it the public web roots count, and beside them exactly the
//! certificate that the server was given (`tls.crt`): a self-signed one, or one from an authority that nobody told us of.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
};
use x509_parser::parse_x509_certificate;

use crate::{CertificateProblem, Error};

/// Which server certificates are accepted. Cheap to clone.
#[derive(Clone)]
pub struct Trust {
    config: Arc<ClientConfig>,
    verifier: Arc<Verifier>,
    fingerprint: Arc<str>,
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trust").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

impl Trust {
    /// The trust that follows from the Secret that the server takes its certificate from.
    ///
    /// # Errors
    /// [`Error::Trust`] when a file has no certificate or one that does not parse.
    pub fn from_secret(ca_crt: Option<&[u8]>, tls_crt: &[u8]) -> Result<Self, Error> {
        let leaf = certificates("tls.crt", tls_crt)?.swap_remove(0).into_owned();
        let fingerprint = kaniop_core::name::fingerprint([ca_crt.unwrap_or(&leaf)]);
        match ca_crt {
            Some(pem) => Self::new(authorities(pem)?, None, fingerprint),
            None => Self::new(web_roots(), Some(leaf), fingerprint),
        }
    }

    /// Tells this trust from another: the same files give the same text, in every release.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Whether a server that showed this certificate, with what follows it, would be accepted.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, tls_crt: &[u8], host: &str, now: Timestamp) -> Result<(), CertificateProblem> {
        let other = |what: &dyn fmt::Display| CertificateProblem::Other(what.to_string());
        let chain = certificates("tls.crt", tls_crt).map_err(|error| other(&error))?;
        let name = ServerName::try_from(host).map_err(|error| other(&error))?;
        let seconds = u64::try_from(now.as_second()).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let (leaf, rest) = chain.split_first().ok_or_else(|| other(&"there is none"))?;
        match self.verifier.verify_server_cert(leaf, rest, &name, &[], now) {
            Ok(_) => Ok(()),
            Err(TlsError::InvalidCertificate(problem)) => Err(CertificateProblem::from(&problem)),
            Err(error) => Err(other(&error)),
        }
    }

    fn new(roots: RootCertStore, pinned: Option<CertificateDer<'static>>, fingerprint: String) -> Result<Self, Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let broken = |error: &dyn fmt::Display| Error::Trust(format!("TLS cannot be set up: {error}"));
        let roots = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map_err(|error| broken(&error))?;
        let verifier = Arc::new(Verifier { roots, pinned, provider: provider.clone() });
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| broken(&error))?
            .dangerous()
            .with_custom_certificate_verifier(verifier.clone())
            .with_no_client_auth();
        Ok(Self { config: Arc::new(config), verifier, fingerprint: fingerprint.into() })
    }

    pub(crate) fn config(&self) -> ClientConfig {
        ClientConfig::clone(&self.config)
    }
}

/// The certificates of a file, at least one.
pub(crate) fn certificates<'a>(file: &str, pem: &'a [u8]) -> Result<Vec<CertificateDer<'a>>, Error> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| Error::Trust(format!("{file} of the TLS Secret is not PEM: {error}")))?;
    if found.is_empty() {
        return Err(Error::Trust(format!("{file} of the TLS Secret has no certificate")));
    }
    Ok(found)
}

/// Whether the private key is one that a server can use, and belongs to the first certificate. Files in which the two do not fit together come
/// from a renewal that was cut short, and no server starts with them.
///
/// # Errors
/// [`Error::Trust`] with what is wrong, for people.
pub fn check_key(tls_crt: &[u8], tls_key: &[u8]) -> Result<(), Error> {
    let chain = certificates("tls.crt", tls_crt)?.into_iter().map(CertificateDer::into_owned).collect();
    let key = PrivateKeyDer::from_pem_slice(tls_key)
        .map_err(|error| Error::Trust(format!("tls.key of the TLS Secret has no private key: {error}")))?;
    match CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider()) {
        Ok(_) => Ok(()),
        Err(TlsError::InconsistentKeys(_)) => Err(Error::Trust(
            "tls.key of the TLS Secret does not belong to its tls.crt: one of the two is of another renewal".to_owned(),
        )),
        Err(error) => Err(Error::Trust(format!("tls.key of the TLS Secret cannot be used: {error}"))),
    }
}

fn authorities(pem: &[u8]) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("ca.crt", pem)? {
        roots.add(certificate).map_err(|error| {
            Error::Trust(format!("ca.crt of the TLS Secret has a certificate that does not parse: {error}"))
        })?;
    }
    Ok(roots)
}

fn web_roots() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

/// The roots, and beside them one certificate that is known byte by byte.
#[derive(Debug)]
struct Verifier {
    roots: Arc<WebPkiServerVerifier>,
    pinned: Option<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    /// Whether the pinned certificate may stand in for a chain that leads to no root. Only for want of an issuer: every other objection holds.
    fn is_pinned(&self, presented: &CertificateDer<'_>, objection: &TlsError) -> bool {
        // `Other` is how rustls hands on webpki's "an authority's certificate used as a server's", which self-signed ones mostly are.
        let unknown = matches!(
            objection,
            TlsError::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::Other(_))
        );
        unknown && self.pinned.as_ref().is_some_and(|pinned| pinned == presented)
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        match self.roots.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(objection) if self.is_pinned(end_entity, &objection) => {
                within_dates(end_entity, now)?;
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn within_dates(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), CertificateError> {
    let (_, parsed) = parse_x509_certificate(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let validity = parsed.validity();
    if seconds < validity.not_before.timestamp() {
        Err(CertificateError::NotValidYet)
    } else if seconds > validity.not_after.timestamp() {
        Err(CertificateError::Expired)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{
        BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, PKCS_ECDSA_P256_SHA256,
        PKCS_ECDSA_P384_SHA384, PKCS_ED25519, date_time_ymd,
    };

    #[test]
    fn a_certificate_is_accepted_exactly_where_a_connection_would_be() {
        let authority = |name: &str| {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.distinguished_name.push(DnType::CommonName, name);
            CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
        };
        let (ours, other) = (authority("ours"), authority("other"));
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["a.example.com".to_owned()]).unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(2030, 1, 1), date_time_ymd(2031, 1, 1));
        let leaf = params.signed_by(&key, &ours).unwrap().pem();
        let check = |authority: Option<&str>, host: &str, now: &str| {
            let trust = Trust::from_secret(authority.map(str::as_bytes), leaf.as_bytes()).unwrap();
            trust.check(leaf.as_bytes(), host, now.parse().unwrap())
        };
        let (ours, other, now) = (ours.pem(), other.pem(), "2030-06-01T00:00:00Z");
        assert_eq!(check(Some(&ours), "a.example.com", now), Ok(()));
        assert_eq!(check(None, "a.example.com", now), Ok(()), "exactly this one");
        assert_eq!(check(Some(&other), "a.example.com", now), Err(CertificateProblem::UnknownIssuer));
        let wrong = check(Some(&ours), "b.example.com", now);
        assert!(matches!(wrong, Err(CertificateProblem::WrongHost(_))), "{wrong:?}");
        let over = check(Some(&ours), "a.example.com", "2032-01-01T00:00:00Z");
        assert!(matches!(over, Err(CertificateProblem::Expired(_))), "{over:?}");
    }

    #[test]
    fn a_key_is_taken_exactly_with_the_certificate_that_it_belongs_to() {
        for algorithm in [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ED25519] {
            let (own, other) = (KeyPair::generate_for(algorithm).unwrap(), KeyPair::generate_for(algorithm).unwrap());
            let certificate = CertificateParams::new(["a.example.com".to_owned()]).unwrap().self_signed(&own).unwrap();
            let check = |key: &str| check_key(certificate.pem().as_bytes(), key.as_bytes());
            check(&own.serialize_pem()).unwrap();
            // As some tools write it: with the parameters of the curve before the key.
            check(&format!(
                "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n{}",
                own.serialize_pem()
            ))
            .unwrap();
            let garbage = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
            for (key, said) in [
                (other.serialize_pem().as_str(), "does not belong to its tls.crt"),
                (garbage, "cannot be used"),
                (certificate.pem().as_str(), "has no private key"),
            ] {
                let error = check(key).unwrap_err();
                assert!(error.to_string().contains(said), "{error}");
                assert_eq!(error.reason(), kaniop_core::reason::Reason::TlsSecretInvalid);
            }
        }
    }
}
