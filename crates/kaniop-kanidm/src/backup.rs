//! Proves a backup: reads its file from the first to the last byte, checks its compression's checksum and all of its JSON, and counts what is in it.
//!
//! A backup is the database with every secret in it, and can be larger than the memory of the container that this runs in, which is the server's. So nothing of
//! it is kept but a few short values, the keys only as a digest, and no text of it reaches a verdict.

mod content;
mod keys;
mod stream;
#[cfg(test)]
mod tests;

use std::fs::{File, Metadata, symlink_metadata};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::GzDecoder;
use jiff::{SignedDuration, Timestamp};
use kaniop_core::backup::{Artefact, Evidence, Verdict};

use self::content::{Broken, Content};
use self::stream::{Counted, Meter};

/// A short file is perhaps not finished as long as it was changed in this time.
const YOUNG: SignedDuration = SignedDuration::from_secs(120);
/// How much of the file is read at once, in bytes.
const CHUNK: usize = 128 * 1024;
/// How a compressed file begins.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// What is wrong with a file.
type Flaw = (Verdict, Option<&'static str>);

/// A file that nobody has read.
///
/// # Errors
/// When there is no such file, or it is no regular one.
pub fn unread(path: &Path) -> io::Result<Artefact> {
    let metadata = symlink_metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    Ok(Artefact {
        file_name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        size_bytes: metadata.len(),
        modified: modified(&metadata)?,
        verdict: Verdict::Pending,
        detail: None,
        evidence: None,
    })
}

/// Reads a file and judges it; without `now`, as one that nobody writes any more. Whether it is of the right domain and series is for whoever knows these.
///
/// # Errors
/// As [`unread`]. What cannot be read is a verdict.
pub fn prove(path: &Path, now: Option<Timestamp>) -> io::Result<Artefact> {
    let before = unread(path)?;
    let found = File::open(path)
        .map_err(|_| (Verdict::Unreadable, Some("this account may not open it, or its volume fails")))
        .and_then(|file| read(file, is_compressed(&before.file_name)));
    let after = unread(path)?;
    if (before.size_bytes, before.modified) != (after.size_bytes, after.modified) {
        return Ok(Artefact { verdict: Verdict::Growing, ..after });
    }
    Ok(match found {
        Ok(evidence) => Artefact { verdict: Verdict::Proven, evidence: Some(evidence), ..before },
        Err((Verdict::Empty | Verdict::Truncated, _)) if now.is_some_and(|now| is_young(&before, now)) => {
            Artefact { verdict: Verdict::Growing, ..before }
        }
        Err((verdict, detail)) => Artefact { verdict, detail: detail.map(str::to_owned), ..before },
    })
}

/// Whether a file's content begins as compressed content does.
///
/// # Errors
/// When it cannot be read.
pub fn looks_compressed(path: &Path) -> io::Result<bool> {
    let mut begin = [0; 2];
    match File::open(path)?.read_exact(&mut begin) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| begin == MAGIC),
    }
}

/// The server decides by the name too, and would read the content wrongly under the wrong one.
fn is_compressed(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "gz")
}

fn is_young(file: &Artefact, now: Timestamp) -> bool {
    now.duration_since(file.modified).abs() < YOUNG
}

fn modified(metadata: &Metadata) -> io::Result<Timestamp> {
    Timestamp::try_from(metadata.modified()?).map_err(io::Error::other)
}

fn read(file: File, compressed: bool) -> Result<Evidence, Flaw> {
    let mut file = BufReader::with_capacity(CHUNK, Counted::new(file));
    let begin = file.fill_buf().map_err(|_| UNREADABLE)?;
    if begin.is_empty() {
        return Err((Verdict::Empty, None));
    }
    let is_gzip = begin.starts_with(&MAGIC);
    let meter = Meter::default();
    let content = match (compressed, is_gzip || begin.len() < MAGIC.len()) {
        (true, true) => decompressed(&mut file, &meter),
        (true, false) => Err((Verdict::CorruptGzip, Some("it is not compressed, although its name says so"))),
        (false, _) if is_gzip => {
            Err((Verdict::NotJson, Some("it is compressed, although its name does not end in .gz")))
        }
        (false, _) => content::read(&mut file, &meter).map_err(|broken| match broken {
            Broken::Flaw(flaw) => flaw,
            Broken::Stream(_) => UNREADABLE,
        }),
    };
    let (whole, sha256) = file.into_inner().finish();
    if !whole {
        return Err(UNREADABLE);
    }
    let Content { series, domain, server, entries, newest_change, keys } = content?;
    Ok(Evidence { series, domain, server, entries, newest_change, keys, sha256, content_bytes: meter.read() })
}

const UNREADABLE: Flaw = (Verdict::Unreadable, Some("its volume fails"));

/// A damaged compressed form goes before what its content looks like: it is the cause.
fn decompressed(file: &mut impl BufRead, meter: &Meter) -> Result<Content, Flaw> {
    let mut decoder = GzDecoder::new(file);
    let content = content::read(&mut decoder, meter);
    let end = match content {
        Err(Broken::Stream(kind)) => Err(kind),
        _ => io::copy(&mut decoder, &mut io::sink()).map_err(|error| error.kind()),
    };
    if let Err(kind) = end {
        let early = kind == io::ErrorKind::UnexpectedEof;
        return Err((if early { Verdict::Truncated } else { Verdict::CorruptGzip }, None));
    }
    if decoder.into_inner().fill_buf().is_ok_and(|rest| !rest.is_empty()) {
        return Err((Verdict::CorruptGzip, Some("something follows its end")));
    }
    content.map_err(|broken| match broken {
        Broken::Flaw(flaw) => flaw,
        Broken::Stream(_) => (Verdict::CorruptGzip, None),
    })
}
