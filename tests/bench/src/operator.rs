//! The operator as a process beside the API server, with a service account's credentials, as in a cluster: an administrator's requests would
//! pass the API server's queues by.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::counts::Counts;
use crate::cpu;

/// How long an end that was asked for may take.
const END: Duration = Duration::from_secs(60);

/// How to start one.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    /// The binary.
    pub(crate) binary: PathBuf,
    /// Kubeconfig of its service account.
    pub(crate) kubeconfig: PathBuf,
    /// The one namespace that it watches.
    pub(crate) namespace: String,
    /// Its interval, in seconds.
    pub(crate) interval: u32,
    /// Its log, which is added to.
    pub(crate) log: PathBuf,
}

/// A running operator; killed when it is dropped.
pub(crate) struct Operator {
    child: Child,
    port: u16,
    /// When it was started.
    pub(crate) began: Instant,
}

impl Drop for Operator {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Operator {
    /// Starts it. It dies with us, even if we are killed.
    pub(crate) fn start(start: &Start) -> Result<Self> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let log = File::options().create(true).append(true).open(&start.log).context("open the operator's log")?;
        let began = Instant::now();
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(&start.binary)
            .args(["run", "--identity", "bench", "--image", "localhost/kaniop:dev"])
            .args(["--namespace", &start.namespace, "--watch-namespace", &start.namespace])
            .args(["--interval", &start.interval.to_string(), "--listen", &format!("127.0.0.1:{port}")])
            .env("KUBECONFIG", &start.kubeconfig)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("start {} by setpriv (package util-linux)", start.binary.display()))?;
        Ok(Self { child, port, began })
    }

    /// Ends it as Kubernetes ends a pod, and waits for that.
    pub(crate) async fn stop(mut self) -> Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("the operator's process id")?;
        kill_process(pid, Signal::TERM).context("ask the operator to end")?;
        let deadline = Instant::now() + END;
        loop {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "the operator ended with {status}");
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "the operator did not end within {} s", END.as_secs());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Fails when it has ended.
    pub(crate) fn must_run(&mut self, log: &Path) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("the operator ended with {status}; its log is {}", log.display()),
        }
    }

    /// Everything that it counts.
    pub(crate) async fn counts(&self) -> Result<Counts> {
        let page = reqwest::get(format!("http://127.0.0.1:{}/metrics", self.port)).await?.text().await?;
        Ok(Counts::read(&page, "kaniop_"))
    }

    /// Processor time so far.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        cpu::time(self.child.id())
    }

    /// The most memory so far, in MiB.
    pub(crate) fn peak(&self) -> Result<f64> {
        cpu::peak(self.child.id())
    }
}
