//! The protocol of the node helper: what `kaniop node …` prints, as JSON on stdout, and the admin socket that it asks inside a pod.
//!
//! The socket speaks JSON without framing, one answer a request. Passwords appear in one type only, which is written out on purpose.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use kaniop_core::backup::Artefact;
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;
use uuid::Uuid;

use crate::error::{Error, socket_deadline};

const CONNECT: Duration = Duration::from_secs(5);
/// The server itself gives up its slowest requests after 15 s.
const ANSWER: Duration = Duration::from_secs(20);
const LARGEST: usize = 1 << 20;

/// What a subcommand of the node helper prints: its result, or why there is none.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer<T> {
    /// It was done.
    Ok(T),
    /// It was not done; the text is for people.
    Error(String),
}

/// What a node says about itself once its start is over.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct NodeReport {
    /// The domain that the node's database holds.
    pub domain: DomainInfo,
    /// Its replication certificate, base64url of DER; none while it does not replicate or makes a new one.
    #[serde(default)]
    pub certificate: Option<String>,
    /// Digest of the configuration that the server was started with, as the init container noted it.
    #[serde(default)]
    pub config: Option<String>,
}

/// A domain as a node's database has it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct DomainInfo {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub displayname: String,
    /// Never changes; nodes that replicate have the same.
    pub uuid: Uuid,
    /// Domain level: how far its data were migrated.
    pub level: u32,
}

/// A backup on demand, as far as it is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum OnDemand {
    /// It is being made, or waits for other work: ask again.
    Running,
    /// It was made, and this is what it proves.
    Made(Box<Artefact>),
}

/// Accounts that were reset, with their new passwords.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct RecoveredAccounts {
    /// Passwords by account name.
    #[serde(serialize_with = "exposed")]
    pub passwords: BTreeMap<String, SecretString>,
}

/// The one place where passwords are written out: the helper's stdout is how they reach the operator.
fn exposed<S: Serializer>(passwords: &BTreeMap<String, SecretString>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(passwords.iter().map(|(name, password)| (name, password.expose_secret())))
}

#[derive(Deserialize)]
enum Reply {
    DomainShow { domain_info: DomainInfo },
    RecoverAccount { password: SecretString },
    ShowReplicationCertificate { cert: String },
    Success,
    Error,
}

/// A connection to the admin socket of a server.
#[derive(Debug)]
pub struct Socket {
    stream: UnixStream,
}

impl Socket {
    /// Connects to the socket, which the server opens when its start is over.
    ///
    /// # Errors
    /// [`Error::Socket`] when it does not exist, nobody listens, or we may not use it.
    pub async fn connect(path: &Path) -> Result<Self, Error> {
        let place = path.display();
        match timeout(CONNECT, UnixStream::connect(path)).await {
            Ok(Ok(stream)) => Ok(Self { stream }),
            Ok(Err(error)) => Err(Error::Socket(match error.kind() {
                ErrorKind::NotFound => {
                    format!("the admin socket {place} does not exist: the server has not finished starting")
                }
                ErrorKind::ConnectionRefused => {
                    format!("nobody listens on the admin socket {place}: the server has ended")
                }
                ErrorKind::PermissionDenied => {
                    format!("the admin socket {place} may not be used: run as the server's user")
                }
                _ => format!("the admin socket {place} cannot be used: {error}"),
            })),
            Err(_) => Err(socket_deadline("take a connection", CONNECT)),
        }
    }

    /// The domain that the server's database holds.
    ///
    /// # Errors
    /// [`Error::Socket`], [`Error::SocketRefused`], or [`Error::Undecodable`].
    pub async fn domain(&mut self) -> Result<DomainInfo, Error> {
        match self.ask(&json!("DomainShow")).await? {
            Reply::DomainShow { domain_info } => Ok(domain_info),
            Reply::Error => Err(Error::SocketRefused { what: "show its domain".to_owned() }),
            _ => Err(unknown("the domain")),
        }
    }

    /// Gives an account a new password that the server draws. It is not safe to repeat: each call makes the last password and all sessions of
    /// the account void.
    ///
    /// # Errors
    /// [`Error::Socket`], [`Error::SocketRefused`] (also when there is no such account), or [`Error::Undecodable`].
    pub async fn recover_account(&mut self, name: &str) -> Result<SecretString, Error> {
        match self.ask(&json!({ "RecoverAccount": { "name": name } })).await? {
            Reply::RecoverAccount { password } => Ok(password),
            Reply::Error => Err(Error::SocketRefused { what: format!("recover the account {name}") }),
            _ => Err(unknown("a new password")),
        }
    }

    /// The server's replication certificate, base64url of DER. `None` when it shows none: it does not replicate, or is about to make a new one.
    ///
    /// # Errors
    /// [`Error::Socket`] or [`Error::Undecodable`].
    pub async fn replication_certificate(&mut self) -> Result<Option<String>, Error> {
        match self.ask(&json!("ShowReplicationCertificate")).await? {
            Reply::ShowReplicationCertificate { cert } => Ok(Some(cert)),
            Reply::Error => Ok(None),
            _ => Err(unknown("a replication certificate")),
        }
    }

