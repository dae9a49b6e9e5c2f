//! Tells a person what is being done and how long it took. It never decides what is done.

use std::fmt::Display;
use std::io::{Write, stdout};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

/// How often a phase that takes long says that it is still alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Prints a line. A reader that has gone (`| head`) is no reason to stop half-way.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(stdout(), "{line}");
}

/// A one-line remark about what was found or decided.
pub(crate) fn note(text: impl Display) {
    say(format_args!("  · {text}"));
}

/// Does `work`, and prints its name with the time it took, whether it succeeded or not.
pub(crate) fn phase<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    let (ended, wait) = channel::<()>();
    let result = thread::scope(|scope| {
        scope.spawn(move || {
            while wait.recv_timeout(HEARTBEAT) == Err(RecvTimeoutError::Timeout) {
                say(format_args!("  … {name}: still at it after {}", duration(start.elapsed())));
            }
        });
        let result = work();
        drop(ended);
        result
    });
    let mark = if result.is_ok() { '✓' } else { '✗' };
    say(format_args!("  {mark} {name} ({})", duration(start.elapsed())));
    result
}

/// A duration as a person says it: tenths of seconds below a minute, then minutes and seconds.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 60 {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_a_person_says_them() {
        assert_eq!(duration(Duration::from_millis(340)), "0.3 s");
        assert_eq!(duration(Duration::from_secs(59)), "59.0 s");
        assert_eq!(duration(Duration::from_secs(296)), "4 min 56 s");
    }
}
