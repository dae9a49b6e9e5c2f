//! The TLS Secret: whether a server can start with it, and whether clients will accept what it shows. Reads dates and names of the
//! certificate; whether it is trusted only a handshake can say.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::StatefulSet;
use kaniop_api::kanidm::KanidmSpec;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::names;
use crate::name::fingerprint;

/// Key of the certificate, leaf first.
pub const CERTIFICATE: &str = "tls.crt";
/// Key of the private key.
pub const KEY: &str = "tls.key";
/// Key of the authority that signed it, where that is a private one.
pub const AUTHORITY: &str = "ca.crt";

/// Name of the servers' TLS Secret: its own, else that of the Ingress, which then shows the same certificate.
#[must_use]
pub fn secret_name(cluster: &str, spec: &KanidmSpec) -> String {
    let of_ingress = || spec.ingress.as_ref().and_then(|ingress| ingress.tls_secret_name.clone());
    spec.tls_secret_name.clone().or_else(of_ingress).unwrap_or_else(|| names::tls_secret(cluster))
}

/// A certificate and key that a server can start with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usable {
    /// Hash of certificate and key.
    pub hash: String,
    /// The certificate and what follows it, PEM.
    pub chain: Vec<u8>,
    /// The private authority, PEM.
    pub authority: Option<String>,
    /// When the first certificate ends.
    pub not_after: Timestamp,
    /// Why clients will refuse it, for people.
    pub problem: Option<String>,
}

impl Usable {
    /// Whether what runs is not to be restarted for it: clients would refuse what it shows, and it is not what the servers started with.
    #[must_use]
    pub fn must_wait(&self, live: &[StatefulSet]) -> bool {
        let mut running = live.iter().filter_map(super::tls_hash);
        self.problem.is_some() && running.any(|hash| hash != self.hash)
    }
}

/// Reads the data of a TLS Secret. Whether the key belongs to the certificate is not checked here: that needs cryptography.
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
    let (_, certificate) = X509Certificate::from_der(&leaf)
        .map_err(|_| format!("the first certificate in {CERTIFICATE} does not parse"))?;
    let authority = match value(AUTHORITY) {
        None => None,
        Some(pem) => {
            first(pem, AUTHORITY, "CERTIFICATE")?;
            Some(String::from_utf8(pem.to_vec()).map_err(|_| format!("{AUTHORITY} is not text"))?)
        }
    };
    let validity = certificate.validity();
    let time = |seconds: i64| {
        Timestamp::from_second(seconds).map_err(|_| "the certificate's dates are out of range".to_owned())
    };
    let (not_before, not_after) = (time(validity.not_before.timestamp())?, time(validity.not_after.timestamp())?);
    let problem = if now < not_before {
        Some(format!(
            "the certificate is not valid before {not_before}; check the clock of the machine, or issue it anew"
        ))
    } else if now > not_after {
        Some(format!("the certificate ended at {not_after}; issue it anew"))
    } else {
        wrong_host(&certificate, host)
    };
    Ok(Usable { hash: fingerprint([chain, key]), authority, not_after, problem, chain: chain.to_vec() })
}

