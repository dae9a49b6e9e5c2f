//! What servers after 1.7 have in their schema and this engine lacks, attributes of OAuth2 clients above all.
//!
//! They are stored and shown, nothing more: no consent prompt is skipped and no refresh token lives longer by them.

use kanidmd_lib::prelude::*;

/// Name, syntax and the fixed UUID of each attribute, so that every start finds its own.
const ATTRIBUTES: [(&str, SyntaxType, Uuid); 2] = [
    ("oauth2_consent_prompt_enable", SyntaxType::Boolean, uuid!("4b1d6f6a-5c0e-4f0e-9d5e-6b64657600a1")),
    ("oauth2_refresh_token_expiry", SyntaxType::Uint32, uuid!("4b1d6f6a-5c0e-4f0e-9d5e-6b64657600a2")),
];

/// Where an access control names the attributes it covers.
const ACCESS: [Attribute; 4] = [
    Attribute::AcpSearchAttr,
    Attribute::AcpModifyPresentAttr,
    Attribute::AcpModifyRemovedAttr,
    Attribute::AcpCreateAttr,
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
    let names = || ATTRIBUTES.iter().map(|(name, ..)| *name);
    allow(&mut write, UUID_SCHEMA_CLASS_OAUTH2_RS, &[Attribute::May], names().collect())?;
    allow(&mut write, UUID_IDM_ACP_OAUTH2_MANAGE_V1, &ACCESS, names().collect())?;
    // Later servers let everybody read when their own entry was last changed.
    let stamp = Attribute::LastModifiedCid;
    allow(&mut write, UUID_IDM_ACP_SELF_READ, &[Attribute::AcpSearchAttr], vec![stamp.as_str()])?;
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

/// Adds `values` to each of `attributes` of one entry, unless they are there.
fn allow(
    write: &mut QueryServerWriteTransaction<'_>,
    target: Uuid,
    attributes: &[Attribute],
    values: Vec<&str>,
) -> Result<(), OperationError> {
    let entry = write.internal_search_uuid(target)?;
    let mods: Vec<Modify> = attributes
        .iter()
        .flat_map(|attribute| values.iter().map(move |value| (attribute, *value)))
        .filter(|(attribute, value)| !entry.attribute_equality((*attribute).clone(), &PartialValue::new_iutf8(value)))
        .map(|(attribute, value)| Modify::Present(attribute.clone(), Value::new_iutf8(value)))
        .collect();
    if mods.is_empty() {
        return Ok(());
    }
    write.internal_modify_uuid(target, &ModifyList::new_list(mods))
}

fn filter_all(attribute: Attribute, value: PartialValue) -> Filter<FilterInvalid> {
    kanidmd_lib::filter_all!(f_eq(attribute, value))
}
