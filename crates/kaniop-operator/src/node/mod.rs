//! `kaniop node …`: the helper inside a server's pod, whose image holds nothing but the server. It answers in JSON on stdout, errors too, and is
//! started by the kubelet (install, ready) or through the API server (the others). It never speaks to Kubernetes or over the network.

mod backups;
mod install;
mod on_demand;
mod proofs;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use kaniop_core::cluster::names::{SOCKET_PATH, STARTED_CONFIG};
use kaniop_kanidm::Error;
use kaniop_kanidm::node::{Answer, NodeReport, RecoveredAccounts, Socket};
use serde::Serialize;

/// What the helper is asked for.
#[derive(Debug, clap::Args)]
pub struct Node {
    /// Admin socket of the server.
    #[arg(long, global = true, default_value = SOCKET_PATH)]
    socket: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Copy this program to PATH, for the server's container, and note the digest of the configuration that the server will start with.
    Install {
        /// Where to.
        path: PathBuf,
        /// Where the digest of the file that KANIDM_CONFIG names is noted.
        note: Option<PathBuf>,
    },
    /// Succeed when the server has finished starting, migrations included, and holds the domain that it should.
    Ready,
    /// Tell the domain that the server's database holds, its replication certificate, and what it was started with.
    Report,
    /// Have the server make a new replication certificate.
    RenewCertificate,
    /// Give accounts new passwords and tell them. Their old passwords and sessions become void.
    RecoverAccounts {
        /// Names of the accounts.
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Tell every file in the folder of backups, and what it proves.
    Backups(backups::Backups),
    /// Make a backup beside the server, prove it, and tell it.
    Backup(on_demand::Backup),
}

/// Does what is asked and prints the answer.
#[must_use]
pub fn run(node: Node) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return print::<()>(&Answer::Error(format!("no runtime: {error}"))),
    };
    let socket = node.socket.as_path();
    match node.command {
        Command::Install { path, note } => print(&answer(install::install(&path, note.as_deref()))),
        Command::Ready => print(&answer(runtime.block_on(ready(socket, expected_domain().as_deref())))),
        Command::Report => print(&answer(runtime.block_on(report(socket)))),
        Command::RenewCertificate => print(&answer(runtime.block_on(renew_certificate(socket)))),
        Command::RecoverAccounts { names } => print(&answer(runtime.block_on(recover_accounts(socket, &names)))),
        Command::Backups(asked) => print(&answer(backups::backups(&asked))),
        Command::Backup(asked) => print(&answer(on_demand::on_demand(&asked))),
    }
}

/// Where the domain that this node must hold is written: beside its configuration. Nothing there means that any will do.
fn expected_domain() -> Option<PathBuf> {
    Some(PathBuf::from(std::env::var_os("KANIDM_CONFIG")?).with_extension("domain"))
}

async fn ready(socket: &Path, expected: Option<&Path>) -> Result<(), String> {
    let domain = Socket::connect(socket).await.map_err(|error| error.to_string())?.domain().await;
    let holds = domain.map_err(|error| error.to_string())?.uuid.to_string();
    let expected = match expected.map(fs::read_to_string) {
        Some(Ok(expected)) => expected,
        Some(Err(error)) if error.kind() != ErrorKind::NotFound => {
            return Err(format!("the domain that the node must hold cannot be read: {error}"));
        }
        Some(Err(_)) | None => return Ok(()),
    };
    match expected.trim() {
        expected if expected == holds => Ok(()),
        "" => Err(format!("the node holds the domain {holds}, and that of the primary is not known yet")),
        expected => Err(format!("the node holds the domain {holds}, and must hold {expected}")),
    }
}

async fn report(socket: &Path) -> Result<NodeReport, Error> {
    let mut socket = Socket::connect(socket).await?;
    let (domain, certificate) = (socket.domain().await?, socket.replication_certificate().await?);
    let config = fs::read_to_string(STARTED_CONFIG).ok();
    Ok(NodeReport { domain, certificate, config })
}

async fn renew_certificate(socket: &Path) -> Result<(), Error> {
    Socket::connect(socket).await?.renew_replication_certificate().await
}

/// All or nothing for the caller: when one fails, those before it have new passwords that nobody knows, and are recovered again the next time.
async fn recover_accounts(socket: &Path, names: &[String]) -> Result<RecoveredAccounts, Error> {
    let mut socket = Socket::connect(socket).await?;
    let mut recovered = RecoveredAccounts::default();
    for name in names {
        recovered.passwords.insert(name.clone(), socket.recover_account(name).await?);
    }
    Ok(recovered)
}

