//! The nodes of a Kanidm: which there are, which one is the primary, and under which name the others reach each of them.

use kaniop_api::kanidm::ReplicaGroup;

use super::names;
use super::template::rendered;
use super::validate::ValidatedCluster;

/// One server that is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Node<'a> {
    /// Its group.
    pub group: &'a ReplicaGroup,
    /// Its number in the group.
    pub ordinal: i32,
    /// Its pod.
    pub pod: String,
    /// Name by which other nodes reach it, and which its replication certificate is for.
    pub host: String,
    /// Whether it is the primary.
    pub is_primary: bool,
}

impl ValidatedCluster {
    /// Every node that is wanted, in the order of the spec.
    pub fn nodes(&self) -> impl Iterator<Item = Node<'_>> {
        self.spec.replica_groups.iter().flat_map(|group| (0..group.replicas).map(|ordinal| self.node(group, ordinal)))
    }

    /// The node of this number in a group.
    #[must_use]
    pub fn node<'a>(&self, group: &'a ReplicaGroup, ordinal: i32) -> Node<'a> {
        let pod = names::pod(&self.name, &group.name, ordinal);
        let template = group.services.as_ref().and_then(|services| services.replication_hostname_template.as_deref());
        let host = match template {
            Some(template) => rendered(template, &pod, ordinal, &self.spec.domain),
            // Without the cluster's own domain, which nobody tells: the pods' search list completes it.
            None => format!("{pod}.{}.{}.svc", names::peer_service(&self.name), self.namespace),
        };
        Node { group, ordinal, is_primary: pod == self.primary, pod, host }
    }
}
