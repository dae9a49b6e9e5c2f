//! Leader election: keeps the Lease, and tells everybody whether it may still act.
//!
//! The decision is `kaniop_core::lease`'s. A rolling update of one replica overlaps two operators, so the election is always on; an operator that may
//! have lost the lease is stopped by its own [`Guard`] before its next effect, not by hearing of the loss.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kaniop_core::lease::{self, Decision, Memory, Seen};
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};

use crate::clock::Clock;
use crate::error::Error;

/// Name of the Lease.
pub const LEASE: &str = "kaniop-leader";

/// Says whether this operator may act.
#[derive(Clone, Debug)]
pub struct Guard {
    clock: Clock,
    /// Milliseconds since the process began at the last renewal, plus one; zero when the lease is not ours.
    renewed: Arc<AtomicU64>,
}

impl Guard {
    /// A guard that lets nothing pass until the lease is ours.
    #[must_use]
    pub fn closed(clock: Clock) -> Self {
        Self { clock, renewed: Arc::default() }
    }

    /// To be asked before each effect.
    ///
    /// # Errors
    /// [`Error::NotLeader`] when the lease is not ours or was not renewed in time.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_leader() { Ok(()) } else { Err(Error::NotLeader) }
    }

    /// Whether this operator may act.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        let renewed = self.renewed.load(Ordering::Acquire);
        renewed > 0 && lease::may_act(Duration::from_millis(renewed - 1), self.clock.elapsed())
    }

    /// The lease was written at this time since the process began.
    pub fn renewed_at(&self, at: Duration) {
        self.renewed.store(u64::try_from(at.as_millis()).unwrap_or(u64::MAX - 1) + 1, Ordering::Release);
    }

    /// The lease is not ours any more.
    pub fn close(&self) {
        self.renewed.store(0, Ordering::Release);
    }
}

/// The Lease and who we are.
pub struct Election {
    api: Api<Lease>,
    me: String,
    clock: Clock,
    guard: Guard,
    memory: Memory,
}

impl Election {
    /// Stands for election under this identity in this namespace.
    #[must_use]
    pub fn new(client: Client, namespace: &str, me: String, guard: Guard, clock: Clock) -> Self {
        Self { api: Api::namespaced(client, namespace), me, clock, guard, memory: Memory::default() }
    }

    /// Returns when the lease is ours.
    pub async fn win(&mut self) {
        loop {
            match self.round().await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, lease = LEASE, "the lease could not be read or written; trying again");
                }
            }
            tokio::time::sleep(lease::RETRY_EVERY).await;
        }
    }

    /// Renews until the lease is lost, then returns.
    pub async fn keep(&mut self) {
        loop {
            tokio::time::sleep(lease::RENEW_EVERY).await;
            let renewal = tokio::time::timeout(lease::RENEW_EVERY, self.round()).await;
            match renewal {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::warn!(%error, lease = LEASE, "the lease could not be renewed"),
                Err(_) => tracing::warn!(lease = LEASE, "the lease could not be renewed in time"),
            }
            if !self.guard.is_leader() {
                break;
            }
        }
        self.guard.close();
    }

    /// Gives the lease back, so that a successor need not wait for it to expire.
    pub async fn release(&mut self) {
        self.guard.close();
        let Ok(Some(mut held)) = self.api.get_opt(LEASE).await else { return };
        let spec = held.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(self.me.as_str()) {
            return;
        }
        spec.holder_identity = None;
        if let Err(error) = self.api.replace(LEASE, &PostParams::default(), &held).await {
            tracing::info!(%error, "the lease could not be given back; it expires by itself");
        }
    }

    /// One look, and one write if it is ours to take. The write carries the version that was read: of two that try, one fails.
    async fn round(&mut self) -> Result<bool, kube::Error> {
        let read = self.api.get_opt(LEASE).await?;
        let seen = read.as_ref().map(|lease| Seen {
            holder: lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone()),
            version: lease.metadata.resource_version.clone(),
        });
        match lease::decide(&mut self.memory, seen.as_ref(), &self.me, self.clock.elapsed()) {
            Decision::Wait(_) => {
                self.guard.close();
                Ok(false)
            }
            Decision::Take { transition } => self.take(read, transition).await,
        }
    }

    async fn take(&self, read: Option<Lease>, transition: bool) -> Result<bool, kube::Error> {
        // Counted from before the request: the lease may have been written at any time since.
        let asked = self.clock.elapsed();
        let now = MicroTime(self.clock.now());
        let existed = read.is_some();
        let mut lease = read.unwrap_or_else(|| Lease {
            metadata: ObjectMeta { name: Some(LEASE.to_owned()), ..ObjectMeta::default() },
            spec: None,
        });
        let spec: &mut LeaseSpec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(self.me.as_str()) {
            spec.acquire_time = Some(now.clone());
            spec.lease_transitions = Some(spec.lease_transitions.unwrap_or(0) + i32::from(transition));
        }
        spec.holder_identity = Some(self.me.clone());
        spec.lease_duration_seconds = i32::try_from(lease::LEASE_DURATION.as_secs()).ok();
        spec.renew_time = Some(now);
        let params = PostParams::default();
        let written = if existed {
            self.api.replace(LEASE, &params, &lease).await
        } else {
            self.api.create(&params, &lease).await
        };
        match written {
            Ok(_) => {
                self.guard.renewed_at(asked);
                Ok(true)
            }
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_lets_nothing_pass_before_the_lease_is_won_and_after_it_was_lost() {
        let guard = Guard::closed(Clock::start());
        assert!(matches!(guard.check(), Err(Error::NotLeader)));
        guard.renewed_at(Duration::ZERO);
        assert!(guard.check().is_ok());
        guard.close();
        assert!(guard.check().is_err());
    }
}
