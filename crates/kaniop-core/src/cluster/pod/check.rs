//! Errors of the user in what is added to the pods: names and paths that are the operator's own, or used twice. What the API server judges by
//! itself (quantities, paths, volumes that nobody declared) is left to it.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, ContainerPort, VolumeMount};
use kaniop_api::kanidm::KanidmSpec;

use super::super::image::Image;
use super::super::names;
use super::super::validate::Refusal;
use super::merge::{named, place};
use super::own_ports;

/// Volumes of ours, and where the server sees each.
const OURS: [(&str, &str); 4] = [
    (names::DATA, names::DATA_PATH),
    (names::TLS_VOLUME, names::TLS_PATH),
    (names::CONFIG_VOLUME, names::CONFIG_PATH),
    (names::HELPER_VOLUME, names::HELPER_PATH),
];

/// Adds every error in what a spec adds to the pods.
pub(in super::super) fn check(spec: &KanidmSpec, image: Option<&Image>, errors: &mut Vec<Refusal>) {
    volumes(spec, errors);
    let server = named(spec.containers.as_ref(), names::SERVER_CONTAINER);
    let helper = named(spec.init_containers.as_ref(), names::HELPER_CONTAINER);
    let of = |container: Option<&Container>| {
        container.and_then(|container| container.volume_mounts.clone()).unwrap_or_default()
    };
    let asked = spec.volume_mounts.clone().unwrap_or_default();
    mounts("spec.volumeMounts", &asked, &OURS, errors);
    mounts("spec.containers[kanidm].volumeMounts", &of(server), &OURS, errors);
    mounts("spec.initContainers[node].volumeMounts", &of(helper), &OURS[2..], errors);
    twice("spec.volumeMounts", "here or in containers[kanidm].volumeMounts", &[asked, of(server)].concat(), errors);
    twice("spec.initContainers[node].volumeMounts", "here", &of(helper), errors);
    containers(spec, errors);
    if let Some(server) = server {
        its_image(server, image, errors);
        its_ports(server, spec, errors);
    }
}

fn volumes(spec: &KanidmSpec, errors: &mut Vec<Refusal>) {
    let asked: Vec<_> = spec.volumes.iter().flatten().map(|volume| volume.name.as_str()).collect();
    for (name, _) in OURS.iter().filter(|(name, _)| asked.contains(name)) {
        let message = format!("'{name}' is the name of one of the operator's own volumes: give yours another name");
        errors.push(Refusal::new("spec.volumes", message));
    }
    for name in repeated(asked.iter().copied()) {
        errors.push(Refusal::new("spec.volumes", format!("the name '{name}' is used twice: give each its own")));
    }
}

fn mounts(field: &str, mounts: &[VolumeMount], ours: &[(&str, &str)], errors: &mut Vec<Refusal>) {
    for mount in mounts {
        let path = place(&mount.mount_path);
        let taken = ours.iter().find(|(volume, own)| match path.strip_prefix(own) {
            Some("") => mount.name != *volume,
            // The database's volume can be written, so there is room for another in it; the others are read-only.
            Some(below) => below.starts_with('/') && *volume != names::DATA,
            None => path.is_empty(),
        });
        if let Some((volume, own)) = taken {
            let message = format!(
                "'{}' is in the way of the operator's own volume '{volume}' at {own}: choose another path",
                mount.mount_path
            );
            errors.push(Refusal::new(field, message));
        }
    }
}

fn twice(field: &str, where_both: &str, mounts: &[VolumeMount], errors: &mut Vec<Refusal>) {
    for path in repeated(mounts.iter().map(|mount| place(&mount.mount_path))) {
        errors.push(Refusal::new(field, format!("'{path}' is mounted twice, {where_both}: keep one")));
    }
}

fn containers(spec: &KanidmSpec, errors: &mut Vec<Refusal>) {
    let in_list = |list: &Option<Vec<Container>>| -> Vec<String> {
        list.iter().flatten().map(|container| container.name.clone()).collect()
    };
    let (beside, before) = (in_list(&spec.containers), in_list(&spec.init_containers));
    for (field, list, other, what) in [
        ("spec.containers", &beside, names::HELPER_CONTAINER, "the operator's own init container"),
        ("spec.initContainers", &before, names::SERVER_CONTAINER, "the server's container"),
    ] {
        if list.iter().any(|name| name == other) {
            errors.push(Refusal::new(field, format!("'{other}' is the name of {what}: give yours another name")));
        }
        for name in repeated(list.iter().map(String::as_str)) {
            errors.push(Refusal::new(field, format!("the name '{name}' is used twice: give each its own")));
        }
    }
    let is_ours = |name: &str| [names::SERVER_CONTAINER, names::HELPER_CONTAINER].contains(&name);
    for name in before.iter().filter(|name| beside.contains(name) && !is_ours(name)).collect::<BTreeSet<_>>() {
        let message = format!("the name '{name}' is used in spec.containers too: give each its own");
        errors.push(Refusal::new("spec.initContainers", message));
    }
    let all = [("spec.containers", &spec.containers), ("spec.initContainers", &spec.init_containers)];
    for (field, container) in all.iter().flat_map(|(field, list)| list.iter().flatten().map(move |one| (field, one))) {
        if container.image.is_none() && !is_ours(&container.name) {
            errors.push(Refusal::new(*field, format!("container '{}' has no image: name one", container.name)));
        }
    }
}

fn its_image(server: &Container, image: Option<&Image>, errors: &mut Vec<Refusal>) {
    let (Some(asked), Some(image)) = (&server.image, image) else { return };
    if asked != image.as_str() {
        let message =
            format!("'{asked}' is not the image in spec.image, which alone says what the server runs: set it there");
        errors.push(Refusal::new("spec.containers[kanidm].image", message));
    }
}

fn its_ports(server: &Container, spec: &KanidmSpec, errors: &mut Vec<Refusal>) {
    for ours in own_ports(spec) {
        let name = ours.name.as_deref().unwrap_or_default();
        let taken =
            |port: &&ContainerPort| port.name.as_deref() == Some(name) && port.container_port != ours.container_port;
        if let Some(port) = server.ports.iter().flatten().find(taken) {
            let message = format!(
                "'{name}' is the name of the server's port {}: give port {} another name",
                ours.container_port, port.container_port
            );
            errors.push(Refusal::new("spec.containers[kanidm].ports", message));
        }
    }
}

/// What occurs more than once, each once.
fn repeated<'a>(items: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    items.filter(|item| !seen.insert(*item)).collect()
}
