//! A world in memory for tests of the shell: an API server, a Kanidm server with a few entries, and crashes at any call.

pub(crate) mod fleet;
pub(crate) mod kanidm;
pub(crate) mod node;
pub(crate) mod pictures;
pub(crate) mod shelf;

use std::sync::Mutex;

use tokio::sync::watch;

/// On which side of a call's effect the operator dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The call is never carried out.
    Before,
    /// The call is carried out, its answer never arrives.
    After,
}

/// Counts every call to both servers and lets the operator die at one of them.
pub(crate) struct Faults {
    state: Mutex<(usize, Option<(usize, Side)>)>,
    died: watch::Sender<bool>,
}

impl Faults {
    pub(crate) fn none() -> Self {
        Self { state: Mutex::new((0, None)), died: watch::channel(false).0 }
    }

    /// From now on the `nth` call is the last one.
    pub(crate) fn arm(&self, nth: usize, side: Side) {
        *self.state.lock().unwrap() = (0, Some((nth, side)));
        self.died.send_replace(false);
    }

    pub(crate) fn disarm(&self) {
        *self.state.lock().unwrap() = (0, None);
    }

    pub(crate) fn calls(&self) -> usize {
        self.state.lock().unwrap().0
    }

    /// Returns when the operator has died.
    pub(crate) async fn death(&self) {
        let mut died = self.died.subscribe();
        died.wait_for(|died| *died).await.unwrap();
    }

    /// A call arrives.
    async fn arrives(&self) -> Option<Side> {
        let fate = {
            let mut state = self.state.lock().unwrap();
            state.0 += 1;
            state.1.filter(|(nth, _)| *nth == state.0).map(|(_, side)| side)
        };
        if fate == Some(Side::Before) {
            self.dies().await;
        }
        fate
    }

    /// The call was carried out.
    async fn carried_out(&self, fate: Option<Side>) {
        if fate == Some(Side::After) {
            self.dies().await;
        }
    }

    async fn dies(&self) {
        self.died.send_replace(true);
        std::future::pending::<()>().await;
    }
}
