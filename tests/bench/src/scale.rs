//! How much of everything a run has: the full one, and the short one that only shows that the program works.

use std::time::Duration;

/// The numbers of a run.
#[derive(Debug)]
pub(crate) struct Scale {
    /// Creations in the plain loop.
    pub(crate) bare: usize,
    /// Objects at rest: few, the fill, many.
    pub(crate) sizes: [usize; 3],
    /// The operator's interval in seconds.
    pub(crate) interval: u32,
    /// Looks of the operator at the server that a rest is measured over.
    pub(crate) looks: u64,
    /// Changes that a latency is taken from, five a second.
    pub(crate) changes: usize,
    /// Objects of the server that does not answer.
    pub(crate) dead: usize,
    /// Restarts, each with a change made meanwhile.
    pub(crate) restarts: usize,
    /// Bytes of the backup that is proven, decompressed.
    pub(crate) backup: u64,
    /// How long anything may take before it counts as not measurable.
    pub(crate) patience: Duration,
}

impl Scale {
    /// What the bars speak of. 1,100 are 1,000 people and 100 groups.
    pub(crate) const FULL: Self = Self {
        bare: 1000,
        sizes: [100, 1100, 5000],
        interval: 30,
        looks: 3,
        changes: 400,
        dead: 100,
        restarts: 3,
        backup: 1_000_000_000,
        patience: Duration::from_secs(900),
    };
    /// A minute or two.
    pub(crate) const SHORT: Self = Self {
        bare: 30,
        sizes: [22, 55, 110],
        interval: 3,
        looks: 2,
        changes: 10,
        dead: 11,
        restarts: 1,
        backup: 4_000_000,
        patience: Duration::from_secs(240),
    };
}
