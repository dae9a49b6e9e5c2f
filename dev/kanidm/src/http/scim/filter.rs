//! SCIM filters that the engine of 1.7 cannot read: `ne`, and values of SPNs, mails, URLs and dates.
//!
//! They are walked into the engine's own filters here. That form has no starts-with and ends-with, so filters with
//! those go to the engine as they are.

use kanidm_proto::scim_v1::{AttrPath, JsonValue, ScimFilter};
use kanidmd_lib::prelude::*;

use crate::http::error::Failure;

/// The deepest nesting that is parsed at all.
const DEEPEST_TEXT: usize = 128;
/// The deepest filter that is carried out.
const DEEPEST: usize = 12;
/// The most terms of a filter.
const MOST_TERMS: usize = 32;

/// Refuses a query whose parentheses, encoded or not, nest deeper than the parser can follow.
///
/// # Errors
/// `BadRequest`.
pub fn refuse_deep_nesting(query: &str) -> Result<(), Failure> {
    let text = query.replace("%28", "(").replace("%29", ")").replace("%5B", "(").replace("%5D", ")");
    let mut depth = 0_usize;
    for character in text.chars() {
        match character {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST_TEXT {
            return Err(Failure::BadRequest(format!("the filter is nested deeper than {DEEPEST_TEXT}")));
        }
    }
    Ok(())
}

/// Whether the filter has a part that only the engine can carry out.
pub fn needs_engine(filter: &ScimFilter) -> bool {
    match filter {
        ScimFilter::Or(a, b) | ScimFilter::And(a, b) => needs_engine(a) || needs_engine(b),
        ScimFilter::Not(inner) => needs_engine(inner),
        ScimFilter::StartsWith(..) | ScimFilter::EndsWith(..) | ScimFilter::Complex(..) => true,
        ScimFilter::Present(_)
        | ScimFilter::Equal(..)
        | ScimFilter::NotEqual(..)
        | ScimFilter::Contains(..)
        | ScimFilter::Greater(..)
        | ScimFilter::Less(..)
        | ScimFilter::GreaterOrEqual(..)
        | ScimFilter::LessOrEqual(..) => false,
    }
}

/// The filter in the engine's form, to stand beside a positive term.
///
/// # Errors
/// `ResourceLimit` for filters that are too deep or too long, `InvalidAttribute` for values of the wrong form,
/// `NotImplemented` for dates compared by order.
pub fn translate(filter: &ScimFilter, reader: &mut QueryServerReadTransaction<'_>) -> Result<FC, Failure> {
    let mut walk = Walk { reader, terms: MOST_TERMS };
    walk.step(filter, DEEPEST)
}

struct Walk<'r, 't> {
    reader: &'r mut QueryServerReadTransaction<'t>,
    terms: usize,
}

impl Walk<'_, '_> {
    fn step(&mut self, filter: &ScimFilter, depth: usize) -> Result<FC, Failure> {
        let depth = depth.checked_sub(1).ok_or(Failure::Operation(OperationError::ResourceLimit))?;
        self.terms = self.terms.checked_sub(1).ok_or(Failure::Operation(OperationError::ResourceLimit))?;
        Ok(match filter {
            ScimFilter::And(a, b) => f_and(vec![self.step(a, depth)?, self.step(b, depth)?]),
            ScimFilter::Or(a, b) => f_or(vec![self.alone(a, depth)?, self.alone(b, depth)?]),
            ScimFilter::Not(inner) => f_andnot(self.alone(inner, depth)?),
            ScimFilter::Present(path) => f_pres(plain(path)?),
            ScimFilter::Equal(path, json) => f_eq(plain(path)?, self.value(path, json)?),
            ScimFilter::NotEqual(path, json) => f_andnot(f_eq(plain(path)?, self.value(path, json)?)),
            ScimFilter::Contains(path, json) => f_sub(plain(path)?, self.value(path, json)?),
            ScimFilter::Less(path, json) => {
                let (attribute, value) = self.ordered(path, json)?;
                f_lt(attribute, value)
            }
            ScimFilter::LessOrEqual(path, json) => {
                let (attribute, value) = self.ordered(path, json)?;
                at_most(attribute, value)
            }
            ScimFilter::Greater(path, json) => {
                let (attribute, value) = self.ordered(path, json)?;
                without(f_pres(attribute.clone()), at_most(attribute, value))
            }
            ScimFilter::GreaterOrEqual(path, json) => {
                let (attribute, value) = self.ordered(path, json)?;
                without(f_pres(attribute.clone()), f_lt(attribute, value))
            }
            ScimFilter::StartsWith(..) | ScimFilter::EndsWith(..) | ScimFilter::Complex(..) => {
                return Err(Failure::Operation(OperationError::FilterGeneration));
            }
        })
    }

    /// The engine knows "not" only beside something positive in the same "and"; elsewhere it gets a companion.
    fn alone(&mut self, filter: &ScimFilter, depth: usize) -> Result<FC, Failure> {
        let inner = self.step(filter, depth)?;
        Ok(match filter {
            ScimFilter::Not(_) | ScimFilter::NotEqual(..) | ScimFilter::And(..) => f_and(vec![every_object(), inner]),
            _ => inner,
        })
    }

    /// The engine of 1.7 puts only numbers in order; for anything else it would find the wrong entries.
    fn ordered(&mut self, path: &AttrPath, json: &JsonValue) -> Result<(Attribute, PartialValue), Failure> {
        let attribute = plain(path)?;
        let value = self.value(path, json)?;
        if matches!(value, PartialValue::Uint32(_)) {
            Ok((attribute, value))
        } else {
            Err(Failure::NotImplemented("comparison by order of anything but numbers"))
        }
    }

    /// The engine's reading of a value, and where it has none, that of v1.
    fn value(&mut self, path: &AttrPath, json: &JsonValue) -> Result<PartialValue, OperationError> {
        match (self.reader.resolve_scim_json_get(&path.a, json), json) {
            (Err(OperationError::InvalidAttribute(_)), JsonValue::String(text)) => {
                self.reader.clone_partialvalue(&path.a, text)
            }
            (Err(OperationError::InvalidAttribute(_)), JsonValue::Number(number)) => {
                self.reader.clone_partialvalue(&path.a, &number.to_string())
            }
            (resolved, _) => resolved,
        }
    }
}

fn every_object() -> FC {
    f_eq(Attribute::Class, EntryClass::Object.into())
}

fn without(all: FC, excluded: FC) -> FC {
    f_and(vec![all, f_andnot(excluded)])
}

fn at_most(attribute: Attribute, value: PartialValue) -> FC {
    f_or(vec![f_lt(attribute.clone(), value.clone()), f_eq(attribute, value)])
}

fn plain(path: &AttrPath) -> Result<Attribute, OperationError> {
    if path.s.is_some() {
        return Err(OperationError::FilterGeneration);
    }
    Ok(path.a.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_beyond_the_limit_is_refused_however_it_is_encoded() {
        for open in ["(", "%28", "["] {
            assert!(refuse_deep_nesting(&open.repeat(DEEPEST_TEXT)).is_ok());
            assert!(refuse_deep_nesting(&open.repeat(DEEPEST_TEXT + 1)).is_err());
        }
    }
}
