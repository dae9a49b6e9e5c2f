//! A development Kanidm server as a process with a folder of its own, on a loopback address of its own: the operator speaks to the port of pods,
//! so servers side by side differ by address.

use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kaniop_core::cluster::names::HTTPS_PORT;
use kaniop_core::name::{OPERATOR_ACCOUNT, OPERATOR_GROUPS};
use kaniop_e2e::certificate::Authority;
use kaniop_kanidm::node::Socket;
use kaniop_kanidm::{Client, Endpoint, Purpose, Requests, Trust};
use kaniop_outside::{Server as Outside, Session};
use rustix::process::{Pid, Signal, kill_process};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tempfile::TempDir;
use uuid::Uuid;

use crate::counts::Counts;

/// Host that every server's certificate is for, and its domain.
pub(crate) const HOST: &str = "idm.example.com";
/// How long a start may take, of a debug build on a busy machine.
const START: Duration = Duration::from_secs(120);

/// A running server; ended and removed when it is dropped.
pub(crate) struct Server {
    child: Child,
    folder: TempDir,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    outside: Outside,
    /// The TLS Secret's data: `tls.crt`, `tls.key`, `ca.crt`.
    pub(crate) tls: Value,
    /// What the operator's Secrets hold.
    pub(crate) credentials: Credentials,
}

/// What a bootstrap would have made.
pub(crate) struct Credentials {
    /// The domain.
    pub(crate) domain: Uuid,
    /// Password of `admin`.
    pub(crate) admin: SecretString,
    /// Password of `idm_admin`.
    pub(crate) idm_admin: SecretString,
    /// The operator's API token.
    pub(crate) token: SecretString,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Starts an empty server and sets the operator's account up, as the operator does it.
    pub(crate) async fn start(binary: &Path) -> Result<Self> {
        let folder =
            tempfile::Builder::new().prefix("kaniop-bench-").tempdir().context("make a folder for a server")?;
        let address = free_address()?;
        let authority = Authority::default();
        let tls = authority.secret("any", "any", HOST, &authority.pem)["stringData"].take();
        let child = spawn(binary, folder.path(), address, &tls)?;
        let empty = || SecretString::from(String::new());
        let credentials = Credentials { domain: Uuid::nil(), admin: empty(), idm_admin: empty(), token: empty() };
        let outside = Outside::new(address, HOST, &authority.pem)?;
        let mut server = Self { child, folder, address, outside, tls, credentials };
        server.credentials = server.set_up().await?;
        Ok(server)
    }

    async fn set_up(&mut self) -> Result<Credentials> {
        let mut socket = self.socket().await?;
        let domain = socket.domain().await?.uuid;
        let admin = socket.recover_account("admin").await?;
        let idm_admin = socket.recover_account("idm_admin").await?;
        let client = Client::login(&self.endpoint()?, "idm_admin", &idm_admin).await?;
        client.ensure_service_account(OPERATOR_ACCOUNT, "Kaniop", "idm_admins").await?;
        for group in OPERATOR_GROUPS {
            client.add_member(group, OPERATOR_ACCOUNT).await?;
        }
        let token = client.issue_api_token(OPERATOR_ACCOUNT, OPERATOR_ACCOUNT, Purpose::ReadWrite, None).await?;
        Ok(Credentials { domain, admin, idm_admin, token })
    }

    /// The admin socket, which is opened when the start is over.
    async fn socket(&mut self) -> Result<Socket> {
        let deadline = Instant::now() + START;
        loop {
            match Socket::connect(&self.folder.path().join("kanidmd.sock")).await {
                Ok(socket) => return Ok(socket),
                Err(_) if Instant::now() < deadline && self.child.try_wait()?.is_none() => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => {
                    let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                    bail!("the server did not start: {error}; its log:\n{log}");
                }
            }
        }
    }

