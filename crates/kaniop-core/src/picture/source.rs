//! Which URL a picture may be fetched from, and where it may be sent on to. Judges names, never what they resolve to.

use std::fmt;

use url::{Host, ParseError, Url};

/// A URL that may be asked: `https`, without credentials, at a host with a name that means the same everywhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Source(Url);

/// Why a URL is not asked. None of the texts repeats the URL: it may hold a password, or a signature that is as good as one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// Not a URL.
    #[error("the URL of a picture cannot be read: {0}")]
    Unreadable(#[from] ParseError),
    /// Another scheme.
    #[error("the URL of a picture must begin with https://")]
    NotHttps,
    /// Somebody's password is in it.
    #[error(
        "the URL of a picture must not have a user or a password in it: put the picture where everybody can read it"
    )]
    Credentials,
    /// An address in place of a name.
    #[error("the URL of a picture must have a host name, not an address")]
    Address,
    /// A name that cannot be in DNS.
    #[error("the URL of a picture must have a host name that DNS can hold, without a dot at its end")]
    NotDns,
    /// A name that means another host in each network.
    #[error(
        "the URL of a picture must have a public host name: '{0}' means something inside a network or cluster only"
    )]
    Local(
        /// The host.
        String,
    ),
    /// A redirect to another host.
    #[error("it leads to another host, '{0}': give the URL that the picture is really at")]
    Elsewhere(
        /// The other host.
        String,
    ),
}

/// Last labels of names that no public DNS has: reserved by the IETF or ICANN, or in use within networks and clusters.
const LOCAL: &[&str] = &[
    "arpa",
    "corp",
    "home",
    "internal",
    "intranet",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "onion",
    "private",
    "svc",
    "test",
];

