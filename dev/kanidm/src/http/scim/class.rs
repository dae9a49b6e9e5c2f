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

/// The class of that name.
///
/// # Errors
/// `InvalidClass`, for names that are unknown or cannot be created.
pub fn parse(name: &str) -> Result<EntryClass, OperationError> {
    CLASSES
        .into_iter()
        .find(|class| class.as_ref() == name)
        .ok_or_else(|| OperationError::SchemaViolation(SchemaError::InvalidClass(vec![name.to_owned()])))
}
