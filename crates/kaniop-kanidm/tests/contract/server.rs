//! A Kanidm server as a process of its own, with a folder and certificates of its own: `KANIDMD` names the binary, else it is the
//! development server. It ends with the test process, however that ends.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use kaniop_core::entry::{Attr, Shape};
use kaniop_core::name::OPERATOR_GROUPS;
use kaniop_kanidm::node::Socket;
use kaniop_kanidm::{Client, Endpoint, Purpose, Requests, Trust};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use secrecy::SecretString;
use tempfile::TempDir;
use uuid::Uuid;

pub const DISPLAYNAME: Attr = Attr::new("displayname", Shape::Text);
pub const LEGALNAME: Attr = Attr::new("legalname", Shape::Text);
pub const DESCRIPTION: Attr = Attr::new("description", Shape::Text);
pub const MAIL: Attr = Attr::new("mail", Shape::Mails);
pub const MEMBER: Attr = Attr::new("member", Shape::References);
pub const MANAGED_BY: Attr = Attr::new("entry_managed_by", Shape::Reference);
pub const VALID_FROM: Attr = Attr::new("account_valid_from", Shape::Time);
pub const EXPIRE: Attr = Attr::new("account_expire", Shape::Time);
/// All that any test asks for.
pub const ATTRS: &[Attr] = &[DISPLAYNAME, LEGALNAME, DESCRIPTION, MAIL, MEMBER, MANAGED_BY, VALID_FROM, EXPIRE];

pub const HOST: &str = "idm.example.test";
const DOMAIN: &str = "example.test";
/// A debug build on a busy machine takes its time.
const STARTED: Duration = Duration::from_secs(120);

/// Waits until the first input or its end, then ends the server and removes its folder. A panic, a signal or the end of the test process
/// closes the input, and an interrupt from the keyboard does not end it before its work is done.
const UNTIL_WE_ARE_GONE: &str = r#""$1" server -c "$2/server.toml" >"$2/log" 2>&1 & server=$!; read -r _; kill "$server"; wait "$server"; rm -rf "$2""#;

/// A private authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "authority of a test");
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    pub fn der(&self) -> Vec<u8> {
        self.0.der().to_vec()
    }

    /// Chain and key of a certificate for a host.
    pub fn issue(&self, host: &str, until: Until) -> Tls {
        let key = KeyPair::generate().unwrap();
        let certificate = leaf(host, until).signed_by(&key, &self.0).unwrap();
        Tls { chain: certificate.pem(), key: key.serialize_pem() }
    }
}

/// How long a certificate lasts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Until {
    Ages,
    LongAgo,
}

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct Tls {
    pub chain: String,
    pub key: String,
}

