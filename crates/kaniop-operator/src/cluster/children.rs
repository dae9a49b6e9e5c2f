//! Applies what a Kanidm needs, in order, and removes what it needs no more.
//!
//! What servers need holds up what follows it; ways to them fail alone and are told. Whether the kinds of the Gateway API are installed is asked
//! again and again, for they may come at any time; they are not watched.

use std::sync::PoisonError;

use k8s_openapi::api::apps::v1::StatefulSet;
use kaniop_core::cluster::gateway::{self, Installed};
use kaniop_core::cluster::status::Obstacle;
use kaniop_core::cluster::{Child, Surroundings, build};
use kaniop_core::reason::Reason;

use super::Clusters;
use super::pass::Valid;
use crate::apply::{self, Applied};
use crate::error::Error;

/// What came of applying the children.
#[derive(Default)]
pub(super) struct Children {
    /// The StatefulSets as they should be.
    pub statefulsets: Vec<StatefulSet>,
    /// What kept the rest from being applied.
    pub blocked: Option<Obstacle>,
    /// What kept single ones from being applied that servers do without.
    pub left_out: Vec<Obstacle>,
    /// Whether one of those is worth another try before the next interval.
    pub again: bool,
    /// Whether anything was written.
    pub written: bool,
}

impl Clusters {
    /// Applies the children in their order. The first that servers need and that cannot be applied ends it: what follows may need it.
    pub(super) async fn children(&self, valid: &Valid<'_>, around: &Surroundings<'_>) -> Result<Children, Error> {
        let wanted = build(&valid.cluster, around);
        let statefulsets = wanted.iter().filter_map(Child::read).collect();
        let left_out = gateway::missing(&valid.cluster, around.gateway).into_iter().collect();
        let mut children = Children { statefulsets, left_out, ..Children::default() };
        if valid.kanidm.spec.paused {
            return Ok(children);
        }
        for child in &wanted {
            self.child(valid, around, child, &mut children).await?;
            if children.blocked.is_some() {
                return Ok(children);
            }
        }
        apply::prune(&self.ctx, &valid.owner, &wanted, around.gateway).await?;
        Ok(children)
    }

    async fn child(
        &self,
        valid: &Valid<'_>,
        around: &Surroundings<'_>,
        child: &Child,
        children: &mut Children,
    ) -> Result<(), Error> {
        let obstacle = match apply::child(&self.ctx, &valid.owner, child).await {
            Ok(Applied::Unchanged) => return Ok(()),
            Ok(Applied::Written) => {
                children.written = true;
                self.tell_fewer(valid, around, child).await;
                return Ok(());
            }
            Ok(Applied::Ending) => {
                children.written = true;
                return Ok(());
            }
            Ok(Applied::Conflict(why)) => Obstacle::known(Reason::NameConflict, why),
            Ok(Applied::Refused(why)) => Obstacle::known(Reason::InvalidSpec, why),
            // A webhook that judges this kind may be down, for instance.
            Err(error) if child.apart && !matches!(error, Error::NotLeader) => {
                let (kind, name) = (&child.kind.kind, child.name());
                tracing::warn!(kind, name, %error, "could not be applied and is tried again");
                children.again = true;
                // Not the error's own words, which may differ each time.
                let why =
                    format!("{kind} '{name}' could not be applied and is tried again; the operator's log says why.");
                Obstacle::unknown(Reason::ConnectionFailed, why)
            }
            Err(error) => return Err(error),
        };
        if child.apart {
            children.left_out.push(obstacle);
        } else {
            children.blocked = Some(obstacle);
        }
        Ok(())
    }

    /// Tells of nodes that go with a StatefulSet that was just applied with fewer.
    async fn tell_fewer(&self, valid: &Valid<'_>, around: &Surroundings<'_>, child: &Child) {
        let Some(set) = child.read::<StatefulSet>() else { return };
        let replicas = |set: &StatefulSet| set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or_default();
        let former = around.live.iter().find(|live| live.metadata.name == set.metadata.name);
        let (name, (from, to)) = (set.metadata.name.as_deref(), (replicas(&set), former.map_or(0, replicas)));
        if let Some(name) = name.filter(|_| from < to && valid.cluster.replicas() > 0) {
            self.tell_leaving(valid, name, from, to).await;
        }
    }

    /// Which kinds of the Gateway API are installed. Who needs them asks anew; for others, who may have something to remove, an answer will do that
    /// is no older than an interval.
    pub(super) async fn gateway_api(&self, needed: bool) -> Result<Installed, Error> {
        let now = self.ctx.clock.elapsed();
        let known = *self.gateway.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((asked, installed)) = known
            && !needed
            && now < asked + self.ctx.options.interval
        {
            return Ok(installed);
        }
        let mut installed = Installed::default();
        for version in gateway::VERSIONS {
            let path = format!("{}/{version}", gateway::GROUP);
            match self.ctx.client.list_api_group_resources(&path).await {
                Ok(list) => {
                    let kinds: Vec<_> = list.resources.iter().map(|resource| resource.kind.as_str()).collect();
                    installed = installed.with(version, &kinds);
                }
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => return Err(error.into()),
            }
            if installed.is_complete() {
                break;
            }
        }
        *self.gateway.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, installed));
        Ok(installed)
    }
}
