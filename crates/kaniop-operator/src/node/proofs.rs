//! What was proven of each backup, kept beside the database so that nothing is read twice; and the lock under which one process at a time reads or makes backups.
//!
//! A proof is of a file as the system identifies it: name, number, size, and both its times. A file that was touched since is another one.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use kaniop_core::backup::{Artefact, Listing, Verdict};
use kaniop_kanidm::backup;
use serde::{Deserialize, Serialize};

/// Where backups and proofs are.
#[derive(Clone, Debug, clap::Args)]
pub struct Places {
    /// The folder of backups.
    #[arg(long, default_value = kaniop_core::backup::FOLDER)]
    pub folder: PathBuf,
    /// Where proofs are kept. If it cannot be written, everything is read each time.
    #[arg(long, default_value = kaniop_core::backup::STATE)]
    pub state: PathBuf,
}

/// A file as the system identifies it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Self> {
        let found = fs::symlink_metadata(path)?;
        Ok(Self {
            inode: found.ino(),
            size: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Proof {
    stamp: Stamp,
    artefact: Artefact,
}

/// The proofs, by file name.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Proofs(BTreeMap<String, Proof>);

impl Places {
    /// What is kept. Whatever cannot be read is not there: then everything is read anew.
    pub fn proofs(&self) -> Proofs {
        let kept = fs::read(self.state.join("backups.json")).ok();
        kept.and_then(|kept| serde_json::from_slice(&kept).ok()).unwrap_or_default()
    }

    /// The lock, not taken yet; nothing if its folder cannot be written.
    pub fn lock(&self) -> Option<File> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.state);
        made.and_then(|()| OpenOptions::new().create(true).append(true).mode(0o600).open(self.state.join("lock"))).ok()
    }

    /// Keeps them, whole or not at all.
    pub fn keep(&self, proofs: &Proofs) -> io::Result<()> {
        let unfinished = self.state.join("backups.json.unfinished");
        fs::write(&unfinished, serde_json::to_vec(proofs)?)?;
        fs::rename(&unfinished, self.state.join("backups.json"))
    }

    /// Every file of the folder with what is known of it, without reading any; the newest first. Hidden ones are not finished.
    ///
    /// # Errors
    /// When the folder is there and cannot be listed.
    pub fn listing(&self, proofs: &Proofs) -> Result<Listing, String> {
        let told = |error: io::Error| format!("the folder {} cannot be listed: {error}", self.folder.display());
        let found = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Listing::default()),
            found => found.map_err(told)?,
        };
        let mut files = Vec::new();
        for file in found {
            let path = file.map_err(told)?.path();
            let hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
            // One that went in the meantime, and what is no file, are not listed.
            if let Some(unread) = (!hidden).then(|| backup::unread(&path).ok()).flatten() {
                files.push(proofs.of(&path, &unread.file_name).unwrap_or(unread));
            }
        }
        files.sort_by(|a, b| b.time().cmp(&a.time()).then_with(|| b.file_name.cmp(&a.file_name)));
        Ok(Listing { files })
    }
}

impl Proofs {
    /// What is known of this file as it is now.
    fn of(&self, path: &Path, name: &str) -> Option<Artefact> {
        let proof = self.0.get(name)?;
        (Stamp::of(path).ok()? == proof.stamp).then(|| proof.artefact.clone())
    }

    /// Adds what was found of a file, if it is still the same.
    pub fn add(&mut self, path: &Path, artefact: &Artefact) {
        let Ok(stamp) = Stamp::of(path) else { return };
        if stamp.size == artefact.size_bytes {
            self.0.insert(artefact.file_name.clone(), Proof { stamp, artefact: artefact.clone() });
        }
    }

    /// Forgets files that are gone.
    pub fn retain(&mut self, listing: &Listing) {
        self.0.retain(|name, _| listing.files.iter().any(|file| file.file_name == *name));
    }
}

/// Whether somebody should read it.
pub fn is_open(file: &Artefact) -> bool {
    // A volume that fails may recover; a damaged file does not.
    file.verdict.is_open() || file.verdict == Verdict::Unreadable
}
