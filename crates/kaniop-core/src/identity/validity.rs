//! When an account can be used, as far as its dates go: the condition `Valid`.

use std::time::Duration;

use jiff::Timestamp;

use crate::condition::{Statement, Truth};
use crate::entry::{Attr, Entry, Shape, Value};
use crate::reason::Reason;

/// The account cannot be used before this.
pub const VALID_FROM: Attr = Attr::new("account_valid_from", Shape::Time);
/// The account cannot be used from this on.
pub const EXPIRE: Attr = Attr::new("account_expire", Shape::Time);

/// Whether the account can be used at `now`, and after how long that changes.
#[must_use]
pub fn validity(entry: &Entry, now: Timestamp) -> (Statement, Option<Duration>) {
    let time = |attr: Attr| match entry.attrs.get(attr.name) {
        Some(Value::Time(time)) => Some(*time),
        _ => None,
    };
    let until = |then: Timestamp| Duration::try_from(then.duration_since(now)).ok();
    let say = |truth: Truth, reason, message: String| Statement::new("Valid", truth, reason, message);
    match (time(VALID_FROM), time(EXPIRE)) {
        (_, Some(end)) if end <= now => (say(Truth::False, Reason::Expired, format!("expired at {end}")), None),
        (Some(start), _) if start > now => {
            (say(Truth::False, Reason::NotYetValid, format!("cannot be used before {start}")), until(start))
        }
        (_, Some(end)) => (say(Truth::True, Reason::WithinValidity, format!("expires at {end}")), until(end)),
        (_, None) => (say(Truth::True, Reason::WithinValidity, "does not expire".to_owned()), None),
    }
}
