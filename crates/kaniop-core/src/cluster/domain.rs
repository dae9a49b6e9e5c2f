//! Whether a server holds the domain that this Kanidm has had so far. The first answer is pinned in status; a server that shows another one
//! later has lost its data, or has somebody else's.

use uuid::Uuid;

use super::storage::Storage;

/// What the server's domain means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The first one that is seen: pinned from now on.
    First,
    /// As before.
    Same,
    /// Another one, and that is how it must be: the database lived in a volume that ended with the pod.
    Replaced,
    /// Another one, although the database is on a claim. Nothing may be done to this server.
    Mismatch,
}

/// Judges the domain that a server shows.
#[must_use]
pub fn judge(pinned: Option<&str>, seen: Uuid, storage: &Storage) -> Verdict {
    match (pinned, storage) {
        (None, _) => Verdict::First,
        (Some(pinned), _) if Uuid::parse_str(pinned) == Ok(seen) => Verdict::Same,
        (Some(_), Storage::Volume(_)) => Verdict::Replaced,
        (Some(_), Storage::Claim(_)) => Verdict::Mismatch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_domain_is_expected_only_where_the_database_ends_with_the_pod() {
        let (volume, claim) = (Storage::Volume(Box::default()), Storage::Claim(Box::default()));
        let (seen, other) = (Uuid::from_u128(1), Uuid::from_u128(2).to_string());
        for (pinned, storage, verdict) in [
            (None, &claim, Verdict::First),
            (Some(seen.to_string()), &claim, Verdict::Same),
            (Some(other.clone()), &claim, Verdict::Mismatch),
            (Some(other), &volume, Verdict::Replaced),
            (Some("nonsense".to_owned()), &claim, Verdict::Mismatch),
        ] {
            assert_eq!(judge(pinned.as_deref(), seen, storage), verdict, "{pinned:?}");
        }
    }
}
