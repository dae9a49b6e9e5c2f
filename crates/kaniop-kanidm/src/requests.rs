//! Counts the requests sent to Kanidm, by operation and outcome. It counts only: names and formats of metrics are the operator's.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a request was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// All entries at once.
    List,
    /// One entry, or the caller itself.
    Read,
    /// A new entry.
    Create,
    /// A change of an entry.
    Write,
    /// A deletion.
    Delete,
    /// One step of a login.
    Login,
    /// Anything else: status, tokens.
    Other,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 7] =
        [Self::List, Self::Read, Self::Create, Self::Write, Self::Delete, Self::Login, Self::Other];

    /// As a label of a metric.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Read => "read",
            Self::Create => "create",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Login => "login",
            Self::Other => "other",
        }
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The server did it (2xx).
    Done,
    /// The server answered that it will not (any other status).
    Refused,
    /// No whole answer came.
    Lost,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 3] = [Self::Done, Self::Refused, Self::Lost];

    /// As a label of a metric.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
            Self::Lost => "lost",
        }
    }
}

/// Counters of requests, shared by all clients of an endpoint.
#[derive(Debug, Default)]
pub struct Requests {
    counts: [[AtomicU64; Outcome::ALL.len()]; Operation::ALL.len()],
}

impl Requests {
    /// Requests of this operation that ended so, since the counters were made.
    #[must_use]
    pub fn count(&self, operation: Operation, outcome: Outcome) -> u64 {
        self.counts[operation as usize][outcome as usize].load(Ordering::Relaxed)
    }

    /// Requests of this operation, however they ended.
    #[must_use]
    pub fn of(&self, operation: Operation) -> u64 {
        Outcome::ALL.into_iter().map(|outcome| self.count(operation, outcome)).sum()
    }

    pub(crate) fn add(&self, operation: Operation, outcome: Outcome) {
        self.counts[operation as usize][outcome as usize].fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_and_outcome_has_a_counter_of_its_own() {
        let requests = Requests::default();
        for (index, operation) in Operation::ALL.into_iter().enumerate() {
            assert_eq!(operation as usize, index);
            for (nth, outcome) in Outcome::ALL.into_iter().enumerate() {
                assert_eq!(outcome as usize, nth);
                (0..=(index * 3 + nth)).for_each(|_| requests.add(operation, outcome));
            }
        }
        for (index, operation) in Operation::ALL.into_iter().enumerate() {
            for (nth, outcome) in Outcome::ALL.into_iter().enumerate() {
                assert_eq!(requests.count(operation, outcome), (index * 3 + nth + 1) as u64);
            }
        }
        assert_eq!(requests.of(Operation::List), 1 + 2 + 3);
    }
}
