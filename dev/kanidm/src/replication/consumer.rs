//! Consuming: pulls from one supplier, at once and then each poll interval.
//!
//! Success is logged whenever nothing failed, even when the supplier was unwilling: as in the real server that line is
//! no evidence of anything.

use std::sync::Arc;
use std::time::Duration;

use kanidmd_lib::repl::proto::{ConsumerState, ReplIncrementalContext, ReplRefreshContext};
use kanidmd_lib::server::QueryServerTransaction;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::{MissedTickBehavior, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::wire::{Answer, Question, receive, send};
use super::{PATIENCE, ReplicationError};
use crate::config::Peer;
use crate::release;
use crate::server::Running;

type Connection = TlsStream<TcpStream>;

/// One supplier of this node.
pub struct Supplier {
    /// Who it is.
    pub peer: Peer,
    /// How it is reached.
    pub connector: TlsConnector,
    /// What its changes go into.
    pub running: Arc<Running>,
    /// Held while changes are asked for and applied, so that suppliers take turns.
    pub turn: Arc<Mutex<()>>,
}

impl Supplier {
    /// Pulls until the task is aborted.
    pub async fn pull_for_ever(&self, every: Duration) {
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            if let Err(error) = self.pull().await {
                tracing::error!(supplier = %self, %error, "the incremental replication failed");
            }
        }
    }

    /// Replaces the content of this server by the supplier's.
    ///
    /// # Errors
    /// When the supplier cannot be reached or its content cannot be taken; nothing has changed then.
    pub async fn refresh(&self) -> Result<(), ReplicationError> {
        let mut connection = self.connect().await?;
        let _turn = self.turn.lock().await;
        self.refresh_over(&mut connection).await
    }

    async fn pull(&self) -> Result<(), ReplicationError> {
        let mut connection = self.connect().await?;
        let _turn = self.turn.lock().await;
        let state = self.running.engine.read(|r, _| r.qs_read.consumer_get_state()).await?;
        let Answer::Incremental(changes) = ask(&mut connection, &Question::Incremental(state)).await? else {
            return Err(ReplicationError::OtherAnswer);
        };
        if let ReplIncrementalContext::V1 { domain_version, .. } = &changes {
            same_level(*domain_version)?;
        }
        match self.running.engine.write(|w, _| w.qs_write.consumer_apply_changes(changes)).await? {
            ConsumerState::RefreshRequired if self.peer.automatic_refresh => {
                tracing::warn!(supplier = %self, "this server's content is replaced by the supplier's");
                self.refresh_over(&mut connection).await
            }
            ConsumerState::RefreshRequired => {
                tracing::error!(supplier = %self, "a refresh is required and not automatic: nothing replicates until then");
                Ok(())
            }
            ConsumerState::Ok => {
                tracing::info!(supplier = %self, "Incremental Replication Success");
                Ok(())
            }
        }
    }

    async fn refresh_over(&self, connection: &mut Connection) -> Result<(), ReplicationError> {
        let Answer::Refresh(content) = ask(connection, &Question::Refresh).await? else {
            return Err(ReplicationError::OtherAnswer);
        };
        let ReplRefreshContext::V1 { domain_version, .. } = &content;
        same_level(*domain_version)?;
        self.running.engine.write(|w, _| w.qs_write.consumer_apply_refresh(content)).await?;
        tracing::warn!(supplier = %self, "Replication Refresh Success");
        Ok(())
    }

    async fn connect(&self) -> Result<Connection, ReplicationError> {
        let host = self.peer.host.clone();
        let name = ServerName::try_from(host.clone()).map_err(|_| ReplicationError::Name(host.clone()))?;
        let stream = timeout(PATIENCE, TcpStream::connect((host, self.peer.port))).await??;
        Ok(timeout(PATIENCE, self.connector.connect(name, stream)).await??)
    }
}

impl std::fmt::Display for Supplier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "repl://{}:{}", self.peer.host, self.peer.port)
    }
}

async fn ask(connection: &mut Connection, question: &Question) -> Result<Answer, ReplicationError> {
    send(connection, question).await?;
    timeout(PATIENCE, receive(connection)).await?
}

/// The engine would take the next level too; no released server takes any but its own.
fn same_level(theirs: u32) -> Result<(), ReplicationError> {
    let ours = release::played().level;
    if theirs == ours { Ok(()) } else { Err(ReplicationError::Level { theirs, ours }) }
}
