//! What is said of many durations.

use std::time::Duration;

/// The smallest of the samples that at least this share of them does not exceed (nearest rank); zero of none.
pub(crate) fn percentile(samples: &[Duration], share: f64) -> Duration {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a rank")]
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// Milliseconds.
pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// A count as a number to divide.
#[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
pub(crate) const fn number(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_samples() {
        let samples: Vec<_> = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!(percentile(&samples, 0.5), Duration::from_millis(100));
        assert_eq!(percentile(&samples, 0.99), Duration::from_millis(198));
        assert_eq!(percentile(&samples, 1.0), Duration::from_millis(200));
        assert_eq!(percentile(&samples[..1], 0.5), Duration::from_millis(200));
        assert_eq!(percentile(&[], 0.5), Duration::ZERO);
    }
}
