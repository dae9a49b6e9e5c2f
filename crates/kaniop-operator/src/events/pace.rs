//! How soon the next Event may be published.

use std::time::Duration;

/// So many at once …
const BURST: u32 = 50;
/// … and then one in this time.
const EACH: Duration = Duration::from_millis(25);

/// When the next one would be due if all had come evenly.
#[derive(Debug, Default)]
pub(super) struct Pace(Duration);

impl Pace {
    /// How long the next one has to wait at this time. It counts as published then.
    pub(super) fn wait(&mut self, now: Duration) -> Duration {
        let due = self.0.max(now);
        self.0 = due + EACH;
        (due + EACH).saturating_sub(now + EACH * BURST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_wait_for_nothing_and_many_for_their_turn() {
        let mut pace = Pace::default();
        let now = Duration::from_secs(100);
        let waits: Vec<_> = (0..BURST + 2).map(|_| pace.wait(now)).collect();
        assert!(waits[..BURST as usize].iter().all(Duration::is_zero), "{waits:?}");
        assert_eq!(waits[BURST as usize..], [EACH, 2 * EACH]);
        let rested = now + EACH * (BURST + 2);
        assert!((0..BURST).all(|_| pace.wait(rested).is_zero()), "all is forgotten after a rest");
        assert_eq!(pace.wait(rested), EACH);
    }
}
