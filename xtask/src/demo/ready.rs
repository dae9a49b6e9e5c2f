//! Waits until an object says that it is ready, and tells a person what it says until then.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::command::output;
use crate::interrupt;
use crate::report::{note, phase};

/// How long one object may take, image pulls and volumes included.
const LIMIT: Duration = Duration::from_secs(300);
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
/// When it does not come true in time, with what it says instead.
pub(super) fn wait(cluster: &Cluster, object: &Value) -> Result<()> {
    let name = name(object);
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    phase(&format!("{name} ready"), || {
        let deadline = Instant::now() + LIMIT;
        let mut last = String::new();
        loop {
            interrupt::check()?;
            let seen = output(&mut cluster.kubectl(["get", &name, "-n", namespace, "-o", "json"]))?;
            let state = state(&serde_json::from_str(&seen)?);
            match state {
                State::Ready => return Ok(()),
                State::Not(why) if why != last => {
                    note(format!("{name}: {why}"));
                    last = why;
                }
                State::Not(_) => {}
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
    State::Not(format!("{}: {}", text(&ready["reason"]), text(&ready["message"])))
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
}