    /// Has the server make a new replication certificate. Its answer says nothing: some releases answer with an error and renew all the same, a
    /// minute later. Only the certificate, read again, does.
    ///
    /// # Errors
    /// [`Error::Socket`] or [`Error::Undecodable`].
    pub async fn renew_replication_certificate(&mut self) -> Result<(), Error> {
        match self.ask(&json!("RenewReplicationCertificate")).await? {
            Reply::Success | Reply::Error => Ok(()),
            _ => Err(unknown("the renewal of a certificate")),
        }
    }

    async fn ask<T: DeserializeOwned>(&mut self, request: &serde_json::Value) -> Result<T, Error> {
        timeout(ANSWER, self.exchange(request)).await.map_err(|_| socket_deadline("answer", ANSWER))?
    }

    async fn exchange<T: DeserializeOwned>(&mut self, request: &serde_json::Value) -> Result<T, Error> {
        let broken =
            |error: std::io::Error| Error::Socket(format!("the connection to the admin socket broke off: {error}"));
        self.stream.write_all(request.to_string().as_bytes()).await.map_err(broken)?;
        let mut answer = Vec::new();
        loop {
            if self.stream.read_buf(&mut answer).await.map_err(broken)? == 0 {
                return Err(Error::Socket("the server closed the admin socket without an answer".to_owned()));
            }
            // Without framing, the end of the answer is where it parses.
            match serde_json::from_slice::<T>(&answer) {
                Ok(reply) => return Ok(reply),
                Err(error) if error.is_eof() && answer.len() < LARGEST => {}
                Err(_) => return Err(unknown("an answer of the admin socket")),
            }
        }
    }
}

/// Without the parser's text, which could quote a password.
fn unknown(what: &'static str) -> Error {
    Error::Undecodable { what, why: "unknown form".to_owned(), opid: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_reach_stdout_and_nothing_else() {
        let passwords = BTreeMap::from([("admin".to_owned(), SecretString::from("s3cret"))]);
        let answer = Answer::Ok(RecoveredAccounts { passwords });
        assert!(!format!("{answer:?}").contains("s3cret"));
        let text = serde_json::to_string(&answer).unwrap();
        assert_eq!(text, r#"{"ok":{"admin":"s3cret"}}"#);
        let Answer::Ok(read) = serde_json::from_str::<Answer<RecoveredAccounts>>(&text).unwrap() else { panic!() };
        assert_eq!(read.passwords["admin"].expose_secret(), "s3cret");
    }

    #[test]
    fn a_failure_carries_its_text() {
        let answer: Answer<NodeReport> = Answer::Error("not started".to_owned());
        assert_eq!(serde_json::to_string(&answer).unwrap(), r#"{"error":"not started"}"#);
    }

    /// A server that answers on a socket with these pieces, then closes.
    async fn socket(pieces: &'static [&'static str]) -> (tempfile::TempDir, Socket) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kanidmd.sock");
        let listener = tokio::net::UnixListener::bind(&path).unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 1024];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            for piece in pieces {
                stream.write_all(piece.as_bytes()).await.unwrap();
                stream.flush().await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        let socket = Socket::connect(&path).await.unwrap();
        (folder, socket)
    }

    #[tokio::test]
    async fn an_answer_in_pieces_is_read_to_its_end() {
        let pieces = &[
            "{\"DomainShow\":{\"domain_info\":{\"name\":\"x\",\"displayname\":\"X\",",
            "\"uuid\":\"00000000-0000-0000-0000-00000000000a\",\"level\":14}",
            "}}",
        ];
        let (_folder, mut socket) = socket(pieces).await;
        let domain = socket.domain().await.unwrap();
        assert_eq!((domain.uuid, domain.level), (Uuid::from_u128(10), 14));
    }

    #[tokio::test]
    async fn a_refusal_an_early_end_and_an_unknown_answer_are_told_apart_and_quote_nothing() {
        let (_folder, mut refusing) = socket(&["\"Error\""]).await;
        let error = refusing.recover_account("admin").await.unwrap_err();
        assert_eq!(error, Error::SocketRefused { what: "recover the account admin".to_owned() });
        let (_folder, mut closing) = socket(&["{\"Recover"]).await;
        let error = closing.recover_account("admin").await.unwrap_err();
        assert!(matches!(&error, Error::Socket(text) if text.contains("closed")), "{error:?}");
        let (_folder, mut odd) = socket(&["{\"RecoverAccount\":{\"password\":[\"s3cret\"]}}"]).await;
        let error = odd.recover_account("admin").await.unwrap_err();
        assert!(matches!(error, Error::Undecodable { .. }) && !error.to_string().contains("s3cret"), "{error:?}");
    }
}
