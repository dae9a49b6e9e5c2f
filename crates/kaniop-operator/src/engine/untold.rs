//! A value that the server does not show as it was given: put there once, and again when what the server shows of it has changed.

use kaniop_api::shared::Told;
use kaniop_core::entry::{Entry, Value};
use kaniop_core::identity::{CA_LIST, Finding};
use kaniop_kanidm::{Class, Error as KanidmError};
use sha2::{Digest, Sha256};

use super::assess::Usable;
use super::{Engine, Managed};
use crate::error::Error;

impl<K: Managed> Engine<K> {
    /// Brings the value there. Answers what is there of ours, and what the server refuses of it; the inner error is the Kanidm server's.
    pub(super) async fn untold(
        &self,
        object: &K,
        entry: &Entry,
        usable: &Usable,
    ) -> Result<Result<(Option<Told>, Option<Finding>), KanidmError>, Error> {
        let Some(value) = K::untold(object.spec()) else { return Ok(Ok((None, None))) };
        let sha256: String = Sha256::digest(value).iter().map(|byte| format!("{byte:02x}")).collect();
        let put = object.identity_status().and_then(|status| status.attestation_ca_list.clone());
        if put.as_ref().is_some_and(|put| put.sha256 == sha256 && shown(entry) == put.digest) {
            return Ok(Ok((put, None)));
        }
        self.ctx.guard.check()?;
        let target = &usable.target;
        match target.client().set_attribute(entry.collection, entry.uuid, CA_LIST, &[value]).await {
            Ok(()) => {}
            Err(error) if error.class() == Class::Blocked => {
                let message = format!("accountPolicy.webauthnAttestationCaList: {error}");
                return Ok(Ok((put, Some(Finding { reason: error.reason(), message }))));
            }
            Err(error) => return Ok(Err(error)),
        }
        let after = match target.read(entry.uuid).await {
            Ok(after) => after,
            Err(error) => return Ok(Err(error)),
        };
        tracing::info!(
            reason = "EntryUpdated",
            note = "set: accountPolicy.webauthnAttestationCaList",
            "changed on the server"
        );
        Ok(Ok((Some(Told { sha256, digest: after.as_ref().map(shown).unwrap_or_default() }), None)))
    }
}

/// How the server shows it; empty when it shows nothing.
fn shown(entry: &Entry) -> String {
    match entry.attrs.get(CA_LIST.name) {
        Some(Value::Digest(digest)) => digest.clone(),
        _ => String::new(),
    }
}
