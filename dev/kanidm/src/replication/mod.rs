//! Replication: a node supplies its changes to those that may pull, and pulls from its own suppliers.
//!
//! The engine works out and applies differences; here are the connections, the certificates and the order of things.
//! Like the real server this only logs how it goes: nothing can be asked for its state.

mod consumer;
mod node;
mod orders;
mod supplier;
mod tls;
mod wire;

use std::time::Duration;

use kanidmd_lib::prelude::OperationError;

pub use node::Node;
pub use orders::{Orders, Replication, Unanswered};

/// How long connecting, and waiting for an answer, may take. A database that cannot be copied in this time can never
/// be refreshed, there as here.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why something between two nodes failed; only for the log.
#[derive(Debug, thiserror::Error)]
enum ReplicationError {
    #[error("the engine refused: {0:?}")]
    Engine(OperationError),
    #[error("the connection broke: {0}")]
    Connection(#[from] std::io::Error),
    #[error("nothing came within {} s", PATIENCE.as_secs())]
    Slow(#[from] tokio::time::error::Elapsed),
    #[error("the peer sent something that is not replication: {0}")]
    Garbled(#[from] serde_json::Error),
    #[error("a message of {0} bytes is longer than any may be")]
    TooLong(u64),
    #[error("the answer belongs to another question")]
    OtherAnswer,
    #[error("ReplDomainLevelUnsatisfiable: the supplier is at domain level {theirs}, this server at {ours}")]
    Level { theirs: u32, ours: u32 },
    #[error("the certificate or key cannot be used: {0}")]
    Certificate(#[from] openssl::error::ErrorStack),
    #[error("the certificates make no TLS: {0}")]
    Tls(#[from] rustls::Error),
    #[error("the certificates of the peers make no verifier: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    #[error("{0:?} is not a name that a certificate can have")]
    Name(String),
}

impl From<OperationError> for ReplicationError {
    fn from(error: OperationError) -> Self {
        Self::Engine(error)
    }
}
