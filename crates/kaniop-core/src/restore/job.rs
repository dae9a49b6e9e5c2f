//! The Jobs of a restore: who does the work on the volume, as which user, on which node, for how long, and what it is told. Pure builders; they
//! make nothing.
//!
//! A Job's one container runs the server's own image, into which an init container copies `kaniop`, as in a server's pod. `kaniop node` does the
//! work and starts `/sbin/kanidmd` itself; what it prints for people goes to the log, and its answer, one line of JSON that holds an
//! [`Answer`](super::Answer) (`{"source": {…}}`), to the termination message. Nothing that it is told or answers is secret. It ends with 0 only
//! when it has answered; with any other code the termination message is a text for people.
//!
//! | subcommand | flags | does | answer |
//! |---|---|---|---|
//! | `restore-image` | `--restore UID` | finds `/sbin/kanidmd` and runs its `version`; no volume | `image` |
//! | `restore-preflight` | `--restore UID` `--file NAME` `--predecessor UID`… | reads the whole backup and proves it, makes a hard link of it under a name of its own, writes itself into the journal as the one who may change the volume; removes links of others | `source` |
//! | `restore-database` | `--restore UID` `--domain NAME` `--origin URL` `--predecessor UID`… | marks the volume, moves the old database files aside (the safety copy), restores the linked backup onto the empty path | `restored` |
//! | `restore-verify` | `--restore UID` `--domain NAME` `--origin URL` | seals the journal, runs the server's own check, backs the database up and reads that | `database` |
//! | `restore-unmark` | `--restore UID` `--predecessor UID`… | takes the journal over and seals it, removes the mark of this restore or of a predecessor, and the link | `unmarked` |
//!
//! `--predecessor` may be absent or stand several times. Domain and origin are what the server has to be configured with to open a database; its
//! own configuration is not used, for that may be of a newer release than the image. What each of them has to hold on the volume, for a Job may run late, twice, or beside another:
//!
//! - All but `restore-image` hold an exclusive lock on a file of the volume while they run, and refuse when they do not get it, or when
//!   something answers on the admin socket: then a server lives there.
//! - `restore-database` and `restore-verify` refuse unless the journal names this restore, and `restore-database` refuses a sealed one: what was
//!   verified is never replaced again. A safety copy that exists is kept, and the database beside it is the half of an earlier try, which goes.
//! - The mark is written, and on the disk, before the first change. While it is there the init container of a server's pod refuses to start one.
//! - `restore-preflight` takes the journal over from nobody, from itself, from a restore that has unmarked the volume, or from a predecessor.
//! - `restore-unmark` is idempotent: a mark that is not there is removed. The seal keeps a `restore-database` away that comes late, made by an
//!   operator that was paused while somebody forced the release.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::{
    Job, JobSpec, PodFailurePolicy, PodFailurePolicyOnPodConditionsPattern, PodFailurePolicyRule,
};
use k8s_openapi::api::core::v1::{
    Affinity, Container, EmptyDirVolumeSource, LocalObjectReference, PersistentVolumeClaimVolumeSource,
    PodSecurityContext, PodSpec, PodTemplateSpec, ResourceRequirements, Toleration, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kaniop_api::restore::RestorePlan;

use super::deadline;
use super::effect::Task;
use super::world::Request;
use crate::cluster::image::Image;
use crate::cluster::{labels, names, pod};
use crate::name::fingerprint;

/// On Jobs and pods of a restore: its UID. They carry none of the labels that a Service or StatefulSet of servers selects.
pub const RESTORE: &str = "restore.kaniop.rs/restore";
/// On Jobs and pods of a restore: what they are for.
pub const TASK: &str = "restore.kaniop.rs/task";
/// Container whose termination message is the answer.
pub const CONTAINER: &str = "restore";
/// Value of the label that says who made it.
const MANAGER: &str = "kaniop-restore";
/// Longest name of a Job: it becomes a label of its pods.
const NAME_MAX: usize = 63;

/// What the Jobs have in common with the servers' pods.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surroundings<'a> {
    /// Namespace of Kanidm and restore.
    pub namespace: &'a str,
    /// The restore, which the Jobs go with.
    pub owner: OwnerReference,
    /// The operator's own image, which brings the node helper.
    pub helper_image: &'a str,
    /// Identity domain.
    pub domain: &'a str,
    /// URL that clients use.
    pub origin: &'a str,
    /// Security context of the servers' pods where the user replaces the hardened one.
    pub pod_security: Option<PodSecurityContext>,
    /// Secrets for pulling the image.
    pub pull_secrets: Option<Vec<LocalObjectReference>>,
    /// When the image is pulled.
    pub pull_policy: Option<String>,
    /// Resources of the primary's server.
    pub resources: Option<ResourceRequirements>,
    /// Where the primary's pod may run.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Its affinity.
    pub affinity: Option<Affinity>,
    /// Its tolerations.
    pub tolerations: Option<Vec<Toleration>>,
    /// Its runtime.
    pub runtime_class: Option<String>,
    /// Its priority.
    pub priority_class: Option<String>,
    /// Whether it shares the machine's user namespace.
    pub host_users: Option<bool>,
}