impl Source {
    /// Takes a URL, if it may be asked.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        Self::judged(Url::parse(text)?)
    }

    /// Where the host of this URL sends on to. It must be the same host, and all that holds for a URL holds for the new one.
    ///
    /// # Errors
    /// Why it is not followed, for people.
    pub fn sent_on(&self, location: &str) -> Result<Self, SourceError> {
        let next = Self::judged(self.0.join(location)?)?;
        if next.host() == self.host() { Ok(next) } else { Err(SourceError::Elsewhere(next.host().to_owned())) }
    }

    fn judged(url: Url) -> Result<Self, SourceError> {
        if url.scheme() != "https" {
            return Err(SourceError::NotHttps);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(SourceError::Credentials);
        }
        // The parser has lower-cased and decoded the name by now, and has made addresses of numbers in any spelling.
        let Some(Host::Domain(host)) = url.host() else {
            return Err(SourceError::Address);
        };
        if host.len() > 253 || host.split('.').any(|label| !(1..=63).contains(&label.len())) {
            return Err(SourceError::NotDns);
        }
        match host.rsplit_once('.') {
            Some((_, last)) if !LOCAL.contains(&last) => Ok(Self(url)),
            _ => Err(SourceError::Local(host.to_owned())),
        }
    }

    /// The host's name, in lower case and ASCII.
    #[must_use]
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// The URL, for the request. Not for people: see [`SourceError`].
    #[must_use]
    pub const fn url(&self) -> &Url {
        &self.0
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Source").field(&self.host()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn public_places_are_taken() {
        for (text, host) in [
            ("https://pictures.example.com/logo.png", "pictures.example.com"),
            ("https://example.com:8443/a/b?c=d#e", "example.com"),
            ("HTTPS://EXAMPLE.COM", "example.com"),
            ("https://svc.example.com/", "svc.example.com"),
            ("https://bücher.example/x.svg", "xn--bcher-kva.example"),
            ("https://localhost.example.com/", "localhost.example.com"),
        ] {
            assert_eq!(Source::parse(text).unwrap().host(), host, "{text}");
        }
    }

    #[test]
    fn other_places_are_refused_with_the_way_out() {
        for (text, said) in [
            ("", "cannot be read"),
            ("logo.png", "cannot be read"),
            ("https://", "cannot be read"),
            ("http://example.com/", "must begin with https://"),
            ("ftp://example.com/", "must begin with https://"),
            ("file:///etc/passwd", "must begin with https://"),
            ("data:image/png;base64,AAAA", "must begin with https://"),
            ("https://user@example.com/", "everybody can read it"),
            ("https://user:secret@example.com/", "everybody can read it"),
            ("https://:secret@example.com/", "everybody can read it"),
            ("https://1.1.1.1/", "not an address"),
            ("https://[2606:4700::1111]/", "not an address"),
            ("https://2130706433/", "not an address"),
            ("https://0x7f.1/", "not an address"),
            ("https://0177.0.0.1./", "not an address"),
            ("https://①②⑦.0.0.1/", "not an address"),
            ("https://example.com./", "without a dot at its end"),
            ("https://a..example.com/", "that DNS can hold"),
            ("https://localhost/", "'localhost' means something inside"),
            ("https://LOCALHOST:8443/", "'localhost' means something inside"),
            ("https://%6cocalhost/", "'localhost' means something inside"),
            ("https://ｌｏｃａｌｈｏｓｔ/", "'localhost' means something inside"),
            ("https://kubernetes/", "inside a network or cluster only"),
            ("https://kubernetes.default.svc/", "inside a network or cluster only"),
            ("https://kubernetes.default.svc.cluster.local/", "inside a network or cluster only"),
            ("https://printer.local/", "inside a network or cluster only"),
            ("https://metadata.google.internal/", "inside a network or cluster only"),
            ("https://router.home.arpa/", "inside a network or cluster only"),
        ] {
            let error = Source::parse(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
        assert_eq!(Source::parse(&format!("https://{}.com/", "a".repeat(64))), Err(SourceError::NotDns));
    }

    #[test]
    fn only_the_same_host_is_followed_to_and_only_over_https() {
        let source = Source::parse("https://pictures.example.com:8443/a/logo?sig=secret").unwrap();
        for (location, url) in [
            ("/b", "https://pictures.example.com:8443/b"),
            ("b?c", "https://pictures.example.com:8443/a/b?c"),
            ("https://pictures.example.com/b", "https://pictures.example.com/b"),
            ("//PICTURES.example.com:9/", "https://pictures.example.com:9/"),
        ] {
            assert_eq!(source.sent_on(location).unwrap().url().as_str(), url, "{location}");
        }
        let elsewhere = |host: &str| SourceError::Elsewhere(host.to_owned());
        for (location, refusal) in [
            ("https://example.com/", elsewhere("example.com")),
            ("https://a.pictures.example.com/", elsewhere("a.pictures.example.com")),
            ("//evil.example.com\\@pictures.example.com/", elsewhere("evil.example.com")),
            ("http://pictures.example.com:8443/", SourceError::NotHttps),
            ("gopher://pictures.example.com/", SourceError::NotHttps),
            ("https://u:p@pictures.example.com/", SourceError::Credentials),
            ("https://169.254.169.254/", SourceError::Address),
            ("https://localhost/", SourceError::Local("localhost".to_owned())),
        ] {
            assert_eq!(source.sent_on(location), Err(refusal), "{location}");
        }
    }

    #[test]
    fn what_is_printed_for_debugging_has_no_signature() {
        let source = Source::parse("https://pictures.example.com/logo?sig=secret").unwrap();
        assert_eq!(format!("{source:?}"), "Source(\"pictures.example.com\")");
    }

    /// Whatever is taken has nothing of what is refused.
    fn is_harmless(source: &Source) -> bool {
        let url = source.url();
        let host = source.host();
        url.scheme() == "https"
            && url.username().is_empty()
            && url.password().is_none()
            && host.parse::<core::net::IpAddr>().is_err()
            && host.contains('.')
            && !host.ends_with('.')
            && host.is_ascii()
            && !LOCAL.iter().any(|local| host == *local || host.ends_with(&format!(".{local}")))
            && Source::parse(url.as_str()).as_ref() == Ok(source)
    }

    proptest! {
        #[test]
        fn whatever_text_is_taken_is_harmless(text in "(https:)?[/\\\\]{0,3}[a-z0-9.:@%\\[\\]①ｌ。#?/\\\\-]{0,24}") {
            if let Ok(source) = Source::parse(&text) {
                prop_assert!(is_harmless(&source), "{:?}", source.url().as_str());
            }
        }

        #[test]
        fn whatever_redirect_is_followed_stays_on_the_host(location in "\\PC{0,40}") {
            let source = Source::parse("https://pictures.example.com/").unwrap();
            if let Ok(next) = source.sent_on(&location) {
                prop_assert!(is_harmless(&next) && next.host() == "pictures.example.com", "{:?}", next.url().as_str());
            }
        }

        #[test]
        fn an_address_is_refused_in_every_spelling(address in any::<u32>(), spelling in 0..6) {
            let [a, b, c, d] = address.to_be_bytes();
            let host = match spelling {
                0 => format!("{a}.{b}.{c}.{d}"),
                1 => address.to_string(),
                2 => format!("{address:#x}"),
                3 => format!("0{address:o}"),
                4 => format!("{a:#x}.{b}.{}", u16::from_be_bytes([c, d])),
                _ => format!("[::ffff:{a}.{b}.{c}.{d}]"),
            };
            prop_assert_eq!(Source::parse(&format!("https://{host}/")), Err(SourceError::Address));
        }

        #[test]
        fn a_local_name_is_refused_in_every_spelling(
            local in proptest::sample::select(LOCAL), before in "([a-z0-9]{1,5}\\.){0,3}", upper in any::<u32>(), escaped in any::<bool>(),
        ) {
            let name = format!("{before}{local}");
            let spelt: String = name.chars().enumerate().map(|(at, letter)| match (upper >> (at % 32) & 1, escaped) {
                (0, _) => letter.to_string(),
                (_, true) => format!("%{:02x}", u32::from(letter)),
                (_, false) => letter.to_ascii_uppercase().to_string(),
            }).collect();
            prop_assert_eq!(Source::parse(&format!("https://{spelt}/")), Err(SourceError::Local(name)));
        }
    }
}
