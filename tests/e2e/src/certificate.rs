//! Certificates for the servers of tests: by an authority made on the spot, for any host.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use serde_json::{Value, json};

/// An authority that exists for one test.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate.
    pub pem: String,
}

impl Default for Authority {
    fn default() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // Not the certificate's own name: OpenSSL takes one that is issued by its own name for self-signed.
        params.distinguished_name.push(DnType::CommonName, "Kaniop test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }
}

impl Authority {
    /// A TLS Secret with a certificate for `host`. `shown` is the authority's certificate in it: this one's, or to cause trouble another's.
    ///
    /// # Panics
    /// When `host` is no host name.
    #[must_use]
    pub fn secret(&self, namespace: &str, name: &str, host: &str, shown: &str) -> Value {
        let key = KeyPair::generate().unwrap();
        let mut leaf = CertificateParams::new(vec![host.to_owned()]).unwrap();
        leaf.distinguished_name.push(DnType::CommonName, host);
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.use_authority_key_identifier_extension = true;
        let certificate = leaf.signed_by(&key, &self.issuer).unwrap().pem();
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": {"name": name, "namespace": namespace},
            "stringData": {"tls.crt": certificate, "tls.key": key.serialize_pem(), "ca.crt": shown},
        })
    }
}
