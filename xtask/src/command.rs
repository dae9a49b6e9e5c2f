//! Runs programs to their end and turns their failures into messages for people. It never starts
//! anything that outlives the call; `process` does that.

use std::io::{ErrorKind, Write};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, anyhow, bail};

use crate::tools;

/// How many lines of a failed program's output are worth showing.
const TAIL: usize = 15;

/// Runs `command`, returns its standard output. A failure carries the last lines of what it said.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = name_of(command);
    let done = command.stdin(Stdio::null()).output().map_err(|e| not_started(&name, e))?;
    checked(&name, &done)
}

/// Like [`output`], with `input` on standard input.
pub(crate) fn output_with_input(command: &mut Command, input: &str) -> Result<String> {
    let name = name_of(command);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|e| not_started(&name, e))?;
    if let Some(mut pipe) = child.stdin.take() {
        // A program that fails early closes its end; its own message says more than "broken pipe".
        match pipe.write_all(input.as_bytes()) {
            Err(e) if e.kind() != ErrorKind::BrokenPipe => return Err(e).with_context(|| format!("write to {name}")),
            _ => {}
        }
    }
    checked(&name, &child.wait_with_output()?)
}

/// Runs `command` with the terminal's own standard streams. Fails unless it exits with 0.
pub(crate) fn interactive(command: &mut Command) -> Result<()> {
    let name = name_of(command);
    let status = command.status().map_err(|e| not_started(&name, e))?;
    if !status.success() {
        bail!("{name} failed ({status})");
    }
    Ok(())
}

/// Whether `command` can be run and exits with 0; its output is dropped.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}

/// The error for a program that could not be started: names the package when we know it.
pub(crate) fn not_started(name: &str, error: std::io::Error) -> anyhow::Error {
    if error.kind() == ErrorKind::NotFound {
        anyhow!(tools::missing(name))
    } else {
        anyhow!("cannot run {name}: {error}")
    }
}

/// The last `count` lines of `text`, indented below a heading.
pub(crate) fn tail(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].iter().map(|line| format!("\n    {line}")).collect()
}

fn checked(name: &str, done: &Output) -> Result<String> {
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = if done.stderr.is_empty() { &done.stdout } else { &done.stderr };
    bail!("{name} failed ({}):{}", done.status, tail(&String::from_utf8_lossy(said), TAIL))
}

fn name_of(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_carries_what_the_program_said() {
        let error = output(Command::new("sh").args(["-c", "echo no such bridge >&2; exit 3"])).unwrap_err().to_string();
        assert!(error.contains("no such bridge") && error.contains("exit status: 3"), "{error}");
    }

    #[test]
    fn a_program_that_reads_nothing_fails_with_its_own_message() {
        let input = "x".repeat(1 << 20);
        let error = output_with_input(Command::new("sh").args(["-c", "echo refused >&2; exit 1"]), &input).unwrap_err();
        assert!(error.to_string().contains("refused"), "{error}");
    }

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let error = not_started("buildah", ErrorKind::NotFound.into()).to_string();
        assert!(error.contains("package buildah") && !error.contains('\n'), "{error}");
    }

    #[test]
    fn the_tail_keeps_the_last_lines() {
        assert_eq!(tail("a\nb\nc", 2), "\n    b\n    c");
        assert_eq!(tail("a", 2), "\n    a");
    }
}
