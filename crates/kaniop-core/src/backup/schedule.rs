//! When the server makes backups, counted as it does: in UTC, by the same library.

use std::str::FromStr;

use chrono::{DateTime, Utc};
use jiff::Timestamp;

/// Names that stand for a whole schedule.
const NAMES: [&str; 3] = ["@hourly", "@daily", "@weekly"];
/// From when on a schedule has to come at least once: before any server was made, so that it says nothing of now.
const LONG_AGO: i64 = 0;

/// A schedule that the server takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    text: String,
    times: cron::Schedule,
}

impl Schedule {
    /// Reads it: five fields (minute … day of the week), or what else the server takes: seven (second … year), `@hourly`, `@daily`, `@weekly`.
    ///
    /// # Errors
    /// What is wrong with it and what to write, for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refused = |why: &str| {
            format!(
                "'{text}' is not a schedule: {why}. Write five fields in UTC: minute, hour, day, month, day of the week (SUN to SAT), such as '0 2 * * *'"
            )
        };
        let trimmed = text.trim();
        let full = match trimmed.split_whitespace().count() {
            0 => return Err("backup.schedule cannot be empty".to_owned()),
            1 if NAMES.contains(&trimmed) => trimmed.to_owned(),
            5 => format!("0 {trimmed} *"),
            7 => trimmed.to_owned(),
            count => return Err(refused(&format!("it has {count} fields"))),
        };
        let times = cron::Schedule::from_str(&full)
            .map_err(|_| refused("a field has a value that it cannot have, or a word that is none"))?;
        let schedule = Self { text: text.to_owned(), times };
        let ever = Timestamp::from_second(LONG_AGO).ok().and_then(|since| schedule.after(since).next());
        if ever.is_some() { Ok(schedule) } else { Err(refused("there is no such day")) }
    }

    /// As the user wrote it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its times after this one, the next first.
    pub fn after(&self, time: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        let begin = DateTime::<Utc>::from_timestamp(time.as_second(), 0).unwrap_or(DateTime::UNIX_EPOCH);
        self.times.after_owned(begin).filter_map(|slot| Timestamp::from_second(slot.timestamp()).ok())
    }

    /// The next time after this one.
    #[must_use]
    pub fn next(&self, time: Timestamp) -> Option<Timestamp> {
        self.after(time).next()
    }
}
