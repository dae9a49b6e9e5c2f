//! The URL that clients use, and the rule that ties it to the domain.

use std::fmt;

use url::{Host, Url};

/// A validated origin: `https`, a DNS name that is the domain or below it, perhaps a port, nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    host: String,
    port: Option<u16>,
}

impl Origin {
    /// The origin of a domain that names none.
    #[must_use]
    pub fn of_domain(domain: &str) -> Self {
        Self { host: domain.to_owned(), port: None }
    }

    /// Takes an origin, if the server would take it for this domain.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn parse(text: &str, domain: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| format!("'{text}' is not a URL: {error}"))?;
        if url.scheme() != "https" {
            return Err(format!("'{text}' must begin with https://, for the server speaks nothing else"));
        }
        let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        if !bare || !url.username().is_empty() || url.password().is_some() {
            return Err(format!(
                "'{text}' must have only a host name and perhaps a port: no user, path, query or fragment"
            ));
        }
        let Some(Host::Domain(host)) = url.host() else {
            return Err(format!("'{text}' must have a host name, not an address"));
        };
        let below = host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        if !below {
            return Err(format!("host '{host}' must be the domain '{domain}' or below it"));
        }
        Ok(Self { host: host.to_owned(), port: url.port() })
    }

    /// Host name that clients use, and that the certificate must be for.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "https://{}", self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_the_domain_or_below_it() {
        for (text, written) in [
            ("https://example.com", "https://example.com"),
            ("https://example.com/", "https://example.com"),
            ("https://idm.example.com:8443", "https://idm.example.com:8443"),
            ("https://a.b.example.com:443", "https://a.b.example.com"),
        ] {
            assert_eq!(Origin::parse(text, "example.com").unwrap().to_string(), written);
        }
    }

    #[test]
    fn what_the_server_would_refuse_is_refused_with_the_way_out() {
        for (text, said) in [
            ("https://badexample.com", "must be the domain 'example.com' or below it"),
            ("https://example.org", "must be the domain 'example.com' or below it"),
            ("http://example.com", "must begin with https://"),
            ("https://example.com/login", "no user, path, query or fragment"),
            ("https://u@example.com", "no user, path, query or fragment"),
            ("https://10.0.0.1", "not an address"),
            ("example.com", "is not a URL"),
        ] {
            let error = Origin::parse(text, "example.com").unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
