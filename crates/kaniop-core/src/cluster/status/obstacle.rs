//! The chain of checks behind `Ready`: first violation wins, causes before their consequences.

use super::super::pods::Trouble;
use super::super::tls::Usable;
use super::super::validate::{ValidatedCluster, in_words};
use super::{Access, Obstacle, TlsSeen, World};
use crate::condition::Truth;
use crate::reason::Reason;

/// The first thing that keeps the servers from being Ready.
pub(super) fn obstacle(world: &World<'_>) -> Option<Obstacle> {
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

/// All that is missing beside servers that have no obstacle themselves, under the first reason that is known for certain.
pub(super) fn left_out(missing: &[Obstacle]) -> Option<Obstacle> {
    let known = missing.iter().find(|obstacle| obstacle.truth == Truth::False);
    let first = known.or(missing.first())?;
    let whys: Vec<_> = missing.iter().map(|obstacle| obstacle.message.as_str()).collect();
    let message = format!("The server runs, but something beside it is not as the spec says. {}", whys.join(" "));
    Some(Obstacle { message, ..first.clone() })
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
        return Some(Obstacle::known(
            Reason::PodsNotReady,
            "A pod does not exist yet. If it stays so, `kubectl describe statefulset` says what keeps it from being made.",
        ));
    }
    (!starting.is_empty())
        .then(|| Obstacle::known(Reason::PodsNotReady, format!("Waiting for pod {} to serve.", starting.join(", "))))
}
