//! Who replicates with whom: a star. Every secondary exchanges changes with the primary, and with nobody else, so that another secondary more or
//! less concerns the primary alone. A node knows its peers by their certificates, which are read from the nodes themselves.
//!
//! Nothing here says that nodes are level: the server shows no sign of that.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kaniop_api::kanidm::ReplicationType;
use serde::Serialize;
use uuid::Uuid;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::names;
use super::nodes::Node;
use super::storage::Storage;
use super::validate::ValidatedCluster;

/// Certificates are renewed this long before they end.
const RENEWED_BEFORE: SignedDuration = SignedDuration::from_hours(24 * 30);

/// What is known of the nodes' certificates, base64url of DER as the server writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificates {
    /// Of our own nodes, by pod.
    pub nodes: BTreeMap<String, String>,
    /// Of nodes of elsewhere, by their name in the spec.
    pub external: BTreeMap<String, String>,
}

impl Certificates {
    /// None are known.
    #[must_use]
    pub const fn new() -> Self {
        Self { nodes: BTreeMap::new(), external: BTreeMap::new() }
    }
}

/// What a node told of itself in the run that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSeen {
    /// Its pod.
    pub pod: String,
    /// The domain that its database holds.
    pub domain: Uuid,
    /// Its replication certificate, where it has one.
    pub certificate: Option<String>,
    /// Digest of the configuration that it was started with, where its pod says so.
    pub config: Option<String>,
}

/// `[replication]` in `server.toml`.
#[derive(Debug, Serialize)]
pub(super) struct Replication<'a> {
    origin: String,
    bindaddress: &'static str,
    #[serde(flatten)]
    peers: BTreeMap<String, Peer<'a>>,
}

/// One peer. It refuses keys that it does not know.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Peer<'a> {
    MutualPull { partner_cert: &'a str, automatic_refresh: bool },
    AllowPull { consumer_cert: &'a str },
    Pull { supplier_cert: &'a str, automatic_refresh: bool },
}

/// Whether the nodes can replicate at all. One that does keeps a certificate from its first start on, so that nodes that are added later need
/// no more than one restart of it.
#[must_use]
pub fn is_possible(storage: &Storage) -> bool {
    matches!(storage, Storage::Claim(_))
}

/// What a node replicates with.
pub(super) fn of_node<'a>(
    cluster: &'a ValidatedCluster,
    node: &Node<'_>,
    known: &'a Certificates,
    bindaddress: &'static str,
) -> Replication<'a> {
    let peers = if node.is_primary { primary_peers(cluster, known) } else { secondary_peers(cluster, known) };
    Replication { origin: url(&node.host, names::REPLICATION_PORT), bindaddress, peers }
}

/// The primary takes part in every exchange and is never refreshed by one of its own.
fn primary_peers<'a>(cluster: &'a ValidatedCluster, known: &'a Certificates) -> BTreeMap<String, Peer<'a>> {
    let secondaries = cluster.nodes().filter(|node| !node.is_primary).filter_map(|node| {
        let partner_cert = known.nodes.get(&node.pod)?;
        let peer = Peer::MutualPull { partner_cert, automatic_refresh: false };
        Some((url(&node.host, names::REPLICATION_PORT), peer))
    });
    let external = cluster.spec.external_replication_nodes.iter().flatten().filter_map(|node| {
        let certificate = known.external.get(&node.name)?.as_str();
        let automatic_refresh = node.automatic_refresh;
        let peer = match node.type_ {
            ReplicationType::MutualPull => Peer::MutualPull { partner_cert: certificate, automatic_refresh },
            ReplicationType::AllowPull => Peer::AllowPull { consumer_cert: certificate },
            ReplicationType::Pull => Peer::Pull { supplier_cert: certificate, automatic_refresh },
        };
        Some((url(&node.hostname, node.port), peer))
    });
    secondaries.chain(external).collect()
}

/// A secondary takes everything from the primary, its whole database if need be.
fn secondary_peers<'a>(cluster: &ValidatedCluster, known: &'a Certificates) -> BTreeMap<String, Peer<'a>> {
    let primary = cluster.nodes().find(|node| node.is_primary);
    let peer = primary.and_then(|primary| {
        let partner_cert = known.nodes.get(&primary.pod)?;
        let peer = Peer::MutualPull { partner_cert, automatic_refresh: true };
        Some((url(&primary.host, names::REPLICATION_PORT), peer))
    });
    peer.into_iter().collect()
}

fn url(host: &str, port: i32) -> String {
    format!("repl://{host}:{port}")
}

/// What is wrong with a node's certificate, or will be soon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// It ends within a month, or has ended.
    Expiring(Timestamp),
    /// It is for another host, so peers refuse it.
    Host(String),
    /// It is no certificate.
    Unreadable,
}

/// What is wrong with a certificate that peers expect for this host.
#[must_use]
pub fn flaw(certificate: &str, host: &str, now: Timestamp) -> Option<Flaw> {
    let Some(der) = decoded(certificate) else { return Some(Flaw::Unreadable) };
    let Ok((_, parsed)) = X509Certificate::from_der(&der) else { return Some(Flaw::Unreadable) };
    let names = parsed.subject_alternative_name().ok().flatten();
    let hosts: Vec<_> = names
        .iter()
        .flat_map(|names| &names.value.general_names)
        .filter_map(|name| if let GeneralName::DNSName(name) = name { Some(*name) } else { None })
        .collect();
    if !hosts.iter().any(|name| name.eq_ignore_ascii_case(host)) {
        return Some(Flaw::Host(hosts.join(", ")));
    }
    let Ok(not_after) = Timestamp::from_second(parsed.validity().not_after.timestamp()) else {
        return Some(Flaw::Unreadable);
    };
    (not_after.duration_since(now) < RENEWED_BEFORE).then_some(Flaw::Expiring(not_after))
}

/// Whether a text is a certificate as the server writes it. What is not would keep a server from starting.
#[must_use]
pub fn is_certificate(text: &str) -> bool {
    decoded(text).is_some_and(|der| X509Certificate::from_der(&der).is_ok_and(|(rest, _)| rest.is_empty()))
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    use base64::Engine;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text.trim().trim_end_matches('=')).ok()
}
