//! Where the database lives, and what becomes of a change to that: the claim templates of a StatefulSet can never be changed, so those of the
//! live one are kept and the difference is told, rather than sent and refused for ever. Nothing here deletes or re-creates anything.

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
            Change::Impossible { kept, .. } => kept,
        }
    }

    /// The change that was asked for and cannot be made, for people.
    #[must_use]
    pub fn refused(&self, live: Option<&StatefulSet>) -> Option<Refusal> {
        match self.change(live) {
            Change::None => None,
            Change::Impossible { refusal, .. } => Some(refusal),
        }
    }

    fn change(&self, live: Option<&StatefulSet>) -> Change {
        let Some(live) = live else { return Change::None };
        match (live_storage(live), self) {
            (Some(Self::Claim(has)), Self::Claim(wants)) => match difference(&has, wants) {
                None => Change::None,
                Some(refusal) => Change::Impossible { kept: Self::Claim(has), refusal },
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
    Impossible { kept: Storage, refusal: Refusal },
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
    match storage_request(&template.spec) {
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

fn storage_request(spec: &PersistentVolumeClaimSpec) -> Option<&Quantity> {
    spec.resources.as_ref()?.requests.as_ref()?.get("storage")
}

/// Whether the claims that exist are those that are wanted, whatever the API server filled in.
fn difference(has: &PersistentVolumeClaim, wants: &PersistentVolumeClaim) -> Option<Refusal> {
    let (has_spec, wants_spec) = (comparable(has), comparable(wants));
    let empty_is_none = |map: &Option<BTreeMap<String, String>>| map.clone().unwrap_or_default();
    let same_metadata = empty_is_none(&has.metadata.labels) == empty_is_none(&wants.metadata.labels)
        && empty_is_none(&has.metadata.annotations) == empty_is_none(&wants.metadata.annotations);
    if has_spec == wants_spec && same_metadata {
        return None;
    }
    let size = |claim: &PersistentVolumeClaim| claim.spec.as_ref().and_then(storage_request).map(|size| size.0.clone());
    let message = match (size(has), size(wants)) {
        (Some(has), Some(wants)) if quantity::nanos(&wants) != quantity::nanos(&has) => format!(
            "the claims were made with {has} and this release does not resize them. Set requests.storage back to {has}, \
             or resize the claims by hand and leave the template as it is"
        ),
        _ => "the claims of existing nodes cannot be changed. Put the template back as it was".to_owned(),
    };
    Some(Refusal::new(TEMPLATE, message))
}

fn comparable(claim: &PersistentVolumeClaim) -> PersistentVolumeClaimSpec {
    let mut spec = claim.spec.clone().unwrap_or_default();
    spec.volume_mode.get_or_insert_with(|| "Filesystem".to_owned());
    let numbers = |quantities: Option<BTreeMap<String, Quantity>>| {
        let quantities = quantities.filter(|quantities| !quantities.is_empty())?;
        let number = |size: Quantity| quantity::nanos(&size.0).map_or(size, |nanos| Quantity(nanos.to_string()));
        Some(quantities.into_iter().map(|(name, size)| (name, number(size))).collect())
    };
    let resources = spec.resources.take().unwrap_or_default();
    spec.resources =
        Some(VolumeResourceRequirements { limits: numbers(resources.limits), requests: numbers(resources.requests) });
    spec
}
