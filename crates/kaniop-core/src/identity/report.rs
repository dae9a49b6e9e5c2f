//! What is said of an identity: from the outcome of a pass to conditions.

use std::time::Duration;

use jiff::Timestamp;

use super::{Finding, IdentityKind, Plan, facts};
use crate::condition::{Statement, Truth};
use crate::entry::Entry;
use crate::reason::Reason;

/// How a pass over one object ended.
#[derive(Clone, Debug)]
pub enum Outcome<'a> {
    /// The server was not asked, or did not answer: what it holds is unknown.
    Unknown(&'a Finding),
    /// Nothing can be done before somebody changes something; the server was not asked.
    Refused(&'a Finding),
    /// The server was asked.
    Answered {
        /// The entry as the server returned it last.
        entry: Option<&'a Entry>,
        /// What was planned on top of it: with a step left, the server did not carry it out.
        plan: &'a Plan,
    },
}

/// The conditions, and after how long they have to be stated anew although nothing happened.
#[must_use]
pub fn report<K: IdentityKind>(outcome: &Outcome<'_>, now: Timestamp) -> (Vec<Statement>, Option<Duration>) {
    match outcome {
        Outcome::Unknown(finding) => (unknown(finding, Truth::Unknown), None),
        Outcome::Refused(finding) => (unknown(finding, Truth::False), None),
        Outcome::Answered { entry, plan } => {
            let (mut stated, due) = entry.map_or((Vec::new(), None), |entry| facts::<K>(entry, now));
            let (truth, reason, message) = verdict(plan);
            stated.push(Statement::new("Ready", truth, reason, message.clone()));
            stated.push(Statement::new("Synced", truth, reason, message));
            stated.push(match entry {
                Some(entry) => Statement::new("Exists", true, Reason::Ready, format!("UUID {}", entry.uuid)),
                None => Statement::new("Exists", false, reason, "the server has no entry of this object"),
            });
            (stated, due)
        }
    }
}

fn unknown(finding: &Finding, ready: Truth) -> Vec<Statement> {
    vec![
        Statement::new("Ready", ready, finding.reason, finding.message.clone()),
        Statement::new("Synced", Truth::Unknown, finding.reason, finding.message.clone()),
        Statement::new("Exists", Truth::Unknown, finding.reason, "the server was not asked"),
    ]
}

fn verdict(plan: &Plan) -> (bool, Reason, String) {
    if let Some(first) = plan.findings.first() {
        let all: Vec<_> = plan.findings.iter().map(|finding| finding.message.as_str()).collect();
        return (false, first.reason, all.join("; "));
    }
    match &plan.step {
        None => (true, Reason::Ready, "the entry is as the spec says".to_owned()),
        Some(_) => (
            false,
            Reason::InvalidValue,
            format!("the server keeps other values than asked for: {}", plan.changes.join(", ")),
        ),
    }
}
