//! What was judged of an image and of the servers that run, and what follows from it.

use kaniop_api::kanidm::{CompatibilityResult, UpgradeBackup, UpgradeCheckResult};

use super::super::status::Obstacle;
use super::Series;
use crate::reason::Reason;

/// The verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Whether the image may be taken.
    pub image: Verdict,
    /// Whether this operator knows how to deal with the servers that run.
    pub support: Support,
    /// Highest domain level of the nodes, as far as it was ever told.
    pub level: Option<u32>,
    /// The version that the server named last.
    pub version: Option<String>,
    /// The backup that was made before this upgrade.
    pub backup: Option<UpgradeBackup>,
}

/// Whether an image may be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may, for this reason.
    Open(Open),
    /// It will, once there is a backup.
    NeedsBackup {
        /// The release of the database.
        from: Series,
        /// That of the image.
        to: Series,
    },
    /// It may not. For people: why, and the way out.
    Blocked(Reason, String),
}

/// Why an image may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// The user asked not to be asked.
    Unchecked,
    /// There is no database yet.
    FirstStart,
    /// It is the one that the servers have.
    Same,
    /// It is of the release that the database is of.
    Patch,
    /// It is of the release after the one that the database is of.
    Upgrade {
        /// The release of the database.
        from: Series,
        /// That of the image.
        to: Series,
    },
}

/// Whether this operator knows how to deal with the servers that run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// It does.
    Compatible,
    /// It does not. For people: why, and the way out.
    Incompatible(String),
    /// No server has told.
    Unknown,
}

/// Which image the StatefulSets get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Images<'a> {
    /// That of the spec.
    Wanted,
    /// Each keeps its own. One that has none gets that of another, or this one, which served last.
    Kept(Option<&'a str>),
}

impl Gate {
    /// What keeps anything of the Kanidm from being touched: a server that this operator does not know how to deal with. Not when the user asked not
    /// to be asked, and not when the image leads to one that it does know.
    #[must_use]
    pub fn refusal(&self) -> Option<Obstacle> {
        let leads_out = match self.image {
            Verdict::Open(Open::Upgrade { to, .. }) => (Series::OLDEST..=Series::NEWEST).contains(&to),
            Verdict::Open(Open::Unchecked) => true,
            Verdict::NeedsBackup { to, .. } => (Series::OLDEST..=Series::NEWEST).contains(&to),
            Verdict::Open(Open::FirstStart | Open::Same | Open::Patch) | Verdict::Blocked(..) => false,
        };
        match &self.support {
            Support::Incompatible(why) if !leads_out => {
                Some(Obstacle::known(Reason::UnsupportedVersion, format!("{why} Nothing of it is touched.")))
            }
            Support::Incompatible(_) | Support::Compatible | Support::Unknown => None,
        }
    }

    /// Why the image is not taken, if it is not.
    #[must_use]
    pub const fn blocked(&self) -> Option<(Reason, &String)> {
        match &self.image {
            Verdict::Blocked(reason, message) => Some((*reason, message)),
            Verdict::Open(_) | Verdict::NeedsBackup { .. } => None,
        }
    }

    /// Which image the StatefulSets get. `served`: the one that served last.
    #[must_use]
    pub const fn images<'a>(&self, served: Option<&'a str>) -> Images<'a> {
        match self.image {
            Verdict::Open(_) => Images::Wanted,
            Verdict::NeedsBackup { .. } | Verdict::Blocked(..) => Images::Kept(served),
        }
    }

    /// The image's verdict as the status has it.
    #[must_use]
    pub const fn check(&self) -> UpgradeCheckResult {
        match self.image {
            Verdict::Open(Open::Unchecked) => UpgradeCheckResult::Skipped,
            Verdict::Open(_) | Verdict::NeedsBackup { .. } => UpgradeCheckResult::Passed,
            Verdict::Blocked(Reason::ReleaseUnknown, _) => UpgradeCheckResult::Unknown,
            Verdict::Blocked(..) => UpgradeCheckResult::Failed,
        }
    }

    /// The servers' verdict as the status has it.
    #[must_use]
    pub const fn compatibility(&self) -> CompatibilityResult {
        match self.support {
            Support::Compatible => CompatibilityResult::Compatible,
            Support::Incompatible(_) => CompatibilityResult::Incompatible,
            Support::Unknown => CompatibilityResult::Unknown,
        }
    }
}
