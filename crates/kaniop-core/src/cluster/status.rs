//! What the status of a Kanidm says, from what was seen in one pass. `Ready` is the first obstacle, in an order that puts the cause before its
//! consequences; it is True only when the server itself answered the operator.

mod certificate;
mod obstacle;
mod replication;
#[cfg(test)]
mod tests;
mod upgrade;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use kaniop_api::Kanidm;
use kaniop_api::kanidm::{KanidmStatus, ReplicaStatus};
use uuid::Uuid;

use super::domain::Verdict;
use super::names;
use super::pods::PodSeen;
use super::replication::{Certificates, NodeSeen};
use super::rollout::Measure;
use super::tls::Usable;
use super::validate::{Refusal, ValidatedCluster};
use super::version::Gate;
use crate::backup;
use crate::condition::{self, Statement, Truth};
use crate::reason::Reason;

/// The condition that tells of the certificate.
pub const CERTIFICATES_VALID: &str = "CertificatesValid";

/// The TLS Secret as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsSeen {
    /// There is none.
    Missing,
    /// A server cannot start with it.
    Invalid(String),
    /// A server can start with it.
    Usable(Usable),
}

/// How far the operator got with the server in this pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Something before it is missing, so nothing was tried.
    NotTried,
    /// On the way; for people: to what.
    Pending(String),
    /// It cannot go on.
    Failed(Obstacle),
    /// The server answered a request of the operator over verified TLS.
    Answered,
}

/// Why `Ready` is not True.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// `False` where it is known, `Unknown` where nobody can say.
    pub truth: Truth,
    /// Why.
    pub reason: Reason,
    /// For people: what happened and what to do.
    pub message: String,
}

impl Obstacle {
    /// Known to be in the way until somebody does something.
    pub fn known(reason: Reason, message: impl Into<String>) -> Self {
        Self { truth: Truth::False, reason, message: message.into() }
    }

    /// Nobody can say whether anything is in the way; it is tried again.
    pub fn unknown(reason: Reason, message: impl Into<String>) -> Self {
        Self { truth: Truth::Unknown, reason, message: message.into() }
    }
}

/// Everything that was seen in one pass.
#[derive(Clone, Debug)]
pub struct World<'a> {
    /// The Kanidm, with its last status.
    pub kanidm: &'a Kanidm,
    /// Its spec, validated, or every error of the user.
    pub cluster: Result<&'a ValidatedCluster, &'a [Refusal]>,
    /// Changes that were asked for and cannot be made, while everything else goes on.
    pub refused: &'a [Refusal],
    /// How far the claims are that grow, a sentence for each.
    pub growing: &'a [String],
    /// What kept the children from being applied.
    pub blocked: Option<Obstacle>,
    /// What kept children from being applied that servers do without.
    pub left_out: &'a [Obstacle],
    /// The TLS Secret.
    pub tls: TlsSeen,
    /// The StatefulSets as they should be.
    pub wanted: &'a [StatefulSet],
    /// The pods.
    pub pods: &'a [PodSeen],
    /// What each node that could be asked told of itself.
    pub nodes: &'a [NodeSeen],
    /// Digest of each node's file as it should be, by pod.
    pub digests: &'a BTreeMap<String, String>,
    /// The nodes' replication certificates.
    pub certificates: &'a Certificates,
    /// Whether the Secret with the administrators' passwords is complete.
    pub admin_secret: bool,
    /// UUID of the domain, as the server last said it, and what that means.
    pub domain: Option<(Uuid, Verdict)>,
    /// How far the operator got with the server.
    pub access: Access,
    /// What was judged of the image and the servers' release.
    pub gate: Option<&'a Gate>,
    /// Pods that show another certificate than the Secret holds, which is on its way to them.
    pub renewing: &'a BTreeSet<String>,
    /// What there is to say of the backups.
    pub backup: backup::Report,
}

impl World<'_> {
    /// The domain that every node has to hold.
    fn pinned(&self) -> Option<Uuid> {
        match self.domain {
            Some((uuid, Verdict::First | Verdict::Replaced | Verdict::Same)) => Some(uuid),
            Some((_, Verdict::Mismatch)) | None => {
                let pinned = self.kanidm.status.as_ref().and_then(|status| status.domain_uuid.as_deref());
                pinned.and_then(|uuid| Uuid::parse_str(uuid).ok())
            }
        }
    }
}

/// The status after this pass.
#[must_use]
pub fn status(world: &World<'_>, now: Timestamp) -> KanidmStatus {
    let old = world.kanidm.status.clone().unwrap_or_default();
    let wanted = world.cluster.map(ValidatedCluster::replicas).unwrap_or_default();
    let count =
        |keep: &dyn Fn(&&PodSeen) -> bool| i32::try_from(world.pods.iter().filter(keep).count()).unwrap_or(i32::MAX);
    let available = count(&|pod| pod.ready);
    let generation = world.kanidm.metadata.generation;
    let conditions =
        condition::after(old.conditions.as_deref().unwrap_or_default(), &statements(world, now), generation, now);
    KanidmStatus {
        observed_generation: generation,
        conditions: Some(conditions),
        replicas: Some(count(&|_| true)),
        available_replicas: Some(available),
        updated_replicas: Some(count(&|pod| is_updated(world, pod))),
        unavailable_replicas: Some((wanted - available).max(0)),
        replica_column: Some(format!("{available}/{wanted}")),
        replica_statuses: Some(world.pods.iter().map(|pod| replica(world, pod, now)).collect()),
        secret_name: match (world.cluster, world.admin_secret) {
            (Ok(cluster), true) => Some(names::admin_secret(&cluster.name)),
            (Ok(_), false) => None,
            (Err(_), _) => old.secret_name,
        },
        version: upgrade::version(world, old.version),
        domain_uuid: match world.domain {
            Some((uuid, Verdict::First | Verdict::Replaced)) => Some(uuid.to_string()),
            Some((_, Verdict::Same | Verdict::Mismatch)) | None => old.domain_uuid,
        },
        maintenance: old.maintenance,
        primary_node: match (world.cluster, world.domain) {
            (Ok(cluster), Some((_, Verdict::First | Verdict::Replaced | Verdict::Same))) => {
                Some(cluster.primary.clone())
            }
            _ => old.primary_node,
        },
        backup: world.backup.status.clone(),
    }
}

