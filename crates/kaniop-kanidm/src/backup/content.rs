//! The content of a backup: one JSON object, read in one go and never held. What the server reads of it is checked to be there and of the right kind;
//! entries are counted.

use std::fmt;
use std::io::{BufReader, ErrorKind, Read};

use jiff::Timestamp;
use kaniop_core::backup::Verdict;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use uuid::Uuid;

use super::Flaw;
use super::keys::Digested;
use super::stream::{Meter, Metered, hex};

/// How much of the content is decompressed at once, in bytes.
const CHUNK: usize = 64 * 1024;
/// Longest of the short values and of the keys, in bytes, besides what is read ahead.
const SHORT: u64 = 64 * 1024 + 4096;
const KEYS: u64 = 4 << 20;

/// What is kept of it.
pub(super) struct Content {
    pub(super) series: String,
    pub(super) domain: Uuid,
    pub(super) server: Uuid,
    pub(super) entries: u64,
    pub(super) newest_change: Timestamp,
    pub(super) keys: String,
}

/// Why there is no content.
pub(super) enum Broken {
    /// It is none.
    Flaw(Flaw),
    /// The stream broke off, and whoever knows the stream knows why.
    Stream(ErrorKind),
}

/// Reads it.
pub(super) fn read(stream: impl Read, meter: &Meter) -> Result<Content, Broken> {
    // By value: a byte at a time is fast out of a BufReader, and slow through a reference to one.
    let stream = BufReader::with_capacity(CHUNK, Metered::new(stream, meter));
    let mut json = serde_json::Deserializer::from_reader(stream);
    let read = Backup(meter).deserialize(&mut json).and_then(|content| json.end().map(|()| content));
    read.map_err(|error| {
        if meter.refused() {
            return Broken::Flaw((Verdict::NotABackup, Some("a part is longer than a server makes it, or no text")));
        }
        Broken::Flaw(match (error.classify(), error.io_error_kind()) {
            (_, Some(kind)) => return Broken::Stream(kind),
            // A number that is cut off looks like a wrong one to the parser.
            (Category::Syntax, _) if meter.ended() => (Verdict::Truncated, None),
            (Category::Eof, _) => (Verdict::Truncated, None),
            (Category::Data, _) => (Verdict::NotABackup, None),
            (Category::Syntax | Category::Io, _) => (Verdict::NotJson, None),
        })
    })
}

/// The object.
struct Backup<'a>(&'a Meter);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Member {
    Version,
    DbSUuid,
    DbDUuid,
    DbTsMax,
    Keyhandles,
    ReplMeta,
    Entries,
    #[serde(other)]
    Other,
}

/// A span since 1970.
#[derive(Deserialize)]
struct Since {
    secs: i64,
    nanos: i32,
}

impl<'de> DeserializeSeed<'de> for Backup<'_> {
    type Value = Content;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Content, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Backup<'_> {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a backup")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Content, A::Error> {
        let (mut series, mut server, mut domain, mut newest, mut keys, mut meta, mut entries) =
            (None, None, None, None, None, None, None);
        self.0.hold(SHORT);
        while let Some(member) = members.next_key()? {
            self.0.hold(if matches!(member, Member::Keyhandles) { KEYS } else { SHORT });
            match member {
                Member::Version => once(&mut series, members.next_value::<String>()?)?,
                Member::DbSUuid => once(&mut server, members.next_value::<Uuid>()?)?,
                Member::DbDUuid => once(&mut domain, members.next_value::<Uuid>()?)?,
                Member::DbTsMax => once(&mut newest, members.next_value::<Since>()?)?,
                Member::Keyhandles => once(&mut keys, members.next_value_seed(Digested)?)?,
                Member::ReplMeta | Member::Other | Member::Entries => self.0.pass(),
            }
            match member {
                Member::ReplMeta => once(&mut meta, members.next_value::<Object>()?)?,
                Member::Entries => once(&mut entries, members.next_value_seed(Counting)?)?,
                Member::Other => drop(members.next_value::<IgnoredAny>()?),
                _ => {}
            }
            self.0.hold(SHORT);
        }
        let missing = || A::Error::custom("a member is missing");
        let Since { secs, nanos } = newest.ok_or_else(missing)?;
        meta.ok_or_else(missing)?;
        Ok(Content {
            series: series.filter(|series| is_series(series)).ok_or_else(missing)?,
            domain: domain.ok_or_else(missing)?,
            server: server.ok_or_else(missing)?,
            entries: entries.ok_or_else(missing)?,
            newest_change: Timestamp::new(secs, nanos).map_err(|_| missing())?,
            keys: hex(&keys.ok_or_else(missing)?),
        })
    }
}

fn once<T, E: serde::de::Error>(place: &mut Option<T>, value: T) -> Result<(), E> {
    if place.replace(value).is_some() { Err(E::custom("a member is there twice")) } else { Ok(()) }
}

/// Two numbers, as the server writes its release.
fn is_series(text: &str) -> bool {
    let number = |text: &str| (1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    text.split_once('.').is_some_and(|(major, minor)| number(major) && number(minor))
}

/// The entries, each an object, of which nothing is kept.
struct Counting;

impl<'de> DeserializeSeed<'de> for Counting {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Counting {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<u64, A::Error> {
        let mut count = 0;
        while entries.next_element::<Object>()?.is_some() {
            count += 1;
        }
        Ok(count)
    }
}

/// Any object, passed over.
struct Object;

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Self)
    }
}

impl<'de> Visitor<'de> for Object {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(self)
    }
}
