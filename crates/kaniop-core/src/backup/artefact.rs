//! A file in the folder of backups, and what it is worth.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// How the server begins the name of a file that it makes by its schedule.
const PREFIX: &str = "backup-";

/// What was found of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// It was read as a whole and is a backup.
    Proven,
    /// Nobody has read it yet.
    Pending,
    /// It changed while it was read, or just before: perhaps it is being written.
    Growing,
    /// It has no content.
    Empty,
    /// It ends too early.
    Truncated,
    /// Its compressed form is damaged, or is none.
    CorruptGzip,
    /// Its content is not JSON.
    NotJson,
    /// Its content is JSON and no backup that a server takes.
    NotABackup,
    /// The system does not let it be read.
    Unreadable,
    /// It is a backup of another domain.
    ForeignDomain,
    /// It is a backup of another release series than the image that runs.
    OtherSeries,
}

impl Verdict {
    /// Every one, for counting.
    pub const ALL: [Self; 11] = [
        Self::Proven,
        Self::Pending,
        Self::Growing,
        Self::Empty,
        Self::Truncated,
        Self::CorruptGzip,
        Self::NotJson,
        Self::NotABackup,
        Self::Unreadable,
        Self::ForeignDomain,
        Self::OtherSeries,
    ];

    /// The verdict as it stands in a status and in labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proven => "Proven",
            Self::Pending => "Pending",
            Self::Growing => "Growing",
            Self::Empty => "Empty",
            Self::Truncated => "Truncated",
            Self::CorruptGzip => "CorruptGzip",
            Self::NotJson => "NotJson",
            Self::NotABackup => "NotABackup",
            Self::Unreadable => "Unreadable",
            Self::ForeignDomain => "ForeignDomain",
            Self::OtherSeries => "OtherSeries",
        }
    }

    /// The end of a sentence that begins with the file, for people.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Proven => "is whole",
            Self::Pending => "has not been read yet",
            Self::Growing => "is perhaps being written",
            Self::Empty => "is empty",
            Self::Truncated => "ends too early: whoever wrote it was stopped, or the volume is full",
            Self::CorruptGzip => "is damaged: its checksum or compressed form is wrong",
            Self::NotJson => "holds no JSON",
            Self::NotABackup => "holds no backup that a server takes",
            Self::Unreadable => "cannot be read",
            Self::ForeignDomain => "is a backup of another domain",
            Self::OtherSeries => "is a backup of another release series, which only that series' image restores",
        }
    }

    /// Whether another look at the same file may say something else.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Growing)
    }
}

/// What a whole file says of itself. Nothing in it is secret: the keys are a digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// Release series of the server that made it, such as `1.10`.
    pub series: String,
    /// UUID of its domain.
    pub domain: Uuid,
    /// UUID of its server.
    pub server: Uuid,
    /// Number of entries.
    pub entries: u64,
    /// Time of the newest change in it.
    pub newest_change: Timestamp,
    /// SHA-256 of the server's keys, whatever the order in which they are written.
    pub keys: String,
    /// SHA-256 of the file.
    pub sha256: String,
    /// Size of the content, decompressed.
    pub content_bytes: u64,
}

/// A file in the folder of backups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artefact {
    /// Its name.
    pub file_name: String,
    /// Its size.
    pub size_bytes: u64,
    /// When it was changed last.
    pub modified: Timestamp,
    /// What was found of it.
    pub verdict: Verdict,
    /// More about that, for people: never anything of the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What it says of itself, when it is proven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

/// The folder of backups as the node helper tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    /// Every file.
    pub files: Vec<Artefact>,
}

/// What a backup must be to be of use here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// The domain, when it is known.
    pub domain: Option<Uuid>,
    /// The series of the image that runs, when its name tells.
    pub series: Option<String>,
}

impl Artefact {
    /// Whether it is of use here: proven, of this domain and of this series.
    #[must_use]
    pub fn judged(&self, expected: &Expected) -> Verdict {
        if self.verdict != Verdict::Proven {
            return self.verdict;
        }
        let Some(evidence) = &self.evidence else { return Verdict::NotABackup };
        if expected.domain.is_some_and(|domain| domain != evidence.domain) {
            return Verdict::ForeignDomain;
        }
        if expected.series.as_ref().is_some_and(|series| *series != evidence.series) {
            return Verdict::OtherSeries;
        }
        Verdict::Proven
    }

    /// The time in its name, if the server's schedule made it.
    #[must_use]
    pub fn scheduled(&self) -> Option<Timestamp> {
        let rest = self.file_name.strip_prefix(PREFIX)?;
        rest.strip_suffix(".json.gz").or_else(|| rest.strip_suffix(".json"))?.parse().ok()
    }

    /// When it was made. A name that claims to be newer than the bytes is not believed.
    #[must_use]
    pub fn time(&self) -> Timestamp {
        self.scheduled().map_or(self.modified, |named| named.min(self.modified))
    }
}
