//! Image references: whether one is well-formed, and which release it names. Never asks a registry.

use std::fmt;

/// The server that this release of the operator was made and tested for. Used once for a Kanidm without `spec.image`, then kept in its
/// status: an upgrade of the operator changes no server.
pub const DEFAULT_IMAGE: &str = "kanidm/server:1.10.5";

/// A well-formed image reference: `[registry[:port]/]path[:tag][@digest]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image(String);

impl Image {
    /// Takes a reference, if it is one.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts = Parts::of(text);
        let path_ok = parts.path().split('/').all(|component| {
            !component.is_empty()
                && component.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b))
                && component.starts_with(|c: char| c.is_ascii_alphanumeric())
                && component.ends_with(|c: char| c.is_ascii_alphanumeric())
        });
        if !path_ok {
            return Err(format!("'{text}' is not an image reference such as {DEFAULT_IMAGE}"));
        }
        if let Some(tag) = parts.tag
            && !(1..=128).contains(&tag.len())
        {
            return Err(format!("the tag of '{text}' must have 1 to 128 characters"));
        }
        if let Some(tag) = parts.tag
            && !tag
                .bytes()
                .enumerate()
                .all(|(i, b)| b.is_ascii_alphanumeric() || b == b'_' || (i > 0 && b".-".contains(&b)))
        {
            return Err(format!("the tag of '{text}' has characters that no tag can have"));
        }
        match parts.digest {
            Some(digest) if !is_digest(digest) => {
                Err(format!("the digest of '{text}' is not one such as sha256:<64 hexadecimal digits>"))
            }
            _ => Ok(Self(text.to_owned())),
        }
    }

    /// The reference.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What tells this image from others of its repository, for people: the tag, else the digest, else `latest` as the runtime reads it.
    #[must_use]
    pub fn tag(&self) -> &str {
        let parts = Parts::of(&self.0);
        parts.tag.or(parts.digest).unwrap_or("latest")
    }

    /// The release series that the tag names, such as `1.10`; none when there is no tag or it is no version.
    #[must_use]
    pub fn series(&self) -> Option<String> {
        let tag = Parts::of(&self.0).tag?;
        let mut numbers = tag.strip_prefix('v').unwrap_or(tag).split(['.', '-', '_']);
        let number =
            |text: &str| (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.to_owned());
        Some(format!("{}.{}", number(numbers.next()?)?, number(numbers.next()?)?))
    }
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A reference taken apart, well-formed or not.
struct Parts<'a> {
    repository: &'a str,
    tag: Option<&'a str>,
    digest: Option<&'a str>,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Self {
        let (rest, digest) = text.split_once('@').map_or((text, None), |(rest, digest)| (rest, Some(digest)));
        // A colon before the last slash belongs to the registry's port.
        let name_at = rest.rfind('/').map_or(0, |slash| slash + 1);
        let tag_at = rest.get(name_at..).and_then(|name| name.find(':')).map(|colon| name_at + colon);
        let (repository, tag) = match tag_at {
            Some(at) => (rest.get(..at).unwrap_or(rest), rest.get(at + 1..)),
            None => (rest, None),
        };
        Self { repository, tag, digest }
    }

    /// The repository without a registry: the first component names one if it has a dot or a port, or is `localhost`.
    fn path(&self) -> &'a str {
        match self.repository.split_once('/') {
            Some((first, path)) if is_registry(first) => path,
            _ => self.repository,
        }
    }
}

fn is_registry(component: &str) -> bool {
    let (host, port) = component.split_once(':').map_or((component, None), |(host, port)| (host, Some(port)));
    let named = host == "localhost" || host.contains('.') || port.is_some();
    let host_ok = !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-".contains(&b));
    named && host_ok && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

fn is_digest(digest: &str) -> bool {
    digest.split_once(':').is_some_and(|(algorithm, hex)| {
        let named = !algorithm.is_empty() && algorithm.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        named && hex.len() >= 32 && hex.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn the_tag_is_found_beside_ports_and_digests() {
        let with_both = format!("ghcr.io/kanidm/server:1.10.5@{DIGEST}");
        let with_digest = format!("registry.local:5000/kanidm/server@{DIGEST}");
        for (reference, tag) in [
            (DEFAULT_IMAGE, "1.10.5"),
            ("kanidm/server", "latest"),
            ("registry.local:5000/kanidm/server", "latest"),
            ("registry.local:5000/kanidm/server:1.9.0-rc1", "1.9.0-rc1"),
            ("localhost/kanidm-dev:1.7", "1.7"),
            ("server:dev", "dev"),
            (with_both.as_str(), "1.10.5"),
            (with_digest.as_str(), DIGEST),
        ] {
            assert_eq!(Image::parse(reference).unwrap().tag(), tag, "{reference}");
        }
    }

    #[test]
    fn what_no_runtime_could_pull_is_refused() {
        for reference in [
            "",
            "kanidm/",
            "/server",
            "Kanidm/Server",
            "kanidm//server",
            "kanidm/server:",
            "kanidm/server:-x",
            "kanidm/server:a b",
            "https://kanidm/server",
            "kanidm/server@sha256:12",
            "kanidm/server@",
            "bad_host:5000/server",
            "host:port/server",
        ] {
            assert!(Image::parse(reference).is_err(), "{reference:?} was taken");
        }
    }
}
