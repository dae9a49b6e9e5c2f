//! A real server on the loopback interface, in a folder of its own, for the length of one test.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

pub const BINARY: &str = env!("CARGO_BIN_EXE_kanidmd");
const PATIENCE: Duration = Duration::from_secs(20);

/// A certificate authority and a folder of files signed by it.
pub struct Authority {
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
    pub pem: String,
}

impl Authority {
    pub fn new() -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        Self { pem: certificate.pem(), issuer: rcgen::Issuer::new(params, key) }
    }

    /// Writes `chain.pem` and `key.pem` for a host.
    pub fn issue(&self, folder: &Path, host: &str) {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec![host.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(folder.join("chain.pem"), certificate.pem()).unwrap();
        std::fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
    }
}

/// A folder with everything that a server needs, and how to start it.
pub struct Site {
    pub folder: tempfile::TempDir,
    pub authority: Authority,
    pub port: u16,
}

impl Site {
    pub fn new() -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new();
        authority.issue(folder.path(), "idm.example.com");
        let site = Self { folder, authority, port: free_port() };
        site.configure("");
        site
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes `server.toml`, with more lines at its end.
    pub fn configure(&self, more: &str) {
        let folder = self.folder.path().display();
        let text = format!(
            "version = \"2\"\ndomain = \"idm.example.com\"\norigin = \"https://idm.example.com\"\n\
             db_path = \"{folder}/kanidm.db\"\ntls_chain = \"{folder}/chain.pem\"\ntls_key = \"{folder}/key.pem\"\n\
             bindaddress = \"127.0.0.1:{port}\"\nadminbindpath = \"{folder}/kanidmd.sock\"\n\
             migration_path = \"{folder}/migrations.d\"\n{more}\n",
            port = self.port,
        );
        std::fs::write(self.path("server.toml"), text).unwrap();
    }

    /// The program with this site's configuration, and no stray environment.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("KANIDM_")) {
            command.env_remove(name);
        }
        command.arg("-c").arg(self.path("server.toml")).args(arguments);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// One line of JSON from a `scripting` command, and its exit code.
    pub fn scripting(&self, arguments: &[&str]) -> (Value, i32) {
        let output = self.run(&[&["scripting"], arguments].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().count(), 1, "exactly one line: {text:?}");
        (serde_json::from_str(&text).unwrap(), output.status.code().unwrap())
    }

    pub fn start(self) -> Server {
        self.start_with(|_| {})
    }

    pub fn start_with(self, prepare: impl FnOnce(&mut Command)) -> Server {
        let log = std::fs::File::create(self.path("server.log")).unwrap();
        let mut command = self.command(&["server"]);
        command.stdout(log.try_clone().unwrap()).stderr(log).stdin(Stdio::null());
        prepare(&mut command);
        let child = command.spawn().unwrap();
        let mut server = Server { child, client: client(&self), site: self };
        server.wait_until_ready();
        server
    }
}

/// Trusts the site's authority only, and reaches the host name on the loopback interface.
fn client(site: &Site) -> Client {
    let root = reqwest::Certificate::from_pem(site.authority.pem.as_bytes()).unwrap();
    Client::builder()
        .tls_certs_only([root])
        .resolve("idm.example.com", ([127, 0, 0, 1], site.port).into())
        .no_proxy()
        .build()
        .unwrap()
}

pub struct Server {
    child: Child,
    pub site: Site,
    pub client: Client,
}

/// A status and a JSON body (`null` when there is none).
pub type Reply = (StatusCode, Value);

