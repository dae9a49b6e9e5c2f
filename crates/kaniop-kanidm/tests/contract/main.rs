//! What Kaniop relies on, asked of a real server process: the development server, or any other that `KANIDMD` names.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod accounts;
mod backup;
mod certificates;
mod credentials;
mod entries;
mod fields;
mod node;
mod oauth2;
mod raw;
mod refusals;
mod server;
mod walk;
