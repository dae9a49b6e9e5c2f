//! Leader election as a decision: given the Lease as it was read, who am I, and when is it?
//!
//! Clocks of different machines are never compared: a lease of another holder counts as expired only when *we* have seen it unchanged for its
//! whole duration by our own clock.

use std::time::Duration;

/// How long a lease holds without renewal.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);
/// How often the holder renews.
pub const RENEW_EVERY: Duration = Duration::from_secs(5);
/// After how long without a renewal the holder stops acting: well before anybody else may take over.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(10);
/// How often others look.
pub const RETRY_EVERY: Duration = Duration::from_secs(2);

/// The Lease as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Who holds it; nobody when it was released.
    pub holder: Option<String>,
    /// Changes at every write.
    pub version: Option<String>,
}

/// What we remember between looks. All instants are ours, as time since the process began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The version that we saw last, and when we saw it first.
    pub observed: Option<(Option<String>, Duration)>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Write ourselves as holder, on top of the version that was read (create it when there is none).
    Take {
        /// Whether somebody else held it before: the count of transitions goes up.
        transition: bool,
    },
    /// Look again after this time.
    Wait(Duration),
}

/// Decides and remembers.
pub fn decide(memory: &mut Memory, seen: Option<&Seen>, me: &str, now: Duration) -> Decision {
    let Some(seen) = seen else { return Decision::Take { transition: false } };
    match seen.holder.as_deref() {
        None | Some("") => return Decision::Take { transition: true },
        Some(holder) if holder == me => return Decision::Take { transition: false },
        Some(_) => {}
    }
    match &memory.observed {
        Some((version, since)) if *version == seen.version => {
            if now.saturating_sub(*since) >= LEASE_DURATION {
                Decision::Take { transition: true }
            } else {
                Decision::Wait(RETRY_EVERY)
            }
        }
        _ => {
            memory.observed = Some((seen.version.clone(), now));
            Decision::Wait(RETRY_EVERY)
        }
    }
}

/// Whether a holder that renewed last at `renewed` may still act at `now`.
#[must_use]
pub fn may_act(renewed: Duration, now: Duration) -> bool {
    now.saturating_sub(renewed) < GIVE_UP_AFTER
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn held(by: &str, version: &str) -> Seen {
        Seen { holder: Some(by.to_owned()), version: Some(version.to_owned()) }
    }

    #[test]
    fn a_lease_that_does_not_exist_or_was_released_is_taken() {
        let mut memory = Memory::default();
        assert_eq!(decide(&mut memory, None, "me", S), Decision::Take { transition: false });
        let released = Seen { holder: None, version: Some("7".to_owned()) };
        assert_eq!(decide(&mut memory, Some(&released), "me", S), Decision::Take { transition: true });
    }

    #[test]
    fn our_own_lease_is_renewed() {
        assert_eq!(
            decide(&mut Memory::default(), Some(&held("me", "1")), "me", S),
            Decision::Take { transition: false }
        );
    }

    #[test]
    fn anothers_lease_is_taken_only_after_it_stood_still_for_its_whole_duration_by_our_clock() {
        let mut memory = Memory::default();
        for second in 0..15 {
            assert!(
                matches!(decide(&mut memory, Some(&held("other", "1")), "me", S * second), Decision::Wait(_)),
                "{second}"
            );
        }
        assert_eq!(decide(&mut memory, Some(&held("other", "1")), "me", S * 15), Decision::Take { transition: true });
    }

    #[test]
    fn a_renewal_of_the_other_starts_the_wait_anew() {
        let mut memory = Memory::default();
        decide(&mut memory, Some(&held("other", "1")), "me", S);
        decide(&mut memory, Some(&held("other", "2")), "me", S * 14);
        assert!(matches!(decide(&mut memory, Some(&held("other", "2")), "me", S * 20), Decision::Wait(_)));
    }

    #[test]
    fn a_holder_stops_acting_before_anybody_else_may_begin() {
        assert!(may_act(S, S * 10));
        assert!(!may_act(S, S * 11));
        assert!(GIVE_UP_AFTER + RETRY_EVERY < LEASE_DURATION);
        assert!(RENEW_EVERY * 2 <= GIVE_UP_AFTER);
    }
}
