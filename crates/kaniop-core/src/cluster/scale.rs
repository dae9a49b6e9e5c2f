//! How many nodes of a group run now, which is not always how many are wanted: nodes join a primary that is set up, and leave one that serves.

use kaniop_api::kanidm::ReplicaGroup;

use super::validate::ValidatedCluster;
use super::{Surroundings, names};

/// No group has more nodes.
const MOST: i32 = 100;

/// Why a group has another number of nodes than its spec says, for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// The primary is not set up yet: a node that starts before it would make a domain of its own.
    BeforeThePrimary,
    /// The primary does not serve: what the leaving node has alone would be lost.
    WithoutThePrimary,
}

/// How many nodes of a group run, and why that is not what its spec says.
#[must_use]
pub fn replicas(
    cluster: &ValidatedCluster,
    group: &ReplicaGroup,
    live: i32,
    around: &Surroundings<'_>,
) -> (i32, Option<Held>) {
    let wanted = group.replicas;
    if wanted < live {
        // One that never told a certificate never took part, so nothing is lost with it.
        let took_part =
            |ordinal: &i32| around.certificates.nodes.contains_key(&names::pod(&cluster.name, &group.name, *ordinal));
        let stays = cluster.nodes().any(|node| node.is_primary);
        return match (wanted..live.min(MOST)).rev().find(took_part) {
            Some(last) if stays && !around.primary_serves => (last + 1, Some(Held::WithoutThePrimary)),
            _ => (wanted, None),
        };
    }
    let set_up = around.domain.is_some() && around.certificates.nodes.contains_key(&cluster.primary);
    if set_up || cluster.nodes().count() <= 1 {
        return (wanted, None);
    }
    let with_primary = cluster.nodes().any(|node| node.is_primary && node.group.name == group.name);
    let now = wanted.min(live.max(i32::from(with_primary)));
    (now, (now < wanted).then_some(Held::BeforeThePrimary))
}
