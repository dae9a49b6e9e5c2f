//! Class names as the engine's own type, which cannot be parsed by itself.

use kanidmd_lib::prelude::*;

/// What an entry can be created as.
const CLASSES: [EntryClass; 16] = [
    EntryClass::Account,
    EntryClass::AccountPolicy,
    EntryClass::Application,
    EntryClass::ExtensibleObject,
    EntryClass::Group,
    EntryClass::OAuth2ResourceServer,
    EntryClass::OAuth2ResourceServerBasic,
    EntryClass::OAuth2ResourceServerPublic,
    EntryClass::Object,
    EntryClass::OrgPerson,
    EntryClass::Person,
    EntryClass::PosixAccount,
    EntryClass::PosixGroup,
    EntryClass::Service,
    EntryClass::ServiceAccount,
    EntryClass::SyncAccount,
];

/// The classes of a new entry.
///
/// # Errors
/// `AccessDenied` for no class at all and for names that are unknown or that nobody may create: the real server
/// does not tell these apart.
pub fn parse(names: &[String]) -> Result<Vec<EntryClass>, OperationError> {
    let classes: Option<Vec<EntryClass>> = names.iter().map(|name| find(name)).collect();
    classes.filter(|classes| !classes.is_empty()).ok_or(OperationError::AccessDenied)
}

fn find(name: &str) -> Option<EntryClass> {
    CLASSES.into_iter().find(|class| class.as_ref() == name)
}
