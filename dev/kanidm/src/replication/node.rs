//! The one task that owns a node's replication: its certificate, its listener, its pulls and the orders to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::consumer::Supplier;
use super::orders::{Order, Orders};
use super::{ReplicationError, supplier, tls};
use crate::config;
use crate::server::Running;

/// How long the task waits after a failure of its own.
const RETRY: Duration = Duration::from_secs(60);

/// A node that has its listener and does not replicate yet.
pub struct Node {
    listener: TcpListener,
    plan: config::Replication,
    orders: Orders,
}

impl Node {
    /// Opens the listener.
    ///
    /// # Errors
    /// When the address is taken or not ours.
    pub async fn listen(plan: config::Replication, orders: Orders) -> std::io::Result<Self> {
        let listener = TcpListener::bind(plan.bindaddress).await?;
        Ok(Self { listener, plan, orders })
    }

    /// Replicates until the task is aborted.
    pub async fn run(mut self, running: Arc<Running>) {
        loop {
            match self.replicate_until_renewal(&running).await {
                // The old certificate is not used any more and the new one not yet; nobody is answered meanwhile, and
                // whoever asked for the renewal never.
                Ok(asker) => {
                    tokio::time::sleep(self.plan.renewal_delay).await;
                    drop(asker);
                }
                Err(error) => {
                    tracing::error!(%error, "replication stopped and will be tried again");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// Listens, pulls and takes orders; ends with the answer that a renewal is owed, when the new certificate is made.
    async fn replicate_until_renewal(
        &mut self,
        running: &Arc<Running>,
    ) -> Result<oneshot::Sender<()>, ReplicationError> {
        let identity = self.identity(running).await?;
        let acceptor = tls::acceptor(&identity, &self.plan.peers)?;
        let suppliers = self.suppliers(running, &identity)?;
        // Dropped at the end, which stops them all.
        let mut tasks = JoinSet::new();
        for supplier in &suppliers {
            let (supplier, every) = (Arc::clone(supplier), self.plan.poll);
            tasks.spawn(async move { supplier.pull_for_ever(every).await });
        }
        tracing::info!(
            address = %self.plan.bindaddress, peers = self.plan.peers.len(), "replication is ready"
        );
        loop {
            tokio::select! {
                accepted = self.listener.accept() => serve(&mut tasks, running, acceptor.clone(), accepted?),
                order = self.orders.recv() => match order {
                    Some(Order::Certificate(asker)) => { let _ = asker.send(identity.x509.clone()); }
                    Some(Order::Refresh(asker)) => { tasks.spawn(refresh(suppliers.clone(), asker)); }
                    Some(Order::Renew(asker)) => return self.renew(running, asker).await,
                    // Nobody can give orders any more: the server stops.
                    None => std::future::pending().await,
                },
                Some(_) = tasks.join_next() => {}
            }
        }
    }

    fn host(&self) -> String {
        self.plan.origin.host_str().unwrap_or_default().to_owned()
    }

    /// The certificate, made at its first use and kept from then on, even when the origin changes.
    async fn identity(&self, running: &Running) -> Result<tls::Identity, ReplicationError> {
        let host = self.host();
        let (key, x509) = running.engine.write(move |w, _| w.qs_write.supplier_get_key_cert(&host)).await?;
        tls::Identity::new(&key, x509)
    }

    async fn renew(
        &self,
        running: &Running,
        asker: oneshot::Sender<()>,
    ) -> Result<oneshot::Sender<()>, ReplicationError> {
        let host = self.host();
        running.engine.write(move |w, _| w.qs_write.supplier_renew_key_cert(&host)).await?;
        tracing::warn!("the replication certificate was renewed: peers that know the old one are cut off");
        Ok(asker)
    }

    fn suppliers(
        &self,
        running: &Arc<Running>,
        identity: &tls::Identity,
    ) -> Result<Vec<Arc<Supplier>>, ReplicationError> {
        let turn = Arc::new(Mutex::new(()));
        let supplier = |peer: &config::Peer| {
            Ok(Arc::new(Supplier {
                connector: tls::connector(identity, peer)?,
                peer: peer.clone(),
                running: Arc::clone(running),
                turn: Arc::clone(&turn),
            }))
        };
        self.plan.peers.iter().filter(|peer| peer.supplies_us).map(supplier).collect()
    }
}

fn serve(
    tasks: &mut JoinSet<()>,
    running: &Arc<Running>,
    acceptor: Option<TlsAcceptor>,
    (stream, from): (tokio::net::TcpStream, SocketAddr),
) {
    tasks.spawn(supplier::serve(Arc::clone(running), acceptor, stream, from));
}

/// Asks the suppliers one after the other for everything, until one gives it. Without success there is no answer.
async fn refresh(suppliers: Vec<Arc<Supplier>>, asker: oneshot::Sender<()>) {
    for supplier in suppliers {
        match supplier.refresh().await {
            Ok(()) => {
                // The asker may have gone: a refresh of a large database takes longer than it waits.
                let _ = asker.send(());
                return;
            }
            Err(error) => tracing::error!(%supplier, %error, "the refresh failed"),
        }
    }
    tracing::error!("no supplier could refresh this server");
}
