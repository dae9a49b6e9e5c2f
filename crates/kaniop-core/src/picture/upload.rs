//! When the picture of an entry is fetched, put on the server or taken away.

use kaniop_api::shared::ImageStatus;

/// What is to be done about the picture of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// Nothing now.
    Keep,
    /// The one that we put there is taken away.
    Remove,
    /// It is fetched; with this, the host can say that it is the one that is there.
    Fetch {
        /// What the host called it.
        etag: Option<&'a str>,
    },
}

/// Decides. `wanted` is the URL in the spec, `put` what the status says that we put there, `shown` the digest that the server shows, and `due` whether
/// it is time to ask the host whether the picture changed.
#[must_use]
pub fn next<'a>(wanted: Option<&str>, put: Option<&'a ImageStatus>, shown: Option<&str>, due: bool) -> Next<'a> {
    let in_place = put.filter(|put| shown == Some(put.digest.as_str()));
    match (wanted, in_place) {
        // A picture that somebody else put in the place of ours is theirs.
        (None, in_place) => in_place.map_or(Next::Keep, |_| Next::Remove),
        (Some(url), Some(put)) if put.url == url => {
            if due {
                Next::Fetch { etag: put.etag.as_deref() }
            } else {
                Next::Keep
            }
        }
        (Some(_), _) => Next::Fetch { etag: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put() -> ImageStatus {
        ImageStatus {
            url: "https://a.example/logo".to_owned(),
            sha256: "ab".to_owned(),
            digest: "cd".to_owned(),
            etag: Some("v1".to_owned()),
        }
    }

    #[test]
    fn a_picture_is_fetched_when_it_is_new_missing_replaced_or_due() {
        let put = put();
        let here = Some(put.url.as_str());
        assert_eq!(next(here, None, None, false), Next::Fetch { etag: None });
        assert_eq!(next(here, Some(&put), None, false), Next::Fetch { etag: None });
        assert_eq!(next(here, Some(&put), Some("theirs"), false), Next::Fetch { etag: None });
        assert_eq!(next(Some("https://b.example/logo"), Some(&put), Some("cd"), false), Next::Fetch { etag: None });
        assert_eq!(next(here, Some(&put), Some("cd"), true), Next::Fetch { etag: Some("v1") });
        assert_eq!(next(here, Some(&put), Some("cd"), false), Next::Keep);
    }

    #[test]
    fn only_the_picture_that_we_put_there_is_taken_away() {
        let put = put();
        assert_eq!(next(None, Some(&put), Some("cd"), true), Next::Remove);
        assert_eq!(next(None, Some(&put), Some("theirs"), true), Next::Keep);
        assert_eq!(next(None, None, Some("theirs"), true), Next::Keep);
    }
}
