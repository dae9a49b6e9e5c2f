//! Which image the servers may get: Kanidm migrates a database from one minor release to the next, never over one and never back, and does so
//! without asking when a server starts. What the servers say of themselves counts; what a tag says of the image that runs is a hint, for want of better.
//!
//! A pod that dies is made again from the newest template, so an image that is refused never enters one. Everything else of the spec goes on.

mod series;
#[cfg(test)]
mod tests;
mod verdict;
mod words;

pub use series::Series;
pub use verdict::{Gate, Images, Open, Support, Verdict};

use k8s_openapi::api::apps::v1::StatefulSet;
use kaniop_api::kanidm::UpgradeBackup;

use super::image::Image;
use super::names;
use crate::reason::Reason;

/// What is known when an image is judged.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    /// The image of the spec, or the default.
    pub wanted: &'a Image,
    /// Images of the StatefulSets as they are, the primary's first.
    pub live: &'a [&'a str],
    /// Domain level of each node that tells.
    pub levels: &'a [u32],
    /// Whether every node that is wanted tells.
    pub complete: bool,
    /// The highest level that was told before.
    pub remembered: Option<u32>,
    /// The version that the server names in its answers.
    pub version: Option<&'a str>,
    /// Whether a server has ever started, so that there is a database.
    pub has_database: bool,
    /// Whether the server has what the operator needs of it, where it was asked.
    pub capable: Option<bool>,
    /// `spec.disableUpgradeChecks`.
    pub unchecked: bool,
    /// The backup that an upgrade needs before.
    pub backup: Backup,
}

/// The backup of the primary that is made and proven before an upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backup {
    /// None is needed: the database ends with its pods, so there is nothing that could be brought back.
    NotNeeded,
    /// It is not there yet.
    Awaited,
    /// It cannot be made. For people: why.
    Failed(String),
    /// It was made for this very upgrade, and read from its first to its last byte.
    Proven(UpgradeBackup),
}

/// What the databases are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Running {
    /// There is none.
    Nothing,
    /// The oldest and the newest.
    Known(Series, Series),
    /// Of a release that is not in the table, at this level.
    Strange(u32),
    /// Nobody could tell.
    Untold,
}

/// Judges.
#[must_use]
pub fn judge(evidence: &Evidence<'_>) -> Gate {
    let running = running(evidence);
    let image = if evidence.unchecked { Verdict::Open(Open::Unchecked) } else { image(evidence, running) };
    let (image, backup) = match (image, &evidence.backup) {
        (Verdict::Open(Open::Upgrade { from, to }), Backup::Awaited) => (Verdict::NeedsBackup { from, to }, None),
        (Verdict::Open(Open::Upgrade { from, .. }), Backup::Failed(why)) => {
            (Verdict::Blocked(Reason::UpgradeNeedsBackup, words::no_backup(from, why)), None)
        }
        (image @ Verdict::Open(Open::Upgrade { .. }), Backup::Proven(backup)) => (image, Some(backup.clone())),
        (image, _) => (image, None),
    };
    Gate {
        image,
        support: support(evidence, running),
        level: highest(evidence),
        version: evidence.version.map(str::to_owned),
        backup,
    }
}

/// A level that was told before still holds for a node that does not tell now.
fn highest(evidence: &Evidence<'_>) -> Option<u32> {
    let before = evidence.remembered.filter(|_| !evidence.complete);
    evidence.levels.iter().copied().chain(before).max()
}

fn running(evidence: &Evidence<'_>) -> Running {
    let lowest = evidence.levels.iter().copied().min().or(evidence.remembered);
    if let (Some(lowest), Some(highest)) = (lowest, highest(evidence).or(evidence.remembered)) {
        return match (Series::of_level(lowest), Series::of_level(highest)) {
            (Some(lowest), Some(highest)) => Running::Known(lowest, highest),
            (None, _) => Running::Strange(lowest),
            (_, None) => Running::Strange(highest),
        };
    }
    if !evidence.has_database {
        return Running::Nothing;
    }
    let told = evidence.version.and_then(Series::parse);
    told.or_else(|| tagged(evidence)).map_or(Running::Untold, |series| Running::Known(series, series))
}

