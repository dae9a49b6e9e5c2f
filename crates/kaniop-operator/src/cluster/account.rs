//! The operator's own account on a server, and the way to it that all identities use: a service account with one API token.
//!
//! The administrators' passwords serve to make these, and to make them again when the server refuses the token; at no other time.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use kaniop_core::cluster::credentials::{Administrators, IDM_ADMIN, OperatorToken};
use kaniop_core::cluster::status::{Access, Obstacle};
use kaniop_core::cluster::tls::Usable;
use kaniop_core::cluster::{ValidatedCluster, names};
use kaniop_core::name::{OPERATOR_ACCOUNT, OPERATOR_GROUPS};
use kaniop_core::reason::Reason;
use kaniop_kanidm::{Class, Client, Endpoint, Error as KanidmError, Purpose, Trust};
use secrecy::{ExposeSecret, SecretString};
use uuid::Uuid;

use super::bootstrap::{Scene, Server, Stop};
use super::observe::{self, Stored};
use super::{Clusters, key};
use crate::error::Error;
use crate::targets::{Connection, Health, ObjectKey};

/// Label of its token: whatever carries it and is not in the Secret is left over from a pass that was cut short.
const LABEL: &str = "kaniop-operator";
/// Refused passwords are made anew at most so often.
const RESET_PAUSE: Duration = Duration::from_secs(300);
/// A refused login locks the account for a second or a few, even for the right password.
const LOCKED: Duration = Duration::from_secs(4);

impl Clusters {
    /// Makes the server known to everybody who has to speak to it, with a token that it takes. `Ok` when it has answered.
    pub(super) async fn connect(
        &self,
        scene: &Scene<'_>,
        server: &Server<'_>,
        administrators: &Administrators,
    ) -> Result<(), Stop> {
        let (endpoint, domain) = (self.endpoint(scene, server)?, server.domain);
        let name = names::token_secret(&scene.cluster.name);
        let stored = observe::stored(&self.ctx, scene.owner, &name).await?;
        let known = stored.read(OperatorToken::read);
        if let Some(known) = known.as_ref().filter(|known| known.domain.is_none_or(|of| of == domain)) {
            let token = SecretString::from(known.token.clone());
            match self.try_token(scene, &Connection { endpoint: endpoint.clone(), token }) {
                Ok(()) => return Ok(()),
                Err(Refused::Token) => {}
                Err(Refused::Stop(stop)) => return Err(stop),
            }
        }
        if matches!(stored, Stored::Foreign) {
            let message = format!(
                "Secret '{name}' exists and is not controlled by this Kanidm, so no token is made. Delete or rename it."
            );
            return Err(Stop::known(Reason::NameConflict, message));
        }
        let to_be = OperatorToken { token: "to-be-made-by-the-server".to_owned(), domain: Some(domain) };
        self.can_store(scene, &to_be.secret(scene.cluster), &name).await?;
        let client = self.log_in(scene, &endpoint, administrators, domain).await?;
        let token = self.new_token(scene, &client).await?;
        let made = OperatorToken { token: token.expose_secret().to_owned(), domain: Some(domain) };
        self.store(scene, &made.secret(scene.cluster), &name).await?;
        if known.is_some() {
            let note = "The server refused the operator's token (revoked, or of another domain); a new one was made and stored.";
            self.tell(scene.kanidm, true, "TokenReplaced", note);
        }
        self.logins.reset(&key(scene.kanidm));
        match self.try_token(scene, &Connection { endpoint, token }) {
            Ok(()) => Ok(()),
            Err(Refused::Stop(stop)) => Err(stop),
            Err(Refused::Token) => Err(Error::Bug("the server made a token that cannot be sent".to_owned()).into()),
        }
    }