fn answer<T>(done: Result<T, impl ToString>) -> Answer<T> {
    done.map_or_else(|error| Answer::Error(error.to_string()), Answer::Ok)
}

fn print<T: Serialize>(answer: &Answer<T>) -> ExitCode {
    match serde_json::to_string(answer) {
        Ok(json) => println!("{json}"),
        Err(error) => {
            eprintln!("kaniop: the answer cannot be written: {error}");
            return ExitCode::FAILURE;
        }
    }
    if matches!(answer, Answer::Ok(_)) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixListener;

    /// A server's admin socket that gives these answers, one a request, and tells what it was asked.
    fn server(path: &Path, answers: Vec<Value>) -> tokio::task::JoinHandle<Vec<Value>> {
        let listener = UnixListener::bind(path).unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = Vec::new();
            for answer in answers {
                let mut request = vec![0; 1024];
                let length = stream.read(&mut request).await.unwrap();
                asked.push(serde_json::from_slice(&request[..length]).unwrap());
                stream.write_all(answer.to_string().as_bytes()).await.unwrap();
            }
            asked
        })
    }

    #[tokio::test]
    async fn every_account_is_recovered_over_one_connection() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sock");
        let answers = ["one", "two"].map(|password| json!({"RecoverAccount": {"password": password}}));
        let server = server(&path, answers.to_vec());
        let names = ["admin".to_owned(), "idm_admin".to_owned()];
        let recovered = recover_accounts(&path, &names).await.unwrap();
        assert_eq!(recovered.passwords["idm_admin"].expose_secret(), "two");
        assert_eq!(
            server.await.unwrap(),
            [json!({"RecoverAccount": {"name": "admin"}}), json!({"RecoverAccount": {"name": "idm_admin"}})]
        );
        let told = serde_json::to_value(answer(Ok::<_, Error>(recovered))).unwrap();
        assert_eq!(told, json!({"ok": {"admin": "one", "idm_admin": "two"}}));
    }

    #[tokio::test]
    async fn a_refusal_of_the_server_is_no_password() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sock");
        let _server = server(&path, vec![json!("Error")]);
        let told = answer(recover_accounts(&path, &["nobody".to_owned()]).await);
        assert!(serde_json::to_string(&told).unwrap().contains("recover the account nobody"), "{told:?}");
    }

    #[tokio::test]
    async fn a_node_that_holds_another_domain_than_it_must_is_not_ready() {
        let folder = tempfile::tempdir().unwrap();
        let (path, file) = (folder.path().join("sock"), folder.path().join("idm-a-1.domain"));
        let held = "00000000-0000-0000-0000-00000000000a";
        let other = "00000000-0000-0000-0000-00000000000b";
        for (expected, said) in
            [(None, None), (Some(held), None), (Some(other), Some("must hold")), (Some(""), Some("not known yet"))]
        {
            let _ = fs::remove_file(&path);
            let info = json!({"name": "x", "displayname": "X", "uuid": held, "level": 14});
            let _server = server(&path, vec![json!({"DomainShow": {"domain_info": info}})]);
            match expected {
                None => assert!(!file.exists()),
                Some(expected) => fs::write(&file, format!("{expected}\n")).unwrap(),
            }
            let told = ready(&path, Some(&file)).await;
            assert_eq!(told.is_ok(), said.is_none(), "{expected:?}: {told:?}");
            assert!(told.err().is_none_or(|told| told.contains(said.unwrap())), "{expected:?}");
        }
    }

    #[tokio::test]
    async fn a_node_that_shows_no_replication_certificate_tells_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sock");
        let info =
            json!({"name": "x", "displayname": "X", "uuid": "00000000-0000-0000-0000-00000000000a", "level": 14});
        let _server = server(&path, vec![json!({"DomainShow": {"domain_info": info}}), json!("Error")]);
        let told = report(&path).await.unwrap();
        assert_eq!((told.certificate, told.domain.level), (None, 14));
    }

    #[tokio::test]
    async fn a_server_that_has_not_finished_starting_is_not_ready() {
        let told = answer(ready(Path::new("/nonexistent/sock"), None).await);
        let told = serde_json::to_value(told).unwrap();
        assert!(told["error"].as_str().unwrap().contains("has not finished starting"), "{told}");
    }
}
