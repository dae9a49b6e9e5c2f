//! Where things lie in this checkout, and digests of them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// The checkout's root folder.
pub(crate) fn root() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.parent().unwrap_or(crate_folder).to_owned()
}

/// A folder for what we build beside cargo's own output, ignored by git. Made if needed.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn output_folder(name: &str) -> Result<PathBuf> {
    let folder = root().join("target").join(name);
    fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    Ok(folder)
}

/// Where cargo puts what it builds in this workspace.
pub(crate) fn cargo_target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// A digest of texts, in order, as hexadecimal digits.
pub(crate) fn digest<T: AsRef<[u8]>>(parts: impl IntoIterator<Item = T>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        // The length keeps ("ab", "c") from being ("a", "bc").
        hasher.update(part.as_ref().len().to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().iter().take(16).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to a String cannot fail
        text
    })
}

/// A digest of files' names and contents, in order.
///
/// # Errors
/// When one of them cannot be read.
pub(crate) fn digest_files(files: &[PathBuf]) -> Result<String> {
    let mut parts = Vec::new();
    for file in files {
        parts.push(file.file_name().unwrap_or_default().as_encoded_bytes().to_vec());
        parts.push(fs::read(file).with_context(|| format!("read {}", file.display()))?);
    }
    Ok(digest(parts))
}

/// Whether `file` holds exactly `text`.
pub(crate) fn holds(file: &Path, text: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|found| found == text)
}

/// Writes a file of ours.
///
/// # Errors
/// When it cannot be written; the path is named.
pub(crate) fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_tells_where_one_part_ends() {
        assert_ne!(digest(["ab", "c"]), digest(["a", "bc"]));
        assert_eq!(digest(["ab", "c"]), digest(["ab", "c"]));
    }

    #[test]
    fn a_digest_of_files_follows_content_and_name() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&a, "1").unwrap();
        fs::write(&b, "1").unwrap();
        let first = digest_files(std::slice::from_ref(&a)).unwrap();
        assert_ne!(first, digest_files(&[b]).unwrap());
        fs::write(&a, "2").unwrap();
        assert_ne!(first, digest_files(&[a]).unwrap());
    }

    #[test]
    fn the_root_holds_the_workspace() {
        assert!(root().join("Cargo.toml").is_file());
    }
}
