//! Builds an image FROM scratch out of a few files into an archive, only when one of them has changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::output;
use crate::tools;
use crate::workspace::{digest, digest_files, holds, output_folder, write};

/// What an image is made of.
pub(crate) struct Recipe<'a> {
    /// Repository and tag.
    pub(crate) name: &'a str,
    pub(crate) containerfile: PathBuf,
    /// Files of the build context: where each comes from, and its name there.
    pub(crate) files: Vec<(PathBuf, &'a str)>,
    /// Build arguments, as `NAME=value`.
    pub(crate) arguments: Vec<String>,
}

/// A built image.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    /// Repository and tag.
    pub(crate) name: String,
    /// The image as an OCI archive.
    pub(crate) archive: PathBuf,
    /// A digest of all that went into it.
    pub(crate) digest: String,
}

/// Builds the image, unless its archive is there and nothing that goes into it has changed.
///
/// # Errors
/// When a file is missing or buildah fails.
pub(crate) fn build(recipe: &Recipe<'_>) -> Result<Built> {
    let mut files = vec![recipe.containerfile.clone()];
    files.extend(recipe.files.iter().map(|(source, _)| source.clone()));
    let digest = digest([recipe.name, &recipe.arguments.join(" "), &digest_files(&files)?]);
    let folder = output_folder("images")?;
    let archive = folder.join(format!("{}.tar", file_name(recipe.name)));
    let record = folder.join(format!("{}.built-from", file_name(recipe.name)));
    if !(archive.exists() && holds(&record, &digest)) {
        run_buildah(recipe, &folder, &archive)?;
        write(&record, &digest)?;
    }
    Ok(Built { name: recipe.name.to_owned(), archive, digest })
}

/// An image's name as a file's.
pub(crate) fn file_name(image: &str) -> String {
    image.replace(['/', ':', '@'], "_")
}

fn run_buildah(recipe: &Recipe<'_>, folder: &Path, archive: &Path) -> Result<()> {
    // A storage of its own that goes when we are done: nothing of the user's is touched, and the
    // slow but undemanding driver costs nothing for images of one layer.
    let scratch = tempfile::tempdir_in(folder).context("make a folder for the build")?;
    let context = scratch.path().join("context");
    fs::create_dir(&context)?;
    for (source, name) in &recipe.files {
        fs::copy(source, context.join(name)).with_context(|| format!("copy {}", source.display()))?;
    }
    let buildah = || {
        let mut command = Command::new("buildah");
        command.env("PATH", tools::search_path()).args(["--storage-driver", "vfs", "--root"]);
        command.arg(scratch.path().join("storage")).arg("--runroot").arg(scratch.path().join("run"));
        command
    };
    let mut build = buildah();
    build.args(["build", "--isolation", "chroot"]);
    build.args(recipe.arguments.iter().flat_map(|argument| ["--build-arg", argument]));
    build.args(["--tag", recipe.name, "--file"]).arg(&recipe.containerfile).arg(&context);
    output(&mut build)?;
    if archive.exists() {
        fs::remove_file(archive)?; // buildah would add to it
    }
    let target = format!("oci-archive:{}:{}", archive.display(), recipe.name);
    output(buildah().args(["push", recipe.name, &target])).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_images_name_makes_a_file_name() {
        assert_eq!(file_name("localhost/kaniop:dev"), "localhost_kaniop_dev");
    }

    #[test]
    fn a_missing_file_is_named() {
        let containerfile = "/nonexistent/Containerfile".into();
        let recipe = Recipe { name: "localhost/x:dev", containerfile, files: vec![], arguments: vec![] };
        let error = build(&recipe).unwrap_err();
        assert!(format!("{error:#}").contains("/nonexistent/Containerfile"));
    }
}
