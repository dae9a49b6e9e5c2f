//! What a process has used, as the kernel counts it.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// Processor time of a process so far, its threads included.
pub(crate) fn time(pid: u32) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).with_context(|| format!("process {pid}"))?;
    ticks(&stat).map(|ticks| Duration::from_secs_f64(ticks / per_second())).context("read the kernel's count of ticks")
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
    fn a_process_is_seen() {
        let me = std::process::id();
        assert!(peak(me).unwrap() > 0.5 && time(me).is_ok());
    }
}
