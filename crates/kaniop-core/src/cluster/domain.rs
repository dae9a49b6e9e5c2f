//! Whether a server holds the domain that this Kanidm has had so far. The first answer is pinned in status; a server that shows another one
//! later has lost its data, or has somebody else's.

use uuid::Uuid;

use super::storage::Storage;
use super::validate::ValidatedCluster;

/// What the server's domain means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The first one that is seen: pinned from now on.
    First,
    /// As before.
    Same,
    /// Another one, and that is how it must be: see [`may_begin_anew`].
    Replaced,
    /// Another one, although others may hold the domain. Nothing may be done to this server.
    Mismatch,
}

/// Judges the domain that a server shows, which may be another one or not.
#[must_use]
pub fn judge(pinned: Option<&str>, seen: Uuid, may_begin_anew: bool) -> Verdict {
    match pinned {
        None => Verdict::First,
        Some(pinned) if Uuid::parse_str(pinned) == Ok(seen) => Verdict::Same,
        Some(_) if may_begin_anew => Verdict::Replaced,
        Some(_) => Verdict::Mismatch,
    }
}

/// Whether the primary may hold another domain than before: its database ended with its pod; a node of elsewhere may replace it; or nothing else,
/// no other node and no other claim, could hold the one that was lost.
#[must_use]
pub fn may_begin_anew(cluster: &ValidatedCluster, storage: &Storage, others: bool) -> bool {
    let refreshed = cluster.spec.external_replication_nodes.iter().flatten().any(|node| node.automatic_refresh);
    matches!(storage, Storage::Volume(_)) || refreshed || !others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_domain_is_expected_only_where_nothing_is_lost_by_beginning_anew() {
        let (seen, other) = (Uuid::from_u128(1), Uuid::from_u128(2).to_string());
        for (pinned, may_begin_anew, verdict) in [
            (None, false, Verdict::First),
            (Some(seen.to_string()), false, Verdict::Same),
            (Some(other.clone()), false, Verdict::Mismatch),
            (Some(other), true, Verdict::Replaced),
            (Some("nonsense".to_owned()), false, Verdict::Mismatch),
        ] {
            assert_eq!(judge(pinned.as_deref(), seen, may_begin_anew), verdict, "{pinned:?}");
        }
    }
}
