//! Backups: the timer of a running server, and one made on demand beside it.

pub mod on_demand;
pub mod stamp;
pub mod timer;
mod write;
