//! Whether two databases are the same, from what identifies them; and whether a backup belongs to a Kanidm at all.
//!
//! Neither exit codes nor lines of a log are evidence: the server's commands end with 0 on most failures.

use kaniop_api::restore::DatabaseEvidence;

use super::world::Target;
use crate::cluster::image::Image;

/// How what was restored differs from the backup, each for people; nothing when they agree.
#[must_use]
pub fn differences(source: &DatabaseEvidence, restored: &DatabaseEvidence) -> Vec<String> {
    let texts = [
        ("the release", &source.version, &restored.version),
        ("the domain's UUID", &source.domain_uuid, &restored.domain_uuid),
        ("the server's UUID", &source.server_uuid, &restored.server_uuid),
        ("the hash of the keys", &source.key_handles, &restored.key_handles),
    ];
    let mut found: Vec<_> = texts
        .into_iter()
        .filter(|(_, source, restored)| source != restored)
        .map(|(what, source, restored)| format!("{what} is '{restored}' instead of '{source}'"))
        .collect();
    // Two empty answers agree in everything and prove nothing.
    found.extend(
        texts.into_iter().filter(|(_, source, _)| source.is_empty()).map(|(what, ..)| format!("{what} is not known")),
    );
    if source.entries != restored.entries {
        found.push(format!("it has {} entries instead of {}", restored.entries, source.entries));
    }
    if source.entries <= 0 {
        found.push("the backup has no entries".to_owned());
    }
    if restored.inconsistent {
        found.push("the server's own check of it found faults".to_owned());
    }
    found
}

/// Why this backup cannot be restored here, for people; nothing when it can.
pub(super) fn objections(source: &DatabaseEvidence, target: &Target, restore_image: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(domain) = target.domain_uuid.as_deref().filter(|domain| *domain != source.domain_uuid) {
        found.push(format!("it is of the domain with UUID '{}', this is '{domain}'", source.domain_uuid));
    }
    if let Some(series) = series(restore_image).filter(|series| *series != source.version) {
        found.push(format!("it was written by release {}, which restoreImage ({series}) cannot read", source.version));
    }
    if source.entries <= 0 {
        found.push("it has no entries".to_owned());
    }
    found
}

/// Why the servers' image could not go on with what this image restores.
pub(super) fn image_objection(restore_image: &str, servers_image: &str) -> Option<String> {
    let (restore, servers) = (numbers(&series(restore_image)?)?, numbers(&series(servers_image)?)?);
    let fits = restore.0 == servers.0 && (servers.1 == restore.1 || servers.1 == restore.1 + 1);
    (!fits).then(|| {
        format!(
            "the servers' image {servers_image} cannot go on with a database of {restore_image}: it must be of the same minor release, or the \
             next. Change spec.image of the Kanidm first"
        )
    })
}

/// Minor release that a tag names: `1.10` of `1.10.5`. A digest, or a tag that is no version, says nothing.
fn series(image: &str) -> Option<String> {
    let image = Image::parse(image).ok()?;
    let mut parts = image.tag().split(['.', '-', '_']);
    let (major, minor) = (parts.next()?, parts.next()?);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(major) && is_number(minor)).then(|| format!("{major}.{minor}"))
}

fn numbers(series: &str) -> Option<(u32, u32)> {
    let (major, minor) = series.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
