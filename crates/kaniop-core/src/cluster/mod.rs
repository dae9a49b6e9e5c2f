//! The Kanidm cluster: from a spec to every child that it needs, and from what is seen to what its status says.
//!
//! [`validate`](validate::validate) may refuse a spec, with every error at once; [`build`] cannot fail. Nothing here speaks to anybody.

pub mod credentials;
pub mod domain;
pub mod hash;
pub mod image;
pub mod labels;
pub mod names;
pub mod origin;
pub(crate) mod pod;
pub mod pods;
mod probes;
mod quantity;
pub mod rollout;
pub mod server_config;
mod service;
mod statefulset;
pub mod status;
pub mod storage;
pub mod tls;
pub mod validate;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

pub use validate::{Refusal, ValidatedCluster, validate};

/// What building depends on besides the spec.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The operator's own image, which brings the node helper.
    pub helper_image: &'a str,
    /// Hash of the certificate and key, if the Secret has some that pods are to be started with. Without it they keep what they have.
    pub tls_hash: Option<&'a str>,
    /// The StatefulSets of this Kanidm as they are.
    pub live: &'a [StatefulSet],
}

/// One object that a Kanidm needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Child {
    /// A Secret.
    Secret(Box<Secret>),
    /// A Service.
    Service(Box<Service>),
    /// A StatefulSet.
    StatefulSet(Box<StatefulSet>),
}

/// Every child of the cluster, in the order in which they are applied: what pods need comes before the pods.
#[must_use]
pub fn build(cluster: &ValidatedCluster, around: &Surroundings<'_>) -> Vec<Child> {
    let statefulsets =
        cluster.spec.replica_groups.iter().filter_map(|group| statefulset::of_group(cluster, group, around));
    [
        Child::Secret(Box::new(server_config::secret(cluster))),
        Child::Service(Box::new(service::peers(cluster))),
        Child::Service(Box::new(service::client(cluster))),
    ]
    .into_iter()
    .chain(statefulsets.map(|statefulset| Child::StatefulSet(Box::new(statefulset))))
    .collect()
}

/// Changes that are asked for and cannot be made of what exists. `Err`: nothing may be applied at all; `Ok`: the rest is applied.
///
/// # Errors
/// A group that has a StatefulSet is gone from the spec: its node is the only one, and another in its place would start with an empty database.
pub fn refused_changes(cluster: &ValidatedCluster, live: &[StatefulSet]) -> Result<Vec<Refusal>, Vec<Refusal>> {
    let of_group = |name: &str| {
        cluster.spec.replica_groups.iter().any(|group| names::statefulset(&cluster.name, &group.name) == name)
    };
    let orphans: Vec<_> = live
        .iter()
        .filter_map(|live| live.metadata.name.as_deref())
        .filter(|name| !of_group(name))
        .map(|name| {
            let message = format!(
                "StatefulSet '{name}' belongs to a group that is gone from the list. Its node holds the database, which a group of another \
                 name would not have: put the group back"
            );
            Refusal::new("spec.replicaGroups", message)
        })
        .collect();
    if !orphans.is_empty() {
        return Err(orphans);
    }
    let groups = cluster.spec.replica_groups.iter().map(|group| names::statefulset(&cluster.name, &group.name));
    Ok(groups
        .filter_map(|name| {
            let live = live.iter().find(|live| live.metadata.name.as_deref() == Some(&name));
            cluster.storage.refused(live)
        })
        .collect())
}

/// Hash of the template that a StatefulSet's pods should have been made from.
#[must_use]
pub fn template_hash(statefulset: &StatefulSet) -> Option<&str> {
    statefulset::annotation(statefulset, labels::TEMPLATE_HASH)
}

/// Hash of the certificate and key that a StatefulSet's pods start with.
#[must_use]
pub fn tls_hash(statefulset: &StatefulSet) -> Option<&str> {
    statefulset::annotation(statefulset, labels::TLS_HASH)
}

/// Metadata of a child: ours by labels, gone with the Kanidm by its owner reference.
fn metadata(cluster: &ValidatedCluster, name: String) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        namespace: Some(cluster.namespace.clone()),
        labels: Some(labels::common(&cluster.name)),
        owner_references: Some(vec![cluster.owner.clone()]),
        ..ObjectMeta::default()
    }
}
