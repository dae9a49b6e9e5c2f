//! What changes a server: one request each.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::{Attr, Collection, Value};

/// An entry that the server creates in a way of its own, with what it cannot be without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Newcomer {
    /// A service account.
    ServiceAccount {
        /// Name shown to people.
        displayname: String,
        /// Whoever may change it.
        managed_by: Uuid,
    },
    /// An OAuth2 client.
    OAuth2Client {
        /// Name shown to people.
        displayname: String,
        /// Where people go who choose it.
        landing: String,
        /// Whether it keeps no secret.
        public: bool,
    },
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
    /// Create an entry whose UUID the server draws. Its provisional name makes the creation recognisable: that it exists already is no error.
    CreateProvisional {
        /// The provisional name.
        name: String,
        /// What to create.
        newcomer: Newcomer,
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

impl Step {
    /// The same creation with nothing but what an entry cannot be without; `None` where there is nothing to leave out.
    #[must_use]
    pub fn bare(&self) -> Option<Self> {
        let Self::Create { collection, uuid, attrs } = self else { return None };
        let kept: Vec<_> =
            attrs.iter().filter(|(attr, _)| matches!(attr.name, "name" | "displayname")).cloned().collect();
        (kept.len() < attrs.len()).then_some(Self::Create { collection: *collection, uuid: *uuid, attrs: kept })
    }

    /// The same in requests that change one attribute each; none where that cannot be.
    #[must_use]
    pub fn parts(&self) -> Vec<Self> {
        match self {
            Self::Put { uuid, attrs } => {
                attrs.iter().map(|attr| Self::Put { uuid: *uuid, attrs: vec![attr.clone()] }).collect()
            }
            _ => Vec::new(),
        }
    }
}
