//! The servers that can be reached, each with the snapshot that all its objects are planned against.
//!
//! One list per server and interval fills the snapshot; answers to our own writes keep it up to date in between. A server that does not answer is
//! asked again with growing waits, and meanwhile nobody else sends it anything.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use kaniop_core::entry::{Entry, Snapshot, Step};
use kaniop_core::identity;
use kaniop_kanidm::{Client, Endpoint, Error};
use secrecy::SecretString;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, broadcast};
use tokio::task::AbortHandle;
use uuid::Uuid;

mod looks;

/// Passes that work on one server at a time. It has one writer, so more would only queue there; and a slow one holds up nobody but its own objects.
const PASSES_AT_ONCE: usize = 8;
/// Failed looks in a row after which a server counts as not answering: one lost request is no outage.
const FAILURES: u32 = 2;

/// Namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// How to reach a server as the operator.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Address, host name and trust.
    pub endpoint: Endpoint,
    /// The operator's token.
    pub token: SecretString,
}

/// What woke somebody up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The snapshot of this Kanidm was read anew, or its server stopped or began to answer.
    Refreshed(ObjectKey),
    /// Entries were created on the server of this Kanidm: whoever refers to them may have waited.
    Created(ObjectKey),
    /// This Kanidm was created, deleted, its spec changed, or it was looked into for the first time.
    Kanidm(ObjectKey),
    /// This namespace changed.
    Namespace(String),
}

/// What is known of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Not looked at yet.
    Unknown,
    /// The last look succeeded.
    Answers,
    /// The last looks failed so.
    Fails(Error),
}

/// One server.
#[derive(Debug)]
pub struct Target {
    client: Client,
    attributes: Vec<kaniop_core::entry::Attr>,
    known: RwLock<Known>,
    turns: Arc<Semaphore>,
    looking: tokio::sync::Mutex<()>,
    /// Somebody wants the server to be looked at now.
    look: Notify,
    /// An entry was created: objects may have waited for it.
    created: Notify,
}

#[derive(Debug)]
struct Known {
    snapshot: Option<Arc<Snapshot>>,
    health: Health,
    /// How the last look failed, if it did.
    last: Option<Error>,
    failures: u32,
    /// Entries that we wrote while a list was under way: for these our answer is newer than the list.
    touched: BTreeSet<Uuid>,
}

impl Target {
    fn new(connection: &Connection) -> Result<Self, Error> {
        Ok(Self {
            client: Client::new(&connection.endpoint, connection.token.clone())?,
            attributes: identity::attributes(),
            known: RwLock::new(Known {
                snapshot: None,
                health: Health::Unknown,
                last: None,
                failures: 0,
                touched: BTreeSet::new(),
            }),
            turns: Arc::new(Semaphore::new(PASSES_AT_ONCE)),
            looking: tokio::sync::Mutex::default(),
            look: Notify::new(),
            created: Notify::new(),
        })
    }

    /// The snapshot, or why there is none to be trusted.
    ///
    /// # Errors
    /// [`Unusable`] when the server was not read yet or does not answer.
    pub fn snapshot(&self) -> Result<Arc<Snapshot>, Unusable> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        match (&known.health, &known.snapshot) {
            (Health::Fails(error), _) => Err(Unusable::Fails(error.clone())),
            (_, Some(snapshot)) => Ok(snapshot.clone()),
            (_, None) => Err(Unusable::NotRead),
        }
    }

    /// What is known of the server.
    #[must_use]
    pub fn health(&self) -> Health {
        self.known.read().unwrap_or_else(PoisonError::into_inner).health.clone()
    }

    /// Waits for a place among those that work on this server; `None` when there is no such place any more.
    pub async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        self.turns.clone().acquire_owned().await.ok()
    }

    /// The way to the server for what is no step of a plan: credentials and pictures.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sends one step and takes its answer into the snapshot.
    ///
    /// # Errors
    /// As the server or the network gives them. An error that shows the snapshot to be stale makes the server be looked at soon.
    pub async fn execute(&self, step: &Step) -> Result<Option<Entry>, Error> {
        match self.client.execute(step, &self.attributes).await {
            Ok(answer) => {
                match (step, &answer) {
                    (Step::Delete { uuid }, _) => self.learn(*uuid, None),
                    (_, Some(entry)) => self.learn(entry.uuid, Some(entry.clone())),
                    (_, None) => {}
                }
                if matches!(step, Step::Create { .. } | Step::CreateProvisional { .. }) {
                    self.created.notify_one();
                }
                Ok(answer)
            }
            Err(error) => {
                if matches!(
                    error,
                    Error::Unauthenticated
                        | Error::TimedOut { .. }
                        | Error::Interrupted { .. }
                        | Error::Unreachable { .. }
                        | Error::Certificate { .. }
                        | Error::Conflict { .. }
                        | Error::UnknownReference
                        | Error::NotFound
                ) {
                    self.look.notify_one();
                }
                Err(error)
            }
        }
    }

    /// Reads one entry and takes it into the snapshot.
    ///
    /// # Errors
    /// As the server or the network gives them.
    pub async fn read(&self, uuid: Uuid) -> Result<Option<Entry>, Error> {
        let entry = self.client.entry(uuid, &self.attributes).await?;
        self.learn(uuid, entry.clone());
        Ok(entry)
    }

    fn learn(&self, uuid: Uuid, entry: Option<Entry>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.touched.insert(uuid);
        if let Some(snapshot) = &mut known.snapshot {
            Arc::make_mut(snapshot).set(uuid, entry);
        }
    }

    /// Looks at the server now and returns what it holds.
    ///
    /// # Errors
    /// As the server or the network gives them.
    pub async fn look_again(&self) -> Result<Arc<Snapshot>, Error> {
        self.refresh().await;
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        match (&known.last, &known.snapshot) {
            (None, Some(snapshot)) => Ok(snapshot.clone()),
            (Some(error), _) => Err(error.clone()),
            (None, None) => Err(Error::Endpoint("the server was never read".to_owned())),
        }
    }

    /// Everything: two lists, for no attribute shows whether an account has a credential.
    async fn read_all(&self) -> Result<Snapshot, Error> {
        let entries = self.client.entries(&self.attributes).await?;
        let with_credentials = self.client.people_with_credentials().await?;
        Ok(Snapshot::new(entries).with_credentials(with_credentials))
    }

    /// Looks at the server. Returns whether it succeeded, and whether somebody should hear of it.
    async fn refresh(&self) -> (bool, bool) {
        // One at a time: what is touched meanwhile belongs to one list.
        let _alone = self.looking.lock().await;
        self.known.write().unwrap_or_else(PoisonError::into_inner).touched.clear();
        let read = self.read_all().await;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok(snapshot) => known.succeeded(snapshot),
            Err(error) => known.failed(error),
        }
    }
}

