//! What is said of an image that may not be taken, and of a server that the operator does not know: what happened and the way out.

use super::super::image::Image;
use super::Series;

/// At the end of each: what becomes of the rest.
const MEANWHILE: &str =
    "Until then the servers keep the image that they have, and everything else of the spec is applied.";

/// Nobody can tell which release the image is.
pub(super) fn unnamed(wanted: &Image) -> String {
    format!(
        "Nobody can tell which release '{wanted}' is, and the database can only go from one to the next. Name it by a tag that is a version, with \
         the digest behind it if that is to be pinned ('{}:1.11.0@sha256:…'), or set spec.disableUpgradeChecks: true. {MEANWHILE}",
        wanted.repository()
    )
}

/// Nobody can tell which release the database is of.
pub(super) fn untold(live: &[&str]) -> String {
    let image = live.first().map(|image| format!(", and the tag of '{image}' does not say it")).unwrap_or_default();
    format!(
        "The server has not told yet which release its database is of{image}. Wait until it serves, or set spec.disableUpgradeChecks: true. {MEANWHILE}"
    )
}

/// The way to the image leads over a release.
pub(super) fn skip(wanted: &Image, to: Series, from: Series, hint: Option<&str>) -> String {
    format!(
        "The database is of release {from}{}, and '{wanted}' is of {to}: Kanidm goes from one minor release to the next only. Set spec.image to a \
         release {} first, such as '{}:{}.0'. {MEANWHILE}",
        in_spite_of(hint),
        from.next(),
        wanted.repository(),
        from.next()
    )
}

/// The image is older than the database.
pub(super) fn downgrade(wanted: &Image, to: Series, running: Series, hint: Option<&str>) -> String {
    format!(
        "The database is of release {running}{}, and '{wanted}' is of {to}: Kanidm never goes back. Set spec.image to a release {running} again. The \
         only way back to {to} is to restore a backup that {to} made. {MEANWHILE}",
        in_spite_of(hint)
    )
}

/// The backup before an upgrade cannot be made.
pub(super) fn no_backup(from: Series, why: &str) -> String {
    format!(
        "Before the database leaves release {from}, a backup is made and proven, for there is no other way back; and that failed: {why}. It is tried \
         again. To go on without one, set spec.disableUpgradeChecks: true. {MEANWHILE}"
    )
}

/// The image is of a release that this operator does not know.
pub(super) fn unsupported(wanted: &Image, to: Series) -> String {
    format!(
        "'{wanted}' is of release {to}, and this operator is for {} to {}. Set spec.image to one of these, or install an operator that is for {to}. \
         {MEANWHILE}",
        Series::OLDEST,
        Series::NEWEST
    )
}

/// The server is of a release that this operator does not know.
pub(super) fn strange(level: u32) -> String {
    format!(
        "The database has the domain level {level}, which is of no release that this operator knows: it is for {} to {}. Install an operator that is \
         for this server's release, or set spec.disableUpgradeChecks: true.",
        Series::OLDEST,
        Series::NEWEST
    )
}

/// The server is of a release that is too old, and lacks what the operator needs.
pub(super) fn too_old(series: Series) -> String {
    let way = if series.next() >= Series::OLDEST {
        format!("Set spec.image to a release {}", series.next())
    } else {
        format!("Bring it to release {} without this operator", Series::OLDEST)
    };
    format!(
        "The server is of release {series}, which lacks requests that this operator needs: it is for {} to {}. {way}, or set \
         spec.disableUpgradeChecks: true.",
        Series::OLDEST,
        Series::NEWEST
    )
}

fn in_spite_of(hint: Option<&str>) -> String {
    hint.map(|image| format!(" (so it says itself, whatever the tag of '{image}' says)")).unwrap_or_default()
}
