//! (h) Proving a backup: how fast it is read beside `gzip -dc`, which only decompresses it, and how much memory that takes whatever its size.
//!
//! Speeds are of processor time: the helper reads at the lowest priority, and what else the machine does says nothing of it.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::process::Command;

use super::Run;
use crate::cpu;
use crate::report::Bar;
use crate::statistics::number;

/// Most memory that it may take, in MiB.
const MEMORY: f64 = 64.0;
/// Least part of the speed of `gzip -dc`.
const SPEED: f64 = 0.6;
const LOOK: Duration = Duration::from_millis(5);
const NAME: &str = "backup-2025-01-01T02:00:00.5Z.json.gz";

/// What a process took.
struct Used {
    processor: Duration,
    peak: f64,
    stdout: Vec<u8>,
}

pub(super) async fn measure(run: &mut Run<'_>) -> Result<()> {
    println!("\nproving a backup");
    let folder = tempfile::tempdir()?;
    let path = folder.path().join(NAME);
    let mut content =
        Measured { inner: GzEncoder::new(BufWriter::new(File::create(&path)?), Compression::default()), bytes: 0 };
    let entries = write(&mut content, run.scale.backup).context("write a backup")?;
    let bytes = content.bytes;
    content.inner.finish()?.flush()?;

    let gzip = watch(Command::new("gzip").arg("-dc").arg(&path).stdout(Stdio::null())).await.context("gzip -dc")?;
    let mut helper = Command::new(&run.programs.operator);
    helper
        .args(["node", "backups", "--read", "--folder"])
        .arg(folder.path())
        .arg("--state")
        .arg(folder.path().join("state"));
    let helper = watch(helper.stdout(Stdio::piped())).await.context("kaniop node backups")?;
    found(&helper.stdout, entries)?;

    let megabytes = number(usize::try_from(bytes)?) / 1e6;
    let file = number(usize::try_from(std::fs::metadata(&path)?.len())?) / 1e6;
    let rate = |used: &Used| megabytes / used.processor.as_secs_f64().max(0.01);
    run.report.fact('h', "content of the backup that is proven", (megabytes, "MB"));
    run.report.fact('h', "… its file", (file, "MB"));
    run.report.fact('h', "… `gzip -dc`, by processor time", (rate(&gzip), "MB/s"));
    run.report.fact('h', "… proof, by processor time", (rate(&helper), "MB/s"));
    run.report.value('h', "… proof beside `gzip -dc`", (rate(&helper) / rate(&gzip), ""), Bar::AtLeast(SPEED));
    run.report.value('h', "… its peak memory", (helper.peak, "MiB"), Bar::AtMost(MEMORY));
    Ok(())
}

/// Nothing counts unless it was read as a whole.
fn found(stdout: &[u8], entries: u64) -> Result<()> {
    let line = stdout.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let told: serde_json::Value = serde_json::from_slice(line).context("what the helper prints")?;
    ensure!(told["verdict"] == "proven" && told["evidence"]["entries"] == entries, "it was not proven: {told}");
    Ok(())
}

/// Runs a process to its end and looks at it all the while: what is seen last is what it took.
async fn watch(command: &mut Command) -> Result<Used> {
    let mut child = command.kill_on_drop(true).spawn()?;
    let pid = child.id().context("it ended at once")?;
    let mut stdout = child.stdout.take();
    let (mut processor, mut peak) = (Duration::ZERO, 0.0);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        // At its very end there is nothing left to see.
        if let (Ok(time), Ok(memory)) = (cpu::time(pid), cpu::peak(pid)) {
            (processor, peak) = (time, memory);
        }
        tokio::time::sleep(LOOK).await;
    };
    if !status.success() {
        bail!("it ended with {status}");
    }
    let mut read = Vec::new();
    if let Some(stdout) = &mut stdout {
        tokio::io::AsyncReadExt::read_to_end(stdout, &mut read).await?;
    }
    Ok(Used { processor, peak, stdout: read })
}

/// Counts what goes into it.
struct Measured<W> {
    inner: W,
    bytes: u64,
}

impl<W: Write> Write for Measured<W> {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        let count = self.inner.write(buffer)?;
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

/// A backup of so many bytes of people as servers write them, and how many they are.
fn write<W: Write>(to: &mut Measured<W>, bytes: u64) -> Result<u64> {
    let uuid = "5d0f2c1e-93d7-4d3c-9a0f-5a2a7a3d1c11";
    write!(
        to,
        r#"{{"version":"1.10","db_s_uuid":"{uuid}","db_d_uuid":"{uuid}","db_ts_max":{{"secs":1,"nanos":0}},"keyhandles":{{}},"repl_meta":{{"V1":{{"ruv":[]}}}},"entries":["#
    )?;
    let (mut entries, mut state) = (0, 0x9e37_79b9_7f4a_7c15_u64);
    // Each value is another one, as times of changes, UUIDs and hashes of passwords are.
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    while to.bytes < bytes {
        if entries > 0 {
            to.write_all(b",")?;
        }
        write!(
            to,
            r#"{{"ent":{{"V3":{{"changestate":{{"V1Live":{{"at":{{"t":"{:032x}","s":"{uuid}"}},"changes":{{"#,
            next() >> 4
        )?;
        for (nth, attr) in
            ["class", "displayname", "memberof", "name", "primary_credential", "spn", "uuid"].iter().enumerate()
        {
            let comma = if nth == 0 { "" } else { "," };
            write!(to, r#"{comma}"{attr}":{{"t":"{:032x}","s":"{uuid}"}}"#, next() >> 4)?;
        }
        write!(
            to,
            r#"}}}}}},"attrs":{{"class":{{"I8":["account","memberof","object","person"]}},"displayname":{{"U8":["Person {entries}"]}},"name":{{"N8":["person{entries}"]}},"memberof":{{"RF":["00000000-0000-0000-0000-000000000035","00000000-0000-0000-0000-000000000036"]}},"primary_credential":{{"CR":[{{"l":"primary","d":{{"type_":"Pw","password":{{"TPM_ARGON2ID":{{"m":16384,"t":3,"p":1,"v":19,"s":"{:016x}{:016x}","k":"{:016x}{:016x}{:016x}{:016x}"}}}}}}}}]}}}}}}}}}}"#,
            next(),
            next(),
            next(),
            next(),
            next(),
            next()
        )?;
        entries += 1;
    }
    to.write_all(b"]}")?;
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_a_backup() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("backup-2025-01-01T02:00:00Z.json");
        let mut content = Measured { inner: File::create(&path).unwrap(), bytes: 0 };
        let entries = write(&mut content, 100_000).unwrap();
        let found = kaniop_kanidm::backup::prove(&path, None).unwrap();
        let evidence = found.evidence.unwrap();
        assert_eq!((evidence.entries, evidence.content_bytes), (entries, content.bytes));
    }
}
