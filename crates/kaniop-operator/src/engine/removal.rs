//! The end of an object: its entry first, then the finalizer, as `kaniop_core::identity::deletion` decides.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kaniop_core::identity::{self, Deletion, Finding, Obstacle, Outcome};
use kaniop_core::reason::Reason;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::Action;
use serde_json::json;

use super::assess::{Assessment, Policies, Progress, desired};
use super::pass::Extras;
use super::{Engine, Managed, kanidm_key, key};
use crate::error::Error;
use crate::events::Notice;
use crate::targets::{Target, Wake};

/// How often a deletion that waits is looked at, besides being woken.
const RECHECK: Duration = Duration::from_secs(30);

impl<K: Managed> Engine<K> {
    /// Ends the object: deletes its entry, releases it, or says why it has to wait.
    pub(super) async fn remove(&self, object: Arc<K>) -> Result<Action, Error> {
        if !object.finalizers().iter().any(|finalizer| finalizer == K::FINALIZER) {
            self.forget(&object);
            return Ok(Action::await_change());
        }
        let mut decision = self.decide(&object).await?;
        if let (Deletion::Delete(step), Some(target)) = &decision {
            self.ctx.guard.check()?;
            match target.execute(step).await {
                Ok(_) => {
                    self.announce_deletion(&object, step);
                    return self.release(&object).await;
                }
                Err(error) => {
                    decision = (self.hindered(&object, &Obstacle::Unreachable(error.to_string())).await?, None);
                }
            }
        }
        match decision.0 {
            Deletion::Delete(_) => Err(Error::Bug("a deletion without a server".to_owned())),
            Deletion::Release(note) => {
                if let Some(note) = note {
                    let notice = Notice { warning: true, reason: "EntryLeftBehind".to_owned(), note };
                    self.ctx.events.tell(object.object_ref(&()), notice);
                }
                self.release(&object).await
            }
            Deletion::Wait(why) => {
                let finding = Finding { reason: Reason::Deleting, message: why };
                self.settle(&object, Assessment::Unknown(finding.clone()));
                self.report(&object, &Outcome::Unknown(&finding), &Extras::default()).await?;
                Ok(Action::requeue(RECHECK))
            }
        }
    }

    async fn decide(&self, object: &K) -> Result<(Deletion, Option<Arc<Target>>), Error> {
        if self.definition_is_going().await? {
            return Ok((self.hindered(object, &Obstacle::DefinitionGoing).await?, None));
        }
        let usable = match self.server(object) {
            Ok(usable) => usable,
            Err(barred) => return Ok((self.hindered(object, &barred.obstacle).await?, None)),
        };
        let progress = Progress::default();
        let want = desired(object, &progress, usable.policies);
        let decision = identity::deletion(&want, Ok(&usable.snapshot), Duration::ZERO, false);
        if matches!(decision, Deletion::Delete(_)) || identity::has_entry(&want, &usable.snapshot) {
            return Ok((decision, Some(usable.target)));
        }
        // Nothing is there to delete, as far as was seen last. A creation whose answer was lost would be missing in that: look again before letting go.
        match usable.target.look_again().await {
            Ok(snapshot) => Ok((identity::deletion(&want, Ok(&snapshot), Duration::ZERO, false), Some(usable.target))),
            Err(error) => Ok((self.hindered(object, &Obstacle::Unreachable(error.to_string())).await?, None)),
        }
    }

    /// What becomes of the object while its entry cannot be looked at or deleted.
    async fn hindered(&self, object: &K, obstacle: &Obstacle) -> Result<Deletion, Error> {
        let progress = Progress::default();
        let since = object.meta().deletion_timestamp.as_ref().map(|time| self.ctx.clock.now().duration_since(time.0));
        let waited = since.and_then(|since| Duration::try_from(since).ok()).unwrap_or_default();
        let terminating = self.namespace_is_going(object).await?;
        Ok(identity::deletion(&desired(object, &progress, Policies::default()), Err(obstacle), waited, terminating))
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

    /// The object with our finalizer, which comes before the first write, if it needs one. `None` when it was changed by somebody else or is gone.
    pub(super) async fn with_finalizer(&self, object: Arc<K>, needed: bool) -> Result<Option<Arc<K>>, Error> {
        if !needed || object.finalizers().iter().any(|finalizer| finalizer == K::FINALIZER) {
            return Ok(Some(object));
        }
        let mut finalizers = object.finalizers().to_vec();
        finalizers.push(K::FINALIZER.to_owned());
        let Some(made) = self.write_finalizers(&object, finalizers).await? else { return Ok(None) };
        self.behind.wrote(object.as_ref(), made.resource_version.as_deref());
        // The patch named the version that was read, so all else is as it was, unless an admission webhook had a hand in it.
        if made.generation != object.meta().generation || made.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let mut object = Arc::unwrap_or_clone(object);
        *object.meta_mut() = ObjectMeta { managed_fields: None, ..made };
        Ok(Some(Arc::new(object)))
    }

    async fn release(&self, object: &K) -> Result<Action, Error> {
        let others = object.finalizers().iter().filter(|finalizer| *finalizer != K::FINALIZER).cloned().collect();
        self.write_finalizers(object, others).await?;
        self.forget(object);
        // Somebody younger may have stood back for this one.
        self.ctx.targets.wake(Wake::Refreshed(kanidm_key(object)));
        Ok(Action::await_change())
    }

    /// Carries the version that was read, so that the finalizer of somebody else is never lost. Returns what this made; `None` when the
    /// object is gone.
    async fn write_finalizers(&self, object: &K, finalizers: Vec<String>) -> Result<Option<ObjectMeta>, Error> {
        self.ctx.guard.check()?;
        let api: Api<K> = Api::namespaced(self.ctx.client.clone(), &object.namespace().unwrap_or_default());
        let patch = json!({"metadata": {"resourceVersion": object.resource_version(), "finalizers": finalizers}});
        match api.patch_metadata(&object.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(made) => Ok(Some(made.metadata)),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn forget(&self, object: &K) {
        self.settled().remove(&key(object));
        self.retry.reset(&key(object));
        self.pace.forget(&key(object));
        self.behind.forget(&key(object));
    }
}
