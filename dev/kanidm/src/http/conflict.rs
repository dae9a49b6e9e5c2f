//! Which attributes collide, when the engine only says that something does.
//!
//! The engine of 1.7 names no attribute; later servers do, and clients rely on it. So the same transaction is asked
//! once more, value by value.

use kanidmd_lib::prelude::*;
use kanidmd_lib::schema::SchemaTransaction;
use serde_json::Value as Json;

use super::error::Failure;

/// Attributes and the values that a request would give them.
pub type Candidates = Vec<(Attribute, Vec<String>)>;

/// Turns the engine's bare uniqueness error into one that names the attributes; leaves others alone.
///
/// `own` is the entry being changed, whose own values do not collide with it.
pub fn explain(
    error: OperationError,
    transaction: &mut QueryServerWriteTransaction<'_>,
    candidates: &[(Attribute, Vec<String>)],
    own: Option<Uuid>,
) -> Failure {
    if !matches!(error, OperationError::Plugin(PluginError::AttrUnique(_))) {
        return Failure::from(error);
    }
    let unique = transaction.get_schema().get_attributes_unique().clone();
    let mut taken: Vec<String> = candidates
        .iter()
        .filter(|(attribute, _)| unique.contains(attribute))
        .filter(|(attribute, values)| values.iter().any(|v| is_taken(transaction, attribute, v, own)))
        .map(|(attribute, _)| attribute.to_string())
        .collect();
    // The SPN is made of the name, so both collide.
    if taken.iter().any(|name| name == "name") && !taken.iter().any(|name| name == "spn") {
        taken.push("spn".to_owned());
    }
    Failure::Conflict(taken)
}

fn is_taken(
    transaction: &mut QueryServerWriteTransaction<'_>,
    attribute: &Attribute,
    value: &str,
    own: Option<Uuid>,
) -> bool {
    let Ok(value) = transaction.clone_partialvalue(attribute, value) else { return false };
    let mut terms = vec![f_eq(attribute.clone(), value)];
    if let Some(uuid) = own {
        terms.push(f_andnot(f_eq(Attribute::Uuid, PartialValue::Uuid(uuid))));
    }
    transaction.internal_exists(kanidmd_lib::filter!(f_and(terms))).unwrap_or(false)
}

/// The candidates of a v1 entry.
pub fn of_v1(entry: &kanidm_proto::v1::Entry) -> Candidates {
    entry.attrs.iter().map(|(name, values)| (Attribute::from(name.as_str()), values.clone())).collect()
}

/// The candidates of a SCIM body: strings, numbers, and the `value` of objects, alone or in lists.
pub fn of_scim<'a>(attributes: impl IntoIterator<Item = (&'a String, &'a Json)>) -> Candidates {
    attributes
        .into_iter()
        .map(|(name, value)| {
            let mut texts = Vec::new();
            collect(value, &mut texts);
            (Attribute::from(name.as_str()), texts)
        })
        .collect()
}

fn collect(value: &Json, texts: &mut Vec<String>) {
    match value {
        Json::String(text) => texts.push(text.clone()),
        Json::Number(number) => texts.push(number.to_string()),
        Json::Array(values) => values.iter().for_each(|v| collect(v, texts)),
        Json::Object(fields) => {
            if let Some(inner) = fields.get("value") {
                collect(inner, texts);
            }
        }
        Json::Null | Json::Bool(_) => {}
    }
}
