//! What users write: one kind a file, group `kaniop.rs`, version `v1beta1`.
//!
//! This crate knows names, types, defaults and the rules that the API server checks (CEL). It decides nothing and speaks to nobody:
//! what should happen is `kaniop-core`'s, and doing it is the operator's.

pub mod crd;
pub mod group;
pub mod kanidm;
pub mod oauth2;
pub mod person;
pub mod restore;
pub mod service_account;
pub mod shared;

pub use group::{KanidmGroup, KanidmGroupSpec};
pub use kanidm::{Kanidm, KanidmSpec, KanidmStatus};
pub use oauth2::{KanidmOAuth2Client, KanidmOAuth2ClientSpec};
pub use person::{KanidmPersonAccount, KanidmPersonAccountSpec};
pub use restore::{KanidmRestore, KanidmRestoreSpec, KanidmRestoreStatus};
pub use service_account::{KanidmServiceAccount, KanidmServiceAccountSpec};
pub use shared::{IdentityStatus, KanidmRef};

/// API group of every kind.
pub const GROUP: &str = "kaniop.rs";
/// The one version, served and stored.
pub const VERSION: &str = "v1beta1";
