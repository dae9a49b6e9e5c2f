//! The stream of a file: what was read of it, and a limit to what may be held of it.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use sha2::{Digest, Sha256};

/// A file whose bytes are counted into a digest.
pub(super) struct Counted<R> {
    inner: R,
    digest: Sha256,
    failed: bool,
}

impl<R> Counted<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, digest: Sha256::new(), failed: false }
    }

    /// Whether no read failed, and the digest of all bytes that were read.
    pub(super) fn finish(self) -> (bool, String) {
        (!self.failed, hex(&self.digest.finalize()))
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer).inspect_err(|error| {
            self.failed |= error.kind() != io::ErrorKind::Interrupted;
        })?;
        self.digest.update(buffer.get(..count).unwrap_or_default());
        Ok(count)
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to a String cannot fail
        text
    })
}

/// How much of the content was read, and how much more may be while something of it is held.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter(Rc<Cells>);

#[derive(Debug)]
struct Cells {
    read: Cell<u64>,
    limit: Cell<u64>,
    text: Cell<bool>,
    ended: Cell<bool>,
}

impl Default for Cells {
    fn default() -> Self {
        Self { read: Cell::new(0), limit: Cell::new(u64::MAX), text: Cell::new(true), ended: Cell::new(false) }
    }
}

impl Meter {
    /// Bytes of the content that were read.
    pub(super) fn read(&self) -> u64 {
        self.0.read.get()
    }

    /// What follows is held: no more than so many bytes.
    pub(super) fn hold(&self, bytes: u64) {
        self.0.limit.set(self.read() + bytes);
    }

    /// What follows is passed over, however long it is.
    pub(super) fn pass(&self) {
        self.0.limit.set(u64::MAX);
    }

    /// Whether the end was looked for and reached.
    pub(super) fn ended(&self) -> bool {
        self.0.ended.get()
    }

    /// Whether something was longer than it may be, or was no text.
    pub(super) fn refused(&self) -> bool {
        self.read() > self.0.limit.get() || !self.0.text.get()
    }
}

/// The content, measured and checked to be UTF-8, which passing over a text would not show.
pub(super) struct Metered<R> {
    inner: R,
    meter: Meter,
    /// The beginning of a character that the last chunk ended in.
    open: Vec<u8>,
}

impl<R> Metered<R> {
    pub(super) fn new(inner: R, meter: &Meter) -> Self {
        Self { inner, meter: meter.clone(), open: Vec::with_capacity(4) }
    }

    fn is_text(&mut self, mut chunk: &[u8]) -> bool {
        while !self.open.is_empty()
            && let Some((first, rest)) = chunk.split_first()
        {
            self.open.push(*first);
            chunk = rest;
            match std::str::from_utf8(&self.open) {
                Ok(_) => self.open.clear(),
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return false,
            }
        }
        match std::str::from_utf8(chunk) {
            Ok(_) => true,
            Err(error) => {
                self.open.extend(chunk.iter().skip(error.valid_up_to()).take(4));
                error.error_len().is_none()
            }
        }
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.meter.0.read.set(self.meter.read() + count as u64);
        let read = buffer.get(..count).unwrap_or_default();
        self.meter.0.ended.set(count == 0);
        let text = self.is_text(read);
        self.meter.0.text.set(text);
        if self.meter.refused() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "this is no content of a backup"));
        }
        Ok(count)
    }
}
