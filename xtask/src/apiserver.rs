//! A bare API server for tests that need no pods: etcd, kube-apiserver and the few controllers that
//! make namespaces, ownership and service accounts work. It listens on loopback ports, keeps its data
//! in a folder of its own, and ends with the program that it was started for. It needs no root.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::cluster::pki;
use crate::cluster::wait::{Place, Wait};
use crate::command::{not_started, output};
use crate::process::{self, Mark};
use crate::report::{note, phase};
use crate::{gobuild, interrupt, workspace};

/// How long the servers may take to be ready, on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);
/// How long an interrupted program may take to end.
const PROGRAM_GRACE: Duration = Duration::from_secs(5);
/// Ports are free when we choose them, but another program may be quicker.
const ATTEMPTS: usize = 3;
/// The lock that tells a run that lives from one that was killed.
const LOCK: &str = "lock";

/// What makes namespaces, ownership and service accounts work. Without the controllers for workloads
/// nothing makes pods, and tests can play their part.
const CONTROLLERS: &str = "namespace-controller,garbage-collector-controller,serviceaccount-controller,\
                           root-ca-certificate-publisher-controller,clusterrole-aggregation-controller";

/// Which program to run, beside which controllers.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Controllers to run, `*` for all; by default none that make pods
    #[arg(long, default_value = CONTROLLERS, hide_default_value = true)]
    controllers: String,
    /// The program and its arguments; KUBECONFIG is set for it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    words: Vec<String>,
}

/// Does what the command line asks for. Returns the program's exit code.
///
/// # Errors
/// As [`beside`].
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let code = with_controllers(&options.controllers, &options.words)?;
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// Starts the servers, runs the program, ends the servers. Returns the program's exit code, or 128
/// and the signal's number when a signal ended it.
///
/// # Errors
/// When the servers do not start or the program cannot be run; nothing is left running then.
pub(crate) fn beside(words: &[String]) -> Result<i32> {
    with_controllers(CONTROLLERS, words)
}

fn with_controllers(controllers: &str, words: &[String]) -> Result<i32> {
    let kube = gobuild::binaries()?.kube;
    interrupt::watch()?;
    let folder = workspace::output_folder("apiserver")?;
    sweep(&folder);
    let server = phase("API server", || start(&folder, &kube, controllers))?;
    let code = run_program(words, &server.kubeconfig())?;
    drop(server);
    Ok(code)
}

/// The running servers. Dropping it ends them and deletes their data.
struct Server {
    place: Place,
    folder: tempfile::TempDir,
    kube: PathBuf,
    /// Held while we live.
    _lock: File,
}

impl Server {
    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Starts one component that dies with us, even if we are killed.
    fn spawn(&self, component: &str, flags: &[String]) -> Result<()> {
        let mark = Mark { owner: self.place.owner.clone(), component: component.to_owned(), stamp: String::new() };
        let kube = self.kube.to_string_lossy();
        let mut argv = ["setpriv", "--pdeathsig", "KILL", "--", &kube, component].map(str::to_owned).to_vec();
        argv.extend_from_slice(flags);
        process::start(&argv, &mark, &self.place.log(component)).map(|_| ())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let ended = process::find(&self.place.owner).and_then(|all| process::end(&all, Duration::ZERO));
        if let Err(error) = ended {
            note(format_args!("the API server could not be ended: {error:#}"));
        }
    }
}

fn start(folder: &Path, kube: &Path, controllers: &str) -> Result<Server> {
    for attempt in 1.. {
        let folder =
            tempfile::Builder::new().prefix("run-").tempdir_in(folder).context("make a folder for the API server")?;
        let lock = File::create(folder.path().join(LOCK))?;
        lock.lock()?;
        let owner = folder.path().display().to_string();
        let place = Place { owner, logs: folder.path().to_owned() };
        let server = Server { place, folder, kube: kube.to_owned(), _lock: lock };
        match launch(&server, controllers) {
            Ok(()) => return Ok(server),
            Err(_) if attempt < ATTEMPTS && lost_a_port(&server) => {}
            Err(error) => return Err(error),
        }
    }
    bail!("no attempt was made")
}

fn launch(server: &Server, controllers: &str) -> Result<()> {
    let [clients, peers, api] = free_ports()?;
    let folder = server.folder.path();
    let keys = folder.join("pki");
    pki::ensure(&keys, &["localhost", "127.0.0.1", "kubernetes.default.svc"])?;
    let url = format!("https://127.0.0.1:{api}");
    pki::write_private(&server.kubeconfig(), &pki::kubeconfig(&keys, "admin", &url)?)?;
    let for_controllers = folder.join("controller-manager.kubeconfig");
    pki::write_private(&for_controllers, &pki::kubeconfig(&keys, "controller-manager", &url)?)?;

    server.spawn("etcd", &etcd_flags(folder, clients, peers))?;
    server.spawn("kube-apiserver", &apiserver_flags(&keys, clients, api))?;
    server.spawn("kube-controller-manager", &controller_flags(&keys, &for_controllers, controllers))?;

    let alive = ["etcd", "kube-apiserver", "kube-controller-manager"];
    let ready =
        Wait { place: &server.place, what: "the API server", suspect: "kube-apiserver", alive: &alive, limit: LIMIT };
    ready.until(|| kubectl(server, &["get", "--raw", "/readyz"]).map(|answer| answer.trim() == "ok"))?;
    let account = Wait { what: "the default service account", suspect: "kube-controller-manager", ..ready };
    account
        .until(|| kubectl(server, &["get", "serviceaccount", "default", "-n", "default", "-o", "name"]).map(|_| true))
}

