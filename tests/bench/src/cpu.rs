//! What a process has used, as the kernel counts it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

/// Processor time of a process so far, its threads included.
pub(crate) fn time(pid: u32) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).with_context(|| format!("process {pid}"))?;
    ticks(&stat).map(|ticks| Duration::from_secs_f64(ticks / per_second())).context("read the kernel's count of ticks")
}

/// Processor time so far of what `cargo xtask` started beside this kubeconfig, by component: `etcd` for instance. Their environment says whose
/// they are (see `xtask/src/process.rs`).
pub(crate) fn of_components(kubeconfig: &Path) -> Result<BTreeMap<String, Duration>> {
    let owner = kubeconfig.parent().context("KUBECONFIG is in a folder")?.display().to_string();
    let mut found = BTreeMap::new();
    for process in fs::read_dir("/proc").context("list processes")?.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // One that ended meanwhile, or is somebody else's, is none of them.
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        if let Some(component) = component(&environment, &owner) {
            *found.entry(component).or_default() += time(pid)?;
        }
    }
    Ok(found)
}

/// The component that a process is marked as, if it belongs to this owner.
fn component(environment: &[u8], owner: &str) -> Option<String> {
    let mark = environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(b"KANIOP_DEV_COMPONENT="))?;
    let (component, rest) = std::str::from_utf8(mark).ok()?.split_once('|')?;
    (rest.split_once('|')?.1 == owner).then(|| component.to_owned())
}

/// How many processors' worth of work the whole machine has done so far, and how much it could have done.
pub(crate) fn of_the_machine() -> Result<(f64, f64)> {
    let stat = fs::read_to_string("/proc/stat").context("read the kernel's count of the machine's time")?;
    busy(&stat).context("read the kernel's count of the machine's time")
}

/// The most memory that a process has held so far, in MiB (`VmHWM`).
pub(crate) fn peak(pid: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).with_context(|| format!("process {pid}"))?;
    mebibytes(&status).context("read the kernel's count of memory")
}

/// User and system time: the 14th and 15th field, counted past the name, which may hold anything.
fn ticks(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some(fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?)
}

/// Ticks that were not idle, and all: user, nice, system, idle, waiting for disks, and others.
fn busy(stat: &str) -> Option<(f64, f64)> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().map(str::parse::<f64>);
    let ticks: Vec<_> = fields.collect::<Result<_, _>>().ok()?;
    let all: f64 = ticks.iter().take(8).sum();
    Some((all - ticks.get(3)? - ticks.get(4)?, all))
}

#[expect(clippy::cast_precision_loss, reason = "a hundred")]
fn per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

fn mebibytes(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_past_any_name() {
        let fields: Vec<_> = (3..=20).map(|field| field.to_string()).collect();
        assert_eq!(ticks(&format!("1 (a b) c) {}", fields.join(" "))), Some(29.0));
        assert_eq!(ticks("1 (a"), None);
    }

    #[test]
    fn a_machine_that_waits_for_disks_is_not_busy() {
        assert_eq!(busy("cpu  10 1 5 80 4 0 0 0 3 0\ncpu0 1 1 1 1\n"), Some((16.0, 100.0)));
        assert_eq!(busy("intr 1\n"), None);
    }

    #[test]
    fn the_peak_is_in_mebibytes() {
        assert_eq!(mebibytes("VmPeak:\t 9 kB\nVmHWM:\t   40960 kB\n"), Some(40.0));
    }

    #[test]
    fn a_component_is_known_by_its_mark_and_owner() {
        let environment = b"PATH=/bin\0KANIOP_DEV_COMPONENT=etcd||/run/one\0LANG=C\0";
        assert_eq!(component(environment, "/run/one").as_deref(), Some("etcd"));
        assert_eq!(component(environment, "/run/two"), None);
        assert_eq!(component(b"PATH=/bin\0", "/run/one"), None);
    }

    #[test]
    fn a_process_is_seen() {
        let me = std::process::id();
        assert!(peak(me).unwrap() > 0.5 && time(me).is_ok());
    }
}
