//! What a pass knows of the nodes before it changes anything.

use kaniop_core::cluster::domain::{Verdict, judge, may_begin_anew};
use kaniop_core::cluster::status::Obstacle;
use uuid::Uuid;

use super::nodes::Nodes;
use super::observe::{self, Servers};
use super::pass::Valid;
use super::{Clusters, key};
use crate::error::Error;

/// What a pass knows of the nodes before it changes anything.
#[derive(Default)]
pub(super) struct Known {
    pub nodes: Nodes,
    /// What the primary holds, and what that means.
    pub verdict: Option<(Uuid, Verdict)>,
    /// The domain that every node has to hold.
    pub domain: Option<Uuid>,
    /// What kept a certificate from being stored.
    pub blocked: Option<Obstacle>,
}

impl Clusters {
    /// What the nodes tell, what it means, and whose certificates are known.
    pub(super) async fn look(&self, valid: &Valid<'_>, servers: &Servers) -> Result<Known, Error> {
        let Valid { kanidm, cluster, .. } = valid;
        if kanidm.spec.paused {
            return Ok(Known::default());
        }
        let mut nodes = self.ask_nodes(&key(kanidm), cluster, servers).await?;
        let pinned = kanidm.status.as_ref().and_then(|status| status.domain_uuid.as_deref());
        let seen = nodes.of(&cluster.primary).map(|primary| primary.domain);
        let verdict = match seen {
            None => None,
            Some(seen) => Some((seen, self.judge(valid, servers, pinned, seen).await?)),
        };
        let trusted = !matches!(verdict, Some((_, Verdict::Mismatch)));
        let blocked = self.exchange(valid, servers, &mut nodes, trusted).await?;
        let domain = match verdict {
            Some((seen, Verdict::First | Verdict::Same | Verdict::Replaced)) => Some(seen),
            Some((_, Verdict::Mismatch)) | None => pinned.and_then(|uuid| Uuid::parse_str(uuid).ok()),
        };
        Ok(Known { nodes, verdict, domain, blocked })
    }

    /// What the primary's domain means. Only where it is another one than before does it matter what else could hold the former.
    async fn judge(
        &self,
        valid: &Valid<'_>,
        servers: &Servers,
        pinned: Option<&str>,
        seen: Uuid,
    ) -> Result<Verdict, Error> {
        let Valid { owner, cluster, .. } = valid;
        if judge(pinned, seen, false) != Verdict::Mismatch {
            return Ok(judge(pinned, seen, false));
        }
        let primary = servers.pods.iter().find(|pod| pod.name == cluster.primary);
        let live = servers
            .statefulsets
            .iter()
            .find(|set| primary.is_some_and(|primary| set.metadata.name.as_ref() == Some(&primary.statefulset)));
        let others = cluster.nodes().count() > 1
            || servers.pods.len() > 1
            || observe::has_other_claims(&self.ctx, owner, cluster).await?;
        let may_begin_anew = may_begin_anew(cluster, &cluster.storage.settled(live), others);
        Ok(judge(pinned, seen, may_begin_anew))
    }
}
