//! Where the database lives, and what becomes of a change to that: the claim templates of a StatefulSet can never be changed, so those of the
//! live one are kept. A larger size is carried out claim by claim ([`growth`](super::growth)); any other difference is told, rather than sent and
//! refused for ever. Nothing here deletes or re-creates anything.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    EmptyDirVolumeSource, PersistentVolumeClaim, PersistentVolumeClaimSpec, Volume, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kaniop_api::kanidm::{ClaimTemplate, Storage as Asked};

use super::validate::Refusal;
use super::{names, quantity};

const TEMPLATE: &str = "spec.storage.volumeClaimTemplate";
/// The resource that a claim asks for.
const STORAGE: &str = "storage";

/// Where the database lives.
#[derive(Clone, Debug, PartialEq)]
pub enum Storage {
    /// In a volume that ends with the pod.
    Volume(Box<Volume>),
    /// On a claim for each pod.
    Claim(Box<PersistentVolumeClaim>),
}

impl Storage {
    /// What the spec asks for: the first of its three that is set. Errors of the user are added to the list.
    pub(super) fn of(asked: Option<&Asked>, errors: &mut Vec<Refusal>) -> Self {
        let asked = asked.cloned().unwrap_or_default();
        let volume = Volume { name: names::DATA.to_owned(), ..Volume::default() };
        match (asked.empty_dir, asked.ephemeral, asked.volume_claim_template) {
            (Some(empty_dir), _, _) => Self::Volume(Box::new(Volume { empty_dir: Some(empty_dir), ..volume })),
            (None, Some(ephemeral), _) => Self::Volume(Box::new(Volume { ephemeral: Some(ephemeral), ..volume })),
            (None, None, Some(template)) => Self::Claim(Box::new(claim(template, errors))),
            (None, None, None) => {
                Self::Volume(Box::new(Volume { empty_dir: Some(EmptyDirVolumeSource::default()), ..volume }))
            }
        }
    }

    /// What the StatefulSet gets: what is asked for, or, where that cannot become of the live one, what the live one has.
    #[must_use]
    pub fn settled(&self, live: Option<&StatefulSet>) -> Self {
        match self.change(live) {
            Change::None => self.clone(),
            Change::Larger { kept } | Change::Impossible { kept, .. } => kept,
        }
    }

    /// The change that was asked for and cannot be made, for people.
    #[must_use]
    pub fn refused(&self, live: Option<&StatefulSet>) -> Option<Refusal> {
        match self.change(live) {
            Change::None | Change::Larger { .. } => None,
            Change::Impossible { refusal, .. } => Some(refusal),
        }
    }

    /// How large the claims of a StatefulSet are to be, if it has claims and is not asked for something that cannot be.
    pub(super) fn size(&self, live: &StatefulSet) -> Option<&Quantity> {
        match (self, self.change(Some(live))) {
            (Self::Claim(wants), Change::None | Change::Larger { .. }) => size(wants),
            (Self::Claim(_), Change::Impossible { .. }) | (Self::Volume(_), _) => None,
        }
    }

    fn change(&self, live: Option<&StatefulSet>) -> Change {
        let Some(live) = live else { return Change::None };
        match (live_storage(live), self) {
            (Some(Self::Claim(has)), Self::Claim(wants)) => match difference(&has, wants) {
                Difference::None => Change::None,
                Difference::Larger => Change::Larger { kept: Self::Claim(has) },
                Difference::Other(refusal) => Change::Impossible { kept: Self::Claim(has), refusal },
            },
            (Some(Self::Claim(has)), Self::Volume(_)) => Change::Impossible {
                kept: Self::Claim(has),
                refusal: Refusal::new(
                    "spec.storage",
                    "the database is on a claim and stays there; a volume that ends with the pod would lose it. Put volumeClaimTemplate back",
                ),
            },
            (Some(kept @ Self::Volume(_)), Self::Claim(_)) => Change::Impossible {
                kept,
                refusal: Refusal::new(
                    "spec.storage",
                    "the StatefulSet was made without a claim and cannot get one. Take the setting back, or create a new Kanidm with it",
                ),
            },
            // Either kind of short-lived volume may follow the other, and a StatefulSet without our volume is not one of ours to keep.
            (Some(Self::Volume(_)) | None, _) => Change::None,
        }
    }
}

enum Change {
    None,
    /// The claims can become so, the template cannot.
    Larger {
        kept: Storage,
    },
    Impossible {
        kept: Storage,
        refusal: Refusal,
    },
}

