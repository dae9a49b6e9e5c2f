//! Creating, changing and deleting entries by SCIM, each in one transaction.
//!
//! Two things that the engine of 1.7 cannot read are put into its own form first: references given as plain names,
//! and lists of URLs, which are lifted out and applied beside the rest in the same transaction.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use kanidm_proto::scim_v1::ScimEntryGetQuery;
use kanidm_proto::scim_v1::client::{ScimEntryPostGeneric, ScimEntryPutGeneric};
use kanidm_proto::scim_v1::server::ScimEntryKanidm;
use kanidmd_lib::idm::server::IdmServerProxyWriteTransaction;
use kanidmd_lib::prelude::*;
use kanidmd_lib::schema::SchemaTransaction;
use kanidmd_lib::server::scim::{ScimCreateEvent, ScimDeleteEvent, ScimEntryPutEvent};
use serde_json::{Map, Value as Body};

use super::class;
use crate::http::caller::Caller;
use crate::http::error::{Answer, Failure};
use crate::http::{Shared, conflict};

type Fields = Map<String, Body>;

/// `POST /scim/v1/Entry`.
pub async fn create(State(running): Shared, caller: Caller, Json(mut fields): Json<Fields>) -> Answer<ScimEntryKanidm> {
    let candidates = conflict::of_scim(&fields);
    let classes = fields.remove("class").map_or(Ok(Vec::new()), |names| read::<Vec<String>>("class", names))?;
    running
        .engine
        .write(|w, now| {
            let ident = caller.identity(w, now)?;
            let classes = class::parse(&classes)?;
            let urls = prepare(&mut fields, w)?;
            let attrs = fields.into_iter().map(|(name, value)| (Attribute::from(name.as_str()), value)).collect();
            let post = ScimEntryPostGeneric { attrs };
            let writer = &mut w.qs_write;
            let event = ScimCreateEvent::try_from(ident.clone(), &classes, post, writer)?;
            let created = match writer.scim_create(event) {
                Ok(created) => created,
                Err(error) => return Err(conflict::explain(error, writer, &candidates, None)),
            };
            if urls.is_empty() {
                return Ok(created);
            }
            set_urls(writer, ident.clone(), created.header.id, urls)?;
            Ok(show(writer, ident, created.header.id)?)
        })
        .await
        .map(Json)
}

/// `PUT /scim/v1/Entry`: sets the attributes that are named, purges those that are null, leaves the rest.
pub async fn put(State(running): Shared, caller: Caller, Json(mut fields): Json<Fields>) -> Answer<ScimEntryKanidm> {
    let candidates = conflict::of_scim(&fields);
    let target = match fields.remove("id") {
        Some(id) => read::<Uuid>("id", id)?,
        None => return Err(Failure::Unprocessable("missing field `id`".to_owned())),
    };
    running
        .engine
        .write(|w, now| {
            let ident = caller.identity(w, now)?;
            if fields.is_empty() {
                return Err(Failure::Operation(OperationError::AccessDenied));
            }
            let urls = prepare(&mut fields, w)?;
            let attrs: BTreeMap<_, _> = fields
                .into_iter()
                .map(|(name, value)| (Attribute::from(name.as_str()), Some(value).filter(|v| !v.is_null())))
                .collect();
            let only_urls = attrs.is_empty();
            let put = ScimEntryPutGeneric { id: target, attrs, query: ScimEntryGetQuery::default() };
            let writer = &mut w.qs_write;
            if !urls.is_empty() {
                set_urls(writer, ident.clone(), target, urls)?;
                if only_urls {
                    return Ok(show(writer, ident, target)?);
                }
            }
            let event = ScimEntryPutEvent::try_from(ident, put, writer)?;
            match writer.scim_put(event) {
                Ok(entry) => Ok(entry),
                Err(error) => Err(conflict::explain(error, writer, &candidates, Some(target))),
            }
        })
        .await
        .map(Json)
}

