//! The query string of SCIM requests.

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use kanidm_proto::scim_v1::ScimEntryGetQuery;

use crate::http::error::Failure;

/// The deepest nesting of a filter that is parsed at all; the engine's own parser would overflow its stack.
const DEEPEST: usize = 128;

/// A query that has been read.
pub struct EntryQuery(pub ScimEntryGetQuery);

impl<S: Send + Sync> FromRequestParts<S> for EntryQuery {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Failure> {
        refuse_deep_nesting(parts.uri.query().unwrap_or_default())?;
        let Query(query) =
            Query::try_from_uri(&parts.uri).map_err(|rejection| Failure::BadRequest(rejection.body_text()))?;
        Ok(Self(query))
    }
}

/// Counts parentheses and brackets, encoded or not.
fn refuse_deep_nesting(query: &str) -> Result<(), Failure> {
    let text = query.replace("%28", "(").replace("%29", ")").replace("%5B", "[").replace("%5D", "]");
    let text = text.replace("%5b", "[").replace("%5d", "]");
    let mut depth = 0_usize;
    for character in text.chars() {
        match character {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            let reason = "Failed to deserialize query string: filter: too deeply nested";
            return Err(Failure::BadRequest(reason.to_owned()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_beyond_the_limit_is_refused_however_it_is_encoded() {
        for open in ["(", "%28", "[", "%5B", "%5b"] {
            assert!(refuse_deep_nesting(&open.repeat(DEEPEST)).is_ok());
            assert!(refuse_deep_nesting(&open.repeat(DEEPEST + 1)).is_err(), "{open}");
        }
    }
}
