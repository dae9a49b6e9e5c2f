//! Asking a running server over its admin socket, for the command line.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use super::protocol::{Request, Response};

/// Why no answer came.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens.
    #[error("no server answers at {path}: {source}")]
    NoServer {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The connection broke.
    #[error("the connection to {path} broke: {source}")]
    Broken {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The answer is not one.
    #[error("the server's answer is not understood: {0}")]
    Garbled(#[from] serde_json::Error),
}

/// Sends one request and waits for its answer.
///
/// # Errors
/// When no server listens, or the conversation breaks.
pub fn ask(path: &Path, request: &Request) -> Result<Response, ClientError> {
    let mut stream =
        UnixStream::connect(path).map_err(|source| ClientError::NoServer { path: path.to_path_buf(), source })?;
    let broken = |source| ClientError::Broken { path: path.to_path_buf(), source };
    stream.write_all(&serde_json::to_vec(request)?).map_err(broken)?;
    let mut answer = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let count = stream.read(&mut chunk).map_err(broken)?;
        answer.extend_from_slice(&chunk[..count]);
        match serde_json::from_slice(&answer) {
            Ok(response) => return Ok(response),
            Err(error) if error.is_eof() && count > 0 => {}
            Err(error) => return Err(error.into()),
        }
    }
}
