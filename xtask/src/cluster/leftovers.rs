//! Removes what containers leave on the machine once their processes have ended: mounts, sockets,
//! log links, network caches. It touches only what lies in our folders or carries our names.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::mount::{UnmountFlags, unmount};

use super::layout::{CNI_NETWORK, DATA, RUN};

/// Where containerd's shims listen, whatever containerd's own folder is.
const SHIM_SOCKETS: &str = "/run/containerd/s";
/// Where the kubelet links containers' logs, whatever its own folder is.
const LOG_LINKS: &str = "/var/log/containers";
/// Where CNI keeps the results of every runtime on the machine.
const CNI_RESULTS: &str = "/var/lib/cni/results";
/// Where containerd looks for networks of runtimes that have no setting of their own.
const CNI_DEFAULT: &str = "/etc/cni/net.d";
/// Where the kubelet listens for device plugins, whatever its own folder is.
const KUBELET_SOCKET: &str = "/var/lib/kubelet/device-plugins/kubelet.sock";

/// Folders that we may have been the only user of, inner ones first.
const EMPTIED: [&str; 7] = [
    LOG_LINKS,
    CNI_RESULTS,
    "/var/lib/cni",
    "/var/lib/kubelet/device-plugins",
    "/var/lib/kubelet",
    CNI_DEFAULT,
    "/etc/cni",
];

/// Unmounts everything below our folders.
///
/// # Errors
/// When something stays mounted: then nothing may be deleted, for a volume may be behind it.
pub(crate) fn unmount_all() -> Result<()> {
    for point in ours()?.iter().rev() {
        // The look afterwards tells what matters.
        let _ = unmount(point, UnmountFlags::DETACH);
    }
    let rest = ours()?;
    if let Some(point) = rest.first() {
        bail!("{} cannot be unmounted ({} mounts left); nothing was deleted", point.display(), rest.len());
    }
    Ok(())
}

/// Removes the sockets of the shims that containerd's state names. Must come before that is deleted.
pub(crate) fn remove_shim_sockets() {
    let tasks = format!("{RUN}/containerd/io.containerd.runtime.v2.task/k8s.io");
    for task in entries(Path::new(&tasks)) {
        let address = fs::read_to_string(task.join("address")).unwrap_or_default();
        let socket = address.trim().strip_prefix("unix://").map(PathBuf::from);
        if let Some(socket) = socket.filter(|socket| socket.starts_with(SHIM_SOCKETS)) {
            // Gone with an orderly end of its shim.
            let _ = fs::remove_file(socket);
        }
    }
    // These folders go only when no other runtime has anything in them.
    let _ = fs::remove_dir(SHIM_SOCKETS);
    let _ = fs::remove_dir("/run/containerd");
}

/// Removes what containers and the kubelet leave in places that no setting moves. Folders go only
/// when nothing else is in them.
///
/// # Errors
/// When one of them is there and cannot be removed.
pub(crate) fn remove_traces() -> Result<()> {
    for link in entries(Path::new(LOG_LINKS)) {
        if fs::read_link(&link).is_ok_and(|target| target.starts_with(DATA)) {
            remove_file(&link)?;
        }
    }
    let results = entries(Path::new(CNI_RESULTS));
    for result in of_our_containers(&results) {
        remove_file(result)?;
    }
    // `up` refuses to run beside another kubelet, so this socket was ours.
    remove_file(Path::new(KUBELET_SOCKET))?;
    if entries(Path::new(CNI_DEFAULT)).iter().all(|file| file.ends_with("cni.lock")) {
        remove_file(&Path::new(CNI_DEFAULT).join("cni.lock"))?;
    }
    for folder in EMPTIED {
        let _ = fs::remove_dir(folder); // refused unless it is empty, which is right
    }
    Ok(())
}

/// Picks the cached network results of our containers: those for our network, and those for the
/// loopback network, which all runtimes share, of the same containers.
fn of_our_containers(results: &[PathBuf]) -> Vec<&PathBuf> {
    let name = |result: &PathBuf| result.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let of_our_network =
        |result| Some(name(result).strip_prefix(CNI_NETWORK)?.strip_prefix('-')?.split('-').next()?.to_owned());
    let containers: Vec<String> = results.iter().filter_map(of_our_network).collect();
    let mut ours: Vec<_> =
        results.iter().filter(|result| containers.iter().any(|id| name(result).contains(id))).collect();
    // Those by which the others are recognised go last, in case this is interrupted.
    ours.sort_by_key(|result| of_our_network(result).is_some());
    ours
}

/// Deletes a folder with all that is in it. One that is not there is fine.
///
/// # Errors
/// When something in it cannot be deleted.
pub(crate) fn delete(folder: &str) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e).with_context(|| format!("delete {folder}")),
        _ => Ok(()),
    }
}

fn remove_file(file: &Path) -> Result<()> {
    match fs::remove_file(file) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e).with_context(|| format!("remove {}", file.display())),
        _ => Ok(()),
    }
}

fn ours() -> Result<Vec<PathBuf>> {
    let table = fs::read_to_string("/proc/self/mountinfo").context("read the table of mounts")?;
    Ok(mount_points(&table).into_iter().filter(|point| below(point, DATA) || below(point, RUN)).collect())
}

/// Whether a path is inside of a folder; the folder itself may be a disk of the user's.
fn below(path: &Path, folder: &str) -> bool {
    path.strip_prefix(folder).is_ok_and(|rest| !rest.as_os_str().is_empty())
}

/// The mount points in a mountinfo table, in the order in which they were mounted.
fn mount_points(table: &str) -> Vec<PathBuf> {
    table.lines().filter_map(|line| line.split(' ').nth(4)).map(|field| PathBuf::from(unescape(field))).collect()
}

/// The kernel writes blanks, tabs, line ends and backslashes in paths as three octal digits.
fn unescape(field: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(field.to_owned(), |text, (code, character)| text.replace(code, character))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_with_their_escapes() {
        let table =
            "36 35 98:0 / /run/kaniop-dev/a rw - tmpfs t rw\n37 35 98:0 /x /var/lib/my\\040disk rw - ext4 d rw\n";
        let points = mount_points(table);
        assert_eq!(points, [PathBuf::from("/run/kaniop-dev/a"), PathBuf::from("/var/lib/my disk")]);
    }

    #[test]
    fn only_what_is_inside_of_our_folders_is_ours() {
        assert!(below(Path::new("/var/lib/kaniop-dev/x"), DATA));
        assert!(!below(Path::new("/var/lib/kaniop-dev"), DATA));
        assert!(!below(Path::new("/var/lib/kaniop-development/x"), DATA));
    }

    #[test]
    fn cached_results_of_other_runtimes_stay() {
        let names = ["cni-loopback-aa11-lo", "kaniop-dev-aa11-eth0", "cni-loopback-bb22-lo", "podman-bb22-eth0"];
        let results: Vec<_> = names.iter().map(|name| Path::new(CNI_RESULTS).join(name)).collect();
        assert_eq!(of_our_containers(&results), [&results[0], &results[1]]);
    }

    #[test]
    fn deleting_what_is_not_there_is_fine() {
        delete("/nonexistent/kaniop").unwrap();
    }
}
