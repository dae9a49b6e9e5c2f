//! The restore machine row by row of its table, and its Jobs whole.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot read its own fixture has failed")]

mod endings;
mod jobs;
mod phases;
mod scene;
