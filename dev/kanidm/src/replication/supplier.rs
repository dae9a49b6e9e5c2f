//! Supplying: answers the questions of peers whose certificate is known.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::wire::{Answer, Question, receive, send};
use super::{PATIENCE, ReplicationError};
use crate::server::Running;

/// Talks to one consumer until it hangs up.
pub async fn serve(running: Arc<Running>, acceptor: Option<TlsAcceptor>, stream: TcpStream, from: SocketAddr) {
    let Some(acceptor) = acceptor else {
        tracing::error!(%from, "somebody wants to replicate, but no peer may: the connection is closed");
        return;
    };
    match converse(&running, &acceptor, stream).await {
        // A consumer ends by hanging up.
        Err(ReplicationError::Connection(error)) if error.kind() == std::io::ErrorKind::UnexpectedEof => {}
        Err(error) => tracing::error!(%from, %error, "a consumer could not be supplied"),
        Ok(()) => {}
    }
}

async fn converse(running: &Running, acceptor: &TlsAcceptor, stream: TcpStream) -> Result<(), ReplicationError> {
    let mut stream = tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await??;
    loop {
        let answer = match receive(&mut stream).await? {
            Question::Incremental(range) => {
                let changes = running.engine.read(|r, _| r.qs_read.supplier_provide_changes(range)).await?;
                Answer::Incremental(changes)
            }
            Question::Refresh => {
                Answer::Refresh(running.engine.read(|r, _| r.qs_read.supplier_provide_refresh()).await?)
            }
        };
        send(&mut stream, &answer).await?;
    }
}
