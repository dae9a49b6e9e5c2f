//! Who asks: the bearer token of a request, or the name and secret of an OAuth2 client, not yet verified.

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
        let shown = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.split_once(' '));
        let of =
            |wanted: &str| shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(wanted)).map(|(_, rest)| rest.trim());
        // A malformed token is no token: the engine then says that the caller is not authenticated.
        let token = of("bearer").and_then(|token| JwsCompact::from_str(token).ok());
        let basic = of("basic").map(str::to_owned);
        Ok(Self(ClientAuthInfo::new(Source::Https(address), None, token, basic)))
    }
}
