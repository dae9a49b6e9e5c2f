//! Short hashes for annotations: whether something is the same as before, never what it is.

use std::fmt::Write as _;

use serde::Serialize;
use sha2::{Digest, Sha256};

/// Hash of these parts, in this order; where one part ends and the next begins counts.
#[must_use]
pub fn of_bytes<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    // 128 bits are plenty to see a change, and short enough to compare by eye.
    hasher.finalize().iter().take(16).fold(String::with_capacity(32), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Hash of a manifest as it is sent. Maps of Kubernetes types are ordered, so equal objects have equal hashes.
#[must_use]
pub fn of_manifest(manifest: &impl Serialize) -> String {
    // Manifests are plain data with text keys, which always serialise; were one not to, it would merely count as changed.
    let json = serde_json::to_vec(manifest).unwrap_or_default();
    of_bytes([json.as_slice()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moving_a_byte_from_one_part_to_the_next_changes_the_hash() {
        assert_ne!(of_bytes([b"ab".as_slice(), b"c"]), of_bytes([b"a".as_slice(), b"bc"]));
        assert_eq!(of_bytes([b"a".as_slice()]).len(), 32);
    }
}
