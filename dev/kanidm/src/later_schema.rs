//! What servers after 1.7 have in their schema and access controls and this engine lacks.
//!
//! The added attributes of OAuth2 clients are stored and shown, nothing more: no consent prompt is skipped and no
//! refresh token lives longer by them. The added rights are those that a 1.10 server was seen to grant.

use kanidmd_lib::prelude::*;

/// Name, syntax and the fixed UUID of each attribute, so that every start finds its own.
const ATTRIBUTES: [(&str, SyntaxType, Uuid); 2] = [
    ("oauth2_consent_prompt_enable", SyntaxType::Boolean, uuid!("4b1d6f6a-5c0e-4f0e-9d5e-6b64657600a1")),
    ("oauth2_refresh_token_expiry", SyntaxType::Uint32, uuid!("4b1d6f6a-5c0e-4f0e-9d5e-6b64657600a2")),
];

const CONSENT: &str = ATTRIBUTES[0].0;
const EXPIRY: &str = ATTRIBUTES[1].0;

/// Entry, attribute of it, and the value to add.
const ADDITIONS: [(Uuid, Attribute, &str); 12] = [
    (UUID_SCHEMA_CLASS_OAUTH2_RS, Attribute::May, CONSENT),
    (UUID_SCHEMA_CLASS_OAUTH2_RS, Attribute::May, EXPIRY),
    (UUID_IDM_ACP_OAUTH2_MANAGE_V1, Attribute::AcpSearchAttr, CONSENT),
    (UUID_IDM_ACP_OAUTH2_MANAGE_V1, Attribute::AcpSearchAttr, EXPIRY),
    (UUID_IDM_ACP_OAUTH2_MANAGE_V1, Attribute::AcpModifyPresentAttr, CONSENT),
    (UUID_IDM_ACP_OAUTH2_MANAGE_V1, Attribute::AcpModifyPresentAttr, EXPIRY),
    (UUID_IDM_ACP_OAUTH2_MANAGE_V1, Attribute::AcpModifyRemovedAttr, CONSENT),
    (UUID_IDM_ACP_OAUTH2_MANAGE_V1, Attribute::AcpModifyRemovedAttr, EXPIRY),
    // A new client may not be given its consent switch, only an existing one.
    (UUID_IDM_ACP_OAUTH2_MANAGE_V1, Attribute::AcpCreateAttr, EXPIRY),
    (UUID_IDM_ACP_SERVICE_ACCOUNT_CREATE_V1, Attribute::AcpCreateAttr, ATTR_MAIL),
    (UUID_IDM_ACP_SERVICE_ACCOUNT_ENTRY_MANAGER_V1, Attribute::AcpSearchAttr, ATTR_MAIL),
    // Everybody may read when their own entry was last changed.
    (UUID_IDM_ACP_SELF_READ, Attribute::AcpSearchAttr, ATTR_LAST_MODIFIED_CID),
];

/// Adds what is missing. The start-up migration takes the additions away again, so this runs at every start.
///
/// # Errors
/// Those of the engine; the database then lacks the attributes.
pub async fn ensure(server: &QueryServer) -> Result<(), OperationError> {
    {
        let mut write = server.write(duration_from_epoch_now()).await?;
        for (name, syntax, uuid) in ATTRIBUTES {
            let here = filter_all(Attribute::Uuid, PartialValue::Uuid(uuid));
            if !write.internal_exists(here)? {
                write.internal_create(vec![attribute(name, syntax, uuid)])?;
            }
        }
        write.commit()?;
    }
    let mut write = server.write(duration_from_epoch_now()).await?;
    for (target, attribute, value) in ADDITIONS {
        allow(&mut write, target, attribute, value)?;
    }
    write.commit()
}

fn attribute(name: &str, syntax: SyntaxType, uuid: Uuid) -> EntryInitNew {
    let mut entry: EntryInitNew = Entry::new();
    for class in [EntryClass::Object, EntryClass::AttributeType] {
        entry.add_ava(Attribute::Class, class.to_value());
    }
    entry.add_ava(Attribute::Uuid, Value::Uuid(uuid));
    entry.add_ava(Attribute::AttributeName, Value::new_iutf8(name));
    entry.add_ava(Attribute::Description, Value::new_utf8s("Stored only by this development server"));
    entry.add_ava(Attribute::MultiValue, Value::new_bool(false));
    entry.add_ava(Attribute::Unique, Value::new_bool(false));
    entry.add_ava(Attribute::Syntax, Value::Syntax(syntax));
    entry
}

/// Adds one value to one attribute of one entry, unless it is there.
fn allow(
    write: &mut QueryServerWriteTransaction<'_>,
    target: Uuid,
    attribute: Attribute,
    value: &str,
) -> Result<(), OperationError> {
    let entry = write.internal_search_uuid(target)?;
    if entry.attribute_equality(attribute.clone(), &PartialValue::new_iutf8(value)) {
        return Ok(());
    }
    write.internal_modify_uuid(target, &ModifyList::new_append(attribute, Value::new_iutf8(value)))
}

fn filter_all(attribute: Attribute, value: PartialValue) -> Filter<FilterInvalid> {
    kanidmd_lib::filter_all!(f_eq(attribute, value))
}
