//! Gathers what the servers say of their release, and has the core judge the image of the spec and whether the servers may be touched at all. Before
//! an upgrade it has the primary make a backup.

use kaniop_api::kanidm::{CompatibilityResult, UpgradeBackup};
use kaniop_core::backup::{self, Expected};
use kaniop_core::cluster::pods::PodSeen;
use kaniop_core::cluster::status::TlsSeen;
use kaniop_core::cluster::storage::Storage;
use kaniop_core::cluster::version::{Backup, Evidence, Gate, Series, Verdict, image_of, is_to_be_asked, judge};
use kaniop_kanidm::Client;
use kaniop_kanidm::node::OnDemand;
use uuid::Uuid;

use super::look::Known;
use super::observe::Servers;
use super::pass::Valid;
use super::{Clusters, key};
use crate::exec;

/// For a backup is waited so long in one pass, in seconds. The node goes on by itself.
const PATIENCE: &str = "5";

impl Clusters {
    /// The verdict on the image of the spec and on the servers that run.
    pub(super) async fn gate(&self, valid: &Valid<'_>, servers: &Servers, known: &Known, tls: &TlsSeen) -> Gate {
        let Valid { kanidm, cluster, .. } = valid;
        let status = kanidm.status.as_ref();
        let before = status.and_then(|status| status.version.as_ref());
        let primary_set = cluster.primary.strip_suffix("-0");
        let mut sets: Vec<_> = servers.statefulsets.iter().collect();
        sets.sort_by_key(|set| set.metadata.name.as_deref() != primary_set);
        let live: Vec<_> = sets.into_iter().filter_map(image_of).collect();
        let told = |pod: &str| known.nodes.of(pod).map(|node| node.level);
        let levels: Vec<_> = cluster.nodes().filter_map(|node| told(&node.pod)).collect();
        let version = self.ctx.targets.get(&key(kanidm)).and_then(|target| target.client().server_version());
        let version = version.or_else(|| before.and_then(|before| before.server_version.clone()));
        let started = servers.pods.iter().any(|pod| pod.started);
        let unchecked = kanidm.spec.disable_upgrade_checks;
        let asks = !unchecked && is_to_be_asked(&levels);
        let capable = if asks { self.is_capable(valid, servers, tls).await } else { None };
        let compatible = before.and_then(|before| before.compatibility_result);
        let mut evidence = Evidence {
            wanted: &cluster.image,
            live: &live,
            complete: !levels.is_empty() && levels.len() == cluster.nodes().count(),
            levels: &levels,
            remembered: before.and_then(|before| before.domain_level),
            version: version.as_deref(),
            has_database: started
                || status.is_some_and(|status| status.domain_uuid.is_some() || status.secret_name.is_some())
                || before.is_some_and(|before| before.domain_level.is_some()),
            capable: capable.or(match compatible {
                Some(CompatibilityResult::Compatible) => Some(true),
                Some(CompatibilityResult::Incompatible) => Some(false),
                Some(CompatibilityResult::Unknown) | None => None,
            }),
            unchecked,
            backup: match cluster.storage {
                Storage::Claim(_) => Backup::Awaited,
                Storage::Volume(_) => Backup::NotNeeded,
            },
        };
        let gate = judge(&evidence);
        let Verdict::NeedsBackup { from, to } = gate.image else { return gate };
        if kanidm.spec.paused {
            return gate;
        }
        evidence.backup = self.back_up(valid, servers, (from, to), live.first().copied().unwrap_or_default()).await;
        judge(&evidence)
    }

    /// Has the primary make a backup for the upgrade of this generation of the spec. Asked again for the same, it tells the same. It is believed when it was
    /// read as a whole and is of this domain and release.
    async fn back_up(&self, valid: &Valid<'_>, servers: &Servers, (from, to): (Series, Series), image: &str) -> Backup {
        let Valid { kanidm, cluster, owner, .. } = valid;
        if !servers.pods.iter().any(|pod| pod.name == cluster.primary && pod.started) {
            return Backup::Failed(format!("the primary '{}' does not run", cluster.primary));
        }
        let generation = kanidm.metadata.generation.unwrap_or_default();
        let name = format!("before-{to}-{generation}").replace('.', "-");
        let words = ["backup", &name, "--patience", PATIENCE];
        let made = match exec::helper::<OnDemand>(&self.ctx, owner.namespace, &cluster.primary, &words).await {
            Ok(OnDemand::Made(made)) => made,
            Ok(OnDemand::Running) => return Backup::Awaited,
            Err(error) => return Backup::Failed(error.to_string()),
        };
        let domain = kanidm.status.as_ref().and_then(|status| Uuid::parse_str(status.domain_uuid.as_deref()?).ok());
        let verdict = made.judged(&Expected { domain, series: Some(from.to_string()) });
        if verdict != backup::Verdict::Proven {
            return Backup::Failed(format!("the file {} {}", made.file_name, verdict.in_words()));
        }
        let note = format!(
            "Backup '{}' was made and proven before the upgrade from {from} to {to}. Only '{image}' restores it.",
            made.file_name
        );
        self.tell(kanidm, false, "UpgradeBackedUp", &note);
        Backup::Proven(UpgradeBackup { file_name: made.file_name, image: image.to_owned() })
    }

    /// Whether the primary has what the operator needs, asked once in each run of it. None while it cannot be asked.
    async fn is_capable(&self, valid: &Valid<'_>, servers: &Servers, tls: &TlsSeen) -> Option<bool> {
        let (key, cluster) = (key(valid.kanidm), &valid.cluster);
        let primary = servers.pods.iter().find(|pod| pod.name == cluster.primary && pod.started)?;
        let run = run(primary);
        if let Some((_, capable)) = self.memory(&key).capable.filter(|(of, _)| *of == run) {
            return Some(capable);
        }
        let TlsSeen::Usable(tls) = tls else { return None };
        let endpoint = self.endpoint_of(cluster, primary.ip.as_deref()?, tls).ok()?;
        match Client::takes_entries(&endpoint).await {
            Ok(capable) => {
                self.remember(&key, |memory| memory.capable = Some((run, capable)));
                Some(capable)
            }
            Err(error) => {
                tracing::debug!(pod = primary.name, %error, "the server could not be asked what it can do");
                None
            }
        }
    }
}

/// What tells this run of a pod's server from others.
pub(super) fn run(pod: &PodSeen) -> String {
    pod.run.clone().unwrap_or_default()
}
