//! All entries of one server, found by UUID, name and SPN. It is replaced as a whole when the server is read, and entry by entry by answers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use uuid::Uuid;

use super::{Entry, Value};

/// Everything that Kaniop reads of one server, at one instant: what all objects of that server are planned against.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    entries: BTreeMap<Uuid, Arc<Entry>>,
    /// Shared texts: while many are created, each answer makes a copy of all this.
    names: HashMap<Arc<str>, Uuid>,
    with_credential: Arc<BTreeSet<Uuid>>,
}

impl Snapshot {
    /// A snapshot of these entries.
    #[must_use]
    pub fn new(entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut snapshot = Self::default();
        entries.into_iter().for_each(|entry| snapshot.insert(entry));
        snapshot
    }

    /// These accounts can log in with something of their own.
    #[must_use]
    pub fn with_credentials(self, of: BTreeSet<Uuid>) -> Self {
        Self { with_credential: Arc::new(of), ..self }
    }

    /// Whether an account had any credential of its own (a password, a passkey) when all entries were read.
    #[must_use]
    pub fn has_credential(&self, uuid: Uuid) -> bool {
        self.with_credential.contains(&uuid)
    }

    /// Takes in an entry as the server just answered it.
    pub fn insert(&mut self, entry: Entry) {
        self.remove(entry.uuid);
        self.names.insert(entry.name.to_lowercase().into(), entry.uuid);
        self.names.insert(entry.spn.to_lowercase().into(), entry.uuid);
        self.entries.insert(entry.uuid, Arc::new(entry));
    }

    /// Forgets an entry that the server just deleted.
    pub fn remove(&mut self, uuid: Uuid) {
        let Some(gone) = self.entries.remove(&uuid) else { return };
        for name in [&gone.name, &gone.spn] {
            let name = name.to_lowercase();
            if self.names.get(name.as_str()) == Some(&uuid) {
                self.names.remove(name.as_str());
            }
        }
    }

    /// This is what the server holds under this UUID now.
    pub fn set(&mut self, uuid: Uuid, entry: Option<Entry>) {
        match entry {
            Some(entry) => self.insert(entry),
            None => self.remove(uuid),
        }
    }

    /// The entry of this UUID.
    #[must_use]
    pub fn get(&self, uuid: Uuid) -> Option<&Entry> {
        self.entries.get(&uuid).map(Arc::as_ref)
    }

    /// Whether an entry is another one or a member of it, directly or through groups.
    #[must_use]
    pub fn is_within(&self, member: Uuid, group: Uuid) -> bool {
        let mut seen = BTreeSet::new();
        let mut left = vec![group];
        while let Some(uuid) = left.pop() {
            if uuid == member {
                return true;
            }
            if seen.insert(uuid)
                && let Some(Value::References(members)) = self.get(uuid).and_then(|entry| entry.attrs.get("member"))
            {
                left.extend(members);
            }
        }
        false
    }

    /// The entry that the server would find under this name, SPN or UUID.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&Entry> {
        let by_name = self.names.get(id.to_lowercase().as_str());
        by_name.copied().or_else(|| Uuid::parse_str(id).ok()).and_then(|uuid| self.get(uuid))
    }
}