/// What the tag of the image that runs says.
fn tagged(evidence: &Evidence<'_>) -> Option<Series> {
    Image::parse(evidence.live.first()?).ok()?.series()
}

fn image(evidence: &Evidence<'_>, running: Running) -> Verdict {
    let wanted = evidence.wanted;
    if !evidence.live.is_empty() && evidence.live.iter().all(|live| wanted.is_same(live)) {
        return Verdict::Open(Open::Same);
    }
    let (series, blocked) = (wanted.series(), |reason, message| Verdict::Blocked(reason, message));
    let supported = series.is_none_or(|series| series.level().is_some());
    match (running, series) {
        (Running::Nothing, _) if supported => Verdict::Open(Open::FirstStart),
        (Running::Strange(level), _) => blocked(Reason::UnsupportedVersion, words::strange(level)),
        (_, None) => blocked(Reason::ReleaseUnknown, words::unnamed(wanted)),
        (Running::Untold, Some(_)) => blocked(Reason::ReleaseUnknown, words::untold(evidence.live)),
        (Running::Known(_, highest), Some(to)) if to < highest => {
            blocked(Reason::DowngradeRefused, words::downgrade(wanted, to, highest, hint(evidence, highest)))
        }
        (Running::Known(lowest, _), Some(to)) if to > lowest.next() => {
            blocked(Reason::UpgradeSkipsRelease, words::skip(wanted, to, lowest, hint(evidence, lowest)))
        }
        (Running::Nothing | Running::Known(..), Some(to)) if !supported => {
            blocked(Reason::UnsupportedVersion, words::unsupported(wanted, to))
        }
        (Running::Known(from, highest), Some(to)) if from < to || from < highest => {
            Verdict::Open(Open::Upgrade { from, to })
        }
        (Running::Known(..) | Running::Nothing, Some(_)) => Verdict::Open(Open::Patch),
    }
}

/// The tag of the image that runs, where it says something else than its server.
fn hint<'a>(evidence: &Evidence<'a>, running: Series) -> Option<&'a str> {
    tagged(evidence).filter(|tagged| *tagged != running).and(evidence.live.first().copied())
}

fn support(evidence: &Evidence<'_>, running: Running) -> Support {
    match running {
        Running::Strange(level) => Support::Incompatible(words::strange(level)),
        // By a tag or an answer's header alone: the server will tell more.
        Running::Known(..) if evidence.levels.is_empty() && evidence.remembered.is_none() => Support::Unknown,
        Running::Known(lowest, _) if lowest < Series::OLDEST => match evidence.capable {
            Some(true) => Support::Compatible,
            Some(false) => Support::Incompatible(words::too_old(lowest)),
            None => Support::Unknown,
        },
        Running::Known(..) => Support::Compatible,
        Running::Nothing | Running::Untold => Support::Unknown,
    }
}

/// Whether servers of these levels have to be asked what they can do: they are older than what is supported as it is.
#[must_use]
pub fn is_to_be_asked(levels: &[u32]) -> bool {
    levels.iter().any(|level| Series::of_level(*level).is_some_and(|series| series < Series::OLDEST))
}

/// The image that the servers of a StatefulSet have.
#[must_use]
pub fn image_of(statefulset: &StatefulSet) -> Option<&str> {
    let containers = &statefulset.spec.as_ref()?.template.spec.as_ref()?.containers;
    containers.iter().find(|container| container.name == names::SERVER_CONTAINER)?.image.as_deref()
}

/// The image for the servers of this StatefulSet. None: there is none that may be taken.
#[must_use]
pub(super) fn chosen<'a>(
    wanted: &'a Image,
    images: Images<'a>,
    own: Option<&'a StatefulSet>,
    all: &'a [StatefulSet],
) -> Option<&'a str> {
    match images {
        Images::Wanted => Some(wanted.as_str()),
        Images::Kept(served) => own.and_then(image_of).or_else(|| all.iter().find_map(image_of)).or(served),
    }
}
