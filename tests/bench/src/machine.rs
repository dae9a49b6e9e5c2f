//! The machine that a run was on, as far as the kernel tells.

use std::fs;
use std::thread::available_parallelism;

/// One line: processor, how many of it, memory, kernel.
pub(crate) fn description() -> String {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let (processors, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
    let model = value(&processors, "model name").unwrap_or("a processor that the kernel does not name");
    let kibibytes = value(&memory, "MemTotal").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    let cores = available_parallelism().map_or(1, usize::from);
    let gibibytes = kibibytes.unwrap_or_default() >> 20;
    format!("{cores} × {model}, {gibibytes} GiB, Linux {}", read("/proc/sys/kernel/osrelease").trim())
}

/// The value of the first line of the form `key : value`.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == key).then(|| value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_the_key_counts() {
        assert_eq!(value("a\t: 1\nmodel name\t: X Y\nmodel name\t: Z\n", "model name"), Some("X Y"));
        assert_eq!(value("a: 1\n", "b"), None);
    }
}
