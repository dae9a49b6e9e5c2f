//! What users add to the containers: one named like ours is merged over it as a JSON merge patch (RFC 7396), any other stands beside it. What the
//! server cannot live without is put back after the merge, so no patch takes it away. Whether the names fit is [`check`](super::check)'s.

use k8s_openapi::api::core::v1::{Capabilities, Container, ContainerPort, Probe, SecurityContext, VolumeMount};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{environment, words};

/// The server's container under a user's.
pub(super) fn server(ours: Container, theirs: Option<&Container>, makes_backups: bool) -> Container {
    let Some(theirs) = theirs else { return ours };
    let kept = |probe: &Option<Probe>, theirs: &Option<Probe>| without_question(probe.clone(), theirs.as_ref());
    let base = Container {
        startup_probe: kept(&ours.startup_probe, &theirs.startup_probe),
        readiness_probe: kept(&ours.readiness_probe, &theirs.readiness_probe),
        liveness_probe: kept(&ours.liveness_probe, &theirs.liveness_probe),
        ..ours.clone()
    };
    Container {
        // Which release runs is decided in one place: nothing gets round the gate for upgrades.
        image: ours.image,
        env: Some(environment(&[list(&ours.env), list(&theirs.env)].concat(), makes_backups)),
        ports: Some(ports(ours.ports.unwrap_or_default(), list(&theirs.ports))),
        volume_mounts: Some(mounts(ours.volume_mounts.unwrap_or_default(), list(&theirs.volume_mounts))),
        security_context: Some(security(ours.security_context.unwrap_or_default(), theirs.security_context.as_ref())),
        ..patched(base, theirs)
    }
}

/// The container that copies the node helper, under a user's.
pub(super) fn helper(ours: Container, theirs: Option<&Container>) -> Container {
    let Some(theirs) = theirs else { return ours };
    Container {
        args: ours.args.clone(),
        env: Some(environment(list(&theirs.env), false)),
        // It ends when it has copied; as a sidecar it would be started again and again.
        restart_policy: None,
        volume_mounts: Some(mounts(ours.volume_mounts.clone().unwrap_or_default(), list(&theirs.volume_mounts))),
        security_context: Some(security(
            ours.security_context.clone().unwrap_or_default(),
            theirs.security_context.as_ref(),
        )),
        ..patched(ours, theirs)
    }
}

/// The containers beside the one of ours that is named. What they do not say of their own security is what *restricted* asks.
pub(super) fn others<'a>(
    containers: Option<&'a Vec<Container>>,
    ours: &'a str,
) -> impl Iterator<Item = Container> + 'a {
    containers.into_iter().flatten().filter(move |container| container.name != ours).map(|container| Container {
        ports: container.ports.as_ref().map(|ports| ports.iter().map(told_apart).collect()),
        security_context: Some(security(restricted(), container.security_context.as_ref())),
        ..container.clone()
    })
}

/// The container of a user that is meant to be merged over ours.
pub(super) fn named<'a>(containers: Option<&'a Vec<Container>>, name: &str) -> Option<&'a Container> {
    containers.into_iter().flatten().find(|container| container.name == name)
}

/// Our mounts, then those of a user that are not a repetition of ours.
pub(super) fn mounts(ours: Vec<VolumeMount>, theirs: &[VolumeMount]) -> Vec<VolumeMount> {
    let repeats = |mount: &VolumeMount| ours.iter().any(|ours| place(&ours.mount_path) == place(&mount.mount_path));
    let theirs: Vec<_> = theirs.iter().filter(|mount| !repeats(mount)).cloned().collect();
    [ours, theirs].concat()
}

/// A path as the kubelet compares it.
pub(super) fn place(path: &str) -> &str {
    path.trim_end_matches('/')
}

/// What *restricted* asks of every container. A root file system that cannot be written is not part of that, and not everybody's program can live
/// with one.
pub(super) fn restricted() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities { drop: Some(words(["ALL"])), add: None }),
        ..SecurityContext::default()
    }
}

fn security(base: SecurityContext, theirs: Option<&SecurityContext>) -> SecurityContext {
    let Some(theirs) = theirs else { return base };
    // Kubernetes refuses a container that is privileged and may not become so.
    let free = theirs.privileged == Some(true);
    let base =
        SecurityContext { allow_privilege_escalation: base.allow_privilege_escalation.filter(|_| !free), ..base };
    patched(base, theirs)
}

/// A probe asks in one way: that of a user takes the place of ours, which a merge alone would put beside it.
fn without_question(ours: Option<Probe>, theirs: Option<&Probe>) -> Option<Probe> {
    let asks = |probe: &Probe| {
        probe.exec.is_some() || probe.http_get.is_some() || probe.tcp_socket.is_some() || probe.grpc.is_some()
    };
    let other = theirs.is_some_and(asks);
    ours.map(|ours| match other {
        true => Probe { exec: None, http_get: None, tcp_socket: None, grpc: None, ..ours },
        false => ours,
    })
}

/// Our ports, with what a user says of them (a port of the machine, say) under our names, then the user's.
fn ports(ours: Vec<ContainerPort>, theirs: &[ContainerPort]) -> Vec<ContainerPort> {
    let theirs: Vec<_> = theirs.iter().map(told_apart).collect();
    let same = |a: &ContainerPort, b: &ContainerPort| a.container_port == b.container_port && a.protocol == b.protocol;
    let added: Vec<_> = theirs.iter().filter(|port| !ours.iter().any(|ours| same(ours, port))).cloned().collect();
    let ours = ours.into_iter().map(|ours| match theirs.iter().find(|theirs| same(&ours, theirs)) {
        Some(theirs) => ContainerPort { name: ours.name, ..theirs.clone() },
        None => ours,
    });
    ours.chain(added).collect()
}

/// A port with its protocol: the API server tells ports apart by both, and what it fills in there would never be as we applied it.
fn told_apart(port: &ContainerPort) -> ContainerPort {
    ContainerPort { protocol: port.protocol.clone().or_else(|| Some("TCP".to_owned())), ..port.clone() }
}

/// JSON merge patch. An absent field says nothing, so it takes nothing away.
fn patched<T: Serialize + DeserializeOwned + Clone>(ours: T, theirs: &T) -> T {
    let (Ok(mut merged), Ok(patch)) = (serde_json::to_value(&ours), serde_json::to_value(theirs)) else { return ours };
    json_patch::merge(&mut merged, &patch);
    // Both are of this type, and so is what comes of them: scalars and lists are taken from one, objects from both.
    serde_json::from_value(merged).unwrap_or(ours)
}

fn list<T>(of: &Option<Vec<T>>) -> &[T] {
    of.as_deref().unwrap_or_default()
}
