//! From a spec as it was written to a cluster that can be built: every error of the user at once, each naming its field.
//!
//! The API server checks most of this by the rules in the CRD. It is checked again here because an object may be older than the rules, and
//! because building must not be able to fail. What only the API server can judge (quantities, affinities) is left to it.

mod network;

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kaniop_api::Kanidm;
use kaniop_api::kanidm::{KanidmSpec, ReplicaGroup, Role};
use kube::Resource;

use super::image::{DEFAULT_IMAGE, Image};
use super::origin::Origin;
use super::storage::Storage;
use super::{names, pod, replication, tls};
use crate::backup::{self, BackupPlan};

/// Longest name of a Kanidm; its children append to it.
const NAME_MAX: usize = 48;
/// Longest name and group name together: a StatefulSet with a longer name cannot make pods.
const NAME_AND_GROUP_MAX: usize = 51;

/// One error of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which field.
    pub field: String,
    /// What is wrong with it and what to do.
    pub message: String,
}

impl Refusal {
    /// An error in this field.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// All errors as one sentence after another.
#[must_use]
pub fn in_words(refusals: &[Refusal]) -> String {
    refusals.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// A cluster that can be built: only [`validate`] makes one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ValidatedCluster {
    /// Name of the Kanidm.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The reference that its children carry.
    pub owner: OwnerReference,
    /// The spec, for everything that needs no judgement.
    pub spec: KanidmSpec,
    /// URL that clients use.
    pub origin: Origin,
    /// Name of the primary's pod.
    pub primary: String,
    /// Server image, resolved.
    pub image: Image,
    /// Where the database lives.
    pub storage: Storage,
    /// Backups of the primary, where they are asked for.
    pub backup: Option<BackupPlan>,
    /// Secret with certificate and key.
    pub tls_secret: String,
}

impl ValidatedCluster {
    /// Number of servers that are wanted.
    #[must_use]
    pub fn replicas(&self) -> i32 {
        self.spec.replica_groups.iter().map(|group| group.replicas).sum()
    }
}

/// Checks a spec.
///
/// # Errors
/// Every error of the user, in the order of the fields.
pub fn validate(kanidm: &Kanidm) -> Result<ValidatedCluster, Vec<Refusal>> {
    let mut errors = Vec::new();
    let spec = &kanidm.spec;
    let name = kanidm.metadata.name.clone().unwrap_or_default();
    check_name(&name, &spec.replica_groups, &mut errors);
    check_domain(&spec.domain, &mut errors);
    let origin = origin(kanidm, &mut errors);
    let primary = primary(&name, &spec.replica_groups, &mut errors);
    check_groups(&spec.replica_groups, &mut errors);
    let image = image(kanidm, &mut errors);
    check_port_name("spec.portName", &spec.port_name, &mut errors);
    pod::check(spec, image.as_ref(), &mut errors);
    let storage = Storage::of(spec.storage.as_ref(), &mut errors);
    check_replication(spec, &storage, &mut errors);
    let backup = backup::wanted(spec, &mut errors);
    if let Some(secret) = spec.tls_secret_name.as_ref().filter(|secret| !is_dns_name(secret)) {
        errors.push(Refusal::new("spec.tlsSecretName", format!("'{secret}' cannot be the name of a Secret")));
    }
    network::check(&name, spec, &mut errors);
    let (Some(origin), Some(primary), Some(image), []) = (origin, primary, image, errors.as_slice()) else {
        return Err(errors);
    };
    Ok(ValidatedCluster {
        tls_secret: tls::secret_name(&name, spec),
        owner: kanidm.controller_owner_ref(&()).unwrap_or_default(),
        namespace: kanidm.metadata.namespace.clone().unwrap_or_default(),
        name,
        spec: spec.clone(),
        origin,
        primary,
        image,
        storage,
        backup,
    })
}

fn check_name(name: &str, groups: &[ReplicaGroup], errors: &mut Vec<Refusal>) {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if name.is_empty() || !name.bytes().all(plain) {
        errors.push(Refusal::new("metadata.name", "must consist of lower-case letters, digits and '-'"));
    }
    if name.len() > NAME_MAX {
        errors.push(Refusal::new("metadata.name", format!("must have at most {NAME_MAX} characters")));
    }
    let longest = groups.iter().map(|group| group.name.len()).max().unwrap_or_default();
    if name.len() + longest > NAME_AND_GROUP_MAX {
        let limit =
            format!("and the longest replica group name must have at most {NAME_AND_GROUP_MAX} characters together");
        errors.push(Refusal::new("metadata.name", limit));
    }
}

fn check_domain(domain: &str, errors: &mut Vec<Refusal>) {
    if !is_dns_name(domain) {
        errors.push(Refusal::new("spec.domain", format!("'{domain}' is not a lower-case DNS name")));
    }
}

fn origin(kanidm: &Kanidm, errors: &mut Vec<Refusal>) -> Option<Origin> {
    let Some(text) = &kanidm.spec.origin else { return Some(Origin::of_domain(&kanidm.spec.domain)) };
    Origin::parse(text, &kanidm.spec.domain).map_err(|message| errors.push(Refusal::new("spec.origin", message))).ok()
}

/// Name of the primary's pod: pod 0 of the group that is marked, else of the first that takes writes.
fn primary(cluster: &str, groups: &[ReplicaGroup], errors: &mut Vec<Refusal>) -> Option<String> {
    let takes_writes = |group: &&ReplicaGroup| group.role != Role::ReadOnlyReplica;
    let marked = groups.iter().find(|group| group.primary_node);
    let chosen = marked.or_else(|| groups.iter().find(takes_writes));
    match chosen {
        Some(group) if takes_writes(&group) => return Some(names::pod(cluster, &group.name, 0)),
        Some(group) => errors.push(Refusal::new(
            "spec.replicaGroups",
            format!("group '{}' has primaryNode: true, which needs a role that takes writes", group.name),
        )),
        None => errors.push(Refusal::new("spec.replicaGroups", "one group needs a role that takes writes")),
    }
    None
}

fn check_groups(groups: &[ReplicaGroup], errors: &mut Vec<Refusal>) {
    let mut refuse = |message: String| errors.push(Refusal::new("spec.replicaGroups", message));
    for (index, group) in groups.iter().enumerate() {
        if !is_label(&group.name) {
            refuse(format!("'{}' cannot be the name of a group: use lower-case letters, digits and '-'", group.name));
        }
        if groups.iter().take(index).any(|earlier| earlier.name == group.name) {
            refuse(format!("the name '{}' is used twice", group.name));
        }
        if group.replicas < 0 {
            refuse(format!("group '{}' cannot have fewer than zero replicas", group.name));
        }
    }
    if groups.iter().filter(|group| group.primary_node).count() > 1 {
        refuse("at most one group may have primaryNode: true".to_owned());
    }
}

/// What several nodes, or nodes of elsewhere, need.
fn check_replication(spec: &KanidmSpec, storage: &Storage, errors: &mut Vec<Refusal>) {
    let external = spec.external_replication_nodes.as_deref().unwrap_or_default();
    let nodes: i64 = spec.replica_groups.iter().map(|group| i64::from(group.replicas)).sum();
    if (nodes > 1 || !external.is_empty()) && !replication::is_possible(storage) {
        errors.push(Refusal::new(
            "spec.storage",
            "Replication not available for ephemeral storage. Set volumeClaimTemplate, without emptyDir and ephemeral",
        ));
    }
    for (index, node) in external.iter().enumerate() {
        let field = format!("spec.externalReplicationNodes[{index}]");
        if external.iter().take(index).any(|earlier| earlier.name == node.name) {
            errors.push(Refusal::new(&field, format!("the name '{}' is used twice", node.name)));
        }
        let is_address = node.hostname.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        if is_address || !is_dns_name(&node.hostname.to_ascii_lowercase()) {
            let message = format!("'{}' is not a DNS name, and the server refuses addresses", node.hostname);
            errors.push(Refusal::new(format!("{field}.hostname"), message));
        }
    }
}

/// The image is resolved once: what the status keeps, a default that was taken earlier or an image that has served, goes before the default of
/// this release, so that upgrading the operator changes no server.
fn image(kanidm: &Kanidm, errors: &mut Vec<Refusal>) -> Option<Image> {
    let kept = kanidm.status.as_ref().and_then(|status| status.version.as_ref()?.image.as_deref());
    let reference = kanidm.spec.image.as_deref().or(kept).unwrap_or(DEFAULT_IMAGE);
    Image::parse(reference).map_err(|message| errors.push(Refusal::new("spec.image", message))).ok()
}

fn check_port_name(field: &str, name: &str, errors: &mut Vec<Refusal>) {
    if name == "replication" {
        errors.push(Refusal::new(field, "'replication' is the name of the replication port; take another"));
    }
    let lettered = name.bytes().any(|b| b.is_ascii_lowercase());
    if name.len() > 15 || !is_label(name) || !lettered || name.contains("--") {
        errors.push(Refusal::new(
            field,
            format!("'{name}' must have at most 15 lower-case letters, digits and single '-', at least one letter among them"),
        ));
    }
}

fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let dashed = text.starts_with('-') || text.ends_with('-');
    (1..=63).contains(&text.len()) && text.bytes().all(inner) && !dashed
}

fn is_dns_name(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}
