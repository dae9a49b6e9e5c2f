//! The admin socket: plain JSON, one answer for each request, no framing.
//!
//! Reachable by root and by the server's own user only, and not before the start-up has finished.

mod answers;
pub mod client;
pub mod protocol;
pub mod socket;