impl Tls {
    /// Signed by its own key, as an authority's certificate is.
    pub fn self_signed(host: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = leaf(host, Until::Ages);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self { chain: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
    }
}

fn leaf(host: &str, until: Until) -> CertificateParams {
    let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = if until == Until::LongAgo { date_time_ymd(2021, 1, 1) } else { date_time_ymd(2120, 1, 1) };
    params
}

/// A running server.
pub struct Server {
    pub address: SocketAddr,
    pub folder: PathBuf,
    pub tls: Tls,
    keeper: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

impl Server {
    /// Starts a server and waits until its admin socket answers.
    pub async fn start(tls: Tls) -> Self {
        let folder = TempDir::new().unwrap().keep();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        fs::write(folder.join("chain.pem"), &tls.chain).unwrap();
        fs::write(folder.join("key.pem"), &tls.key).unwrap();
        fs::create_dir(folder.join("migrations.d")).unwrap();
        fs::write(folder.join("server.toml"), config(&folder, address)).unwrap();
        let keeper = Command::new("/bin/sh")
            .args(["-c", UNTIL_WE_ARE_GONE, "sh"])
            .arg(binary())
            .arg(&folder)
            .env_clear()
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let server = Self { address, folder, tls, keeper };
        let deadline = Instant::now() + STARTED;
        while Socket::connect(&server.socket()).await.is_err() {
            assert!(Instant::now() < deadline, "no admin socket within {STARTED:?}; its log:\n{}", server.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        server
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.join("kanidmd.sock")
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    pub fn endpoint(&self, trust: Trust) -> Endpoint {
        let origin = format!("https://{HOST}").parse().unwrap();
        Endpoint { origin, address: self.address, trust, requests: Arc::new(Requests::default()) }
    }
}

fn config(folder: &Path, address: SocketAddr) -> String {
    let file = |name: &str| folder.join(name).display().to_string();
    format!(
        "version = \"2\"\ndomain = \"{DOMAIN}\"\norigin = \"https://{HOST}\"\nrole = \"WriteReplicaNoUI\"\n\
         bindaddress = \"{address}\"\ndb_path = \"{}\"\ntls_chain = \"{}\"\ntls_key = \"{}\"\nadminbindpath = \"{}\"\n\
         migration_path = \"{}\"\n",
        file("kanidm.db"),
        file("chain.pem"),
        file("key.pem"),
        file("kanidmd.sock"),
        file("migrations.d"),
    )
}

pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("KANIDMD") {
        return path.into();
    }
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dev/kanidm/target");
    let triples = fs::read_dir(&targets).into_iter().flatten().flatten();
    let found = triples.map(|triple| triple.path().join("debug/kanidmd")).find(|path| path.is_file());
    found.expect("no development server: `cargo build --locked` in dev/kanidm makes it, `make test` does so by itself")
}

/// The server that most tests share, with the operator's account set up as the operator does it.
pub struct Shared {
    pub server: Server,
    pub trust: Trust,
    pub authority: Authority,
    pub idm_admin: SecretString,
    pub token: SecretString,
}

impl Shared {
    pub fn endpoint(&self) -> Endpoint {
        self.server.endpoint(self.trust.clone())
    }

    /// A client that acts as the operator.
    pub fn operator(&self) -> Client {
        Client::new(&self.endpoint(), self.token.clone()).unwrap()
    }
}

pub async fn start_with_operator() -> Shared {
    start_with("operator").await
}

/// A server with an operator's account of this name.
pub async fn start_with(operator: &str) -> Shared {
    let authority = Authority::new();
    let server = Server::start(authority.issue(HOST, Until::Ages)).await;
    let trust = Trust::from_secret(Some(authority.pem().as_bytes()), server.tls.chain.as_bytes()).unwrap();
    let mut socket = Socket::connect(&server.socket()).await.unwrap();
    let idm_admin = socket.recover_account("idm_admin").await.unwrap();
    let admin = Client::login(&server.endpoint(trust.clone()), "idm_admin", &idm_admin).await.unwrap();
    let token = operator_token(&admin, operator).await;
    Shared { server, trust, authority, idm_admin, token }
}

/// Makes an account as the operator's own and returns a token for it.
pub async fn operator_token(admin: &Client, name: &str) -> SecretString {
    service_account(admin, name).await;
    for group in OPERATOR_GROUPS {
        admin.add_member(group, name).await.unwrap();
    }
    admin.issue_api_token(name, "contract", Purpose::ReadWrite, None).await.unwrap()
}

/// Makes a service account that the administrators manage.
pub async fn service_account(client: &Client, name: &str) -> Uuid {
    client.ensure_service_account(name, name, "idm_admins").await.unwrap();
    let everyone = client.entries(&[]).await.unwrap();
    everyone.iter().find(|entry| entry.name == name).unwrap().uuid
}

/// A UUID that belongs to a word.
pub fn uuid(word: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_DNS, word.as_bytes())
}

/// The shared server. It is set up on a runtime of its own, for that of the first test ends with it.
pub fn shared() -> &'static Shared {
    static SHARED: OnceLock<Shared> = OnceLock::new();
    SHARED.get_or_init(|| {
        let setup = || tokio::runtime::Runtime::new().unwrap().block_on(start_with_operator());
        std::thread::spawn(setup).join().unwrap()
    })
}
