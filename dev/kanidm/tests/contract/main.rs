//! The contract, tried on the real binary: each test starts its own server on the loopback interface.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on must stop")]

mod admin;
mod backup;
mod configuration;
mod credentials;
mod errors;
mod oauth2;
mod scim;
mod support;
mod tokens;