impl Known {
    fn succeeded(&mut self, mut snapshot: Snapshot) -> (bool, bool) {
        if let Some(old) = &self.snapshot {
            for uuid in &self.touched {
                snapshot.set(*uuid, old.get(*uuid).cloned());
            }
        }
        self.snapshot = Some(Arc::new(snapshot));
        self.health = Health::Answers;
        self.last = None;
        self.failures = 0;
        (true, true)
    }

    fn failed(&mut self, error: Error) -> (bool, bool) {
        self.failures += 1;
        self.last = Some(error.clone());
        // A refusal is an answer: it is final at once. Silence has to last.
        let sure = self.failures >= FAILURES || error.class() != kaniop_kanidm::Class::Retry || self.snapshot.is_none();
        let news = sure && self.health != Health::Fails(error.clone());
        if sure {
            self.health = Health::Fails(error);
        }
        (false, news)
    }
}

/// Why a target's snapshot cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// The first look has not ended.
    NotRead,
    /// The server does not answer as it should.
    Fails(Error),
}

struct Held {
    target: Arc<Target>,
    fingerprint: String,
    task: AbortHandle,
}

/// All servers.
pub struct Targets {
    interval: Duration,
    held: Mutex<HashMap<ObjectKey, Held>>,
    /// Kanidms that were judged since the operator's start.
    judged: Mutex<HashSet<ObjectKey>>,
    wake: broadcast::Sender<Wake>,
}

impl Targets {
    /// No servers yet; each will be looked at once per interval.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self { interval, held: Mutex::default(), judged: Mutex::default(), wake: broadcast::channel(4096).0 }
    }

    /// Hears of everything that may give work.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Wake> {
        self.wake.subscribe()
    }

    /// Tells everybody.
    pub fn wake(&self, wake: Wake) {
        // Nobody listening is no error: the controllers have not begun or have ended.
        let _ = self.wake.send(wake);
    }

    /// The server of this Kanidm.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Target>> {
        self.lock().get(key).map(|held| held.target.clone())
    }

    /// What is known of the server of this Kanidm.
    #[must_use]
    pub fn health(&self, key: &ObjectKey) -> Health {
        self.get(key).map_or(Health::Unknown, |target| target.health())
    }

    /// This Kanidm was looked into: that there is no way to its server is from now on a finding. Before, it is merely early.
    pub fn judged(&self, key: &ObjectKey) {
        if self.judged.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone()) {
            self.wake(Wake::Kanidm(key.clone()));
        }
    }

    /// Whether this Kanidm was looked into since the operator's start.
    #[must_use]
    pub fn is_judged(&self, key: &ObjectKey) -> bool {
        self.judged.lock().unwrap_or_else(PoisonError::into_inner).contains(key)
    }

    /// This is how the server of this Kanidm is reached now. The same again changes nothing.
    ///
    /// # Errors
    /// When no client can be made of it.
    pub fn set(self: &Arc<Self>, key: &ObjectKey, connection: &Connection) -> Result<(), Error> {
        let fingerprint = fingerprint(connection);
        let mut held = self.lock();
        if held.get(key).is_some_and(|old| old.fingerprint == fingerprint) {
            return Ok(());
        }
        let target = Arc::new(Target::new(connection)?);
        let task = tokio::spawn(looks::looks(self.clone(), key.clone(), target.clone())).abort_handle();
        if let Some(old) = held.insert(key.clone(), Held { target, fingerprint, task }) {
            old.task.abort();
        }
        Ok(())
    }

    /// The server of this Kanidm is not to be spoken to any more.
    pub fn remove(&self, key: &ObjectKey) {
        if let Some(old) = self.lock().remove(key) {
            old.task.abort();
            self.wake(Wake::Refreshed(key.clone()));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ObjectKey, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fingerprint(connection: &Connection) -> String {
    use secrecy::ExposeSecret;
    let Connection { endpoint, token } = connection;
    kaniop_core::name::fingerprint([
        endpoint.origin.as_str().as_bytes(),
        endpoint.address.to_string().as_bytes(),
        endpoint.trust.fingerprint().as_bytes(),
        token.expose_secret().as_bytes(),
    ])
}