fn live_storage(live: &StatefulSet) -> Option<Storage> {
    let spec = live.spec.as_ref()?;
    let ours = |name: Option<&str>| name == Some(names::DATA);
    let mut claims = spec.volume_claim_templates.iter().flatten();
    if let Some(claim) = claims.find(|claim| ours(claim.metadata.name.as_deref())) {
        return Some(Storage::Claim(Box::new(claim.clone())));
    }
    let mut volumes = spec.template.spec.as_ref()?.volumes.iter().flatten();
    volumes.find(|volume| ours(Some(&volume.name))).map(|volume| Storage::Volume(Box::new(volume.clone())))
}

fn claim(template: ClaimTemplate, errors: &mut Vec<Refusal>) -> PersistentVolumeClaim {
    if template.spec.access_modes.as_ref().is_none_or(Vec::is_empty) {
        errors.push(Refusal::new(format!("{TEMPLATE}.spec.accessModes"), "name one, for example [ReadWriteOnce]"));
    }
    let size = template.spec.resources.as_ref().and_then(|resources| resources.requests.as_ref()?.get(STORAGE));
    match size {
        None => errors.push(Refusal::new(
            format!("{TEMPLATE}.spec.resources.requests.storage"),
            "say how large the volume must be, for example 1Gi",
        )),
        Some(size) if quantity::nanos(&size.0).is_none_or(|nanos| nanos <= 0) => errors.push(Refusal::new(
            format!("{TEMPLATE}.spec.resources.requests.storage"),
            format!("'{}' is not the size of a volume; write for example 1Gi", size.0),
        )),
        Some(_) => {}
    }
    let metadata = template.metadata.unwrap_or_default();
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(names::DATA.to_owned()),
            labels: metadata.labels,
            annotations: metadata.annotations,
            ..ObjectMeta::default()
        },
        spec: Some(template.spec),
        status: None,
    }
}

/// How large a claim asks to be.
pub(super) fn size(claim: &PersistentVolumeClaim) -> Option<&Quantity> {
    claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?.get(STORAGE)
}

enum Difference {
    None,
    Larger,
    Other(Refusal),
}

/// How the claims that are wanted differ from those of the template that exists, whatever the API server filled in.
fn difference(has: &PersistentVolumeClaim, wants: &PersistentVolumeClaim) -> Difference {
    let empty_is_none = |map: &Option<BTreeMap<String, String>>| map.clone().unwrap_or_default();
    let same_metadata = empty_is_none(&has.metadata.labels) == empty_is_none(&wants.metadata.labels)
        && empty_is_none(&has.metadata.annotations) == empty_is_none(&wants.metadata.annotations);
    let number = |claim| size(claim).and_then(|size| quantity::nanos(&size.0));
    let refused = |message: &str| Difference::Other(Refusal::new(TEMPLATE, message));
    if comparable(has) != comparable(wants) || !same_metadata {
        return refused(
            "the claims of existing nodes cannot be changed, but for a larger requests.storage. Put the template back as it was",
        );
    }
    match (number(has), number(wants)) {
        (has, wants) if has == wants => Difference::None,
        (Some(has), Some(wants)) if wants > has => Difference::Larger,
        _ => {
            let made = size(has).map(|size| size.0.as_str()).unwrap_or_default();
            refused(&format!(
                "the claims were made with {made}, and a volume cannot become smaller. Set requests.storage back to {made} or more"
            ))
        }
    }
}

/// A claim's spec with numbers for quantities, its size apart.
fn comparable(claim: &PersistentVolumeClaim) -> PersistentVolumeClaimSpec {
    let mut spec = claim.spec.clone().unwrap_or_default();
    spec.volume_mode.get_or_insert_with(|| "Filesystem".to_owned());
    let resources = spec.resources.take().unwrap_or_default();
    let mut requests = resources.requests.unwrap_or_default();
    requests.remove(STORAGE);
    spec.resources = Some(VolumeResourceRequirements {
        limits: Some(spelt_as_numbers(resources.limits.unwrap_or_default())),
        requests: Some(spelt_as_numbers(requests)),
    });
    spec
}

fn spelt_as_numbers(quantities: BTreeMap<String, Quantity>) -> BTreeMap<String, Quantity> {
    let number = |size: Quantity| quantity::nanos(&size.0).map_or(size, |nanos| Quantity(nanos.to_string()));
    quantities.into_iter().map(|(name, size)| (name, number(size))).collect()
}
