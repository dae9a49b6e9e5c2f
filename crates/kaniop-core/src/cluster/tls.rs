//! The TLS Secret: whether a server can start with it, and whether clients will accept what it shows. Reads dates and names of the
//! certificate; whether it is trusted only a handshake can say.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::hash;

/// Key of the certificate, leaf first.
pub const CERTIFICATE: &str = "tls.crt";
/// Key of the private key.
pub const KEY: &str = "tls.key";
/// Key of the authority that signed it, where that is a private one.
pub const AUTHORITY: &str = "ca.crt";

/// A certificate and key that a server can start with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usable {
    /// Hash of certificate and key.
    pub hash: String,
    /// The first certificate, DER.
    pub leaf: Vec<u8>,
    /// The private authority, PEM.
    pub authority: Option<String>,
    /// When the first certificate ends.
    pub not_after: Timestamp,
    /// Why clients will refuse it, for people.
    pub problem: Option<String>,
}

/// Reads the data of a TLS Secret.
///
/// # Errors
/// What is missing or does not parse, for people: a server could not start with it.
pub fn read(data: &BTreeMap<String, ByteString>, host: &str, now: Timestamp) -> Result<Usable, String> {
    let value = |key: &str| data.get(key).map(|value| value.0.as_slice()).filter(|value| !value.is_empty());
    let (chain, key) = match (value(CERTIFICATE), value(KEY)) {
        (Some(chain), Some(key)) => (chain, key),
        (None, None) => return Err(format!("it has neither {CERTIFICATE} nor {KEY}")),
        (None, _) => return Err(format!("it has no {CERTIFICATE}")),
        (_, None) => return Err(format!("it has no {KEY}")),
    };
    let leaf = first(chain, CERTIFICATE, "CERTIFICATE")?.contents;
    check_key(key)?;
    let (_, certificate) =
        X509Certificate::from_der(&leaf).map_err(|_| format!("the first certificate in {CERTIFICATE} does not parse"))?;
    let authority = match value(AUTHORITY) {
        None => None,
        Some(pem) => {
            first(pem, AUTHORITY, "CERTIFICATE")?;
            Some(String::from_utf8(pem.to_vec()).map_err(|_| format!("{AUTHORITY} is not text"))?)
        }
    };
    let validity = certificate.validity();
    let time = |seconds: i64| Timestamp::from_second(seconds).map_err(|_| "the certificate's dates are out of range".to_owned());
    let (not_before, not_after) = (time(validity.not_before.timestamp())?, time(validity.not_after.timestamp())?);
    let problem = if now < not_before {
        Some(format!("the certificate is not valid before {not_before}; check the clock of the machine, or issue it anew"))
    } else if now > not_after {
        Some(format!("the certificate ended at {not_after}; issue it anew"))
    } else {
        wrong_host(&certificate, host)
    };
    Ok(Usable { hash: hash::of_bytes([chain, key]), authority, not_after, problem, leaf })
}

fn first(pem: &[u8], key: &str, label: &str) -> Result<Pem, String> {
    let block = Pem::iter_from_buffer(pem).next().ok_or_else(|| format!("{key} has no PEM block"))?;
    let block = block.map_err(|_| format!("{key} is not PEM"))?;
    if block.label == label { Ok(block) } else { Err(format!("{key} begins with '{}', not with '{label}'", block.label)) }
}

/// Whether there is a private key that needs no password. Files of some tools have parameters of the curve before it.
fn check_key(pem: &[u8]) -> Result<(), String> {
    let mut labels = Vec::new();
    for block in Pem::iter_from_buffer(pem) {
        labels.push(block.map_err(|_| format!("{KEY} is not PEM"))?.label);
    }
    if labels.iter().any(|label| label == "ENCRYPTED PRIVATE KEY") {
        return Err(format!("{KEY} is encrypted, and a server has nobody to ask for the password"));
    }
    if labels.iter().any(|label| matches!(label.as_str(), "PRIVATE KEY" | "EC PRIVATE KEY" | "RSA PRIVATE KEY")) {
        return Ok(());
    }
    Err(format!("{KEY} has no private key"))
}

fn wrong_host(certificate: &X509Certificate<'_>, host: &str) -> Option<String> {
    let names = match certificate.subject_alternative_name() {
        Ok(names) => names.map(|extension| extension.value.general_names.clone()).unwrap_or_default(),
        Err(_) => return Some("the certificate's alternative names do not parse; issue it anew".to_owned()),
    };
    let names: Vec<_> = names
        .iter()
        .filter_map(|name| if let GeneralName::DNSName(name) = name { Some(*name) } else { None })
        .collect();
    if names.iter().any(|name| covers(name, host)) {
        return None;
    }
    let shown = if names.is_empty() { "no host at all".to_owned() } else { names.join(", ") };
    Some(format!("the certificate is for {shown}, and not for '{host}', the host of the origin; issue it for that"))
}

/// Whether a name of the certificate, which may have `*` as its first label, covers the host.
fn covers(name: &str, host: &str) -> bool {
    let wild = name.strip_prefix("*.").zip(host.split_once('.')).is_some_and(|(rest, (_, below))| rest.eq_ignore_ascii_case(below));
    wild || name.eq_ignore_ascii_case(host)
}
