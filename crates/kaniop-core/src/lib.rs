//! What should happen: every decision of Kaniop, as pure functions.
//!
//! Nothing here does IO, asks the clock, the environment or chance (`now`, names and fresh UUIDs are arguments), and nothing is `async`:
//! each decision can be tested as a table. Reading the world and acting on it is the operator's; the wire is `kaniop-kanidm`'s.

pub mod backup;
pub mod cluster;
pub mod condition;
pub mod entry;
pub mod identity;
pub mod lease;
pub mod name;
pub mod picture;
pub mod rbac;
pub mod reason;
pub mod restore;
