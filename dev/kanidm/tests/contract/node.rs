//! Servers that replicate, on the loopback interface: all are called `localhost` and told apart by their ports.

use std::process::Command;
use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Server, Site, ask, connect, entry, eventually, free_port};

/// How long something that replicates may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running server with a replication address.
pub struct Node {
    pub port: u16,
    pub server: Server,
    variables: Vec<(&'static str, &'static str)>,
}

/// Which way a peer's table lets changes go.
pub enum Way {
    /// Both ways; `true` refreshes automatically.
    Mutual(bool),
    /// We pull.
    Pull,
    /// It pulls.
    AllowPull,
}

impl Node {
    /// Starts an empty server without peers.
    pub fn new() -> Self {
        Self::called("localhost")
    }

    /// The same, with a replication origin of that host.
    pub fn called(host: &str) -> Self {
        Self::at(free_port(), host)
    }

    /// An empty server at the address of one that was.
    pub fn at(port: u16, host: &str) -> Self {
        let site = Site::new();
        site.configure(&table(port, host));
        Self { port, server: start(site, &[]), variables: Vec::new() }
    }

    /// The table by which others know this node.
    pub fn as_peer(&self, way: &Way) -> String {
        peer(self.port, &self.certificate(), way)
    }

    pub fn certificate(&self) -> String {
        let answer = self.ask("ShowReplicationCertificate");
        answer["ShowReplicationCertificate"]["cert"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    pub fn ask(&self, request: &str) -> Value {
        ask(&mut connect(&self.server), &json!(request))
    }

    pub fn domain(&self) -> Value {
        self.ask("DomainShow")["DomainShow"]["domain_info"]["uuid"].clone()
    }

    /// Stops it and starts it again with these peers, which is the only way to change them.
    pub fn with_peers(self, peers: &[String]) -> Self {
        let Self { port, server, variables } = self;
        let (_, _, site) = server.stop();
        site.configure(&format!("{}{}", table(port, "localhost"), peers.concat()));
        Self { port, server: start(site, &variables), variables }
    }

    /// Stops it, lets something happen to what it leaves behind, and starts it again.
    pub fn after(self, between: impl FnOnce(&Site)) -> Self {
        let Self { port, server, variables } = self;
        let (_, _, site) = server.stop();
        between(&site);
        Self { port, server: start(site, &variables), variables }
    }

    /// Stops it and starts it again with a variable.
    pub fn with_variable(mut self, name: &'static str, value: &'static str) -> Self {
        self.variables.retain(|(n, _)| *n != name);
        self.variables.push((name, value));
        self.after(|_| {})
    }

    /// Waits until its log has a line more with this text.
    pub fn says_again(&self, text: &str) {
        let before = self.server.log().matches(text).count();
        assert!(
            eventually(|| self.server.log().matches(text).count() > before),
            "no {text:?} in\n{}",
            self.server.log()
        );
    }

    pub async fn create(&self, token: &str, name: &str) {
        let person = entry(&[("name", name), ("displayname", name)]);
        self.server.must(Method::POST, "/v1/person", token, person).await;
    }

    pub async fn has(&self, token: &str, name: &str) -> bool {
        let (status, body) = self.server.get(&format!("/v1/person/{name}"), token).await;
        // Just refreshed, it may not know the session yet.
        status == StatusCode::OK && !body.is_null()
    }

    /// Waits until the person is here.
    pub async fn gets(&self, token: &str, name: &str) {
        self.waits(token, name, true).await;
    }

    /// Waits until the person is here no more.
    pub async fn loses(&self, token: &str, name: &str) {
        self.waits(token, name, false).await;
    }

    async fn waits(&self, token: &str, name: &str, wanted: bool) {
        let deadline = Instant::now() + PATIENCE;
        while self.has(token, name).await != wanted {
            assert!(Instant::now() < deadline, "{name} here is not {wanted}:\n{}", self.server.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Waits until all are of the first one's domain.
pub fn joined(nodes: &[&Node]) {
    let domain = nodes[0].domain();
    for node in nodes {
        assert!(eventually(|| node.domain() == domain), "not joined:\n{}", node.server.log());
    }
}

/// A primary and a secondary of one domain.
pub fn pair() -> (Node, Node) {
    let (primary, secondary) = (Node::new(), Node::new());
    assert_ne!(primary.domain(), secondary.domain());
    let known = secondary.as_peer(&Way::Mutual(false));
    let secondary = secondary.with_peers(&[primary.as_peer(&Way::Mutual(true))]);
    let primary = primary.with_peers(&[known]);
    joined(&[&primary, &secondary]);
    (primary, secondary)
}

/// A peer's table.
pub fn peer(port: u16, certificate: &str, way: &Way) -> String {
    let (kind, key, more) = match way {
        Way::Mutual(automatic) => ("mutual-pull", "partner_cert", format!("automatic_refresh = {automatic}\n")),
        Way::Pull => ("pull", "supplier_cert", String::new()),
        Way::AllowPull => ("allow-pull", "consumer_cert", String::new()),
    };
    format!("[replication.\"repl://localhost:{port}\"]\ntype = \"{kind}\"\n{key} = \"{certificate}\"\n{more}")
}

fn table(port: u16, host: &str) -> String {
    format!(
        "[replication]\norigin = \"repl://{host}:{port}\"\nbindaddress = \"127.0.0.1:{port}\"\n\
         task_poll_interval = 1\n"
    )
}

fn start(site: Site, variables: &[(&'static str, &'static str)]) -> Server {
    site.start_with(|command: &mut Command| {
        command.envs(variables.iter().copied());
    })
}
