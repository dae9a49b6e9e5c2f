//! The kinds of entries that have routes: how each is found and what each is made of.

use kanidmd_lib::prelude::*;

/// A kind of entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A human.
    Person,
    /// A group.
    Group,
    /// A machine's account.
    ServiceAccount,
    /// An OAuth2 client.
    OAuth2,
    /// The one domain entry.
    Domain,
    /// The one entry of system settings.
    System,
}

impl Kind {
    /// The class that every entry of the kind has.
    pub fn class(self) -> EntryClass {
        match self {
            Self::Person => EntryClass::Person,
            Self::Group => EntryClass::Group,
            Self::ServiceAccount => EntryClass::ServiceAccount,
            Self::OAuth2 => EntryClass::OAuth2ResourceServer,
            Self::Domain => EntryClass::DomainInfo,
            Self::System => EntryClass::SystemConfig,
        }
    }

    /// The classes of a new entry.
    pub fn classes(self) -> Vec<EntryClass> {
        match self {
            Self::Person => vec![EntryClass::Person, EntryClass::Account, EntryClass::Object],
            Self::ServiceAccount => vec![EntryClass::ServiceAccount, EntryClass::Account, EntryClass::Object],
            other => vec![other.class(), EntryClass::Object],
        }
    }

    /// All entries of the kind.
    pub fn all(self) -> Filter<FilterInvalid> {
        kanidmd_lib::filter_all!(f_eq(Attribute::Class, self.class().into()))
    }

    /// The one entry of the kind with this name, SPN or UUID. OAuth2 clients are known by their names only, as on the real server.
    pub fn one(self, id: &str) -> Filter<FilterInvalid> {
        if matches!(self, Self::OAuth2) {
            let name = f_eq(Attribute::Name, PartialValue::new_iname(id));
            return kanidmd_lib::filter_all!(f_and(vec![f_eq(Attribute::Class, self.class().into()), name]));
        }
        kanidmd_lib::filter_all!(f_and(vec![f_eq(Attribute::Class, self.class().into()), f_id(id)]))
    }

    /// The identifier of the one entry of a fixed kind.
    pub fn fixed_id(self) -> String {
        match self {
            Self::System => UUID_SYSTEM_CONFIG.to_string(),
            _ => UUID_DOMAIN_INFO.to_string(),
        }
    }
}