/// `DELETE /scim/v1/Entry/{id}`.
pub async fn delete(State(running): Shared, caller: Caller, Path(id): Path<String>) -> Answer<()> {
    let done: Result<(), OperationError> = running
        .engine
        .write(|w, now| {
            let ident = caller.identity(w, now)?;
            let target = w.qs_write.name_to_uuid(&id)?;
            w.qs_write.scim_delete(ScimDeleteEvent::new(ident, target, EntryClass::Object))
        })
        .await;
    Ok(Json(done?))
}

fn read<T: serde::de::DeserializeOwned>(name: &str, value: Body) -> Result<T, Failure> {
    serde_json::from_value(value).map_err(|e| Failure::Unprocessable(format!("{name}: {e}")))
}

/// Puts what the engine cannot read into its own form, and takes out what has none.
fn prepare(fields: &mut Fields, w: &mut IdmServerProxyWriteTransaction<'_>) -> Result<Urls, Failure> {
    let schema = w.qs_write.get_schema().get_attributes();
    for (name, value) in fields.iter_mut() {
        let syntax = schema.get(&Attribute::from(name.as_str())).map(|attribute| attribute.syntax);
        if syntax == Some(SyntaxType::ReferenceUuid) {
            // Only within a list, as in the real server.
            value.as_array_mut().into_iter().flatten().for_each(refer);
        }
    }
    lift_urls(fields, w)
}

/// A plain name or UUID becomes an object that says which it is.
fn refer(value: &mut Body) {
    if let Body::String(text) = value {
        let key = if Uuid::parse_str(text).is_ok() { "uuid" } else { "value" };
        *value = Body::Object([(key.to_owned(), Body::String(text.clone()))].into_iter().collect());
    }
}

type Urls = Vec<(Attribute, Vec<String>)>;

/// Takes out the attributes whose value is a list of URLs.
fn lift_urls(fields: &mut Fields, w: &mut IdmServerProxyWriteTransaction<'_>) -> Result<Urls, Failure> {
    let schema = w.qs_write.get_schema().get_attributes();
    let lists: Vec<String> = fields
        .iter()
        .filter(|(name, value)| {
            let attribute = Attribute::from(name.as_str());
            value.is_array() && schema.get(&attribute).is_some_and(|a| a.syntax == SyntaxType::Url)
        })
        .map(|(name, _)| name.clone())
        .collect();
    lists
        .into_iter()
        .map(|name| {
            let values = fields.remove(&name).unwrap_or_default();
            let values = serde_json::from_value(values)
                .map_err(|_| Failure::Operation(OperationError::SC0007UrlSyntaxInvalid))?;
            Ok((Attribute::from(name.as_str()), values))
        })
        .collect()
}

/// Replaces attributes by lists of URLs; an empty list purges.
fn set_urls(
    writer: &mut QueryServerWriteTransaction<'_>,
    ident: Identity,
    target: Uuid,
    urls: Urls,
) -> Result<(), OperationError> {
    let mut mods = Vec::new();
    for (attribute, values) in urls {
        mods.push(Modify::Purged(attribute.clone()));
        for value in values {
            let value = Value::new_url_s(&value).ok_or(OperationError::SC0007UrlSyntaxInvalid)?;
            mods.push(Modify::Present(attribute.clone(), value));
        }
    }
    let filter = kanidmd_lib::filter_all!(f_eq(Attribute::Uuid, PartialValue::Uuid(target)));
    let event = ModifyEvent::from_internal_parts(ident, &ModifyList::new_list(mods), &filter, writer)?;
    writer.modify(&event)
}

/// The entry as the caller may see it, changes of this transaction included.
fn show(
    writer: &mut QueryServerWriteTransaction<'_>,
    ident: Identity,
    target: Uuid,
) -> Result<ScimEntryKanidm, OperationError> {
    let wanted = kanidmd_lib::filter!(f_eq(Attribute::Uuid, PartialValue::Uuid(target)));
    let filter_orig = wanted.validate(writer.get_schema()).map_err(OperationError::SchemaViolation)?;
    let event = SearchEvent {
        ident,
        filter: filter_orig.clone().into_ignore_hidden(),
        filter_orig,
        attrs: None,
        effective_access_check: false,
    };
    let entries = writer.search_ext(&event)?;
    entries.first().ok_or(OperationError::NoMatchingEntries)?.to_scim_kanidm(writer)
}
