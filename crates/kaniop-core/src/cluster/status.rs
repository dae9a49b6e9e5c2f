//! What the status of a Kanidm says, from what was seen in one pass. `Ready` is the first obstacle, in an order that puts the cause before its
//! consequences; it is True only when the server itself answered the operator.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use kaniop_api::Kanidm;
use kaniop_api::kanidm::{KanidmStatus, ReplicaState, ReplicaStatus, VersionStatus};
use uuid::Uuid;

use super::rollout::{PodSeen, Trouble};
use super::tls::Usable;
use super::validate::{Refusal, ValidatedCluster, in_words};
use super::{names, template_hash};
use crate::condition::{self, Statement, Truth};
use crate::reason::Reason;

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
    /// What kept the children from being applied.
    pub blocked: Option<Obstacle>,
    /// The TLS Secret.
    pub tls: TlsSeen,
    /// The StatefulSets as they should be.
    pub wanted: &'a [StatefulSet],
    /// The pods.
    pub pods: &'a [PodSeen],
    /// Whether the Secret with the administrators' passwords is complete.
    pub admin_secret: bool,
    /// UUID of the domain, as the server said it in this pass.
    pub domain_uuid: Option<Uuid>,
    /// How far the operator got with the server.
    pub access: Access,
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
        condition::after(old.conditions.as_deref().unwrap_or_default(), &statements(world), generation, now);
    KanidmStatus {
        observed_generation: generation,
        conditions: Some(conditions),
        replicas: Some(count(&|_| true)),
        available_replicas: Some(available),
        updated_replicas: Some(count(&|pod| is_updated(world, pod))),
        unavailable_replicas: Some((wanted - available).max(0)),
        replica_column: Some(format!("{available}/{wanted}")),
        replica_statuses: Some(world.pods.iter().map(replica).collect()),
        secret_name: match (world.cluster, world.admin_secret) {
            (Ok(cluster), true) => Some(names::admin_secret(&cluster.name)),
            (Ok(_), false) => None,
            (Err(_), _) => old.secret_name,
        },
        version: match world.cluster {
            Ok(cluster) => Some(VersionStatus {
                image: Some(cluster.image.to_string()),
                image_tag: Some(cluster.image.tag().to_owned()),
            }),
            Err(_) => old.version,
        },
        // Said once and kept: another one later is a mismatch, not news.
        domain_uuid: old.domain_uuid.or_else(|| world.domain_uuid.map(|uuid| uuid.to_string())),
    }
}

fn replica(pod: &PodSeen) -> ReplicaStatus {
    ReplicaStatus {
        pod_name: pod.name.clone(),
        statefulset_name: pod.statefulset.clone(),
        state: if pod.ready { ReplicaState::Ready } else { ReplicaState::Pending },
    }
}

/// Everything that conditions say of this pass.
#[must_use]
pub fn statements(world: &World<'_>) -> Vec<Statement> {
    let obstacle = obstacle(world);
    let ready = match &obstacle {
        None => Statement::new("Ready", true, Reason::Ready, "The server answered the operator over verified TLS."),
        Some(obstacle) => Statement::new("Ready", obstacle.truth, obstacle.reason, &*obstacle.message),
    };
    vec![ready, available(world), initialized(world), progressing(world, obstacle)]
}

/// The first thing that keeps the Kanidm from being Ready.
fn obstacle(world: &World<'_>) -> Option<Obstacle> {
    if world.kanidm.spec.paused {
        return Some(Obstacle::known(
            Reason::Paused,
            "spec.paused is set: nothing of this cluster and its identities is reconciled. Unset it to go on.",
        ));
    }
    let cluster = match world.cluster {
        Ok(cluster) => cluster,
        Err(refusals) => {
            return Some(Obstacle::known(Reason::InvalidSpec, format!("Nothing was changed. {}.", in_words(refusals))));
        }
    };
    if let Some(blocked) = &world.blocked {
        return Some(blocked.clone());
    }
    if let Some(obstacle) = tls(world, cluster) {
        return Some(obstacle);
    }
    if cluster.replicas() == 0 {
        return Some(Obstacle::known(
            Reason::ScaledToZero,
            "Zero replicas are asked for. Set replicas to 1 to start the server.",
        ));
    }
    if let Access::Failed(obstacle @ Obstacle { reason: Reason::DomainMismatch, .. }) = &world.access {
        return Some(obstacle.clone());
    }
    if let Some(obstacle) = pods(world, cluster) {
        return Some(obstacle);
    }
    if let TlsSeen::Usable(Usable { problem: Some(problem), .. }) = &world.tls {
        let message = format!("Clients refuse the server: {problem} (Secret '{}', key tls.crt).", cluster.tls_secret);
        return Some(Obstacle::known(Reason::CertificateInvalid, message));
    }
    match &world.access {
        Access::Failed(obstacle) => return Some(obstacle.clone()),
        Access::Pending(what) => return Some(Obstacle::known(Reason::Bootstrapping, what.clone())),
        Access::NotTried => return Some(Obstacle::unknown(Reason::Unknown, "The server was not asked in this pass.")),
        Access::Answered => {}
    }
    (!world.refused.is_empty()).then(|| {
        let message = format!(
            "The server runs as before, for a part of the spec cannot be carried out. {}.",
            in_words(world.refused)
        );
        Obstacle::known(Reason::InvalidSpec, message)
    })
}

