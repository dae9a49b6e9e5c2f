//! How long to wait after an error: exponential with jitter for each object, forgotten at its first success.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// The first wait.
const FIRST: Duration = Duration::from_millis(500);
/// The longest wait.
pub const LONGEST: Duration = Duration::from_secs(300);

/// The waits of many objects.
#[derive(Debug)]
pub struct Retry<K> {
    waits: Mutex<HashMap<K, ExponentialBackoff>>,
}

impl<K> Default for Retry<K> {
    fn default() -> Self {
        Self { waits: Mutex::default() }
    }
}

impl<K: Eq + Hash> Retry<K> {
    /// The next wait of this object.
    pub fn next(&self, key: K) -> Duration {
        let mut waits = self.waits.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        waits.entry(key).or_insert_with(forever).next().unwrap_or(LONGEST).min(LONGEST)
    }

    /// This object succeeded, or is gone.
    pub fn reset(&self, key: &K) {
        self.waits.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(key);
    }
}

fn forever() -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(FIRST)
        .with_max_delay(LONGEST)
        .without_max_times()
        .with_jitter()
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_five_minutes_and_begin_anew_after_a_success() {
        let retry = Retry::default();
        let waits: Vec<_> = (0..20).map(|_| retry.next("a")).collect();
        assert!(waits[0] < Duration::from_secs(2), "{waits:?}");
        assert!(waits[19] == LONGEST, "{waits:?}");
        retry.reset(&"a");
        assert!(retry.next("a") < Duration::from_secs(2));
    }

    #[test]
    fn one_object_does_not_make_another_wait() {
        let retry = Retry::default();
        (0..20).for_each(|_| {
            retry.next("a");
        });
        assert!(retry.next("b") < Duration::from_secs(2));
    }
}
