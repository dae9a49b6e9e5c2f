//! What a pod's own status says of a server: has it started, does it serve, and if not, what keeps it, in words.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::{labels, names};

/// What is seen of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSeen {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// The StatefulSet that it belongs to.
    pub statefulset: String,
    /// Its address.
    pub ip: Option<String>,
    /// Identifies this run of the server: another one after each restart.
    pub run: Option<String>,
    /// Hash of the template that it was made from.
    pub template_hash: Option<String>,
    /// The server's container runs, whether or not its start is over: it can be asked.
    pub running: bool,
    /// The start-up probe has passed: the admin socket answers, and the node holds the domain that it should.
    pub started: bool,
    /// It serves.
    pub ready: bool,
    /// It is being deleted.
    pub ending: bool,
    /// What keeps it from running, for people.
    pub trouble: Option<Trouble>,
}

/// What keeps a pod from running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The image of a container cannot be pulled or is not a name.
    Image(String),
    /// Anything else: crashes, no room, no volume.
    Other(String),
}

/// Reasons for which a container waits when it has no image.
const NO_IMAGE: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
];

/// Reads a pod of the StatefulSet of this name.
#[must_use]
pub fn seen(pod: &Pod, statefulset: &str) -> PodSeen {
    let metadata = &pod.metadata;
    let annotations = metadata.annotations.as_ref();
    let status = pod.status.as_ref();
    let server = statuses(pod).find(|container| container.name == names::SERVER_CONTAINER);
    let ending = metadata.deletion_timestamp.is_some();
    let is_true = |kind: &str| {
        let mut conditions = status.into_iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.any(|condition| condition.type_ == kind && condition.status == "True")
    };
    PodSeen {
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        statefulset: statefulset.to_owned(),
        ip: status.and_then(|status| status.pod_ip.clone()),
        run: server.and_then(|server| server.container_id.clone()),
        template_hash: annotations.and_then(|annotations| annotations.get(labels::TEMPLATE_HASH).cloned()),
        running: !ending
            && server.and_then(|server| server.state.as_ref()).is_some_and(|state| state.running.is_some()),
        started: !ending && server.is_some_and(|server| server.started == Some(true)),
        ready: !ending && is_true("Ready"),
        ending,
        trouble: trouble(pod),
    }
}

fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.iter();
    status.flat_map(|status| status.init_container_statuses.iter().chain(&status.container_statuses).flatten())
}

/// The first thing that keeps the pod from running, in the order in which a pod comes to life.
fn trouble(pod: &Pod) -> Option<Trouble> {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let unscheduled =
        conditions.clone().find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    if let Some(condition) = unscheduled {
        let why = condition.message.as_deref().or(condition.reason.as_deref()).unwrap_or("no reason was given");
        return Some(Trouble::Other(format!("no machine takes it: {why}")));
    }
    statuses(pod).find_map(container_trouble)
}

fn container_trouble(container: &ContainerStatus) -> Option<Trouble> {
    let name = &container.name;
    let waiting = container.state.as_ref().and_then(|state| state.waiting.as_ref());
    if let Some(waiting) = waiting
        && let Some(reason) = waiting.reason.as_deref()
    {
        let why = waiting.message.as_deref().unwrap_or(reason);
        if NO_IMAGE.contains(&reason) {
            return Some(Trouble::Image(format!("container '{name}': {why}")));
        }
        if matches!(reason, "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError") {
            return Some(Trouble::Other(format!("container '{name}' cannot be made: {why}")));
        }
    }
    // One that ran and ended, and now waits or runs anew without having started.
    let ended = container.state.as_ref().and_then(|state| state.terminated.as_ref());
    let last = container.last_state.as_ref().and_then(|state| state.terminated.as_ref());
    let ended = ended.or(last.filter(|_| container.started != Some(true))).filter(|ended| ended.exit_code != 0)?;
    let (code, again) = (ended.exit_code, container.restart_count);
    let log = || format!("`kubectl logs --previous -c {name}` says why");
    let why = ended.message.as_deref().map(|message| message.trim().to_owned()).filter(|why| !why.is_empty());
    let why = why.unwrap_or_else(log);
    Some(Trouble::Other(format!(
        "container '{name}' ended with code {code} and was started again {again} times; {why}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(status: &str) -> PodSeen {
        let yaml = format!(
            "metadata: {{name: idm-a-0, uid: u, annotations: {{kanidm.kaniop.rs/template-hash: h}}}}\nstatus: {status}"
        );
        seen(&serde_norway::from_str(&yaml).unwrap(), "idm-a")
    }

    #[test]
    fn a_server_that_started_and_serves() {
        let seen = pod(
            "{podIP: 10.0.0.7, conditions: [{type: Ready, status: 'True'}], containerStatuses: [{name: kanidm, started: true, ready: true, \
             restartCount: 0, image: i, imageID: i, containerID: 'containerd://1', state: {running: {}}}]}",
        );
        assert!(seen.started && seen.ready && seen.trouble.is_none(), "{seen:?}");
        assert_eq!(
            (seen.ip.as_deref(), seen.run.as_deref(), seen.template_hash.as_deref()),
            (Some("10.0.0.7"), Some("containerd://1"), Some("h"))
        );
    }

    #[test]
    fn a_pod_that_is_just_starting_has_no_trouble() {
        let seen = pod(
            "{containerStatuses: [{name: kanidm, started: false, ready: false, restartCount: 0, image: i, imageID: i, \
             state: {waiting: {reason: PodInitializing}}}]}",
        );
        assert!(!seen.started && seen.trouble.is_none(), "{seen:?}");
    }

    #[test]
    fn what_keeps_a_pod_from_running_is_said() {
        let container = |state: &str| {
            format!(
                "{{containerStatuses: [{{name: kanidm, started: false, ready: false, restartCount: 3, image: i, imageID: i, {state}}}]}}"
            )
        };
        for (status, said) in [
            (
                container("state: {waiting: {reason: ImagePullBackOff, message: no such tag}}"),
                "Image(\"container 'kanidm': no such tag",
            ),
            (
                container("state: {waiting: {reason: CreateContainerConfigError, message: not root}}"),
                "cannot be made: not root",
            ),
            (
                container("state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1}}"),
                "ended with code 1 and was started again 3 times",
            ),
            (
                "{conditions: [{type: PodScheduled, status: 'False', message: 0/1 nodes}]}".to_owned(),
                "no machine takes it: 0/1 nodes",
            ),
            (
                "{initContainerStatuses: [{name: node, ready: false, restartCount: 0, image: i, imageID: i, \
                  state: {waiting: {reason: ErrImagePull, message: gone}}}]}"
                    .to_owned(),
                "container 'node': gone",
            ),
        ] {
            let trouble = format!("{:?}", pod(&status).trouble);
            assert!(trouble.contains(said), "{status}: {trouble}");
        }
    }

    #[test]
    fn a_pod_that_is_ending_serves_nobody() {
        let yaml = "
metadata: {name: idm-a-0, deletionTimestamp: '2030-01-01T00:00:00Z'}
status: {conditions: [{type: Ready, status: 'True'}], containerStatuses: [{name: kanidm, started: true, ready: true, restartCount: 0, image: i, imageID: i}]}
";
        let seen = seen(&serde_norway::from_str(yaml).unwrap(), "idm-a");
        assert!(seen.ending && !seen.ready && !seen.started);
    }
}
