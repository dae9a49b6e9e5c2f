//! The one place that asks the machine for the time; everything else is given `now`.

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// Wall time, and a clock that never goes back.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Instant,
}

impl Clock {
    /// A clock that begins now.
    #[must_use]
    pub fn start() -> Self {
        Self { began: Instant::now() }
    }

    /// Wall time, for dates that people read.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the file that may")]
    pub fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    /// Time since the process began, for measuring how long something took.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}
