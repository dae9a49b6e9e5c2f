//! What can be said of replication: who holds the domain, and whose certificate is known and good. Never that nodes are level, for the server
//! shows no sign of it.

use jiff::Timestamp;
use kaniop_api::kanidm::ReplicaState;

use super::super::nodes::Node;
use super::super::pods::PodSeen;
use super::super::replication::{Flaw, flaw, is_possible};
use super::super::validate::ValidatedCluster;
use super::World;
use crate::condition::Statement;
use crate::reason::Reason;

const CONDITION: &str = "ReplicationHealthy";

/// The condition, where there is something to replicate with. The first of these that holds: a node that holds another domain, a certificate
/// that peers refuse, a peer that is not known yet. Else nobody can say.
pub(super) fn statement(world: &World<'_>, now: Timestamp) -> Option<Statement> {
    let cluster = world.cluster.ok()?;
    let external = cluster.spec.external_replication_nodes.as_deref().unwrap_or_default();
    let nodes: Vec<_> = cluster.nodes().collect();
    if !is_possible(&cluster.storage) || nodes.len() + external.len() < 2 {
        return None;
    }
    let pinned = world.pinned();
    let stranger = world.nodes.iter().find(|seen| pinned.is_some_and(|pinned| seen.domain != pinned));
    if let Some(stranger) = stranger {
        let message = format!(
            "Node '{}' holds the domain {}, not that of this Kanidm. It serves no clients until it was refreshed from the primary.",
            stranger.pod, stranger.domain
        );
        return Some(Statement::new(CONDITION, false, Reason::NodeJoining, message));
    }
    let flaws =
        nodes.iter().filter_map(|node| Some((node, flaw(world.certificates.nodes.get(&node.pod)?, &node.host, now)?)));
    if let Some((node, flaw)) = flaws.min_by_key(|(_, flaw)| matches!(flaw, Flaw::Expiring(_))) {
        return Some(Statement::new(CONDITION, false, Reason::ReplicationCertificateInvalid, in_words(node, &flaw)));
    }
    let unknown = nodes.iter().filter(|node| !world.certificates.nodes.contains_key(&node.pod));
    let unknown: Vec<_> = unknown.map(|node| format!("'{}'", node.pod)).collect();
    let missing = external.iter().filter(|node| !world.certificates.external.contains_key(&node.name));
    let missing: Vec<_> = missing
        .map(|node| {
            let certificate = &node.certificate;
            format!("'{}' (Secret '{}', key '{}')", node.name, certificate.name, certificate.key)
        })
        .collect();
    let message = match (unknown.as_slice(), missing.as_slice()) {
        (_, [_, ..]) => format!("No certificate is known of the external node {}. Put it there.", missing.join(", ")),
        ([_, ..], []) => format!("No certificate is known yet of node {}: it has not told one.", unknown.join(", ")),
        ([], []) => {
            let message = "Every node that answers holds the domain, and its peers know its certificate. Whether changes arrive everywhere, \
                           the server does not show.";
            return Some(Statement::new(
                CONDITION,
                crate::condition::Truth::Unknown,
                Reason::ReplicationUnknown,
                message,
            ));
        }
    };
    Some(Statement::new(CONDITION, false, Reason::PeersUnknown, message))
}

fn in_words(node: &Node<'_>, flaw: &Flaw) -> String {
    let pod = &node.pod;
    match flaw {
        Flaw::Expiring(at) => format!("The replication certificate of node '{pod}' ends at {at}; it is renewed."),
        Flaw::Host(hosts) => format!(
            "The replication certificate of node '{pod}' is for '{hosts}' and not for '{}', so peers refuse it; it is renewed.",
            node.host
        ),
        Flaw::Unreadable => format!("What node '{pod}' tells as its replication certificate is none."),
    }
}

/// What is known of one node.
pub(super) fn state(world: &World<'_>, pod: &PodSeen, now: Timestamp) -> ReplicaState {
    let flaw = world.cluster.ok().and_then(|cluster| {
        let node = node(cluster, &pod.name)?;
        flaw(world.certificates.nodes.get(&pod.name)?, &node.host, now)
    });
    match flaw {
        Some(Flaw::Expiring(_)) => ReplicaState::CertificateExpiring,
        Some(Flaw::Host(_)) => ReplicaState::CertificateHostInvalid,
        Some(Flaw::Unreadable) | None if pod.ready => ReplicaState::Ready,
        Some(Flaw::Unreadable) | None => ReplicaState::Pending,
    }
}

fn node<'a>(cluster: &'a ValidatedCluster, pod: &str) -> Option<Node<'a>> {
    cluster.nodes().find(|node| node.pod == pod)
}
