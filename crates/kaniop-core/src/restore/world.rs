//! What is seen when a step is decided. Whatever could not be read is absent here, and absence never leads forward.
//!
//! Pods and Jobs may be of a cache that lags: every step that relies on them stands behind a fence of its own, on the volume or in the pods'
//! configuration. Everything else is the API server's own answer in this pass. That an old volume or the target is gone, above all, is never
//! taken from a cache. The target's claim, UID and `status.maintenance` are of one reading of one object, and effects on it carry its
//! `resourceVersion`.

use std::collections::BTreeMap;

use kaniop_api::restore::{DatabaseEvidence, Maintenance, PlannedClaim, PlannedGroup, RestorePlan, Servers};

use super::effect::Task;

/// What is seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct World {
    /// The request itself.
    pub request: Request,
    /// The Kanidm of the name in the request.
    pub target: Sight<Target>,
    /// What of the target runs pods: its StatefulSets, and its mail sender.
    pub workloads: Option<Vec<Workload>>,
    /// Every PersistentVolumeClaim that a server of this Kanidm has or has had: by the names of its pods, whatever the spec says now.
    pub claims: Option<Vec<VolumeClaim>>,
    /// Who has one of these volumes: pods that have not ended, and attachments.
    pub holders: Option<Vec<Holder>>,
    /// The servers that run.
    pub nodes: Option<Vec<Node>>,
    /// This restore's Jobs. One that is not in here does not exist.
    pub jobs: Option<BTreeMap<Task, JobSeen>>,
    /// All other restores of the same target UID.
    pub others: Option<Vec<Other>>,
    /// The file, as a server that lives finds it.
    pub live: LiveProof,
    /// The credentials that Kaniop itself keeps in Secrets.
    pub credentials: Credentials,
}

/// Something that is there, or is not, or could not be looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sight<T> {
    /// Nobody knows.
    #[default]
    Unknown,
    /// It does not exist.
    Gone,
    /// It is there.
    Here(T),
}

/// The request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Request {
    /// Name of the KanidmRestore.
    pub name: String,
    /// Its UID: every effect is named by it.
    pub uid: String,
    /// Name of the Kanidm.
    pub target: String,
    /// UID of the Kanidm.
    pub target_uid: String,
    /// The backup.
    pub file_name: String,
    /// Image that restores.
    pub image: String,
    /// The object is being deleted.
    pub deleting: bool,
    /// Our finalizer is on it.
    pub finalizer: bool,
    /// The reason in the force-release annotation.
    pub force_release: Option<String>,
}

/// The Kanidm.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Target {
    /// Its UID.
    pub uid: String,
    /// It is being deleted.
    pub deleting: bool,
    /// Changes at every write.
    pub version: String,
    /// UID of the restore in the claim's annotation.
    pub claim: Option<String>,
    /// Which servers the claim lets run.
    pub servers: Servers,
    /// What the cluster's controller has acknowledged.
    pub maintenance: Option<Maintenance>,
    /// The replica groups as the spec has them now, by StatefulSet.
    pub groups: Vec<PlannedGroup>,
    /// The primary's pod; none when the spec is not valid.
    pub primary: Option<String>,
    /// Name of the primary's volume claim; none when the database does not live on one.
    pub primary_claim: Option<String>,
    /// Image of the servers as the spec or the status has it.
    pub image: Option<String>,
    /// UUID of the domain as far as it is known.
    pub domain_uuid: Option<String>,
    /// External replication nodes that are configured, by name.
    pub external_nodes: Vec<String>,
    /// The spec asks for a pause.
    pub paused: bool,
}

/// Something that runs pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Workload {
    /// What it is.
    pub kind: WorkloadKind,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Its resourceVersion.
    pub version: String,
    /// How many pods it is to have.
    pub replicas: i32,
}

/// Kinds of [`Workload`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WorkloadKind {
    /// Servers of a replica group.
    #[default]
    StatefulSet,
    /// The mail sender, which is stopped too but keeps nobody waiting.
    MailSender,
}

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct VolumeClaim {
    /// Name and UID.
    pub id: PlannedClaim,
    /// It is being deleted.
    pub ending: bool,
}

/// Who has a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Holder {
    /// For people: "pod 'x'", "attachment 'y' to node 'z'".
    pub who: String,
    /// Name of the claim.
    pub claim: String,
}

/// A server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Node {
    /// Its pod.
    pub pod: String,
    /// It serves.
    pub serving: bool,
    /// UUID of the domain that it shows.
    pub domain_uuid: Option<String>,
}

/// A Job of this restore.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum JobSeen {
    /// It is not over. What keeps it, if anything.
    Running(Option<String>),
    /// It failed; what it said.
    Failed(String),
    /// It ended with code 0, with this answer if it gave one.
    Ended(Option<Answer>),
}

/// What a Job says in its pod's termination message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// The image runs here: what its server says of its own version.
    Image(String),
    /// What was read from the backup, which is kept under a name of its own now.
    Source(DatabaseEvidence),
    /// The backup was read into an empty database; the old one lies at this path.
    Restored(Option<String>),
    /// What was read from the restored database.
    Database(DatabaseEvidence),
    /// The mark is off the volume.
    Unmarked,
}

/// Another restore of the same target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Other {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// What it has persisted, as far as it matters to others.
    pub state: OtherState,
    /// Its plan.
    pub plan: Option<RestorePlan>,
}

/// How another restore stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OtherState {
    /// Under way.
    #[default]
    Live,
    /// Over, and it holds nothing.
    Over,
    /// It failed after the database may have been changed, and holds its target.
    Stranded,
}

/// The file, as a server that lives finds it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum LiveProof {
    /// It was not asked, or did not answer.
    #[default]
    Unknown,
    /// No server lives that could be asked, or its volume cannot be looked at: proven later, in the outage.
    NoServer,
    /// It is a backup.
    Proven(DatabaseEvidence),
    /// It is none, and why.
    Refused(String),
}

/// Credentials that Kaniop keeps in Secrets for itself and for users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Credentials {
    /// Nobody knows.
    #[default]
    Unknown,
    /// Some are those of the backup, or of the time before.
    Stale,
    /// All were renewed for this restore and work.
    Renewed,
}
