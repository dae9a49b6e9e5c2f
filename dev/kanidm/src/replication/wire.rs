//! What goes over the wire between two nodes: JSON, each message with its length in eight bytes before it.

use kanidmd_lib::repl::proto::{ReplIncrementalContext, ReplRefreshContext, ReplRuvRange};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::ReplicationError;

/// The longest message.
const LONGEST: u64 = 256 * 1024 * 1024;

/// What a consumer asks.
#[derive(Debug, Serialize, Deserialize)]
pub enum Question {
    /// What has changed since this state?
    Incremental(ReplRuvRange),
    /// Everything, please.
    Refresh,
}

/// What a supplier answers.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    /// The changes, or why there are none.
    Incremental(ReplIncrementalContext),
    /// Everything.
    Refresh(ReplRefreshContext),
}

/// Sends one message.
///
/// # Errors
/// When the connection breaks.
pub async fn send(stream: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> Result<(), ReplicationError> {
    let bytes = serde_json::to_vec(message)?;
    stream.write_all(&(bytes.len() as u64).to_be_bytes()).await?;
    stream.write_all(&bytes).await?;
    Ok(stream.flush().await?)
}

/// Receives one message.
///
/// # Errors
/// When the connection breaks, the message is too long or is not what was expected.
pub async fn receive<T: DeserializeOwned>(stream: &mut (impl AsyncRead + Unpin)) -> Result<T, ReplicationError> {
    let length = stream.read_u64().await?;
    if length > LONGEST {
        return Err(ReplicationError::TooLong(length));
    }
    let mut bytes = Vec::new();
    stream.take(length).read_to_end(&mut bytes).await?;
    Ok(serde_json::from_slice(&bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_keep_their_borders_and_none_is_longer_than_allowed() {
        let (mut here, mut there) = tokio::io::duplex(64 * 1024);
        send(&mut here, &Question::Refresh).await.unwrap();
        send(&mut here, &Question::Refresh).await.unwrap();
        for _ in 0..2 {
            assert!(matches!(receive(&mut there).await.unwrap(), Question::Refresh));
        }
        here.write_all(&(LONGEST + 1).to_be_bytes()).await.unwrap();
        assert!(matches!(receive::<Question>(&mut there).await, Err(ReplicationError::TooLong(_))));
    }
}
