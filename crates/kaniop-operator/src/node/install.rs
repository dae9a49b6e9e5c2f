//! Copies this very program to where the server's container finds it, and notes what the server starts with. The copy appears whole or not at
//! all.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use kaniop_core::cluster::server_config::digest;
use serde::Serialize;

/// What was installed.
#[derive(Debug, Serialize)]
pub struct Installed {
    /// Where.
    path: PathBuf,
    /// Its size in bytes.
    bytes: u64,
}

/// Copies this program, and writes the digest of the file that `KANIDM_CONFIG` names. A server that starts again in the same pod may read a newer
/// file: then it is restarted once more than it had to be, and never the other way round.
pub fn install(path: &Path, note: Option<&Path>) -> Result<Installed, String> {
    if let Some(note) = note {
        let config = PathBuf::from(std::env::var_os("KANIDM_CONFIG").unwrap_or_default());
        noted(&config, note)?;
    }
    let own = std::env::current_exe().map_err(|error| format!("this program cannot find itself: {error}"))?;
    copy(&own, path).map_err(|error| {
        format!(
            "{} cannot be copied to {}: {error}. Its folder must be a volume that can be written",
            own.display(),
            path.display()
        )
    })
}

fn noted(config: &Path, note: &Path) -> Result<(), String> {
    // Until the kubelet knows the newest Secret, a new node has no file: the kubelet runs this again.
    let file = fs::read(config)
        .map_err(|error| format!("the server's configuration {} cannot be read: {error}", config.display()))?;
    fs::write(note, digest(&file)).map_err(|error| format!("{} cannot be written: {error}", note.display()))
}

/// A pod whose init container was ended half-way runs it again: nothing may remain of the first that looks finished.
fn copy(from: &Path, to: &Path) -> io::Result<Installed> {
    let unfinished = to.with_extension("unfinished");
    let bytes = fs::copy(from, &unfinished)?;
    // Readable for every user: who the server runs as is the user's choice.
    fs::set_permissions(&unfinished, fs::Permissions::from_mode(0o755))?;
    fs::rename(&unfinished, to)?;
    Ok(Installed { path: to.to_owned(), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_is_whole_and_can_be_run_by_everybody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kaniop");
        fs::write(folder.path().join("kaniop.unfinished"), "half").unwrap();
        let installed = install(&path, None).unwrap();
        let own = fs::metadata(std::env::current_exe().unwrap()).unwrap();
        assert_eq!((installed.bytes, fs::metadata(&path).unwrap().len()), (own.len(), own.len()));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
        assert!(!folder.path().join("kaniop.unfinished").exists());
    }

    #[test]
    fn what_the_server_starts_with_is_noted_as_the_operator_reckons_it() {
        let folder = tempfile::tempdir().unwrap();
        let (config, note) = (folder.path().join("idm-a-0.toml"), folder.path().join("note"));
        assert!(noted(&config, &note).unwrap_err().contains("idm-a-0.toml"));
        fs::write(&config, "version = \"2\"\n").unwrap();
        noted(&config, &note).unwrap();
        assert_eq!(fs::read_to_string(&note).unwrap(), digest(b"version = \"2\"\n"));
    }

    #[test]
    fn a_folder_that_does_not_exist_is_named_with_what_is_needed() {
        let error = install(Path::new("/nonexistent/kaniop"), None).unwrap_err();
        assert!(error.contains("/nonexistent/kaniop") && error.contains("must be a volume"), "{error}");
    }
}
