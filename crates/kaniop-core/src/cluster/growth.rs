//! Growth of the databases' volumes: which claims are asked for more room now, which cannot be and why, and how far the others are.
//!
//! Decides only. A claim is never made smaller, deleted or made anew, and one that somebody made larger than the spec is left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;

use super::storage::size;
use super::validate::{Refusal, ValidatedCluster};
use super::{labels, names, quantity};

/// The field that says how large the volumes are to be.
const FIELD: &str = "spec.storage.volumeClaimTemplate.spec.resources.requests.storage";

/// What is known of a StorageClass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It lets claims grow.
    Allows,
    /// It does not say so.
    Refuses,
    /// There is none of this name (any more).
    Gone,
    /// The operator may not read it: the API server judges when it is asked.
    Unknown,
}

/// A claim that is to ask for more room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Larger {
    /// Its name.
    pub claim: String,
    /// Its UID.
    pub uid: Option<String>,
    /// The version that was judged.
    pub version: Option<String>,
    /// What it asks for.
    pub from: String,
    /// What it is to ask for.
    pub to: String,
}

impl fmt::Display for Larger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Claim '{}' asks for {} instead of {}.", self.claim, self.to, self.from)
    }
}

impl Larger {
    /// That the API server refuses it.
    #[must_use]
    pub fn refused(&self, why: &str) -> Refusal {
        Refusal::new(
            FIELD,
            format!(
                "{why}. Claim '{}' stays at {}; remove the cause, or {}",
                self.claim,
                self.from,
                set_back(&self.from)
            ),
        )
    }
}

/// What becomes of the claims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    /// Claims that are to ask for more room now.
    pub larger: Vec<Larger>,
    /// What cannot be carried out.
    pub refused: Vec<Refusal>,
    /// How far those are that grow, a sentence for each.
    pub under_way: Vec<String>,
}

/// A claim of a server, as far as growing goes.
struct Seen<'a> {
    claim: &'a PersistentVolumeClaim,
    name: &'a str,
    /// The pod that it belongs to, if the spec still has that one.
    pod: Option<String>,
    wanted: &'a str,
    asks: &'a str,
    /// Whether it asks for less than is wanted.
    is_small: bool,
}

/// The StorageClasses of the claims that are too small: what has to be known before [`growth`] is asked.
#[must_use]
pub fn classes<'a>(
    cluster: &'a ValidatedCluster,
    live: &'a [StatefulSet],
    claims: &'a [PersistentVolumeClaim],
) -> BTreeSet<&'a str> {
    seen(cluster, live, claims)
        .filter(|seen| seen.is_small && seen.is_bound())
        .filter_map(|seen| seen.class())
        .collect()
}

