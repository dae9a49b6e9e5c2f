//! The end of an object: its entry first, then the finalizer, as `kaniop_core::identity::deletion` decides.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kaniop_core::identity::{self, Deletion, Finding, Obstacle, Outcome};
use kaniop_core::reason::Reason;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::Action;
use serde_json::json;

use super::assess::{Assessment, Progress, desired};
use super::{Engine, Managed, key};
use crate::error::Error;
use crate::events::Notice;

/// How often a deletion that waits is looked at, besides being woken.
const RECHECK: Duration = Duration::from_secs(30);

impl<K: Managed> Engine<K> {
    /// Ends the object: deletes its entry, releases it, or says why it has to wait.
    pub(super) async fn remove(&self, object: Arc<K>) -> Result<Action, Error> {
        if !object.finalizers().iter().any(|finalizer| finalizer == K::FINALIZER) {
            self.forget(&object);
            return Ok(Action::await_change());
        }
        let (decision, target) = self.decide(&object).await?;
        match decision {
            Deletion::Delete(step) => {
                let Some(target) = target else { return Err(Error::Bug("a deletion without a server".to_owned())) };
                self.ctx.guard.check()?;
                target.execute(&step).await?;
                self.announce_deletion(&object, &step).await;
                self.release(&object).await
            }
            Deletion::Release(note) => {
                if let Some(note) = note {
                    let notice = Notice { warning: true, reason: "EntryLeftBehind".to_owned(), note };
                    self.ctx.events.publish(&object.object_ref(&()), notice).await;
                }
                self.release(&object).await
            }
            Deletion::Wait(why) => {
                let finding = Finding { reason: Reason::Deleting, message: why };
                self.settle(&object, Assessment::Unknown(finding.clone()));
                self.report(&object, &Outcome::Unknown(&finding)).await?;
                Ok(Action::requeue(RECHECK))
            }
        }
    }

    async fn decide(&self, object: &K) -> Result<(Deletion, Option<Arc<crate::targets::Target>>), Error> {
        let progress = Progress::default();
        let want = desired(object, &progress);
        let since = object.meta().deletion_timestamp.as_ref().map(|time| self.ctx.clock.now().duration_since(time.0));
        let waited = since.and_then(|since| Duration::try_from(since).ok()).unwrap_or_default();
        if self.definition_is_going().await? {
            return Ok((identity::deletion(&want, Err(&Obstacle::DefinitionGoing), waited, false), None));
        }
        Ok(match self.server(object) {
            Ok(usable) => (identity::deletion(&want, Ok(&usable.snapshot), waited, false), Some(usable.target)),
            Err(barred) => {
                let terminating = self.namespace_is_going(object).await?;
                (identity::deletion(&want, Err(&barred.obstacle), waited, terminating), None)
            }
        })
    }

    async fn namespace_is_going(&self, object: &K) -> Result<bool, Error> {
        let api: Api<Namespace> = Api::all(self.ctx.client.clone());
        let namespace = api.get_metadata_opt(&object.namespace().unwrap_or_default()).await?;
        Ok(namespace.is_none_or(|namespace| namespace.metadata.deletion_timestamp.is_some()))
    }

    /// Whether the kind itself is being removed: then nobody asked for the people to go.
    async fn definition_is_going(&self) -> Result<bool, Error> {
        let api: Api<CustomResourceDefinition> = Api::all(self.ctx.client.clone());
        let definition = api.get_metadata_opt(&format!("{}.{}", K::plural(&()), K::group(&()))).await?;
        Ok(definition.is_none_or(|definition| definition.metadata.deletion_timestamp.is_some()))
    }

    /// Adds our finalizer before the first write. Returns whether it had to.
    pub(super) async fn add_finalizer(&self, object: &K) -> Result<bool, Error> {
        if object.finalizers().iter().any(|finalizer| finalizer == K::FINALIZER) {
            return Ok(false);
        }
        let mut finalizers = object.finalizers().to_vec();
        finalizers.push(K::FINALIZER.to_owned());
        self.write_finalizers(object, finalizers).await?;
        Ok(true)
    }

    async fn release(&self, object: &K) -> Result<Action, Error> {
        let others = object.finalizers().iter().filter(|finalizer| *finalizer != K::FINALIZER).cloned().collect();
        self.write_finalizers(object, others).await?;
        self.forget(object);
        Ok(Action::await_change())
    }

    /// Carries the version that was read, so that the finalizer of somebody else is never lost.
    async fn write_finalizers(&self, object: &K, finalizers: Vec<String>) -> Result<(), Error> {
        self.ctx.guard.check()?;
        let api: Api<K> = Api::namespaced(self.ctx.client.clone(), &object.namespace().unwrap_or_default());
        let patch = json!({"metadata": {"resourceVersion": object.resource_version(), "finalizers": finalizers}});
        match api.patch_metadata(&object.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn forget(&self, object: &K) {
        self.settled().remove(&key(object));
        self.retry.reset(&key(object));
    }
}
