//! The link with which a person sets a first credential.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kaniop_api::person::ResetDelivery;
use kaniop_core::entry::{Collection, Entry, Value};
use kaniop_core::identity::{Finding, FirstCredential, reset};
use kaniop_core::reason::Reason;
use kube::ResourceExt;
use secrecy::ExposeSecret;

use super::{Credentials, Scene, Stop, refusal, statement};
use crate::apply;
use crate::engine::{Engine, Managed};

impl<K: Managed> Engine<K> {
    /// The link with which a person sets a first credential.
    pub(super) async fn first_credential(
        &self,
        scene: &Scene<'_, K>,
        first: FirstCredential,
        has_credential: bool,
    ) -> Result<Credentials, Stop> {
        let name = format!("{}-credential-reset", scene.owner.name);
        let status = scene.object.identity_status();
        let before = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let said = before.iter().find(|condition| condition.type_ == reset::CONDITION);
        // Where no link was ever stored, there is nothing to look for. While the status is behind the spec, one may have been stored by a life
        // that ended before it could say so; but none for a spec that asks for none and never was another one.
        let generation = scene.object.meta().generation;
        let behind = status.and_then(|status| status.observed_generation) != generation;
        let was_asked_for = first.delivery == ResetDelivery::Secret || generation != Some(1);
        let may_be_stored = behind && was_asked_for || status.is_some_and(|status| status.secret_name.is_some());
        let quiet = has_credential || first.delivery != ResetDelivery::Secret;
        let stored = if quiet && !may_be_stored { Ok(None) } else { self.stored(scene, &name).await? };
        let stored = match stored {
            Ok(stored) => stored,
            Err(foreign) => {
                let statement = Some(statement(std::slice::from_ref(&foreign)));
                return Ok(Credentials { statement, findings: vec![foreign], ..Credentials::default() });
            }
        };
        let known = reset::Known {
            delivery: first.delivery,
            has_credential,
            secret: stored.as_ref(),
            owner: scene.owner.uid,
            sent_until: said.and_then(|said| sent_until(said, first.ttl)),
            now: scene.now,
        };
        let (next, mut statement, mut due) = reset::next(&known);
        let mut findings = Vec::new();
        match next {
            reset::Next::Keep => {}
            reset::Next::Remove => self.remove_link(scene, stored.as_ref()).await?,
            reset::Next::Issue => match self.issue_link(scene, first.ttl, &name).await? {
                Ok(expires) => (_, statement, due) = reset::open(first.delivery, expires, scene.now),
                Err(refused) => {
                    statement = Some(super::statement(std::slice::from_ref(&refused)));
                    findings.push(refused);
                }
            },
            reset::Next::Send => match primary_mail(scene.entry) {
                Some(mail) => {
                    self.ctx.guard.check()?;
                    scene.usable.target.client().send_credential_reset(scene.entry.uuid, first.ttl, &mail).await?;
                    self.tell(scene.object, "ResetLinkSent", "a link for setting the first credential was sent");
                    let until = scene.now.checked_add(first.ttl).unwrap_or(Timestamp::MAX);
                    (_, statement, due) = reset::open(first.delivery, until, scene.now);
                }
                None => findings.push(Finding {
                    reason: Reason::InvalidValue,
                    message: "credentialReset.delivery: Email needs a mail address: set personAttributes.mail"
                        .to_owned(),
                }),
            },
        }
        let is_new = next == reset::Next::Issue && findings.is_empty();
        let holds_link = is_new || stored.is_some() && next != reset::Next::Remove;
        Ok(Credentials { statement, findings, due, secret_name: holds_link.then_some(name), labels: None })
    }

    /// Makes a link and stores it. Returns until when it works, or why it could not be stored.
    async fn issue_link(
        &self,
        scene: &Scene<'_, K>,
        ttl: Duration,
        name: &str,
    ) -> Result<Result<Timestamp, Finding>, Stop> {
        let client = scene.usable.target.client();
        let origin = client.origin().to_string();
        // Nothing is made that could not be stored: no link can be taken back.
        let trial = reset::Link { origin: origin.clone(), token: "to-be-made".to_owned(), expires: scene.now };
        let trial = apply::rehearse(&self.ctx, &scene.owner, &trial.secret(&scene.holder, name)).await?;
        if let Some(refused) = refusal(trial) {
            return Ok(Err(refused));
        }
        self.ctx.guard.check()?;
        let made = client.credential_reset(scene.entry.uuid, ttl).await?;
        let link = reset::Link { origin, token: made.token.expose_secret().to_owned(), expires: made.expires };
        let applied = apply::object(&self.ctx, &scene.owner, &link.secret(&scene.holder, name)).await?;
        if let Some(refused) = refusal(applied) {
            return Ok(Err(refused));
        }
        let note = format!("a link for setting the first credential is in Secret '{name}'");
        self.tell(scene.object, "ResetLinkIssued", &note);
        Ok(Ok(made.expires))
    }

    async fn remove_link(&self, scene: &Scene<'_, K>, stored: Option<&Secret>) -> Result<(), Stop> {
        let Some(stored) = stored else { return Ok(()) };
        apply::delete_secret(&self.ctx, scene.owner.namespace, &stored.name_any(), stored.uid()).await?;
        Ok(())
    }
}

/// Until when a link that was sent works.
fn sent_until(said: &Condition, ttl: Duration) -> Option<Timestamp> {
    let reasons = [Reason::ResetLinkOpen, Reason::ResetLinkExpired];
    let sent = reasons.iter().any(|reason| reason.as_str() == said.reason);
    sent.then(|| said.last_transition_time.0.checked_add(ttl).unwrap_or(Timestamp::MAX))
}

fn primary_mail(entry: &Entry) -> Option<String> {
    match entry.attrs.get("mail") {
        Some(Value::Mails(mails)) if entry.collection == Collection::Person => mails.first().cloned(),
        _ => None,
    }
}