/// What becomes of the claims of these StatefulSets. A class that is not in the map is unknown.
#[must_use]
pub fn growth(
    cluster: &ValidatedCluster,
    live: &[StatefulSet],
    claims: &[PersistentVolumeClaim],
    classes: &BTreeMap<String, Class>,
) -> Growth {
    let mut growth = Growth::default();
    let mut stuck: BTreeMap<Option<&str>, (Class, Vec<&Seen<'_>>)> = BTreeMap::new();
    let all: Vec<_> = seen(cluster, live, claims).collect();
    for seen in all.iter().filter(|seen| seen.is_small) {
        let class = seen.class();
        let known = class.map_or(Class::Gone, |class| classes.get(class).copied().unwrap_or(Class::Unknown));
        match known {
            // Kubernetes resizes only what is bound. One that waits for its first pod is bound in a moment.
            _ if !seen.is_bound() => growth.under_way.extend(seen.pod.as_ref().map(|_| {
                format!("Claim '{}' asks for {} instead of {} once it is bound.", seen.name, seen.wanted, seen.asks)
            })),
            Class::Allows | Class::Unknown => growth.larger.push(seen.larger()),
            // Whoever scales up again is told then.
            Class::Refuses | Class::Gone if seen.pod.is_none() => {}
            Class::Refuses | Class::Gone => stuck.entry(class).or_insert_with(|| (known, Vec::new())).1.push(seen),
        }
    }
    growth.refused.extend(stuck.iter().map(|(class, (known, claims))| refusal(*class, *known, claims)));
    growth.refused.extend(smaller(&all));
    growth.under_way.extend(all.iter().filter(|seen| !seen.is_small).filter_map(Seen::progress));
    growth
}

fn refusal(class: Option<&str>, known: Class, claims: &[&Seen<'_>]) -> Refusal {
    let (names, asks): (Vec<_>, BTreeSet<_>) =
        claims.iter().map(|seen| (format!("'{}'", seen.name), seen.asks)).unzip();
    let asks = asks.into_iter().collect::<Vec<_>>().join(", ");
    let (why, cure) = match (class, known) {
        (None, _) => (
            "they have no StorageClass, and only volumes of one can grow".to_owned(),
            "Enlarge them by other means".to_owned(),
        ),
        (Some(class), Class::Gone) => (
            format!("their StorageClass '{class}' does not exist"),
            format!("Create '{class}' again with allowVolumeExpansion: true, if its driver can"),
        ),
        (Some(class), _) => (
            format!("their StorageClass '{class}' does not allow it"),
            format!("Set allowVolumeExpansion: true on '{class}', if its driver can"),
        ),
    };
    let (names, back) = (names.join(", "), set_back(&asks));
    Refusal::new(FIELD, format!("claims cannot grow, for {why}. They stay at {asks}: {names}. {cure}, or {back}"))
}

/// That the spec asks for less than the operator has asked claims for.
fn smaller(all: &[Seen<'_>]) -> Option<Refusal> {
    let grown = all.iter().filter(|seen| seen.pod.is_some() && seen.was_grown_beyond());
    let largest = grown.max_by_key(|seen| quantity::nanos(seen.asks))?;
    let message = format!(
        "the claims were made larger, up to {}, and a volume cannot become smaller. Set requests.storage to {} or more",
        largest.asks, largest.asks
    );
    Some(Refusal::new(FIELD, message))
}

fn set_back(size: &str) -> String {
    format!("set requests.storage back to {size}")
}

/// The claims of these StatefulSets, by what they are called and labelled: those of other owners are left alone.
fn seen<'a>(
    cluster: &'a ValidatedCluster,
    live: &'a [StatefulSet],
    claims: &'a [PersistentVolumeClaim],
) -> impl Iterator<Item = Seen<'a>> {
    live.iter().flat_map(move |set| claims.iter().filter_map(move |claim| of_set(cluster, set, claim)))
}

fn of_set<'a>(
    cluster: &'a ValidatedCluster,
    set: &'a StatefulSet,
    claim: &'a PersistentVolumeClaim,
) -> Option<Seen<'a>> {
    let wanted = &cluster.storage.size(set)?.0;
    let set_name = set.metadata.name.as_deref()?;
    let name = claim.metadata.name.as_deref()?;
    let ordinal = name.strip_prefix(&names::claim_prefix(set_name))?;
    let number: i32 = ordinal.parse().ok().filter(|number: &i32| number.to_string() == ordinal)?;
    let pod = format!("{set_name}-{ordinal}");
    let labels = claim.metadata.labels.as_ref()?;
    let is_ours =
        labels.get(labels::CLUSTER) == Some(&cluster.name)
            && claim.metadata.namespace.as_deref().is_none_or(|namespace| namespace == cluster.namespace)
            && claim.metadata.owner_references.iter().flatten().filter(|owner| owner.controller == Some(true)).all(
                |owner| Some(&owner.uid) == set.metadata.uid.as_ref() || (owner.kind == "Pod" && owner.name == pod),
            );
    if !is_ours || claim.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let group =
        cluster.spec.replica_groups.iter().find(|group| names::statefulset(&cluster.name, &group.name) == set_name);
    let asks = &size(claim)?.0;
    let is_small = quantity::nanos(asks)? < quantity::nanos(wanted)?;
    let pod = group.filter(|group| number < group.replicas).map(|_| pod);
    Some(Seen { claim, name, pod, wanted, asks, is_small })
}

impl<'a> Seen<'a> {
    fn class(&self) -> Option<&'a str> {
        self.claim.spec.as_ref()?.storage_class_name.as_deref().filter(|class| !class.is_empty())
    }

    fn is_bound(&self) -> bool {
        self.claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound")
    }

    fn larger(&self) -> Larger {
        Larger {
            claim: self.name.to_owned(),
            uid: self.claim.metadata.uid.clone(),
            version: self.claim.metadata.resource_version.clone(),
            from: self.asks.to_owned(),
            to: self.wanted.to_owned(),
        }
    }

    /// Whether the operator made it as large as it is, and the spec asks for less by now.
    fn was_grown_beyond(&self) -> bool {
        let grown = self.claim.metadata.annotations.as_ref().and_then(|annotations| annotations.get(labels::GROWN_TO));
        let asks = quantity::nanos(self.asks);
        asks > quantity::nanos(self.wanted) && grown.is_some_and(|grown| quantity::nanos(grown) == asks)
    }

    /// How far a claim is that asks for enough and does not have it yet.
    fn progress(&self) -> Option<String> {
        let status = self.claim.status.as_ref()?;
        let has = &status.capacity.as_ref()?.get("storage")?.0;
        let pod = self.pod.as_ref()?;
        if !self.is_bound() || quantity::nanos(has)? >= quantity::nanos(self.wanted)? {
            return None;
        }
        let conditions: Vec<_> =
            status.conditions.iter().flatten().filter(|condition| condition.status == "True").collect();
        let of = |kind: &str| conditions.iter().find(|condition| condition.type_ == kind);
        let failed = of("ControllerResizeError").or_else(|| of("NodeResizeError"));
        let how = match failed {
            Some(failed) => {
                format!(
                    "its driver fails: {}",
                    failed.message.as_deref().unwrap_or("it does not say why").trim_end_matches('.')
                )
            }
            None if of("FileSystemResizePending").is_some() => format!(
                "its volume is large enough and its file system follows, which some drivers do only when pod '{pod}' starts again"
            ),
            None if of("Resizing").is_some() => "its volume is being resized".to_owned(),
            None => "its driver has not begun yet".to_owned(),
        };
        Some(format!("Claim '{}' grows from {has} to {}: {how}.", self.name, self.asks))
    }
}
