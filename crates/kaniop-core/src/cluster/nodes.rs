//! The nodes of a Kanidm: which there are, which one is the primary, and under which name the others reach each of them.

use kaniop_api::kanidm::{NodeServices, ReplicaGroup};

use super::names;
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
            Some(template) => filled(template, &pod, ordinal, &self.spec.domain),
            // Without the cluster's own domain, which nobody tells: the pods' search list completes it.
            None => format!("{pod}.{}.{}.svc", names::peer_service(&self.name), self.namespace),
        };
        Node { group, ordinal, is_primary: pod == self.primary, pod, host }
    }
}

/// A text of [`NodeServices`] with the variables of one node in their places.
#[must_use]
pub fn filled(template: &str, pod: &str, ordinal: i32, domain: &str) -> String {
    template.replace("{replica_index}", &ordinal.to_string()).replace("{pod_name}", pod).replace("{domain}", domain)
}

/// The variables in these texts that there are not.
#[must_use]
pub fn unknown_variables(services: &NodeServices) -> Vec<String> {
    let annotations = services.annotations_template.iter().flat_map(|map| map.values());
    let texts = annotations.chain(&services.replication_hostname_template);
    let blanked = texts.map(|text| filled(text, "", 0, ""));
    let opened = blanked.filter_map(|text| {
        let (_, rest) = text.split_once('{')?;
        Some(format!("{{{}", rest.split_inclusive('}').next().unwrap_or_default()))
    });
    opened.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_names_what_there_is_not_is_found() {
        let services = |template: &str| NodeServices {
            replication_hostname_template: Some(template.to_owned()),
            ..NodeServices::default()
        };
        assert_eq!(filled("r{replica_index}.{pod_name}.{domain}", "idm-a-1", 1, "a.org"), "r1.idm-a-1.a.org");
        assert!(unknown_variables(&services("{pod_name}.{domain}")).is_empty());
        assert_eq!(unknown_variables(&services("{pod_name}.{zone}.x")), ["{zone}"]);
        assert_eq!(unknown_variables(&services("{pod")), ["{pod"]);
    }
}
