//! Which release this program plays.
//!
//! The engine is that of 1.7.4 and knows the domain levels of a few minor releases. So the program can pass for one of
//! them: it tells that version, brings the domain to that release's level, stamps backups with its series, and refuses
//! what the release would refuse. What the engine can do stays what 1.7.4 can do.

use std::sync::OnceLock;

use kanidmd_lib::constants::{DOMAIN_MAX_LEVEL, DOMAIN_TGT_LEVEL};

/// The variable that names the release; the engine's own without it. An image can have it built in.
pub const VARIABLE: &str = "KANIDM_DEV_VERSION";
/// The engine's own.
const ENGINE: &str = env!("CARGO_PKG_VERSION");
/// The oldest release that the engine can still make a domain for.
const OLDEST_MINOR: u32 = 6;
/// The domain level of release 1.x is x and this.
const LEVEL_ABOVE_MINOR: u32 = 4;

static PLAYED: OnceLock<Release> = OnceLock::new();

/// A release, as far as others can see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// All three numbers.
    pub version: String,
    /// The first two numbers, which backups carry.
    pub series: String,
    /// The domain level that its start-up brings about.
    pub level: u32,
}

impl Release {
    /// Reads a version.
    ///
    /// # Errors
    /// In words, when it is no version or the engine cannot play it.
    fn parse(version: &str) -> Result<Self, String> {
        let refuse = |reason: String| format!("{VARIABLE} = {version:?} cannot be used: {reason}");
        let numbers: Vec<u32> = version.split('.').map_while(|number| number.parse().ok()).collect();
        let &[major, minor, patch] = numbers.as_slice() else {
            return Err(refuse("it must have three numbers, such as 1.7.4".to_owned()));
        };
        let newest_minor = DOMAIN_MAX_LEVEL - LEVEL_ABOVE_MINOR;
        if major != 1 || !(OLDEST_MINOR..=newest_minor).contains(&minor) {
            return Err(refuse(format!("the engine can play 1.{OLDEST_MINOR} to 1.{newest_minor}")));
        }
        Ok(Self {
            version: format!("{major}.{minor}.{patch}"),
            series: format!("{major}.{minor}"),
            level: minor + LEVEL_ABOVE_MINOR,
        })
    }

    fn engine() -> Self {
        let series = ENGINE.rsplit_once('.').map_or(ENGINE, |(series, _)| series);
        Self { version: ENGINE.to_owned(), series: series.to_owned(), level: DOMAIN_TGT_LEVEL }
    }
}

/// Takes the release from the environment, once and before anything asks for it.
///
/// # Errors
/// In words, when the engine cannot play it.
pub fn choose() -> Result<(), String> {
    let release = match std::env::var(VARIABLE) {
        Ok(version) if !version.is_empty() => Release::parse(&version)?,
        _ => Release::engine(),
    };
    PLAYED.get_or_init(|| release);
    Ok(())
}

/// The release that is played.
pub fn played() -> &'static Release {
    PLAYED.get_or_init(Release::engine)
}

/// The series of the engine's own backups.
pub fn engine_series() -> String {
    Release::engine().series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engines_own_release_reads_like_any_other() {
        assert_eq!(Release::parse(ENGINE).unwrap(), Release::engine());
    }

    #[test]
    fn only_releases_whose_level_the_engine_knows_are_played() {
        for (version, level) in [
            ("1.6.0", Some(10)),
            ("1.7.9", Some(11)),
            ("1.8.5", Some(12)),
            ("1.9.0", None),
            ("1.5.0", None),
            ("2.7.0", None),
            ("1.8", None),
            ("1.8.x", None),
            ("1.8.1.2", None),
        ] {
            assert_eq!(Release::parse(version).ok().map(|r| r.level), level, "{version}");
        }
    }
}