    fn endpoint(&self) -> Result<Endpoint> {
        let text = |key: &str| self.tls[key].as_str().unwrap_or_default().as_bytes();
        Ok(Endpoint {
            origin: format!("https://{HOST}").parse()?,
            address: self.address,
            trust: Trust::from_secret(Some(text("ca.crt")), text("tls.crt"))?,
            requests: Arc::new(Requests::default()),
        })
    }

    /// A client that acts as the operator.
    pub(crate) fn as_operator(&self) -> Result<Client> {
        Ok(Client::new(&self.endpoint()?, self.credentials.token.clone())?)
    }

    /// The server as a bystander sees it.
    pub(crate) async fn as_bystander(&self) -> Result<Session> {
        let (outside, password) = (self.outside.clone(), self.credentials.idm_admin.expose_secret().to_owned());
        Ok(tokio::task::spawn_blocking(move || outside.login("idm_admin", &password)).await??)
    }

    /// How often each route was used since the start. Asking is not counted.
    pub(crate) async fn counts(&self) -> Result<Counts> {
        let outside = self.outside.clone();
        let page = tokio::task::spawn_blocking(move || outside.get("/dev/requests")).await??;
        let routes =
            page.as_object().context("the server does not count its requests: is it the development server?")?;
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        Ok(Counts(
            routes.iter().map(|(route, count)| (route.clone(), count.as_u64().unwrap_or_default() as f64)).collect(),
        ))
    }

    /// Its folder, which goes with it.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it do nothing from now on: connections are taken by the kernel, and no byte comes back.
    pub(crate) fn freeze(&self) -> Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("the server's process id")?;
        kill_process(pid, Signal::STOP).context("stop the server's process")
    }
}

/// Starts it so that it dies with us, even if we are killed.
fn spawn(binary: &Path, folder: &Path, address: SocketAddr, tls: &Value) -> Result<Child> {
    let file = |name: &str| folder.join(name).display().to_string();
    fs::write(file("tls.crt"), tls["tls.crt"].as_str().unwrap_or_default())?;
    fs::write(file("tls.key"), tls["tls.key"].as_str().unwrap_or_default())?;
    fs::create_dir(file("migrations.d"))?;
    let config = format!(
        "version = \"2\"\ndomain = \"{HOST}\"\norigin = \"https://{HOST}\"\nrole = \"WriteReplicaNoUI\"\nbindaddress = \"{address}\"\n\
         db_path = \"{}\"\ntls_chain = \"{}\"\ntls_key = \"{}\"\nadminbindpath = \"{}\"\nmigration_path = \"{}\"\n",
        file("kanidm.db"),
        file("tls.crt"),
        file("tls.key"),
        file("kanidmd.sock"),
        file("migrations.d"),
    );
    fs::write(file("server.toml"), config)?;
    let log = File::create(file("log"))?;
    Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "--"])
        .arg(binary)
        .args(["server", "-c", &file("server.toml")])
        .env_clear()
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("start {} by setpriv (package util-linux)", binary.display()))
}

/// A loopback address on which nobody listens at the port of pods.
fn free_address() -> Result<SocketAddr> {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let port = u16::try_from(HTTPS_PORT).context("the port of pods")?;
    let [_, _, high, low] = std::process::id().to_be_bytes();
    for _ in 0..u8::MAX {
        // 127.0.0.0/16 is left to everybody else.
        let ip = Ipv4Addr::new(127, high | 1, low, NEXT.fetch_add(1, Ordering::Relaxed));
        let address = SocketAddr::new(IpAddr::V4(ip), port);
        if TcpListener::bind(address).is_ok() {
            return Ok(address);
        }
    }
    bail!("port {port} is in use on every loopback address that was tried")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_side_by_side_get_different_loopback_addresses() {
        let (a, b) = (free_address().unwrap(), free_address().unwrap());
        assert!(a != b && a.ip().is_loopback() && b.ip().is_loopback(), "{a} {b}");
        assert_eq!(a.port(), 8443);
    }
}