fn replica(world: &World<'_>, pod: &PodSeen, now: Timestamp) -> ReplicaStatus {
    ReplicaStatus {
        pod_name: pod.name.clone(),
        statefulset_name: pod.statefulset.clone(),
        state: replication::state(world, pod, now),
    }
}

/// Everything that conditions say of this pass.
#[must_use]
pub fn statements(world: &World<'_>, now: Timestamp) -> Vec<Statement> {
    let (servers, beside) = (obstacle::obstacle(world), obstacle::left_out(world.left_out));
    let ready = match servers.as_ref().or(beside.as_ref()) {
        None => Statement::new("Ready", true, Reason::Ready, "The server answered the operator over verified TLS."),
        Some(obstacle) => Statement::new("Ready", obstacle.truth, obstacle.reason, &*obstacle.message),
    };
    let progressing = growing(world, progressing(world, servers, beside));
    let always = [ready, available(world), initialized(world), progressing];
    let sometimes = [
        replication::statement(world, now),
        upgrade::statement(world),
        certificate::statement(world, now),
        world.backup.statement.clone(),
    ];
    always.into_iter().chain(sometimes.into_iter().flatten()).collect()
}

fn available(world: &World<'_>) -> Statement {
    let serving: Vec<_> = world.pods.iter().filter(|pod| pod.ready).map(|pod| pod.name.as_str()).collect();
    if serving.is_empty() {
        let reason = if world.cluster.is_ok_and(|cluster| cluster.replicas() == 0) {
            Reason::ScaledToZero
        } else {
            Reason::PodsNotReady
        };
        return Statement::new("Available", false, reason, "No pod serves.");
    }
    Statement::new("Available", true, Reason::Ready, format!("Serving: {}.", serving.join(", ")))
}

fn initialized(world: &World<'_>) -> Statement {
    let known =
        world.domain.is_some() || world.kanidm.status.as_ref().is_some_and(|status| status.domain_uuid.is_some());
    let (truth, reason, message) = match (known, world.admin_secret) {
        (true, true) => {
            (true, Reason::Bootstrapped, "The domain is known and the administrators' passwords are stored.")
        }
        (true, false) => {
            (false, Reason::Bootstrapping, "The Secret with the administrators' passwords is missing or incomplete.")
        }
        (false, _) => (false, Reason::Bootstrapping, "The server has not told its domain yet."),
    };
    Statement::new("Initialized", truth, reason, message)
}

fn is_updated(world: &World<'_>, pod: &PodSeen) -> bool {
    let measure = Measure { wanted: world.wanted, digests: world.digests, nodes: world.nodes, domain: world.pinned() };
    measure.standing(pod).outdated.is_none()
}

/// `Progressing`, with what becomes of volumes that grow.
fn growing(world: &World<'_>, rest: Statement) -> Statement {
    let growing = world.growing.join(" ");
    match rest.truth {
        _ if growing.is_empty() => rest,
        Truth::True => Statement { message: format!("{} {growing}", rest.message), ..rest },
        Truth::False | Truth::Unknown => Statement::new("Progressing", true, Reason::VolumesGrowing, growing),
    }
}

fn progressing(world: &World<'_>, servers: Option<Obstacle>, beside: Option<Obstacle>) -> Statement {
    let outdated: Vec<_> =
        world.pods.iter().filter(|pod| !is_updated(world, pod)).map(|pod| pod.name.as_str()).collect();
    let under_way = matches!(
        servers.as_ref().map(|obstacle| obstacle.reason),
        None | Some(Reason::PodsNotReady | Reason::Bootstrapping | Reason::CertificateInvalid)
    );
    match servers.or(beside) {
        _ if under_way && !outdated.is_empty() && !world.wanted.is_empty() => Statement::new(
            "Progressing",
            true,
            Reason::RollingOut,
            format!("To be restarted with the newest configuration: {}.{}", outdated.join(", "), upgrade::pause(world)),
        ),
        None if !world.renewing.is_empty() => Statement::new(
            "Progressing",
            true,
            Reason::RollingOut,
            format!("To take over the renewed certificate: {}.", certificate::pods(world.renewing)),
        ),
        Some(Obstacle { reason: reason @ (Reason::PodsNotReady | Reason::Bootstrapping), message, .. }) => {
            Statement::new("Progressing", true, reason, message)
        }
        Some(obstacle) => Statement::new("Progressing", false, obstacle.reason, obstacle.message),
        None => Statement::new("Progressing", false, Reason::Ready, "Nothing is left to do."),
    }
}
