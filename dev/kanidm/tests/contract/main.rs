//! The contract, tried on the real binary: each test starts its own server on the loopback interface.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on must stop")]

mod admin;
mod backup;
mod configuration;
mod credentials;
mod errors;
mod node;
mod oauth2;
mod release;
mod replication;
mod restore;
mod restored_node;
mod scim;
mod support;
mod tokens;
