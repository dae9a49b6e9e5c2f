//! The Kanidm cluster: from a spec to every child that it needs, and from what is seen to what its status says.
//!
//! [`validate`](validate::validate) may refuse a spec, with every error at once; [`build`] cannot fail. Nothing here speaks to anybody.

pub mod child;
pub mod credentials;
mod disruption;
pub mod domain;
pub mod gateway;
pub mod growth;
pub mod hash;
pub mod image;
mod ingress;
pub mod labels;
pub mod names;
mod network_policy;
pub mod nodes;
pub mod origin;
pub(crate) mod pod;
pub mod pods;
mod probes;
mod quantity;
pub mod replication;
pub mod rollout;
pub mod scale;
pub mod server_config;
mod service;
mod statefulset;
pub mod status;
pub mod storage;
mod template;
pub mod tls;
pub mod validate;
pub mod version;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use uuid::Uuid;

pub use child::Child;
pub use replication::Certificates;
pub use validate::{Refusal, ValidatedCluster, validate};
pub use version::Images;

/// What building depends on besides the spec.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The operator's own image, which brings the node helper.
    pub helper_image: &'a str,
    /// Hash of the certificate and key, if the Secret has some that pods are to be started with. Without it they keep what they have.
    pub tls_hash: Option<&'a str>,
    /// The StatefulSets of this Kanidm as they are.
    pub live: &'a [StatefulSet],
    /// Which kinds of the Gateway API are installed.
    pub gateway: gateway::Installed,
    /// The domain that every node has to hold, once it is known.
    pub domain: Option<Uuid>,
    /// The nodes' replication certificates.
    pub certificates: &'a Certificates,
    /// Whether the primary serves.
    pub primary_serves: bool,
    /// Which image the servers get.
    pub images: Images<'a>,
}

/// Every child of the cluster, in the order in which they are applied: what pods need comes before the pods, ways to them come last.
#[must_use]
pub fn build(cluster: &ValidatedCluster, around: &Surroundings<'_>) -> Vec<Child> {
    let servers = cluster.spec.replica_groups.iter().filter_map(|group| statefulset::of_group(cluster, group, around));
    let mut children = vec![
        Child::of(&server_config::secret(cluster, around)),
        Child::of(&service::peers(cluster)),
        Child::of(&service::client(cluster)),
    ];
    // Before the pods: none is ever reached by whom the policy keeps away.
    children.extend(network_policy::policy(cluster).map(|policy| Child::of(&policy)));
    children.extend(servers.map(|statefulset| Child::of(&statefulset)));
    children.extend(ways(cluster, around.gateway));
    children
}

/// What servers do without.
fn ways(cluster: &ValidatedCluster, gateway: gateway::Installed) -> impl Iterator<Item = Child> {
    let nodes = cluster.spec.replica_groups.iter().flat_map(|group| service::of_nodes(cluster, group));
    let budget = disruption::budget(cluster).map(|budget| Child::of(&budget).apart());
    let nodes = nodes.map(|service| Child::of(&service).apart());
    let ingresses = [ingress::of_domain(cluster), ingress::of_region(cluster)];
    let ingresses = ingresses.into_iter().flatten().map(|ingress| Child::of(&ingress).apart());
    budget.into_iter().chain(nodes).chain(ingresses).chain(gateway::children(cluster, gateway))
}

/// Changes that are asked for and cannot be made of what exists. `Err`: nothing may be applied at all; `Ok`: the rest is applied.
///
/// # Errors
/// The primary is gone from the spec or is another one now: the secondaries would be refreshed from an empty database.
pub fn refused_changes(
    cluster: &ValidatedCluster,
    live: &[StatefulSet],
    primary: Option<&str>,
) -> Result<Vec<Refusal>, Vec<Refusal>> {
    let leaving = leaving(cluster, live);
    let refuse = |message: String| Err(vec![Refusal::new("spec.replicaGroups", message)]);
    match primary {
        Some(primary) if primary != cluster.primary => {
            return refuse(format!(
                "the primary is '{primary}', which all other nodes were refreshed from, and cannot become '{}'. Put primaryNode, the group and \
                 its role back as they were",
                cluster.primary
            ));
        }
        // Nobody knows yet which one holds the database.
        None if !leaving.is_empty() => {
            return refuse(format!(
                "StatefulSet '{}' belongs to a group that is gone from the list. Its node may hold the database, which a group of another name \
                 would not have: put the group back",
                leaving.join("', '")
            ));
        }
        _ => {}
    }
    let groups = cluster.spec.replica_groups.iter().map(|group| names::statefulset(&cluster.name, &group.name));
    Ok(groups
        .filter_map(|name| {
            let live = live.iter().find(|live| live.metadata.name.as_deref() == Some(&name));
            cluster.storage.refused(live)
        })
        .collect())
}

/// The StatefulSets of groups that are gone from the spec.
#[must_use]
pub fn leaving<'a>(cluster: &ValidatedCluster, live: &'a [StatefulSet]) -> Vec<&'a str> {
    let of_group = |name: &str| {
        cluster.spec.replica_groups.iter().any(|group| names::statefulset(&cluster.name, &group.name) == name)
    };
    live.iter().filter_map(|live| live.metadata.name.as_deref()).filter(|name| !of_group(name)).collect()
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
