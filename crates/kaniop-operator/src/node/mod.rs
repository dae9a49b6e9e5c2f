//! `kaniop node …`: the helper inside a server's pod, whose image holds nothing but the server. It answers in JSON on stdout, errors too, and is
//! started by the kubelet (install, ready) or through the API server (the others). It never speaks to Kubernetes or over the network.

mod backups;
mod install;
mod on_demand;
mod proofs;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use kaniop_core::cluster::names::SOCKET_PATH;
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
    /// Copy this program to PATH, for the server's container.
    Install {
        /// Where to.
        path: PathBuf,
    },
    /// Succeed when the server has finished starting, migrations included.
    Ready,
    /// Tell the domain that the server's database holds.
    Domain,
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
        Command::Install { path } => print(&answer(install::install(&path))),
        Command::Ready => print(&answer(runtime.block_on(domain(socket)).map(drop))),
        Command::Domain => print(&answer(runtime.block_on(domain(socket)))),
        Command::RecoverAccounts { names } => print(&answer(runtime.block_on(recover_accounts(socket, &names)))),
        Command::Backups(asked) => print(&answer(backups::backups(&asked))),
        Command::Backup(asked) => print(&answer(on_demand::on_demand(&asked))),
    }
}

async fn domain(socket: &Path) -> Result<NodeReport, Error> {
    Ok(NodeReport { domain: Socket::connect(socket).await?.domain().await? })
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
    async fn a_server_that_has_not_finished_starting_is_not_ready() {
        let told = answer(domain(Path::new("/nonexistent/sock")).await);
        let told = serde_json::to_value(told).unwrap();
        assert!(told["error"].as_str().unwrap().contains("has not finished starting"), "{told}");
    }
}