/// The name of a Job: of bounded length whatever the restore is called, and of this restore alone.
#[must_use]
pub fn name(request: &Request, task: Task) -> String {
    let hash = fingerprint([request.uid.as_bytes()]);
    let end = format!("-{}-{}", hash.get(..10).unwrap_or(&hash), task.as_str());
    // A name may have dots, which a host name may not.
    let plain: String = request.name.chars().map(|c| if c == '.' { '-' } else { c }).collect();
    let start: String = plain.chars().take(NAME_MAX - end.len()).collect();
    format!("{}{end}", start.trim_end_matches('-'))
}

/// What is wrong with this image for restoring, if anything.
pub(super) fn refused_image(image: &str) -> Option<String> {
    match Image::parse(image) {
        Err(message) => Some(message),
        Ok(parsed) if !image.contains('@') && parsed.tag() == "latest" => Some(format!(
            "restoreImage '{image}' needs an exact tag or a digest: what 'latest' is tomorrow may not read this backup"
        )),
        Ok(_) => None,
    }
}

/// The Job of a task. Without a plan, which is before anything is claimed, only the image can be tried.
#[must_use]
pub fn job(request: &Request, plan: Option<&RestorePlan>, task: Task, around: &Surroundings<'_>) -> Job {
    let labels = BTreeMap::from([
        (labels::MANAGED_BY.to_owned(), MANAGER.to_owned()),
        (RESTORE.to_owned(), request.uid.clone()),
        (TASK.to_owned(), task.as_str().to_owned()),
    ]);
    let metadata = ObjectMeta {
        name: Some(name(request, task)),
        namespace: Some(around.namespace.to_owned()),
        labels: Some(labels.clone()),
        owner_references: Some(vec![around.owner.clone()]),
        ..ObjectMeta::default()
    };
    Job {
        metadata,
        spec: Some(JobSpec {
            // A failure is an answer. What to do about it is decided by the restore, not by another try.
            backoff_limit: Some(0),
            active_deadline_seconds: i64::try_from(deadline::of_job(task).as_secs()).ok(),
            pod_failure_policy: Some(drained_nodes_are_no_failure()),
            // Never two of them on one volume.
            pod_replacement_policy: Some("Failed".to_owned()),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
                spec: Some(pod_of(request, plan, task, around)),
            },
            ..JobSpec::default()
        }),
        status: None,
    }
}

/// A pod that was evicted says nothing about the work.
fn drained_nodes_are_no_failure() -> PodFailurePolicy {
    PodFailurePolicy {
        rules: vec![PodFailurePolicyRule {
            action: "Ignore".to_owned(),
            on_pod_conditions: Some(vec![PodFailurePolicyOnPodConditionsPattern {
                type_: "DisruptionTarget".to_owned(),
                status: "True".to_owned(),
            }]),
            ..PodFailurePolicyRule::default()
        }],
    }
}

