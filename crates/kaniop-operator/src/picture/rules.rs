//! What a fetch keeps to.

#[cfg(test)]
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};

use super::error::Error;
use super::names::Names;

/// Enough for a picture of 256 KiB over a slow line, and little beside a pass.
const WHOLE: Duration = Duration::from_secs(10);

/// What every fetch keeps to, whatever the URL. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Networks that are not asked although they are public.
    pub(super) refused: Arc<[IpNet]>,
    /// Which certificates are accepted.
    pub(super) tls: ClientConfig,
    /// Most time that a fetch takes, looking up the name included.
    pub(super) whole: Duration,
    /// Who says which addresses a name has.
    pub(super) names: Names,
    /// Addresses that a test may ask although they are not public. The product has no such thing.
    #[cfg(test)]
    pub(super) excepted: Vec<IpAddr>,
}

impl Rules {
    /// The rules outside of tests. Certificates are verified by the public web roots; `refused` are networks that are not asked even if they are
    /// public, such as those of the cluster's nodes, pods and services.
    ///
    /// # Errors
    /// [`Error::Setup`] when TLS cannot be set up.
    pub fn new(refused: Vec<IpNet>) -> Result<Self, Error> {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        Ok(Self {
            refused: refused.into(),
            tls: tls(roots)?,
            whole: WHOLE,
            names: Names::System,
            #[cfg(test)]
            excepted: Vec::new(),
        })
    }

    /// Rules under which a test may ask these addresses, with these names and roots.
    #[cfg(test)]
    pub(crate) fn for_test(names: Arc<super::Told>, roots: RootCertStore, excepted: Vec<IpAddr>) -> Self {
        let names = Names::Told(names);
        Self { tls: tls(roots).unwrap(), names, excepted, ..Self::new(Vec::new()).unwrap() }
    }

    /// The same rules with another limit of time.
    #[cfg(test)]
    pub(crate) fn within(mut self, whole: Duration) -> Self {
        self.whole = whole;
        self
    }
}

fn tls(roots: RootCertStore) -> Result<ClientConfig, Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| Error::Setup(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
