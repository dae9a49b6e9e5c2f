//! Release series of Kanidm, `1.10` of `1.10.5`: what a tag names, and what a database is of. Each has its domain level, up to which a server of
//! it migrates the database, and never back.

use std::fmt;

/// A minor release with all its patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Series {
    major: u32,
    minor: u32,
}

/// Minor releases of 1.x that are known, and the domain level of each.
const LEVELS: [(u32, u32); 6] = [(7, 11), (8, 12), (9, 13), (10, 14), (11, 15), (12, 16)];

impl Series {
    /// The oldest that is supported as it is. Older ones of the table count where the server has what the operator needs.
    pub const OLDEST: Self = Self { major: 1, minor: 9 };
    /// The newest that is supported.
    pub const NEWEST: Self = Self { major: 1, minor: 12 };

    /// The series of a version such as `1.10.5`, `v1.10` or `1.11.0-rc1`. None for other words: who guesses from half a version upgrades by accident.
    #[must_use]
    pub fn parse(version: &str) -> Option<Self> {
        let version = version.strip_prefix('v').unwrap_or(version);
        let numbers = version.split(['-', '_', '+']).next()?;
        let parts: Vec<_> = numbers.split('.').map(number).collect::<Option<_>>()?;
        match parts.as_slice() {
            [major, minor] | [major, minor, _] => Some(Self { major: *major, minor: *minor }),
            _ => None,
        }
    }

    /// The series whose servers bring a database to this level. None when it is not in the table.
    #[must_use]
    pub fn of_level(level: u32) -> Option<Self> {
        LEVELS.iter().find(|(_, of)| *of == level).map(|(minor, _)| Self { major: 1, minor: *minor })
    }

    /// The level to which its servers bring a database. None when the series is not in the table.
    #[must_use]
    pub fn level(self) -> Option<u32> {
        LEVELS.iter().find(|(minor, _)| self == Self { major: 1, minor: *minor }).map(|(_, level)| *level)
    }

    /// The only one that a database of this one can be brought to.
    #[must_use]
    pub const fn next(self) -> Self {
        Self { major: self.major, minor: self.minor.saturating_add(1) }
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

fn number(text: &str) -> Option<u32> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_names_its_series_and_no_other_word_does() {
        for (text, series) in [
            ("1.10.5", Some("1.10")),
            ("1.10", Some("1.10")),
            ("v1.9.3", Some("1.9")),
            ("1.11.0-rc1", Some("1.11")),
            ("2.0.0", Some("2.0")),
            ("latest", None),
            ("devel", None),
            ("1", None),
            ("1.", None),
            ("1.x", None),
            ("+1.2", None),
            ("1.2.3.4", None),
            ("2026-11-30", None),
            ("", None),
        ] {
            assert_eq!(Series::parse(text).map(|series| series.to_string()).as_deref(), series, "{text:?}");
        }
    }

    #[test]
    fn each_known_series_has_the_level_above_its_predecessors() {
        for (version, level) in [("1.7", 11), ("1.8", 12), ("1.9", 13), ("1.10", 14), ("1.11", 15), ("1.12", 16)] {
            let series = Series::parse(version).unwrap();
            assert_eq!((series.level(), Series::of_level(level)), (Some(level), Some(series)));
            assert!(series.next() > series);
        }
        for unknown in ["1.6", "1.13", "2.10", "0.9"] {
            assert_eq!(Series::parse(unknown).unwrap().level(), None, "{unknown}");
        }
        assert_eq!((Series::of_level(10), Series::of_level(17)), (None, None));
    }
}
