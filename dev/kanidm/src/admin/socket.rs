//! Listening on the admin socket.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use super::answers;
use super::protocol::{Request, Response};
use crate::server::Running;

/// The longest request; longer ones can only be garbage.
const LONGEST_REQUEST: usize = 64 * 1024;

/// An open socket, not yet served.
pub struct AdminSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl AdminSocket {
    /// Opens the socket, replacing the file that every earlier server leaves behind.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        match std::fs::remove_file(path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let listener = UnixListener::bind(path)?;
        Ok(Self { listener, path: path.to_path_buf() })
    }

    /// Serves until the task is aborted.
    pub async fn serve(self, running: Arc<Running>) {
        tracing::info!(path = %self.path.display(), "the admin socket is open");
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) if is_allowed(&stream) => {
                    tokio::spawn(talk(stream, Arc::clone(&running)));
                }
                Ok(_) => tracing::warn!("a connection to the admin socket by another user was refused"),
                Err(error) => {
                    tracing::error!(%error, "the admin socket failed");
                    return;
                }
            }
        }
    }
}

/// Root, or whoever runs the server.
fn is_allowed(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == 0 || peer.uid() == rustix::process::geteuid().as_raw())
}

/// Answers requests on one connection until it ends or sends something that is not a request.
async fn talk(mut stream: UnixStream, running: Arc<Running>) {
    let mut buffer = Vec::new();
    loop {
        match take_request(&mut buffer) {
            Ok(Some(request)) => {
                let answer = answers::answer(&running, request).await;
                if !send(&mut stream, &answer).await {
                    return;
                }
            }
            Ok(None) if buffer.len() > LONGEST_REQUEST => return,
            Ok(None) => match stream.read_buf(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            },
            Err(error) => {
                tracing::error!(%error, "something other than a request came over the admin socket");
                return ignore(stream).await;
            }
        }
    }
}

/// After something that is not a request, the real server neither answers nor hangs up; nothing on that connection
/// is understood any more.
async fn ignore(mut stream: UnixStream) {
    let mut rubbish = [0; 1024];
    while stream.read(&mut rubbish).await.is_ok_and(|count| count > 0) {}
}

/// Takes one whole request from the front of the buffer; `None` when more bytes are needed.
fn take_request(buffer: &mut Vec<u8>) -> Result<Option<Request>, serde_json::Error> {
    let mut stream = serde_json::Deserializer::from_slice(buffer).into_iter::<Request>();
    let request = match stream.next() {
        None => return Ok(None),
        Some(Err(error)) if error.is_eof() => return Ok(None),
        Some(Err(error)) => return Err(error),
        Some(Ok(request)) => request,
    };
    let used = stream.byte_offset();
    buffer.drain(..used);
    Ok(Some(request))
}

async fn send(stream: &mut UnixStream, answer: &Response) -> bool {
    match serde_json::to_vec(answer) {
        Ok(bytes) => stream.write_all(&bytes).await.is_ok(),
        Err(error) => {
            tracing::error!(%error, "an answer could not be written as JSON");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_taken_one_by_one_from_a_stream_without_framing() {
        let mut buffer = br#""DomainShow"{"RecoverAccount":{"name":"admin"}}"Rel"#.to_vec();
        assert!(matches!(take_request(&mut buffer), Ok(Some(Request::DomainShow))));
        assert!(matches!(take_request(&mut buffer), Ok(Some(Request::RecoverAccount { name })) if name == "admin"));
        assert!(matches!(take_request(&mut buffer), Ok(None)));
        buffer.extend_from_slice(br#"oad""#);
        assert!(matches!(take_request(&mut buffer), Ok(Some(Request::Reload))));
        assert!(buffer.is_empty());
    }

    #[test]
    fn an_unknown_request_ends_the_conversation() {
        assert!(take_request(&mut br#""ShowRuv""#.to_vec()).is_err());
    }
}
