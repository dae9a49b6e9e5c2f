//! The picture of one entry: fetched from where the spec says, put on the server, taken away again, as `kaniop_core::picture::upload` decides.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kaniop_api::shared::ImageStatus;
use kaniop_core::entry::{Entry, Value};
use kaniop_core::identity::{Finding, IMAGE};
use kaniop_core::picture::content::Kind;
use kaniop_core::picture::upload::{Next, next};
use kaniop_core::reason::Reason;
use kaniop_kanidm::{Class, Error as KanidmError, Image};
use tokio::sync::Semaphore;

use super::assess::Usable;
use super::{Engine, Managed, key};
use crate::error::Error;
use crate::picture::{Fetched, Validators, fetch};
use crate::retry::LONGEST;
use crate::targets::ObjectKey;

/// How often a host is asked whether its picture changed.
const INTERVAL: Duration = Duration::from_secs(3600);
/// Pictures that are fetched at a time: a slow host must not hold up the passes that need none.
const FETCHES_AT_ONCE: usize = 2;
/// How soon a fetch is tried again for which there was no place.
const CROWDED: Duration = Duration::from_secs(2);

/// When the hosts of pictures were asked last.
pub(super) struct Looks {
    at: Mutex<HashMap<ObjectKey, Duration>>,
    /// URLs that gave no picture, and what was said of it, until the host is asked again.
    failed: Mutex<HashMap<ObjectKey, (String, Finding)>>,
    places: Arc<Semaphore>,
}

impl Default for Looks {
    fn default() -> Self {
        Self { at: Mutex::default(), failed: Mutex::default(), places: Arc::new(Semaphore::new(FETCHES_AT_ONCE)) }
    }
}

impl Looks {
    /// After how long the host is to be asked. A host that this operator never asked is asked some time within the interval, so that a start asks
    /// not all at once.
    fn due(&self, key: &ObjectKey, now: Duration) -> Duration {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let next = at.entry(key.clone()).or_insert_with(|| now + INTERVAL.mul_f64(fastrand::f64()));
        next.saturating_sub(now)
    }

    /// What was said of this URL when it gave no picture last.
    fn failure(&self, key: &ObjectKey, url: &str) -> Option<Finding> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.get(key).filter(|(of, _)| of == url).map(|(_, finding)| finding.clone())
    }

    fn failed(&self, key: &ObjectKey, failure: Option<(String, Finding)>) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        match failure {
            Some(failure) => drop(failed.insert(key.clone(), failure)),
            None => drop(failed.remove(key)),
        }
    }

    fn looked(&self, key: &ObjectKey, next: Duration) {
        self.at.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), next);
    }
}

/// What came of the picture of an entry.
#[derive(Debug, Default)]
pub(super) struct Picture {
    /// The one that we put there.
    pub(super) status: Option<ImageStatus>,
    pub(super) finding: Option<Finding>,
    /// After how long it has to be looked at again.
    pub(super) due: Option<Duration>,
}

impl<K: Managed> Engine<K> {
    /// Brings the picture to be the one that the spec names. The inner error is the Kanidm server's.
    pub(super) async fn picture(
        &self,
        object: &K,
        entry: &Entry,
        usable: &Usable,
    ) -> Result<Result<Picture, KanidmError>, Error> {
        let (key, now) = (key(object), self.ctx.clock.elapsed());
        let wanted = K::image(object.spec());
        let put = object.identity_status().and_then(|status| status.image.as_ref());
        let due = wanted.map(|_| self.looks.due(&key, now));
        let keep = |due| Picture { status: put.cloned(), finding: None, due };
        match (next(wanted, put, digest(entry), due == Some(Duration::ZERO)), wanted) {
            (Next::Keep, None) => Ok(Ok(Picture::default())),
            (Next::Keep, Some(_)) => Ok(Ok(keep(due))),
            (Next::Remove, _) | (Next::Fetch { .. }, None) => {
                self.ctx.guard.check()?;
                let client = usable.target.client();
                Ok(match client.delete_oauth2_image(&entry.name).await {
                    Ok(()) => usable.target.read(entry.uuid).await.map(|_| Picture::default()),
                    Err(error) => Err(error),
                })
            }
            (Next::Fetch { .. }, Some(url)) if let Some(finding) = self.failure_still_counts(&key, url, due) => {
                Ok(Ok(Picture { finding: Some(finding), ..keep(due) }))
            }
            (Next::Fetch { etag }, Some(url)) => {
                let Ok(_place) = self.looks.places.try_acquire() else { return Ok(Ok(keep(Some(CROWDED)))) };
                let known = etag.map(|etag| Validators { etag: Some(etag.to_owned()), last_modified: None });
                let fetched = fetch(url, known.as_ref(), &self.ctx.options.pictures).await;
                self.looks.looked(&key, now + INTERVAL);
                self.looks.failed(&key, None);
                match fetched {
                    Ok(Fetched::Unchanged) => Ok(Ok(keep(Some(INTERVAL)))),
                    Ok(Fetched::Image { sha256, .. }) if is_there(put, entry, url, &sha256) => {
                        Ok(Ok(keep(Some(INTERVAL))))
                    }
                    Ok(Fetched::Image { bytes, kind, sha256, validators }) => {
                        self.ctx.guard.check()?;
                        let made =
                            ImageStatus { url: url.to_owned(), sha256, digest: String::new(), etag: validators.etag };
                        Ok(put_there(usable, entry, (bytes, kind), made).await)
                    }
                    Err(error) => {
                        let due = if error.class() == Class::Retry { LONGEST } else { INTERVAL };
                        let finding =
                            Finding { reason: Reason::ImageFetchError, message: format!("image.url: {error}") };
                        self.looks.looked(&key, now + due);
                        self.looks.failed(&key, Some((url.to_owned(), finding.clone())));
                        Ok(Ok(Picture { finding: Some(finding), ..keep(Some(due)) }))
                    }
                }
            }
        }
    }
}

impl<K: Managed> Engine<K> {
    /// What was said of a URL that gave no picture, while it is not time to ask again.
    fn failure_still_counts(&self, key: &ObjectKey, url: &str, due: Option<Duration>) -> Option<Finding> {
        self.looks.failure(key, url).filter(|_| due != Some(Duration::ZERO))
    }
}

/// Whether the picture that is there is the one that came.
fn is_there(put: Option<&ImageStatus>, entry: &Entry, url: &str, sha256: &str) -> bool {
    put.is_some_and(|put| put.url == url && put.sha256 == sha256 && digest(entry) == Some(&put.digest))
}

async fn put_there(
    usable: &Usable,
    entry: &Entry,
    (bytes, kind): (Vec<u8>, Kind),
    mut made: ImageStatus,
) -> Result<Picture, KanidmError> {
    let image = Image::new(&format!("picture.{}", kind.extension()), kind.content_type(), bytes)?;
    usable.target.client().set_oauth2_image(&entry.name, image).await?;
    let after = usable.target.read(entry.uuid).await?;
    made.digest = after.as_ref().and_then(digest).unwrap_or_default().to_owned();
    tracing::info!(reason = "ImageUpdated", sha256 = made.sha256, "changed on the server");
    Ok(Picture { status: Some(made), finding: None, due: Some(INTERVAL) })
}

fn digest(entry: &Entry) -> Option<&str> {
    match entry.attrs.get(IMAGE.name) {
        Some(Value::Digest(digest)) => Some(digest),
        _ => None,
    }
}
