//! Entries of a Kanidm server, as plans see them: typed attributes, the snapshot that all objects are planned against, and the steps that change it.
//!
//! How a value looks on the wire is `kaniop-kanidm`'s business; nothing here knows JSON.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use uuid::Uuid;

/// The collections of entries that Kaniop reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Collection {
    /// People.
    Person,
    /// Groups.
    Group,
    /// Service accounts: read because they can be members and managers.
    ServiceAccount,
}

impl Collection {
    /// Every collection.
    pub const ALL: [Self; 3] = [Self::Person, Self::Group, Self::ServiceAccount];

    /// The server's class that marks an entry of this collection.
    #[must_use]
    pub const fn class(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Group => "group",
            Self::ServiceAccount => "service_account",
        }
    }

    /// All classes that an entry of this collection is created with.
    #[must_use]
    pub const fn classes(self) -> &'static [&'static str] {
        match self {
            Self::Person => &["object", "account", "person"],
            Self::Group => &["object", "group"],
            Self::ServiceAccount => &["object", "account", "service_account"],
        }
    }
}

/// What the values of an attribute look like and when two of them are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One text, compared exactly.
    Text,
    /// Mail addresses: the first is the primary, the others are a set.
    Mails,
    /// A set of references to other entries.
    References,
    /// One reference to another entry.
    Reference,
    /// A point in time.
    Time,
    /// A number.
    Int,
    /// Yes or no.
    Bool,
    /// SSH public keys by label.
    SshKeys,
}

/// An attribute of an entry: the server's name for it and its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attr {
    /// The server's name.
    pub name: &'static str,
    /// What its values look like.
    pub shape: Shape,
}

impl Attr {
    /// The entry's name.
    pub const NAME: Self = Self::new("name", Shape::Text);

    /// An attribute.
    #[must_use]
    pub const fn new(name: &'static str, shape: Shape) -> Self {
        Self { name, shape }
    }
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// One text.
    Text(String),
    /// Mail addresses, the primary first.
    Mails(Vec<String>),
    /// References by UUID, which survives a rename; exactly one for [`Shape::Reference`].
    References(BTreeSet<Uuid>),
    /// A point in time.
    Time(Timestamp),
    /// A number.
    Int(i64),
    /// Yes or no.
    Bool(bool),
    /// SSH public keys by label.
    SshKeys(BTreeMap<String, String>),
}

impl Value {
    /// Whether the server would treat both alike.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Mails(a), Self::Mails(b)) => {
                let rest = |m: &[String]| m.iter().skip(1).map(|v| v.to_lowercase()).collect::<BTreeSet<_>>();
                a.first() == b.first() && rest(a) == rest(b)
            }
            _ => self == other,
        }
    }

    /// Whether this is an empty list, which the server does not tell from an absent attribute.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Mails(list) => list.is_empty(),
            Self::References(set) => set.is_empty(),
            Self::SshKeys(keys) => keys.is_empty(),
            Self::Text(_) | Self::Time(_) | Self::Int(_) | Self::Bool(_) => false,
        }
    }
}

/// One entry, with the attributes that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its UUID, which never changes.
    pub uuid: Uuid,
    /// Where it belongs.
    pub collection: Collection,
    /// Its name, lower case.
    pub name: String,
    /// `name@domain`.
    pub spn: String,
    /// Classes that decide which attributes it may have.
    pub classes: BTreeSet<String>,
    /// Attributes by the server's name; an absent one is unset.
    pub attrs: BTreeMap<String, Value>,
}

impl Entry {
    /// Whether the server itself made it: such entries belong to nobody else.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        // The server gives its own entries UUIDs that differ in the last group only.
        self.uuid.as_u128() >> 48 == 0
    }
}

/// Everything that Kaniop reads of one server, at one instant: what all objects of that server are planned against.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    entries: BTreeMap<Uuid, Arc<Entry>>,
    names: HashMap<String, Uuid>,
}

impl Snapshot {
    /// A snapshot of these entries.
    #[must_use]
    pub fn new(entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut snapshot = Self::default();
        entries.into_iter().for_each(|entry| snapshot.insert(entry));
        snapshot
    }

    /// Takes in an entry as the server just answered it.
    pub fn insert(&mut self, entry: Entry) {
        self.remove(entry.uuid);
        self.names.insert(entry.name.to_lowercase(), entry.uuid);
        self.names.insert(entry.spn.to_lowercase(), entry.uuid);
        self.entries.insert(entry.uuid, Arc::new(entry));
    }

    /// Forgets an entry that the server just deleted.
    pub fn remove(&mut self, uuid: Uuid) {
        let Some(gone) = self.entries.remove(&uuid) else { return };
        for name in [&gone.name, &gone.spn] {
            let name = name.to_lowercase();
            if self.names.get(&name) == Some(&uuid) {
                self.names.remove(&name);
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

    /// The entry that the server would find under this name, SPN or UUID.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&Entry> {
        let by_name = self.names.get(&id.to_lowercase());
        by_name.copied().or_else(|| Uuid::parse_str(id).ok()).and_then(|uuid| self.get(uuid))
    }
}

/// One request that changes the server: one transaction there, safe to send again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Create an entry under a UUID of our choice.
    Create {
        /// Where it belongs.
        collection: Collection,
        /// The UUID that makes the creation recognisable.
        uuid: Uuid,
        /// Attributes, the name among them.
        attrs: Vec<(Attr, Value)>,
    },
    /// Set or purge (`None`) attributes of an entry.
    Put {
        /// Which entry.
        uuid: Uuid,
        /// What to set.
        attrs: Vec<(Attr, Option<Value>)>,
    },
    /// Give an entry a class, without which it may not have some attributes. The server does not take this together with anything else.
    Extend {
        /// Which entry.
        uuid: Uuid,
        /// Where it belongs.
        collection: Collection,
        /// Which class.
        class: &'static str,
    },
    /// Add and remove references, leaving those alone that somebody else adds or removes at the same time.
    Adjust {
        /// Which entry.
        uuid: Uuid,
        /// Where it belongs.
        collection: Collection,
        /// Which attribute.
        attr: Attr,
        /// Whom to add.
        add: BTreeSet<Uuid>,
        /// Whom to remove.
        remove: BTreeSet<Uuid>,
    },
    /// Delete an entry.
    Delete {
        /// Which entry.
        uuid: Uuid,
    },
}
