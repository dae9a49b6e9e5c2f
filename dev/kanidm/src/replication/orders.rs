//! What the admin socket may ask of the replication task, and how long it waits.
//!
//! The task takes one order at a time and none while a renewal settles, so an answer can stay away: that says nothing
//! about whether the order was carried out.

use std::time::Duration;

use openssl::x509::X509;
use tokio::sync::{mpsc, oneshot};

/// How long an answer is waited for; an order may well be carried out later.
const ANSWER_PATIENCE: Duration = Duration::from_secs(15);
/// The least that a shorter wait can be: a certificate is read from the database in this time.
const LEAST_PATIENCE: Duration = Duration::from_millis(500);

/// An order, and where its answer goes.
pub enum Order {
    /// The certificate.
    Certificate(oneshot::Sender<X509>),
    /// A new certificate.
    Renew(oneshot::Sender<()>),
    /// Our content replaced by a supplier's.
    Refresh(oneshot::Sender<()>),
}

/// The orders as they reach the task.
pub type Orders = mpsc::Receiver<Order>;

/// No answer came in time. What was asked for may be done later, or be done already.
#[derive(Debug, thiserror::Error)]
#[error("the replication task did not answer; it may still do what it was asked for")]
pub struct Unanswered;

/// The replication task of this process, as the admin socket sees it.
pub struct Replication {
    orders: mpsc::Sender<Order>,
    patience: Duration,
}

impl Replication {
    /// A way to send orders, and the end where they arrive.
    pub fn new(renewal_delay: Duration) -> (Self, Orders) {
        let (orders, arriving) = mpsc::channel(8);
        // A quarter of a minute beside a minute: with a shorter delay everything is shorter.
        let patience = ANSWER_PATIENCE.min(renewal_delay / 4).max(LEAST_PATIENCE);
        (Self { orders, patience }, arriving)
    }

    /// The certificate that this node shows to its peers.
    ///
    /// # Errors
    /// While a renewal settles.
    pub async fn certificate(&self) -> Result<X509, Unanswered> {
        self.send(Order::Certificate, self.patience).await
    }

    /// Makes a new certificate. There is never an answer, as in servers before 1.11.1.
    ///
    /// # Errors
    /// Always.
    pub async fn renew(&self) -> Result<(), Unanswered> {
        self.send(Order::Renew, self.patience).await
    }

    /// Replaces the content of this server by that of a supplier.
    ///
    /// # Errors
    /// When no supplier could be copied, or the copy was not finished in time; it then goes on.
    pub async fn refresh(&self) -> Result<(), Unanswered> {
        self.send(Order::Refresh, ANSWER_PATIENCE).await
    }

    async fn send<T>(
        &self,
        order: impl FnOnce(oneshot::Sender<T>) -> Order,
        patience: Duration,
    ) -> Result<T, Unanswered> {
        let (sender, receiver) = oneshot::channel();
        let answer = async {
            self.orders.send(order(sender)).await.map_err(|_| Unanswered)?;
            receiver.await.map_err(|_| Unanswered)
        };
        tokio::time::timeout(patience, answer).await.unwrap_or(Err(Unanswered))
    }
}
