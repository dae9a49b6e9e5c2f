//! Listing entries: one call gives everything of a kind with chosen attributes.
//!
//! Sorting and paging come after the whole search, as in the real server: they save nothing and lift no limit.

use std::cmp::Ordering;
use std::num::NonZeroU64;

use axum::Json;
use axum::extract::{RawQuery, State};
use kanidm_proto::scim_v1::server::ScimListResponse;
use kanidm_proto::scim_v1::{ScimEntryGetQuery, ScimSortOrder};
use kanidmd_lib::prelude::*;

use super::{filter, parse_query};
use crate::http::Shared;
use crate::http::caller::Caller;
use crate::http::error::{Answer, Failure};

/// `GET /scim/v1/Entry`.
pub async fn list(State(running): Shared, caller: Caller, RawQuery(raw): RawQuery) -> Answer<ScimListResponse> {
    let query = parse_query(raw)?;
    running
        .engine
        .read(|r, now| {
            let ident = caller.identity(r, now)?;
            let reader = &mut r.qs_read;
            if query.filter.as_ref().is_some_and(filter::needs_engine) {
                Ok(reader.scim_search_ext(ident, EntryClass::Object.into(), query)?)
            } else {
                search(ident, query, reader)
            }
        })
        .await
        .map(Json)
}

type Reduced = Entry<EntryReduced, EntryCommitted>;

fn search(
    ident: Identity,
    query: ScimEntryGetQuery,
    reader: &mut QueryServerReadTransaction<'_>,
) -> Result<ScimListResponse, Failure> {
    let mut terms = vec![f_eq(Attribute::Class, EntryClass::Object.into())];
    if let Some(wanted) = &query.filter {
        terms.push(filter::translate(wanted, reader)?);
    }
    let wanted = kanidmd_lib::filter_all!(f_and(terms));
    let mut event = SearchEvent::from_internal_message(ident, &wanted, None, reader)?;
    event.attrs = query.attributes.clone().map(|attributes| attributes.into_iter().collect());
    event.effective_access_check = query.ext_access_check;
    let mut entries = reader.search_ext(&event)?;
    let total_results = entries.len() as u64;
    if let Some(by) = &query.sort_by {
        sort(&mut entries, by, query.sort_order.clone().unwrap_or_default());
    }
    let page = page(&query, entries.len())?;
    let entries = match page {
        Some((start, count)) => entries.into_iter().skip(start).take(count).collect(),
        None => entries,
    };
    let resources = entries.iter().map(|entry| entry.to_scim_kanidm(reader)).collect::<Result<_, OperationError>>()?;
    Ok(ScimListResponse {
        schemas: Vec::new(),
        total_results,
        items_per_page: query.count.filter(|_| page.is_some()),
        start_index: page.and_then(|(start, _)| NonZeroU64::new(start as u64 + 1)),
        resources,
    })
}

/// Entries without the attribute come last.
fn sort(entries: &mut [Reduced], by: &Attribute, order: ScimSortOrder) {
    entries.sort_by(|a, b| match (a.get_ava_set(by), b.get_ava_set(by)) {
        (Some(a), Some(b)) => match order {
            ScimSortOrder::Ascending => a.cmp(b),
            ScimSortOrder::Descending => b.cmp(a),
        },
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    });
}

/// Where the page starts (from 0) and how long it is; `None` without paging.
fn page(query: &ScimEntryGetQuery, total: usize) -> Result<Option<(usize, usize)>, OperationError> {
    let Some(count) = query.count else { return Ok(None) };
    let start = query.start_index.map_or(0, |index| index.get() - 1);
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    if start > total {
        return Err(OperationError::SC0029PaginationOutOfBounds);
    }
    Ok(Some((start, usize::try_from(count.get()).unwrap_or(usize::MAX))))
}