fn tls(world: &World<'_>, cluster: &ValidatedCluster) -> Option<Obstacle> {
    let secret = &cluster.tls_secret;
    let running = if world.pods.is_empty() {
        "The server starts then."
    } else {
        "Until then the server goes on, but could not start again."
    };
    match &world.tls {
        TlsSeen::Missing => Some(Obstacle::known(
            Reason::TlsSecretMissing,
            format!(
                "Secret '{secret}' does not exist. Create it with tls.crt and tls.key for '{}'. {running}",
                cluster.origin.host()
            ),
        )),
        TlsSeen::Invalid(why) => Some(Obstacle::known(
            Reason::TlsSecretInvalid,
            format!("Secret '{secret}' cannot be used: {why}. Put it right. {running}"),
        )),
        TlsSeen::Usable(_) => None,
    }
}

fn pods(world: &World<'_>, cluster: &ValidatedCluster) -> Option<Obstacle> {
    let waiting = world.pods.iter().filter(|pod| !pod.ready);
    let troubles: Vec<_> = waiting.clone().filter_map(|pod| Some((pod, pod.trouble.as_ref()?))).collect();
    if let Some((pod, Trouble::Image(why))) = troubles.iter().find(|(_, trouble)| matches!(trouble, Trouble::Image(_)))
    {
        let message =
            format!("Pod '{}' has no image: {why}. Put spec.image right, or make the image available.", pod.name);
        return Some(Obstacle::known(Reason::ImageUnavailable, message));
    }
    if let Some((pod, Trouble::Other(why))) = troubles.first() {
        return Some(Obstacle::known(Reason::PodsNotReady, format!("Pod '{}' does not serve: {why}.", pod.name)));
    }
    let missing = usize::try_from(cluster.replicas()).unwrap_or(0) > world.pods.len();
    let starting: Vec<_> = waiting.map(|pod| format!("'{}'", pod.name)).collect();
    if missing {
        return Some(Obstacle::known(Reason::PodsNotReady, "The pod does not exist yet; its StatefulSet makes it."));
    }
    (!starting.is_empty())
        .then(|| Obstacle::known(Reason::PodsNotReady, format!("Waiting for pod {} to serve.", starting.join(", "))))
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
        world.domain_uuid.is_some() || world.kanidm.status.as_ref().is_some_and(|status| status.domain_uuid.is_some());
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
    let wanted = world.wanted.iter().find(|wanted| wanted.metadata.name.as_deref() == Some(&pod.statefulset));
    wanted.is_some_and(|wanted| template_hash(wanted) == pod.template_hash.as_deref())
}

fn progressing(world: &World<'_>, obstacle: Option<Obstacle>) -> Statement {
    let outdated: Vec<_> =
        world.pods.iter().filter(|pod| !is_updated(world, pod)).map(|pod| pod.name.as_str()).collect();
    let under_way = matches!(
        obstacle.as_ref().map(|obstacle| obstacle.reason),
        None | Some(Reason::PodsNotReady | Reason::Bootstrapping | Reason::CertificateInvalid)
    );
    match obstacle {
        _ if under_way && !outdated.is_empty() && !world.wanted.is_empty() => Statement::new(
            "Progressing",
            true,
            Reason::RollingOut,
            format!("To be restarted with the newest configuration: {}.", outdated.join(", ")),
        ),
        Some(Obstacle { reason: reason @ (Reason::PodsNotReady | Reason::Bootstrapping), message, .. }) => {
            Statement::new("Progressing", true, reason, message)
        }
        Some(obstacle) => Statement::new("Progressing", false, obstacle.reason, obstacle.message),
        None => Statement::new("Progressing", false, Reason::Ready, "Nothing is left to do."),
    }
}

#[cfg(test)]
mod tests;