    /// The same with what is stored and nothing else: where that does not lead to the server, it stops as it would have `otherwise`.
    pub(super) async fn connect_as_stored(
        &self,
        scene: &Scene<'_>,
        server: &Server<'_>,
        otherwise: Stop,
    ) -> Result<(), Stop> {
        let name = names::token_secret(&scene.cluster.name);
        let stored = observe::stored(&self.ctx, scene.owner, &name).await?;
        let known = stored.read(OperatorToken::read).filter(|known| known.domain == Some(server.domain));
        let Some(known) = known else { return Err(otherwise) };
        let connection = Connection { endpoint: self.endpoint(scene, server)?, token: known.token.into() };
        self.try_token(scene, &connection).map_err(|refused| match refused {
            Refused::Token => otherwise,
            Refused::Stop(stop) => stop,
        })
    }

    fn endpoint(&self, scene: &Scene<'_>, server: &Server<'_>) -> Result<Endpoint, Stop> {
        let Some(ip) = &server.primary.ip else { return Err(Stop::Here(Access::NotTried, None)) };
        self.endpoint_of(scene.cluster, ip, server.tls).map_err(|error| match error {
            Error::Kanidm(error) => Stop::known(error.reason(), error.to_string()),
            error => Stop::Failed(error),
        })
    }

    /// How the node at this address is spoken to.
    pub(super) fn endpoint_of(&self, cluster: &ValidatedCluster, ip: &str, tls: &Usable) -> Result<Endpoint, Error> {
        let ip: IpAddr = ip.parse().map_err(|_| Error::Bug(format!("'{ip}' is not the address of a pod")))?;
        let origin = cluster.origin.to_string();
        let trust = Trust::from_secret(tls.authority.as_deref().map(str::as_bytes), &tls.chain)?;
        let port = u16::try_from(names::HTTPS_PORT).unwrap_or_default();
        Ok(Endpoint {
            origin: origin.parse().map_err(|error| Error::Bug(format!("'{origin}': {error}")))?,
            address: SocketAddr::new(ip, port),
            trust,
            requests: self.ctx.metrics.requests.clone(),
        })
    }

    /// While the server goes on to show its former certificate, the way that was found with that one is kept, where there is one.
    pub(super) fn as_before(&self, scene: &Scene<'_>) -> Option<Result<(), Stop>> {
        let key = key(scene.kanidm);
        self.ctx.targets.get(&key)?;
        Some(match self.health(&key) {
            Health::Answers => Ok(()),
            Health::Unknown => Err(Stop::Early),
            Health::Fails(error) => Err(Stop::Here(Access::Failed(obstacle(&error)), None)),
        })
    }

    /// Hands the way to the server on, and judges it by how the server answers there.
    fn try_token(&self, scene: &Scene<'_>, connection: &Connection) -> Result<(), Refused> {
        let key = key(scene.kanidm);
        match self.ctx.targets.set(&key, connection) {
            Ok(()) => {}
            Err(KanidmError::Unauthenticated) => return Err(Refused::Token),
            Err(error) => return Err(Refused::Stop(Stop::Here(Access::Failed(obstacle(&error)), None))),
        }
        match self.health(&key) {
            Health::Answers => Ok(()),
            // The first look wakes the loop when it ends, either way.
            Health::Unknown => Err(Refused::Stop(Stop::Early)),
            Health::Fails(KanidmError::Unauthenticated) => Err(Refused::Token),
            Health::Fails(error) => Err(Refused::Stop(Stop::Here(Access::Failed(obstacle(&error)), None))),
        }
    }

    /// What is known of the server, and remembered as such: whatever it becomes after this wakes the loop.
    fn health(&self, key: &ObjectKey) -> Health {
        loop {
            let health = self.ctx.targets.health(key);
            self.remember(key, |memory| memory.health = Some(health.clone()));
            // News that came between the two lines above were compared with what was remembered before.
            if self.ctx.targets.health(key) == health {
                return health;
            }
        }
    }