impl Server {
    /// The admin socket opens last, so an answer there is the end of the start-up.
    fn wait_until_ready(&mut self) {
        let socket = self.site.path("kanidmd.sock");
        let ready = eventually(|| {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the server ended with {status}:\n{}", self.log());
            }
            UnixStream::connect(&socket).is_ok()
        });
        assert!(ready, "the server did not get ready:\n{}", self.log());
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.site.path("server.log")).unwrap()
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://idm.example.com:{}{path}", self.site.port)
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Stops it cleanly; gives its exit code, how long it took, and the site to start again.
    pub fn stop(mut self) -> (Option<i32>, Duration, Site) {
        let begun = Instant::now();
        self.signal(rustix::process::Signal::TERM);
        let status = self.child.wait().unwrap();
        let took = begun.elapsed();
        let fresh = Site { folder: tempfile::tempdir().unwrap(), authority: Authority::new(), port: 0 };
        let site = std::mem::replace(&mut self.site, fresh);
        (status.code(), took, site)
    }

    pub fn recover(&self, account: &str) -> String {
        let (answer, _) = self.site.scripting(&["recover-account", account]);
        answer["output"].as_str().unwrap_or_else(|| panic!("no password in {answer}")).to_owned()
    }

    /// Logs in by password, in the three steps.
    pub async fn login(&self, account: &str, password: &str) -> Result<String, Value> {
        let init = json!({"step": {"init2": {"username": account, "issue": "token", "privileged": true}}});
        let begin = json!({"step": {"begin": "password"}});
        let cred = json!({"step": {"cred": {"password": password}}});
        let mut session = None;
        let mut last = Value::Null;
        for step in [init, begin, cred] {
            let mut request = self.client.post(self.url("/v1/auth")).json(&step);
            if let Some(id) = &session {
                request = request.header("x-kanidm-auth-session-id", id);
            }
            let response = request.send().await.unwrap();
            session = response.headers().get("x-kanidm-auth-session-id").cloned().or(session);
            last = response.json().await.unwrap();
            if last["state"]["success"].is_string() || !last["state"]["denied"].is_null() {
                break;
            }
        }
        match last["state"]["success"].as_str() {
            Some(token) => Ok(token.to_owned()),
            None => Err(last),
        }
    }

    /// Recovers an account and logs in.
    pub async fn session(&self, account: &str) -> String {
        let password = self.recover(account);
        self.login(account, &password).await.unwrap()
    }

    /// One request; `Value::Null` sends no body.
    pub async fn call(&self, method: Method, path: &str, token: &str, body: Value) -> Reply {
        let mut request = self.client.request(method, self.url(path));
        if !token.is_empty() {
            request = request.bearer_auth(token);
        }
        if !body.is_null() {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        let status = response.status();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    pub async fn get(&self, path: &str, token: &str) -> Reply {
        self.call(Method::GET, path, token, Value::Null).await
    }

    pub async fn post(&self, path: &str, token: &str, body: Value) -> Reply {
        self.call(Method::POST, path, token, body).await
    }

    /// Creates something that a test needs; it must succeed.
    pub async fn must(&self, method: Method, path: &str, token: &str, body: Value) -> Value {
        let (status, answer) = self.call(method.clone(), path, token, body).await;
        assert_eq!(status, StatusCode::OK, "{method} {path}: {answer}");
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Bound and released: another process could take it, which would show as a failed start.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Sends a request on an open connection to the admin socket and reads exactly one JSON answer.
pub fn ask(stream: &mut UnixStream, request: &Value) -> Value {
    stream.write_all(request.to_string().as_bytes()).unwrap();
    let mut answer = Vec::new();
    loop {
        let mut chunk = [0; 1024];
        let count = stream.read(&mut chunk).unwrap();
        assert!(count > 0, "the server hung up after {:?}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&chunk[..count]);
        if let Ok(value) = serde_json::from_slice(&answer) {
            return value;
        }
    }
}

/// The admin socket of a server.
pub fn connect(server: &Server) -> UnixStream {
    let stream = UnixStream::connect(server.site.path("kanidmd.sock")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Asks again until it is so, for a bounded time.
pub fn eventually(mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// A v1 entry of single values.
pub fn entry(pairs: &[(&str, &str)]) -> Value {
    let attrs: serde_json::Map<String, Value> =
        pairs.iter().map(|(name, value)| ((*name).to_owned(), json!([value]))).collect();
    json!({ "attrs": attrs })
}
