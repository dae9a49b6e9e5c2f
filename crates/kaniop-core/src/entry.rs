//! Entries of a Kanidm server, as plans see them: typed attributes, the snapshot that all objects are planned against, and the steps that change it.
//!
//! How a value looks on the wire is `kaniop-kanidm`'s business; nothing here knows JSON.

mod snapshot;
mod step;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use uuid::Uuid;

pub use snapshot::Snapshot;
pub use step::{Newcomer, Step};

/// The collections of entries that Kaniop reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Collection {
    /// People.
    Person,
    /// Groups.
    Group,
    /// Accounts of programs.
    ServiceAccount,
    /// Applications that let people log in.
    OAuth2Client,
}

impl Collection {
    /// Every collection.
    pub const ALL: [Self; 4] = [Self::Person, Self::Group, Self::ServiceAccount, Self::OAuth2Client];

    /// The server's class that marks an entry of this collection.
    #[must_use]
    pub const fn class(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Group => "group",
            Self::ServiceAccount => "service_account",
            Self::OAuth2Client => "oauth2_resource_server",
        }
    }

    /// What people call an entry of this collection.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Group => "group",
            Self::ServiceAccount => "service account",
            Self::OAuth2Client => "OAuth2 client",
        }
    }

    /// Whether the server draws the UUIDs of new entries, instead of taking the one that is sent along.
    #[must_use]
    pub const fn draws_uuids(self) -> bool {
        matches!(self, Self::ServiceAccount | Self::OAuth2Client)
    }

    /// All classes that an entry of this collection is created with.
    #[must_use]
    pub const fn classes(self) -> &'static [&'static str] {
        match self {
            Self::Person => &["object", "account", "person"],
            Self::Group => &["object", "group"],
            Self::ServiceAccount => &["object", "account", "service_account"],
            Self::OAuth2Client => &["object", "account", "oauth2_resource_server"],
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
    /// A set of URLs, compared after normalisation.
    Urls,
    /// Scopes by group.
    Scopes,
    /// Claims by name.
    Claims,
    /// Something that is shown as its digest only.
    Digest,
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
    /// URLs in their normal form; exactly one where the attribute has but one.
    Urls(BTreeSet<String>),
    /// Scopes by group.
    Scopes(BTreeMap<Uuid, BTreeSet<String>>),
    /// Claims by name.
    Claims(BTreeMap<String, Claim>),
    /// Digest of something that is not shown itself.
    Digest(String),
}

/// A claim in the tokens of an OAuth2 client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// How several values become one.
    pub join: Join,
    /// Values by group.
    pub values: BTreeMap<Uuid, BTreeSet<String>>,
}

/// How several values of a claim become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// One text, with commas.
    Comma,
    /// One text, with spaces.
    Space,
    /// A list.
    List,
}

/// The normal form of a URL, in which the server keeps it. `None` when it is none.
#[must_use]
pub fn normal_url(text: &str) -> Option<String> {
    url::Url::parse(text).ok().map(String::from)
}

/// The normal form of an SSH public key, in which the server keeps it: type, key and comment with one space between. `None` when it has more
/// than one line, of which the server would keep the first.
#[must_use]
pub fn normal_ssh_key(text: &str) -> Option<String> {
    let line = text.trim();
    let (mut normal, mut rest) = (String::with_capacity(line.len()), line);
    for _ in 0..2 {
        let Some((word, more)) = rest.split_once(char::is_whitespace) else { break };
        normal.push_str(word);
        normal.push(' ');
        rest = more.trim_start();
    }
    normal.push_str(rest);
    (!line.contains(['\n', '\r'])).then_some(normal)
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
            Self::Urls(set) => set.is_empty(),
            Self::Scopes(map) => map.is_empty(),
            Self::Claims(map) => map.is_empty(),
            Self::Text(_) | Self::Time(_) | Self::Int(_) | Self::Bool(_) | Self::Digest(_) => false,
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
