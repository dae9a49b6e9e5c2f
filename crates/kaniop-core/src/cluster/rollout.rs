//! Which pod is restarted next, when servers must take over something newer: one at a time, and the next only when every other one serves.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use uuid::Uuid;

use super::pods::PodSeen;
use super::replication::NodeSeen;
use super::template_hash;

/// A pod, and how it stands to what it should be.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    /// The pod.
    pub pod: &'a PodSeen,
    /// Why it must be made again, if it must.
    pub outdated: Option<Outdated>,
    /// Its server runs and waits for the primary to take it in: nothing but the primary can help it.
    pub joining: bool,
}

/// Why a pod must be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outdated {
    /// Its StatefulSet has a newer template.
    Template,
    /// Its own file has changed: its peers, mostly.
    Config,
}

impl Outdated {
    /// For people: what the pod takes over.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Template => "the newest template of its group",
            Self::Config => "the newest peers and settings of its own",
        }
    }
}

/// What pods should be, and what their nodes told.
#[derive(Clone, Copy, Debug)]
pub struct Measure<'a> {
    /// The StatefulSets as they should be.
    pub wanted: &'a [StatefulSet],
    /// Digest of each node's file as it should be, by pod.
    pub digests: &'a BTreeMap<String, String>,
    /// What the nodes told.
    pub nodes: &'a [NodeSeen],
    /// The domain that they have to hold, once it is known.
    pub domain: Option<Uuid>,
}

impl Measure<'_> {
    /// How a pod stands. One whose StatefulSet is not wanted any more is as it should be: it goes.
    #[must_use]
    pub fn standing<'p>(&self, pod: &'p PodSeen) -> Standing<'p> {
        let node = self.nodes.iter().find(|node| node.pod == pod.name);
        let wanted = self.wanted.iter().find(|wanted| wanted.metadata.name.as_deref() == Some(&pod.statefulset));
        let started = node.and_then(|node| node.config.as_ref());
        // A pod that cannot say what it was started with is judged by its template alone.
        let other_file = started.zip(self.digests.get(&pod.name)).is_some_and(|(started, wanted)| started != wanted);
        let outdated = match wanted {
            None => None,
            Some(wanted) if template_hash(wanted) != pod.template_hash.as_deref() => Some(Outdated::Template),
            Some(_) => other_file.then_some(Outdated::Config),
        };
        let stranger = node.is_some_and(|node| self.domain.is_some_and(|domain| node.domain != domain));
        Standing { pod, outdated, joining: stranger && !pod.ready }
    }
}

/// The pod that is to be deleted now, so that it is made again.
///
/// `complete`: every pod that should exist does. Call it only when the StatefulSets' controller has seen the templates, or pods come back as
/// they were.
#[must_use]
pub fn next<'a>(pods: &[Standing<'a>], primary: &str, complete: bool) -> Option<Standing<'a>> {
    if pods.iter().any(|standing| standing.pod.ending) {
        return None;
    }
    let outdated = || pods.iter().filter(|standing| standing.outdated.is_some());
    // One that does not serve has nothing to lose, and what is newer may be what heals it.
    if let Some(standing) = outdated().find(|standing| !standing.pod.ready) {
        return Some(*standing);
    }
    // The primary last: until then it serves the writes, and the others have something to compare with.
    let first = outdated().min_by_key(|standing| (standing.pod.name == primary, &standing.pod.name))?;
    let somebody_joins = pods.iter().any(|standing| standing.joining);
    // One that cannot run must not keep those waiting that only the primary's restart lets in.
    let is_waited_for = |standing: &Standing<'_>| {
        let hopeless = standing.pod.trouble.is_some() && first.pod.name == primary && somebody_joins;
        !(standing.pod.ready || standing.joining || hopeless)
    };
    (complete && !pods.iter().any(is_waited_for)).then_some(*first)
}

#[cfg(test)]
mod tests {
    use super::super::pods::Trouble;
    use super::*;

    const PRIMARY: &str = "idm-a-0";

    fn pod(name: &str, ready: bool) -> PodSeen {
        PodSeen { name: name.to_owned(), ready, ..PodSeen::default() }
    }

    fn old(pod: &PodSeen) -> Standing<'_> {
        Standing { pod, outdated: Some(Outdated::Template), joining: false }
    }

    fn new(pod: &PodSeen) -> Standing<'_> {
        Standing { pod, outdated: None, joining: false }
    }

    fn joining(pod: &PodSeen) -> Standing<'_> {
        Standing { joining: true, ..new(pod) }
    }

    fn chosen<'a>(pods: &[Standing<'a>]) -> Option<&'a str> {
        next(pods, PRIMARY, true).map(|standing| standing.pod.name.as_str())
    }

    #[test]
    fn nothing_is_restarted_when_every_pod_is_as_it_should_be() {
        assert_eq!(chosen(&[new(&pod(PRIMARY, true)), new(&pod("idm-a-1", false))]), None);
    }

    #[test]
    fn replicas_are_restarted_first_and_the_primary_last() {
        let (primary, replica) = (pod(PRIMARY, true), pod("idm-a-1", true));
        assert_eq!(chosen(&[old(&primary), old(&replica)]), Some("idm-a-1"));
        assert_eq!(chosen(&[old(&primary), new(&replica)]), Some(PRIMARY));
    }

    #[test]
    fn a_pod_that_serves_waits_until_every_other_one_exists_and_serves() {
        let primary = pod(PRIMARY, true);
        assert_eq!(chosen(&[old(&primary), new(&pod("idm-a-1", false))]), None);
        assert!(next(&[old(&primary)], PRIMARY, false).is_none());
    }

    #[test]
    fn a_pod_that_cannot_start_is_replaced_at_once() {
        assert_eq!(chosen(&[old(&pod(PRIMARY, false))]), Some(PRIMARY));
    }

    #[test]
    fn while_a_pod_ends_no_other_is_touched() {
        let ending = PodSeen { ending: true, ..pod("idm-a-1", false) };
        assert_eq!(chosen(&[old(&pod(PRIMARY, true)), old(&ending)]), None);
    }

    #[test]
    fn the_primary_is_restarted_for_nodes_that_wait_to_join_once_all_that_can_come_up_have() {
        let (primary, waiting, starting) = (pod(PRIMARY, true), pod("idm-a-1", false), pod("idm-a-2", false));
        let stuck = PodSeen { trouble: Some(Trouble::Other("no machine takes it".to_owned())), ..starting.clone() };
        assert_eq!(chosen(&[old(&primary), joining(&waiting)]), Some(PRIMARY));
        assert_eq!(chosen(&[old(&primary), joining(&waiting), new(&starting)]), None, "one restart for both");
        assert_eq!(chosen(&[old(&primary), joining(&waiting), new(&stuck)]), Some(PRIMARY));
        assert_eq!(chosen(&[old(&primary), new(&stuck)]), None, "nobody waits for the primary");
    }
}