fn first(pem: &[u8], key: &str, label: &str) -> Result<Pem, String> {
    let block = Pem::iter_from_buffer(pem).next().ok_or_else(|| format!("{key} has no PEM block"))?;
    let block = block.map_err(|_| format!("{key} is not PEM"))?;
    if block.label == label {
        Ok(block)
    } else {
        Err(format!("{key} begins with '{}', not with '{label}'", block.label))
    }
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
    let wild = name
        .strip_prefix("*.")
        .zip(host.split_once('.'))
        .is_some_and(|(rest, (_, below))| rest.eq_ignore_ascii_case(below));
    wild || name.eq_ignore_ascii_case(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    /// A certificate for these hosts, valid in 2030.
    fn secret(hosts: &[&str]) -> BTreeMap<String, ByteString> {
        let key = KeyPair::generate().unwrap();
        let mut params =
            CertificateParams::new(hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>()).unwrap();
        params.not_before = date_time_ymd(2030, 1, 1);
        params.not_after = date_time_ymd(2031, 1, 1);
        let certificate = params.self_signed(&key).unwrap();
        [(CERTIFICATE, certificate.pem()), (KEY, key.serialize_pem())]
            .into_iter()
            .map(|(key, pem)| (key.to_owned(), ByteString(pem.into_bytes())))
            .collect()
    }

    fn at(date: &str) -> Timestamp {
        format!("{date}T12:00:00Z").parse().unwrap()
    }

    fn problem(hosts: &[&str], host: &str, date: &str) -> Option<String> {
        read(&secret(hosts), host, at(date)).unwrap().problem
    }

    #[test]
    fn a_certificate_for_the_host_within_its_time_has_no_problem() {
        assert_eq!(problem(&["idm.example.com"], "idm.example.com", "2030-06-01"), None);
        assert_eq!(problem(&["other.org", "*.example.com"], "idm.example.com", "2030-06-01"), None);
    }

    #[test]
    fn clients_refuse_another_host_a_wildcard_two_labels_away_and_an_address() {
        for hosts in [&["example.org"][..], &["*.example.com"], &["10.0.0.1"], &[]] {
            let problem = problem(hosts, "a.b.example.com", "2030-06-01").unwrap();
            assert!(problem.contains("not for 'a.b.example.com'"), "{problem}");
        }
    }

    #[test]
    fn clients_refuse_a_certificate_outside_its_time() {
        assert!(
            problem(&["a.example.com"], "a.example.com", "2029-06-01").unwrap().contains("not valid before 2030-01-01")
        );
        assert!(problem(&["a.example.com"], "a.example.com", "2031-06-01").unwrap().contains("ended at 2031-01-01"));
    }

    #[test]
    fn a_renewed_certificate_has_another_hash_and_the_same_one_the_same() {
        let (one, other) = (secret(&["a.example.com"]), secret(&["a.example.com"]));
        let hash = |data| read(data, "a.example.com", at("2030-06-01")).unwrap().hash;
        assert_eq!(hash(&one), hash(&one));
        assert_ne!(hash(&one), hash(&other));
    }

    #[test]
    fn only_a_certificate_that_clients_refuse_and_that_does_not_run_yet_has_to_wait() {
        let running = |hash: &str| -> StatefulSet {
            let annotations = format!("{{kanidm.kaniop.rs/tls-secret-hash: {hash}}}");
            let yaml = format!(
                "spec: {{selector: {{}}, serviceName: s, template: {{metadata: {{annotations: {annotations}}}}}}}"
            );
            serde_norway::from_str(&yaml).unwrap()
        };
        let read = |date: &str| read(&secret(&["a.example.com"]), "a.example.com", at(date)).unwrap();
        let (good, bad) = (read("2030-06-01"), read("2031-06-01"));
        for (usable, live, waits) in [
            (&good, vec![running("former")], false),
            (&bad, vec![running("former")], true),
            (&bad, vec![running(&bad.hash)], false),
            (&bad, vec![StatefulSet::default()], false),
            (&bad, vec![], false),
        ] {
            assert_eq!(usable.must_wait(&live), waits, "{:?} beside {live:?}", usable.problem);
        }
    }

    #[test]
    fn what_no_server_could_start_with_is_said() {
        let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
        for (key, value, said) in [
            (CERTIFICATE, None, "it has no tls.crt"),
            (KEY, None, "it has no tls.key"),
            (KEY, Some(""), "it has no tls.key"),
            (CERTIFICATE, Some("text"), "tls.crt has no PEM block"),
            (CERTIFICATE, Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "does not parse"),
            (CERTIFICATE, Some("-----BEGIN CERTIFICATE-----\n????"), "tls.crt is not PEM"),
            (KEY, Some(encrypted), "is encrypted"),
            (KEY, Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "has no private key"),
            (AUTHORITY, Some("text"), "ca.crt has no PEM block"),
        ] {
            let mut data = secret(&["a.example.com"]);
            data.remove(key);
            data.extend(value.map(|value| (key.to_owned(), ByteString(value.as_bytes().to_vec()))));
            let why = read(&data, "a.example.com", at("2030-06-01")).unwrap_err();
            assert!(why.contains(said), "{key} = {value:?}: {why}");
        }
    }
}
