//! Names that are derived, never drawn: the UUIDs of entries that we create.

use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Root of all derived UUIDs. Changing it would make every entry look like somebody else's.
const ROOT: Uuid = Uuid::from_u128(0x9d1c_52a6_0c3e_4f0e_8a57_6b61_6e69_6f70);

/// How many times an entry can be created again under one object within the server's seven days of keeping a deleted UUID.
pub const GENERATIONS: u32 = 64;

/// Name of the operator's own account on every server.
pub const OPERATOR_ACCOUNT: &str = "kaniop-operator";
/// The built-in groups that the operator's account needs to manage people, groups, service accounts, OAuth2 clients and their tokens.
pub const OPERATOR_GROUPS: &[&str] = &["idm_admins"];

/// The object that an entry belongs to: all that its UUID is derived from. No part of it is drawn, so an object that is re-created without
/// its status (GitOps, a restored cluster) finds its own entry again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner<'a> {
    /// Kind of the object.
    pub kind: &'static str,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Name of the entry.
    pub entry: &'a str,
}

impl Owner<'_> {
    /// UUID of the `generation`th entry of this object. A deleted UUID stays taken on the server, hence the generation.
    #[must_use]
    pub fn uuid(&self, generation: u32) -> Uuid {
        let text = [self.kind, self.namespace, self.name, self.entry, &generation.to_string()].join("\0");
        Uuid::new_v5(&ROOT, text.as_bytes())
    }

    /// Which generation this UUID of ours is.
    #[must_use]
    pub fn generation_of(&self, uuid: Uuid) -> Option<u32> {
        (0..GENERATIONS).find(|generation| self.uuid(*generation) == uuid)
    }

    /// Name that an entry carries until its UUID, drawn by the server, is pinned in the object's status.
    #[must_use]
    pub fn provisional(&self) -> String {
        format!("kaniop-{}", self.uuid(0).simple())
    }

    /// Every UUID that is ours, by generation.
    pub fn uuids(&self) -> impl Iterator<Item = Uuid> + '_ {
        (0..GENERATIONS).map(|generation| self.uuid(generation))
    }
}

/// A short digest of several values, for telling whether any of them changed. Not reversible, so it may be kept beside a secret.
#[must_use]
pub fn fingerprint<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_uuids_never_change_between_releases() {
        let owner = Owner { kind: "KanidmGroup", namespace: "default", name: "staff", entry: "staff" };
        assert_eq!(owner.uuid(0).to_string(), "27a2a0b8-a77c-5ea7-a633-dd76deb3f978");
        assert_ne!(owner.uuid(0), owner.uuid(1));
        assert_ne!(owner.uuid(0), Owner { kind: "KanidmPersonAccount", ..owner.clone() }.uuid(0));
    }
}
