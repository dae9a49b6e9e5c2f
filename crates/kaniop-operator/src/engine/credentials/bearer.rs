//! Secrets with credentials that let their bearer in: an OAuth2 client's secret, API tokens, passwords.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use kaniop_api::IdentityStatus;
use kaniop_api::service_account::TokenPurpose;
use kaniop_core::cluster::labels;
use kaniop_core::entry::Collection;
use kaniop_core::identity::credential::{
    ACCOUNT, Credential, FORCE_ROTATION, Held, Known, LONGEST_LABEL, LiveToken, Next, Wanted,
};
use kaniop_core::identity::{Finding, password_secret};
use kaniop_kanidm::{ApiToken, Error as KanidmError, Purpose};
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use uuid::Uuid;

use super::{Credentials, LABELS, Scene, Stop, refusal, statement};
use crate::apply;
use crate::engine::{Engine, Managed};

impl<K: Managed> Engine<K> {
    pub(super) async fn secrets(&self, scene: &Scene<'_, K>, wanted: &[Wanted]) -> Result<Credentials, Stop> {
        let mut done = Credentials::default();
        let forced = self.forced(scene).await?;
        let ours = issued(scene.object);
        let tokens = if ours.is_empty() { Vec::new() } else { self.live_tokens(scene).await? };
        for wanted in wanted {
            let (finding, due) = self.one(scene, wanted, forced, &tokens).await?;
            done.findings.extend(finding);
            done.due = done.due.into_iter().chain(due).min();
        }
        let labels = token_labels(wanted);
        self.revoke_unwanted(scene, &ours, &labels, &tokens).await?;
        self.prune(scene, wanted).await?;
        if forced.is_some() && done.findings.is_empty() {
            self.annotate_forced(scene, None).await?;
        }
        done.labels = Some(labels.into_iter().collect()).filter(|labels: &Vec<_>| !labels.is_empty());
        done.secret_name = if let [one] = wanted { Some(one.name.clone()) } else { None };
        done.statement = (!wanted.is_empty()).then(|| statement(&done.findings));
        Ok(done)
    }

    /// Brings one Secret to hold the right credential. Returns what hinders that, and after how long it has to be looked at again.
    async fn one(
        &self,
        scene: &Scene<'_, K>,
        wanted: &Wanted,
        forced: Option<Timestamp>,
        tokens: &[LiveToken],
    ) -> Result<(Option<Finding>, Option<Duration>), Stop> {
        let stored = match self.stored(scene, &wanted.name).await? {
            Ok(stored) => stored,
            Err(foreign) => return Ok((Some(foreign), None)),
        };
        let known = Known {
            secret: stored.as_ref(),
            owner: scene.owner.uid,
            entry: scene.entry.uuid,
            live: tokens,
            forced,
            now: scene.now,
        };
        let (next, due) = wanted.next(&known);
        let is_new = matches!(next, Next::Make { .. });
        let held = match next {
            Next::Refused(finding) => return Ok((Some(finding), None)),
            Next::Keep(held) => {
                self.revoke(scene, &held.stray).await?;
                held
            }
            Next::Read => {
                let made =
                    stored.as_ref().and_then(|secret| secret.annotations().get(labels::ROTATED_AT)?.parse().ok());
                self.client_secret(scene, made.unwrap_or(scene.now)).await?
            }
            Next::Make { revoke } => {
                // Nothing is made that could not be stored.
                let trial = Held { value: "to-be-made".to_owned(), made: scene.now, token: None, stray: Vec::new() };
                let trial = wanted.secret(&scene.holder, &trial);
                if let Some(refused) = refusal(apply::rehearse(&self.ctx, &scene.owner, &trial).await?) {
                    return Ok((Some(refused), None));
                }
                self.revoke(scene, &revoke).await?;
                self.make(scene, wanted, tokens).await?
            }
        };
        // A Secret that is written brings the object here again, and its dates with it.
        let refused = refusal(apply::object(&self.ctx, &scene.owner, &wanted.secret(&scene.holder, &held)).await?);
        if is_new && refused.is_none() {
            let note = format!("a new credential is in Secret '{}'", wanted.name);
            self.tell(scene.object, "CredentialIssued", &note);
        }
        Ok((refused, due))
    }

    async fn client_secret(&self, scene: &Scene<'_, K>, made: Timestamp) -> Result<Held, Stop> {
        let secret =
            scene.usable.target.client().oauth2_secret(&scene.entry.name).await?.ok_or(KanidmError::NotFound)?;
        Ok(Held { value: secret.expose_secret().to_owned(), made, token: None, stray: Vec::new() })
    }

    async fn make(&self, scene: &Scene<'_, K>, wanted: &Wanted, before: &[LiveToken]) -> Result<Held, Stop> {
        self.ctx.guard.check()?;
        let (client, uuid) = (scene.usable.target.client(), scene.entry.uuid);
        let held = |value: &SecretString, token| Held {
            value: value.expose_secret().to_owned(),
            made: scene.now,
            token,
            stray: Vec::new(),
        };
        match &wanted.credential {
            Credential::ClientSecret { .. } => {
                client.reset_oauth2_secret(&scene.entry.name).await?;
                self.client_secret(scene, scene.now).await
            }
            Credential::Password => Ok(held(&client.generate_password(uuid).await?, None)),
            Credential::ApiToken { label, purpose, expiry } => {
                let purpose = match purpose {
                    TokenPurpose::ReadOnly => Purpose::ReadOnly,
                    TokenPurpose::ReadWrite => Purpose::ReadWrite,
                };
                let token = client.issue_api_token(&uuid.to_string(), label, purpose, *expiry).await?;
                let listed = self.live_tokens(scene).await?;
                let is_new = |listed: &&LiveToken| before.iter().all(|before| before.id != listed.id);
                let new: Vec<_> = listed.iter().filter(|listed| listed.label == *label).filter(is_new).collect();
                // Of two that are new nobody can tell which this is: the next pass revokes both.
                let id = if let [one] = new.as_slice() { Some(one.id) } else { None };
                Ok(held(&token, id))
            }
        }
    }

