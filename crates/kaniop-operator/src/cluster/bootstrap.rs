//! The first start of a server, and its repair: which domain it holds, and the passwords of its built-in administrators.
//!
//! Passwords are made by the server, through its admin socket, and stored before anything else is done. They are made again only where the
//! Secret is gone or incomplete, is for another domain, or where the server refuses what it holds.

use std::time::Duration;

use kaniop_api::Kanidm;
use kaniop_core::cluster::credentials::{ADMIN, Administrators, IDM_ADMIN};
use kaniop_core::cluster::domain::Verdict;
use kaniop_core::cluster::pods::PodSeen;
use kaniop_core::cluster::status::{Access, Obstacle, TlsSeen};
use kaniop_core::cluster::tls::Usable;
use kaniop_core::cluster::{ValidatedCluster, names};
use kaniop_core::reason::Reason;
use kaniop_kanidm::node::RecoveredAccounts;
use secrecy::ExposeSecret;
use uuid::Uuid;

use super::nodes::Nodes;
use super::observe::{self, Servers, Stored};
use super::{Clusters, key};
use crate::apply::{self, Applied, Owner};
use crate::error::Error;
use crate::exec;

/// What a pass has in its hands when it turns to the server.
pub(super) struct Scene<'a> {
    pub kanidm: &'a Kanidm,
    pub owner: &'a Owner<'a>,
    pub cluster: &'a ValidatedCluster,
    pub servers: &'a Servers,
    pub tls: &'a TlsSeen,
    pub nodes: &'a Nodes,
    /// What the primary holds, and what that means.
    pub verdict: Option<(Uuid, Verdict)>,
}

/// The server that a pass speaks to.
pub(super) struct Server<'a> {
    /// Its pod.
    pub primary: &'a PodSeen,
    /// The domain that it holds.
    pub domain: Uuid,
    /// What it shows to clients.
    pub tls: &'a Usable,
}

/// How far a pass got with the server.
pub(super) struct Progress {
    /// As the status tells it.
    pub access: Access,
    /// The domain that the server holds.
    pub domain: Option<(Uuid, Verdict)>,
    /// Whether the administrators' Secret is complete.
    pub admin_secret: bool,
    /// When to try again, if sooner than at the next interval.
    pub again: Option<Duration>,
    /// Whether all that is missing is the first look at the server, which is under way and brings the loop here again.
    pub early: bool,
}

impl Progress {
    /// Nothing was tried.
    pub fn not_tried(admin_secret: bool) -> Self {
        Self { access: Access::NotTried, domain: None, admin_secret, again: None, early: false }
    }
}

/// Where a pass has to stop for now.
pub(super) enum Stop {
    /// For this reason, and perhaps not until the next interval.
    Here(Access, Option<Duration>),
    /// Until the first look at the server, which is under way, has ended.
    Early,
    /// The pass failed.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Stop {
    pub fn known(reason: Reason, message: impl Into<String>) -> Self {
        Self::Here(Access::Failed(Obstacle::known(reason, message)), None)
    }
}

impl Clusters {
    /// Goes as far with the server as it lets us.
    pub(super) async fn progress(&self, scene: &Scene<'_>) -> Result<Progress, Error> {
        let name = names::admin_secret(&scene.cluster.name);
        let stored = observe::stored(&self.ctx, scene.owner, &name).await?;
        let mut progress = Progress::not_tried(stored.read(Administrators::read).is_some());
        match self.steps(scene, &stored, &mut progress).await {
            Ok(()) => progress.access = Access::Answered,
            Err(Stop::Here(access, again)) => (progress.access, progress.again) = (access, again),
            Err(Stop::Early) => {
                progress.access = Access::Pending("Waiting for the server's first answer.".to_owned());
                progress.early = true;
            }
            Err(Stop::Failed(error)) => return Err(error),
        }
        Ok(progress)
    }

