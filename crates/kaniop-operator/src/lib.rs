//! The shell: watches Kubernetes, asks the core what should happen, does it, and reports.
//!
//! The modules are the architecture: [`run`] puts everything together; [`engine`] is the loop of the identities and [`cluster`] that of the servers;
//! [`targets`] holds what is known of each server. Each kind of effect has one file: [`status`], [`apply`], [`exec`], [`events`].

pub mod apply;
pub mod clock;
pub mod cluster;
pub mod context;
pub mod engine;
pub mod error;
pub mod events;
pub mod exec;
pub mod http;
pub mod leader;
pub mod metrics;
pub mod node;
pub mod picture;
pub mod retry;
pub mod run;
#[cfg(test)]
mod scenario;
pub mod status;
pub mod targets;
