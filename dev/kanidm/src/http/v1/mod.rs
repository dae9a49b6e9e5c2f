//! The `v1` routes.

mod account;
mod credential;
mod entry;
mod kind;
mod oauth2;
mod operation;
mod raw;
mod recycle_bin;
mod service_account;
mod sign;
mod ssh;

use axum::Router;

use super::Routes;
use kind::Kind;

/// All of them.
pub fn routes() -> Routes {
    Router::new()
        .merge(entry::collection("/v1/person", Kind::Person))
        .merge(entry::collection("/v1/group", Kind::Group))
        .merge(entry::collection("/v1/service_account", Kind::ServiceAccount))
        .merge(entry::fixed("/v1/domain", Kind::Domain))
        .merge(entry::fixed("/v1/system", Kind::System))
        .merge(account::routes())
        .merge(ssh::routes())
        .merge(service_account::routes())
        .merge(oauth2::routes())
        .merge(credential::routes())
        .merge(recycle_bin::routes())
        .merge(raw::routes())
        .merge(sign::routes())
}