    async fn steps(&self, scene: &Scene<'_>, stored: &Stored, progress: &mut Progress) -> Result<(), Stop> {
        if let Some((domain, Verdict::Mismatch)) = scene.verdict {
            progress.domain = scene.verdict;
            self.ctx.targets.remove(&key(scene.kanidm));
            return Err(mismatch(scene, pinned(scene), domain));
        }
        let primary = scene.servers.pods.iter().find(|pod| pod.name == scene.cluster.primary && pod.started);
        let Some(primary) = primary else {
            if scene.cluster.replicas() == 0 {
                self.ctx.targets.remove(&key(scene.kanidm));
            }
            return Err(Stop::Here(Access::NotTried, None));
        };
        let Some((domain, verdict)) = scene.verdict else {
            let Some(error) = &scene.nodes.untold else { return Err(Stop::Here(Access::NotTried, None)) };
            let stop = self.not_told(scene, error);
            return self.without_helper(scene, stored, primary, stop).await;
        };
        progress.domain = Some((domain, verdict));
        if verdict == Verdict::Replaced {
            let note = format!(
                "Pod '{}' holds another domain, {domain}, than before: its database was lost, or replaced by that of a node of elsewhere. \
                 Its administrators are set up anew.",
                primary.name
            );
            self.tell(scene.kanidm, true, "DatabaseReplaced", &note).await;
        }
        let administrators = self.administrators(scene, stored, domain).await?;
        progress.admin_secret = true;
        // Without a certificate there is nothing to verify the server by; the status says so.
        let TlsSeen::Usable(tls) = scene.tls else { return Err(Stop::Here(Access::NotTried, None)) };
        if tls.must_wait(&scene.servers.statefulsets) {
            // The server shows another certificate than the one in the Secret, and the way that was found with that one may still lead to it.
            return Err(Stop::Here(Access::NotTried, None));
        }
        self.connect(scene, &Server { primary, domain, tls }, &administrators).await
    }

    /// The helper serves to learn the domain and to make passwords. Where both are known and the server takes the stored token, which no server
    /// of another domain would, it is not needed.
    async fn without_helper(
        &self,
        scene: &Scene<'_>,
        stored: &Stored,
        primary: &PodSeen,
        stop: Stop,
    ) -> Result<(), Stop> {
        let domain = pinned(scene).and_then(|uuid| Uuid::parse_str(uuid).ok());
        let passwords_for = stored.read(Administrators::read).and_then(|known| known.domain);
        match (scene.tls, domain, &stop) {
            (TlsSeen::Usable(tls), Some(domain), Stop::Here(..))
                if passwords_for == Some(domain) && !tls.must_wait(&scene.servers.statefulsets) =>
            {
                self.connect_as_stored(scene, &Server { primary, domain, tls }, stop).await
            }
            _ => Err(stop),
        }
    }

    /// The passwords that are stored, or new ones where those cannot be right.
    async fn administrators(&self, scene: &Scene<'_>, stored: &Stored, domain: Uuid) -> Result<Administrators, Stop> {
        match stored.read(Administrators::read) {
            Some(known) if known.domain.is_none_or(|of| of == domain) => Ok(known),
            _ => {
                let made = self.reset_passwords(scene, stored, domain).await?;
                let note = "The passwords of admin and idm_admin were set and stored.";
                self.tell(scene.kanidm, false, "Bootstrapped", note).await;
                Ok(made)
            }
        }
    }

    /// Has the server make new passwords, and stores them in one write. Nothing is made that could not be stored.
    pub(super) async fn reset_passwords(
        &self,
        scene: &Scene<'_>,
        stored: &Stored,
        domain: Uuid,
    ) -> Result<Administrators, Stop> {
        let name = names::admin_secret(&scene.cluster.name);
        if matches!(stored, Stored::Foreign) {
            return Err(Stop::known(Reason::NameConflict, taken(&name)));
        }
        let placeholder = || "to-be-made-by-the-server".to_owned();
        let made = Some(self.ctx.clock.now());
        let to_be = Administrators { admin: placeholder(), idm_admin: placeholder(), made, domain: Some(domain) };
        self.can_store(scene, &to_be.secret(scene.cluster), &name).await?;
        let arguments = ["recover-accounts", ADMIN, IDM_ADMIN];
        let pod = &scene.cluster.primary;
        let told = exec::helper::<RecoveredAccounts>(&self.ctx, scene.owner.namespace, pod, &arguments).await;
        let recovered = told.map_err(|error| {
            if matches!(error, Error::Pod { .. }) { self.not_told(scene, &error) } else { Stop::Failed(error) }
        })?;
        let password = |account: &str| {
            let password = recovered.passwords.get(account).map(|password| password.expose_secret().to_owned());
            password.ok_or_else(|| Error::Bug(format!("the node helper told no password for {account}")))
        };
        let made = Administrators {
            admin: password(ADMIN)?,
            idm_admin: password(IDM_ADMIN)?,
            made: Some(self.ctx.clock.now()),
            domain: Some(domain),
        };
        self.store(scene, &made.secret(scene.cluster), &name).await?;
        Ok(made)
    }

