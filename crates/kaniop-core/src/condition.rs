//! Conditions: how a new set follows from the old one. `lastTransitionTime` moves only when `status` does.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::reason::Reason;

/// Kubernetes' three truth values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// Known to hold.
    True,
    /// Known not to hold.
    False,
    /// Nobody can say.
    Unknown,
}

impl Truth {
    /// As Kubernetes writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Truth {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

/// What is to be said of one condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Type of the condition.
    pub kind: &'static str,
    /// Whether it holds.
    pub truth: Truth,
    /// Why.
    pub reason: Reason,
    /// For people: what happened and what to do.
    pub message: String,
}

impl Statement {
    /// A statement.
    pub fn new(kind: &'static str, truth: impl Into<Truth>, reason: Reason, message: impl Into<String>) -> Self {
        Self { kind, truth: truth.into(), reason, message: message.into() }
    }
}

/// The conditions after these statements: sorted by type, exactly the stated ones, with transition times kept where the status did not change.
#[must_use]
pub fn after(old: &[Condition], stated: &[Statement], generation: Option<i64>, now: Timestamp) -> Vec<Condition> {
    let mut new: Vec<_> = stated.iter().map(|statement| one(old, statement, generation, now)).collect();
    new.sort_by(|a, b| a.type_.cmp(&b.type_));
    new
}

fn one(old: &[Condition], statement: &Statement, generation: Option<i64>, now: Timestamp) -> Condition {
    let status = statement.truth.as_str();
    let kept = old.iter().find(|c| c.type_ == statement.kind && c.status == status);
    Condition {
        type_: statement.kind.to_owned(),
        status: status.to_owned(),
        reason: statement.reason.to_string(),
        message: statement.message.clone(),
        observed_generation: generation,
        last_transition_time: kept.map_or(Time(now), |c| c.last_transition_time.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn transition_time_moves_only_when_the_status_changes() {
        let first = after(&[], &[Statement::new("Ready", false, Reason::KanidmNotReady, "a")], Some(1), at(10));
        let reworded = after(&first, &[Statement::new("Ready", false, Reason::InvalidValue, "b")], Some(2), at(20));
        assert_eq!(reworded[0].last_transition_time, Time(at(10)));
        assert_eq!((reworded[0].reason.as_str(), reworded[0].observed_generation), ("InvalidValue", Some(2)));
        let turned = after(&reworded, &[Statement::new("Ready", true, Reason::Ready, "c")], Some(2), at(30));
        assert_eq!(turned[0].last_transition_time, Time(at(30)));
    }

    #[test]
    fn the_same_statements_change_nothing() {
        let stated =
            [Statement::new("Synced", true, Reason::Ready, ""), Statement::new("Ready", true, Reason::Ready, "")];
        let first = after(&[], &stated, Some(1), at(10));
        assert_eq!(after(&first, &stated, Some(1), at(99)), first);
    }
}