fn pod_of(request: &Request, plan: Option<&RestorePlan>, task: Task, around: &Surroundings<'_>) -> PodSpec {
    let claim = plan.filter(|_| task != Task::Image).map(|plan| plan.primary_claim.name.clone());
    let mut volumes = vec![
        scratch("node"),
        // The server writes its socket and lock beside its database; nothing else of the root file system can be written.
        scratch("tmp"),
    ];
    let mut mounts = vec![pod::mount("node", names::HELPER_PATH, true), pod::mount("tmp", "/tmp", false)];
    if let Some(claim_name) = claim {
        volumes.push(Volume {
            name: names::DATA.to_owned(),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource { claim_name, read_only: None }),
            ..Volume::default()
        });
        mounts.push(pod::mount(names::DATA, names::DATA_PATH, false));
    }
    PodSpec {
        restart_policy: Some("Never".to_owned()),
        init_containers: Some(vec![helper(around)]),
        containers: vec![Container {
            name: CONTAINER.to_owned(),
            image: Some(request.image.clone()),
            image_pull_policy: around.pull_policy.clone(),
            command: Some(command(request, plan, task, around)),
            resources: around.resources.clone(),
            security_context: Some(pod::confined()),
            termination_message_policy: Some("File".to_owned()),
            volume_mounts: Some(mounts),
            ..Container::default()
        }],
        volumes: Some(volumes),
        security_context: Some(around.pod_security.clone().unwrap_or_else(pod::hardened)),
        image_pull_secrets: around.pull_secrets.clone(),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        node_selector: around.node_selector.clone(),
        affinity: around.affinity.clone(),
        tolerations: around.tolerations.clone(),
        runtime_class_name: around.runtime_class.clone(),
        priority_class_name: around.priority_class.clone(),
        host_users: around.host_users,
        ..PodSpec::default()
    }
}

/// As in a server's pod: the server's image has nothing in it but the server.
fn helper(around: &Surroundings<'_>) -> Container {
    Container {
        name: names::HELPER_CONTAINER.to_owned(),
        image: Some(around.helper_image.to_owned()),
        args: Some(["node", "install", names::HELPER_BINARY].map(str::to_owned).to_vec()),
        resources: around.resources.clone(),
        security_context: Some(pod::confined()),
        volume_mounts: Some(vec![pod::mount("node", names::HELPER_PATH, false)]),
        ..Container::default()
    }
}

fn command(request: &Request, plan: Option<&RestorePlan>, task: Task, around: &Surroundings<'_>) -> Vec<String> {
    let subcommand = match task {
        Task::Image => "restore-image",
        Task::Preflight => "restore-preflight",
        Task::Restore => "restore-database",
        Task::Verify => "restore-verify",
        Task::Unmark => "restore-unmark",
    };
    let mut command = vec![names::HELPER_BINARY.to_owned(), "node".to_owned(), subcommand.to_owned()];
    // As one word, so that no name can be taken for a flag.
    command.push(format!("--restore={}", request.uid));
    if task == Task::Preflight {
        command.push(format!("--file={}", request.file_name));
    }
    if matches!(task, Task::Restore | Task::Verify) {
        command.extend([format!("--domain={}", around.domain), format!("--origin={}", around.origin)]);
    }
    if matches!(task, Task::Preflight | Task::Restore | Task::Unmark) {
        let predecessors = plan.iter().flat_map(|plan| &plan.predecessors);
        command.extend(predecessors.map(|uid| format!("--predecessor={uid}")));
    }
    command
}

fn scratch(name: &str) -> Volume {
    Volume { name: name.to_owned(), empty_dir: Some(EmptyDirVolumeSource::default()), ..Volume::default() }
}