    /// Writes a Secret with credentials.
    pub(super) async fn store(
        &self,
        scene: &Scene<'_>,
        secret: &k8s_openapi::api::core::v1::Secret,
        name: &str,
    ) -> Result<(), Stop> {
        let applied = apply::object(&self.ctx, scene.owner, secret).await?;
        self.stored_or_stop(scene, applied, name)
    }

    /// Stops where a Secret like this could not be stored: what the server makes cannot be asked for a second time.
    pub(super) async fn can_store(
        &self,
        scene: &Scene<'_>,
        secret: &k8s_openapi::api::core::v1::Secret,
        name: &str,
    ) -> Result<(), Stop> {
        let judged = apply::rehearse(&self.ctx, scene.owner, secret).await?;
        self.stored_or_stop(scene, judged, name)
    }

    fn stored_or_stop(&self, scene: &Scene<'_>, applied: Applied, name: &str) -> Result<(), Stop> {
        let access = match applied {
            Applied::Written | Applied::Unchanged => return Ok(()),
            Applied::Conflict(_) => return Err(Stop::known(Reason::NameConflict, taken(name))),
            Applied::Refused(why) => Access::Failed(Obstacle::known(
                Reason::InvalidSpec,
                format!("{why}. Until it can be stored, the server is not asked to make what it should hold."),
            )),
            Applied::Ending => {
                Access::Pending(format!("Waiting for Secret '{name}', which is being deleted, to be gone."))
            }
        };
        Err(Stop::Here(access, Some(self.retry.next(key(scene.kanidm)))))
    }

    /// A pod that does not tell, or in which nothing can be started, is an outage, and shown as one.
    fn not_told(&self, scene: &Scene<'_>, error: &Error) -> Stop {
        let wait = self.retry.next(key(scene.kanidm));
        tracing::warn!(%error, wait_s = wait.as_secs_f32(), "the node helper could not be asked; it is tried again");
        let obstacle = Obstacle::unknown(
            Reason::ConnectionFailed,
            format!("The server could not be asked through its pod: {error}."),
        );
        Stop::Here(Access::Failed(obstacle), Some(wait))
    }
}

fn pinned<'a>(scene: &Scene<'a>) -> Option<&'a str> {
    scene.kanidm.status.as_ref().and_then(|status| status.domain_uuid.as_deref())
}

fn taken(name: &str) -> String {
    format!(
        "Secret '{name}' exists and is not controlled by this Kanidm, so nothing is stored in it and no password is made. Delete or rename it."
    )
}

fn mismatch(scene: &Scene<'_>, pinned: Option<&str>, seen: Uuid) -> Stop {
    let message = format!(
        "Pod '{}' holds the domain {seen}, but this Kanidm's is {}: its volume was emptied or exchanged. Nothing is done to it, and \
         no node copies it. Bring the volume back, or restore a backup. Only where the data on every other node and claim may be lost, take the new \
         domain by removing status.domainUuid: `kubectl patch kanidm {} -n {} --subresource=status --type=merge -p \
         '{{\"status\":{{\"domainUuid\":null}}}}'`.",
        scene.cluster.primary,
        pinned.unwrap_or("unknown"),
        scene.cluster.name,
        scene.owner.namespace
    );
    Stop::known(Reason::DomainMismatch, message)
}
