//! Waits until an object says that it is ready, and tells a person what it says until then.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use kaniop_core::reason::Reason;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::command::output;
use crate::interrupt;
use crate::report::{note, phase};

/// How long one object may take, image pulls and volumes included.
const LIMIT: Duration = Duration::from_secs(300);
/// How long a word that somebody has to act upon may stand: some of them pass by themselves right after a start.
const GRACE: Duration = Duration::from_secs(20);
/// Reasons that nothing but a change by a person ends.
const NEED_A_PERSON: &[Reason] = &[
    Reason::AccessDenied,
    Reason::CertificateInvalid,
    Reason::Conflict,
    Reason::DomainMismatch,
    Reason::EntryExists,
    Reason::ImageUnavailable,
    Reason::InvalidSpec,
    Reason::InvalidValue,
    Reason::KanidmNotFound,
    Reason::NameConflict,
    Reason::NamespaceNotSelected,
    Reason::Paused,
    Reason::ScaledToZero,
    Reason::SecretTemplateConflict,
    Reason::TlsSecretInvalid,
];
/// How often it is looked at.
const PAUSE: Duration = Duration::from_secs(1);

/// `kind/name`, as kubectl takes it.
pub(super) fn name(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_lowercase();
    format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// Waits for the condition `Ready`, of the generation that was applied.
///
/// # Errors
/// When it does not come true in time, or says for a while what only a person can change; with what it says.
pub(super) fn wait(cluster: &Cluster, object: &Value) -> Result<()> {
    let name = name(object);
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    phase(&format!("{name} ready"), || {
        let deadline = Instant::now() + LIMIT;
        let mut last = String::new();
        let mut stuck = None;
        loop {
            interrupt::check()?;
            let seen = output(&mut cluster.kubectl(["get", &name, "-n", namespace, "-o", "json"]))?;
            let state = state(&serde_json::from_str(&seen)?);
            let needs_a_person = matches!(state, State::Stuck(_));
            match state {
                State::Ready => return Ok(()),
                State::Not(why) | State::Stuck(why) if why != last => {
                    note(format!("{name}: {why}"));
                    last = why;
                }
                State::Not(_) | State::Stuck(_) => {}
            }
            stuck = stuck.or_else(|| Some(Instant::now())).filter(|_| needs_a_person);
            if stuck.is_some_and(|since| since.elapsed() > GRACE) {
                bail!("{name} waits for somebody: {last}");
            }
            if Instant::now() > deadline {
                bail!("{name} is not ready after {} s: {last}", LIMIT.as_secs());
            }
            thread::sleep(PAUSE);
        }
    })
}

#[derive(Debug, PartialEq)]
enum State {
    Ready,
    Not(String),
    /// The same, and it does not end by itself.
    Stuck(String),
}

fn state(object: &Value) -> State {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let Some(ready) = conditions.into_iter().find(|condition| condition["type"] == "Ready") else {
        return State::Not("nothing is said yet".to_owned());
    };
    if ready["observedGeneration"] != object["metadata"]["generation"] {
        return State::Not("the change is not seen yet".to_owned());
    }
    if ready["status"] == "True" {
        return State::Ready;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let why = format!("{}: {}", text(&ready["reason"]), text(&ready["message"]));
    let is_stuck = ready["status"] == "False" && NEED_A_PERSON.iter().any(|reason| ready["reason"] == reason.as_str());
    if is_stuck { State::Stuck(why) } else { State::Not(why) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(generation: u32, status: &str) -> Value {
        let ready =
            json!({"type": "Ready", "status": status, "reason": "R", "message": "m", "observedGeneration": generation});
        json!({"metadata": {"generation": 2}, "status": {"conditions": [ready]}})
    }

    #[test]
    fn ready_counts_only_for_the_newest_generation() {
        assert_eq!(state(&object(2, "True")), State::Ready);
        assert_eq!(state(&object(1, "True")), State::Not("the change is not seen yet".to_owned()));
        assert_eq!(state(&object(2, "False")), State::Not("R: m".to_owned()));
        assert_eq!(state(&json!({"metadata": {"generation": 1}})), State::Not("nothing is said yet".to_owned()));
    }

    #[test]
    fn what_only_a_person_can_change_is_told_from_what_comes_by_itself() {
        let saying = |status: &str, reason: &str| {
            let mut object = object(2, status);
            object["status"]["conditions"][0]["reason"] = reason.into();
            state(&object)
        };
        assert_eq!(saying("False", "CertificateInvalid"), State::Stuck("CertificateInvalid: m".to_owned()));
        assert_eq!(saying("False", "TlsSecretMissing"), State::Not("TlsSecretMissing: m".to_owned()));
        assert_eq!(saying("False", "Bootstrapping"), State::Not("Bootstrapping: m".to_owned()));
        // Nobody could say: that passes.
        assert_eq!(saying("Unknown", "CertificateInvalid"), State::Not("CertificateInvalid: m".to_owned()));
    }
}
