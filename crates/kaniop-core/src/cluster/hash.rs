//! Hashes of manifests for annotations: whether one is the same as before, never what it is.

use serde::Serialize;

use crate::name::fingerprint;

/// Hash of a manifest as it is sent. Maps of Kubernetes types are ordered, so equal objects have equal hashes.
#[must_use]
pub fn of_manifest(manifest: &impl Serialize) -> String {
    // Manifests are plain data with text keys, which always serialise; were one not to, it would merely count as changed.
    let json = serde_json::to_vec(manifest).unwrap_or_default();
    fingerprint([json.as_slice()])
}
