//! Who asks: the bearer token of a request, not yet verified.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use compact_jwt::JwsCompact;
use kanidmd_lib::idm::server::IdmServerTransaction;
use kanidmd_lib::prelude::*;

/// The credentials that came with a request.
#[derive(Clone)]
pub struct Caller(ClientAuthInfo);

impl Caller {
    /// The credentials in the engine's form.
    pub fn into_auth_info(self) -> ClientAuthInfo {
        self.0
    }

    /// Verifies the token and gives the identity it stands for.
    ///
    /// # Errors
    /// `NotAuthenticated` or `SessionExpired`.
    pub fn identity<'a, T: IdmServerTransaction<'a>>(
        &self,
        transaction: &mut T,
        now: Duration,
    ) -> Result<Identity, OperationError> {
        transaction.validate_client_auth_info_to_ident(self.0.clone(), now)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let address = parts
            .extensions
            .get::<ConnectInfo<SocketAddr>>()
            .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |info| info.0.ip());
        // A malformed token is no token: the engine then says that the caller is not authenticated.
        let token = parts
            .headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .and_then(|(_, token)| JwsCompact::from_str(token.trim()).ok());
        Ok(Self(ClientAuthInfo::new(Source::Https(address), None, token, None)))
    }
}