    /// Logs in with the stored password. A wrong one means that somebody made another behind our back: it is made anew once, and told.
    async fn log_in(
        &self,
        scene: &Scene<'_>,
        endpoint: &Endpoint,
        administrators: &Administrators,
        domain: Uuid,
    ) -> Result<Client, Stop> {
        let key = key(scene.kanidm);
        let (elapsed, wait_until) = (self.ctx.clock.elapsed(), self.memory(&key).no_login_before);
        if elapsed < wait_until {
            let what = "Waiting before the next login, for the server locks an account after a refused one.".to_owned();
            return Err(Stop::Here(Access::Pending(what), Some(wait_until - elapsed)));
        }
        self.ctx.guard.check()?;
        let password = SecretString::from(administrators.idm_admin.clone());
        let denied = match Client::login(endpoint, IDM_ADMIN, &password).await {
            Ok(client) => return Ok(client),
            Err(error @ KanidmError::LoginDenied { .. }) => error,
            Err(error) => return Err(self.refused(scene, &error)),
        };
        if elapsed < self.memory(&key).no_reset_before {
            let wait = self.logins.next(key.clone()).max(LOCKED);
            self.remember(&key, |memory| memory.no_login_before = elapsed + wait);
            return Err(Stop::Here(Access::Failed(obstacle(&denied)), Some(wait)));
        }
        self.remember(&key, |memory| {
            memory.no_login_before = elapsed + LOCKED;
            memory.no_reset_before = elapsed + RESET_PAUSE;
        });
        let stored = observe::stored(&self.ctx, scene.owner, &names::admin_secret(&scene.cluster.name)).await?;
        self.reset_passwords(scene, &stored, domain).await?;
        let note = "The server refused the stored password of idm_admin; those of admin and idm_admin were set anew and stored.";
        self.tell(scene.kanidm, true, "PasswordsReset", note);
        let what =
            "The administrators' passwords were set anew; the operator logs in with them in a moment.".to_owned();
        Err(Stop::Here(Access::Pending(what), Some(LOCKED)))
    }

    /// Makes the account what it has to be, and gives it exactly one token of ours. A lease that is lost on the way ends it before the next
    /// effect: the next leader's token must not be revoked.
    async fn new_token(&self, scene: &Scene<'_>, client: &Client) -> Result<SecretString, Stop> {
        let refused = |error: KanidmError| self.refused(scene, &error);
        let guard = &self.ctx.guard;
        guard.check()?;
        client.ensure_service_account(OPERATOR_ACCOUNT, "Kaniop", "idm_admins").await.map_err(refused)?;
        for group in OPERATOR_GROUPS {
            guard.check()?;
            client.add_member(group, OPERATOR_ACCOUNT).await.map_err(refused)?;
        }
        let tokens = client.api_tokens(OPERATOR_ACCOUNT).await.map_err(refused)?;
        for token in tokens.iter().filter(|token| token.label == LABEL) {
            guard.check()?;
            client.revoke_api_token(OPERATOR_ACCOUNT, token.token_id).await.map_err(refused)?;
        }
        guard.check()?;
        let token = client.issue_api_token(OPERATOR_ACCOUNT, LABEL, Purpose::ReadWrite, None).await.map_err(refused)?;
        tracing::info!("made a token for the operator's account");
        Ok(token)
    }

    fn refused(&self, scene: &Scene<'_>, error: &KanidmError) -> Stop {
        let wait = self.retry.next(key(scene.kanidm));
        tracing::warn!(%error, wait_s = wait.as_secs_f32(), "the operator's account could not be set up; it is tried again");
        Stop::Here(Access::Failed(obstacle(error)), Some(wait))
    }
}

/// Why a token does not lead to the server.
enum Refused {
    /// The server does not take it.
    Token,
    /// Another reason, which a new token would not cure.
    Stop(Stop),
}

fn obstacle(error: &KanidmError) -> Obstacle {
    let message = format!("{error}.");
    match error.class() {
        Class::Retry => Obstacle::unknown(error.reason(), message),
        Class::Blocked | Class::Bug => Obstacle::known(error.reason(), message),
    }
}
