//! What the tests on a real Kubernetes have in common: objects from YAML, waiting with a deadline, certificates, asking the server as
//! a bystander. It knows the product's API and nothing of its insides.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "this crate is for tests: a failure is a panic that says why"
)]

use std::fmt::Debug;
use std::future::Future;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kube::api::DynamicObject;
use serde::Deserialize;
use serde_json::Value;

pub mod certificate;
pub mod cluster;
pub mod counts;
pub mod server;

/// How long anything may take that involves pods, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(240);
/// How often a condition is looked at.
const PAUSE: Duration = Duration::from_millis(250);

/// The root of the checkout.
#[must_use]
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A setting of the driver.
///
/// # Panics
/// When it is not set: these tests are run by `cargo xtask`, which sets it.
#[must_use]
pub fn setting(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: run these tests by `cargo xtask e2e` or `cargo xtask test`"))
}

/// The objects of a YAML text.
///
/// # Panics
/// When it is no YAML.
#[must_use]
pub fn objects(yaml: &str) -> Vec<Value> {
    let documents = serde_norway::Deserializer::from_str(yaml).map(|document| Value::deserialize(document).unwrap());
    documents.filter(|object| !object.is_null()).collect()
}

/// The objects of all files of a folder of `examples/`, in the order of the files' names.
///
/// # Panics
/// When a file cannot be read.
#[must_use]
pub fn example(folder: &str) -> Vec<Value> {
    let mut files: Vec<_> =
        std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().flat_map(|file| objects(&std::fs::read_to_string(file).unwrap())).collect()
}

/// Looks until `look` finds something, and returns it.
///
/// # Panics
/// When the deadline passes; the message has what was looked for and what was seen last.
pub async fn eventually<T, Seen, Look>(what: &str, limit: Duration, mut look: impl FnMut() -> Look) -> T
where
    Look: Future<Output = Result<T, Seen>>,
    Seen: Debug,
{
    let deadline = Instant::now() + limit;
    loop {
        match look().await {
            Ok(found) => return found,
            Err(seen) if Instant::now() > deadline => {
                panic!("not within {} s: {what}; last seen: {seen:?}", limit.as_secs())
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// A condition of an object: status, reason, message.
#[must_use]
pub fn condition(object: &DynamicObject, kind: &str) -> Option<(String, String, String)> {
    let conditions = object.data["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == kind)?;
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    Some((text("status"), text("reason"), text("message")))
}

/// Whether what is said of the object is about its newest generation.
#[must_use]
pub fn is_current(object: &DynamicObject) -> bool {
    object.data["status"]["observedGeneration"].as_i64() == object.metadata.generation
}