fn etcd_flags(folder: &Path, clients: u16, peers: u16) -> Vec<String> {
    vec![
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls=http://127.0.0.1:{clients}"),
        format!("--advertise-client-urls=http://127.0.0.1:{clients}"),
        format!("--listen-peer-urls=http://127.0.0.1:{peers}"),
        format!("--initial-advertise-peer-urls=http://127.0.0.1:{peers}"),
        format!("--initial-cluster=default=http://127.0.0.1:{peers}"),
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

fn apiserver_flags(keys: &Path, etcd: u16, port: u16) -> Vec<String> {
    let keys = keys.display();
    vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        "--advertise-address=127.0.0.1".to_owned(),
        // A loopback address is no endpoint of a service, and no pod will look for it.
        "--endpoint-reconciler-type=none".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--allow-privileged".to_owned(),
        format!("--client-ca-file={keys}/ca.crt"),
        format!("--tls-cert-file={keys}/server.crt"),
        format!("--tls-private-key-file={keys}/server.key"),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={keys}/sa.pub"),
        format!("--service-account-signing-key-file={keys}/sa.key"),
    ]
}

fn controller_flags(keys: &Path, kubeconfig: &Path, controllers: &str) -> Vec<String> {
    let keys = keys.display();
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--controllers={controllers}"),
        "--leader-elect=false".to_owned(),
        "--use-service-account-credentials".to_owned(),
        "--secure-port=0".to_owned(),
        format!("--service-account-private-key-file={keys}/sa.key"),
        format!("--root-ca-file={keys}/ca.crt"),
    ]
}

/// Three different ports that nothing listens on.
fn free_ports() -> Result<[u16; 3]> {
    let listen = || TcpListener::bind(("127.0.0.1", 0)).context("find a free port");
    let held = [listen()?, listen()?, listen()?]; // held together, so that they differ
    let port = |listener: &TcpListener| Ok::<_, anyhow::Error>(listener.local_addr()?.port());
    Ok([port(&held[0])?, port(&held[1])?, port(&held[2])?])
}

fn lost_a_port(server: &Server) -> bool {
    ["etcd", "kube-apiserver"]
        .iter()
        .any(|name| fs::read_to_string(server.place.log(name)).is_ok_and(|log| log.contains("address already in use")))
}

fn kubectl(server: &Server, arguments: &[&str]) -> Result<String> {
    let mut kubectl = Command::new(&server.kube);
    kubectl.args(["kubectl", "--request-timeout=10s"]).args(arguments).env("KUBECONFIG", server.kubeconfig());
    output(&mut kubectl)
}

fn run_program(words: &[String], kubeconfig: &Path) -> Result<i32> {
    let Some((program, arguments)) = words.split_first() else { bail!("say which program to run") };
    let started = Command::new(program).args(arguments).env("KUBECONFIG", kubeconfig).spawn();
    let mut child = started.map_err(|e| not_started(program, e))?;
    Ok(exit_code(wait_for(&mut child)?))
}

/// Waits for the program. After a signal to us it gets some time to end by itself: from a terminal
/// it has got the signal too.
fn wait_for(child: &mut Child) -> Result<ExitStatus> {
    let mut deadline = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if interrupt::check().is_err() {
            let end = *deadline.get_or_insert_with(|| Instant::now() + PROGRAM_GRACE);
            if Instant::now() > end {
                child.kill()?;
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn exit_code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}

/// Deletes what runs left that were killed; their servers died with them.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let abandoned = File::open(entry.path().join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok());
        if abandoned {
            let _ = fs::remove_dir_all(entry.path()); // another run may be sweeping too
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ() {
        let [a, b, c] = free_ports().unwrap();
        assert!(a != b && b != c && a != c && a != 0);
    }

    #[test]
    fn only_abandoned_folders_are_swept() {
        let parent = tempfile::tempdir().unwrap();
        for name in ["dead", "live", "foreign"] {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        File::create(parent.path().join("dead").join(LOCK)).unwrap();
        let held = File::create(parent.path().join("live").join(LOCK)).unwrap();
        held.lock().unwrap();
        sweep(parent.path());
        let exists = |name: &str| parent.path().join(name).exists();
        assert!(!exists("dead") && exists("live") && exists("foreign"));
    }

    #[test]
    fn a_programs_exit_code_is_passed_on() {
        let kubeconfig = Path::new("/nonexistent");
        let run = |script: &str| run_program(&["sh", "-c", script].map(str::to_owned), kubeconfig).unwrap();
        assert_eq!(run("exit 7"), 7);
        assert_eq!(run("kill -9 $$"), 137);
        assert_eq!(run("test \"$KUBECONFIG\" = /nonexistent"), 0);
    }
}