    async fn live_tokens(&self, scene: &Scene<'_, K>) -> Result<Vec<LiveToken>, Stop> {
        let listed = scene.usable.target.client().api_tokens(&scene.entry.uuid.to_string()).await?;
        Ok(listed.into_iter().map(live).collect())
    }

    async fn revoke(&self, scene: &Scene<'_, K>, tokens: &[Uuid]) -> Result<(), Stop> {
        for id in tokens {
            self.ctx.guard.check()?;
            scene.usable.target.client().revoke_api_token(&scene.entry.uuid.to_string(), *id).await?;
        }
        Ok(())
    }

    /// Revokes the tokens that we issued and that are not wanted any more. Those of other labels are somebody else's.
    async fn revoke_unwanted(
        &self,
        scene: &Scene<'_, K>,
        ours: &BTreeSet<String>,
        wanted: &BTreeSet<String>,
        tokens: &[LiveToken],
    ) -> Result<(), Stop> {
        let gone = tokens.iter().filter(|token| ours.contains(&token.label) && !wanted.contains(&token.label));
        self.revoke(scene, &gone.map(|token| token.id).collect::<Vec<_>>()).await
    }

    /// Deletes the Secrets of this object that are not wanted any more, when its spec has changed.
    async fn prune(&self, scene: &Scene<'_, K>, wanted: &[Wanted]) -> Result<(), Stop> {
        let seen = scene.object.identity_status().and_then(|status| status.observed_generation);
        if seen == scene.object.meta().generation {
            return Ok(());
        }
        let names: Vec<_> = wanted.iter().map(|wanted| wanted.name.as_str()).collect();
        let password = password_secret(scene.owner.name);
        if K::COLLECTION == Collection::ServiceAccount
            && !names.contains(&password.as_str())
            && matches!(self.stored(scene, &password).await?, Ok(Some(_)))
        {
            // No server takes a password away. One that nobody is told makes the old one void.
            self.ctx.guard.check()?;
            drop(scene.usable.target.client().generate_password(scene.entry.uuid).await?);
        }
        let mut selector = format!("{}={}", labels::MANAGED_BY, scene.holder.manager);
        if scene.owner.name.len() <= LONGEST_LABEL {
            selector = format!("{selector},{ACCOUNT}={}", scene.owner.name);
        }
        let pruned = apply::prune_secrets(&self.ctx, &scene.owner, &selector, &names).await?;
        if pruned > 0 {
            self.tell(scene.object, "SecretsRemoved", &format!("{pruned} Secret(s) not wanted any more"));
        }
        Ok(())
    }

    /// The time from which on credentials count as new, if somebody asks for new ones. It is written down before anything is made, so that what was
    /// made is not made again after a crash.
    async fn forced(&self, scene: &Scene<'_, K>) -> Result<Option<Timestamp>, Stop> {
        let Some(asked) = scene.object.annotations().get(FORCE_ROTATION) else { return Ok(None) };
        if let Some(since) = asked.parse().ok().filter(|since| *since <= scene.now) {
            return Ok(Some(since));
        }
        self.annotate_forced(scene, Some(scene.now)).await?;
        Ok(Some(scene.now))
    }

    async fn annotate_forced(&self, scene: &Scene<'_, K>, since: Option<Timestamp>) -> Result<(), Stop> {
        self.ctx.guard.check()?;
        let api: Api<K> = Api::namespaced(self.ctx.client.clone(), scene.owner.namespace);
        let value = since.map(|since| since.to_string());
        let patch = json!({"metadata": {"uid": scene.owner.uid, "annotations": {FORCE_ROTATION: value}}});
        api.patch_metadata(scene.owner.name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        Ok(())
    }
}

/// Labels of the tokens that we may have issued, by the status.
pub(super) fn issued<K: Managed>(object: &K) -> BTreeSet<String> {
    let managed = object.identity_status().and_then(|status| status.managed.as_ref());
    managed.and_then(|managed| managed.get(LABELS)).into_iter().flatten().cloned().collect()
}

fn token_labels(wanted: &[Wanted]) -> BTreeSet<String> {
    let label = |wanted: &Wanted| match &wanted.credential {
        Credential::ApiToken { label, .. } => Some(label.clone()),
        Credential::ClientSecret { .. } | Credential::Password => None,
    };
    wanted.iter().filter_map(label).collect()
}

/// The status with all labels that are to be issued, where it lacks some: should we be cut short, they are known to be ours.
pub(super) fn labels_to_come<K: Managed>(object: &K, wanted: &[Wanted]) -> Option<IdentityStatus> {
    let (known, labels) = (issued(object), token_labels(wanted));
    if labels.is_subset(&known) {
        return None;
    }
    let mut status = object.identity_status().cloned().unwrap_or_default();
    let all = known.union(&labels).cloned().collect();
    status.managed.get_or_insert_default().insert(LABELS.to_owned(), all);
    Some(status)
}

fn live(token: ApiToken) -> LiveToken {
    let purpose = match token.purpose {
        Purpose::ReadOnly => Some(TokenPurpose::ReadOnly),
        Purpose::ReadWrite => Some(TokenPurpose::ReadWrite),
        Purpose::Other => None,
    };
    LiveToken { id: token.token_id, label: token.label, purpose, expiry: token.expiry }
}
