//! Counts of requests, by whoever was asked: the API server's metrics, the operator's, the development server's.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use http::Request;
use kube::Client;

/// Samples by name and labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counts(pub(crate) BTreeMap<String, f64>);

/// Verbs of the API server's metrics that only look. Watches are apart: one stays open for each kind, however many objects there are.
const READS: [&str; 2] = ["GET", "LIST"];
/// Verbs that change something.
const WRITES: [&str; 6] = ["POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"];
/// What the operator reads and writes. Leases are left out: the election renews one. So are what only the API server itself and its
/// controllers ask for.
const OURS: [&str; 13] = [
    "kanidms",
    "kanidmgroups",
    "kanidmpersonaccounts",
    "kanidmoauth2clients",
    "kanidmserviceaccounts",
    "secrets",
    "services",
    "statefulsets",
    "pods",
    "namespaces",
    "events",
    "persistentvolumeclaims",
    "customresourcedefinitions",
];

impl Counts {
    /// What the API server was asked.
    pub(crate) async fn of_kubernetes(client: &Client) -> Result<Self> {
        let page = client.request_text(Request::get("/metrics").body(Vec::new())?).await?;
        let counts = Self::read(&page, "apiserver_request_total{");
        ensure!(!counts.0.is_empty(), "the API server's metrics have no apiserver_request_total");
        Ok(counts)
    }

    /// The samples of a page whose lines begin so.
    pub(crate) fn read(page: &str, prefix: &str) -> Self {
        let lines = page.lines().filter(|line| line.starts_with(prefix));
        let pairs = lines.filter_map(|line| line.rsplit_once(' '));
        Self(pairs.filter_map(|(key, value)| Some((key.to_owned(), value.parse().ok()?))).collect())
    }

    /// What grew since then, and by how much.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let grown =
            self.0.iter().map(|(key, count)| (key.clone(), count - before.0.get(key).copied().unwrap_or_default()));
        Self(grown.filter(|(_, by)| *by != 0.0).collect())
    }

    /// The sum of those whose key is one that is asked for.
    pub(crate) fn sum(&self, is_asked: impl Fn(&str) -> bool) -> f64 {
        self.0.iter().filter(|(key, _)| is_asked(key)).fold(0.0, |sum, (_, count)| sum + count)
    }

    /// Reads of our resources at the API server.
    pub(crate) fn kubernetes_reads(&self) -> f64 {
        self.sum(|key| has(key, "verb", &READS) && has(key, "resource", &OURS))
    }

    /// Writes of our resources at the API server.
    pub(crate) fn kubernetes_writes(&self) -> f64 {
        self.sum(|key| has(key, "verb", &WRITES) && has(key, "resource", &OURS))
    }

    /// Reads at the Kanidm server.
    pub(crate) fn kanidm_reads(&self) -> f64 {
        self.sum(|key| key.starts_with("GET "))
    }

    /// Everything else at the Kanidm server.
    pub(crate) fn kanidm_writes(&self) -> f64 {
        self.sum(|key| !key.starts_with("GET "))
    }

    /// In words, for whoever looks for what is behind a number.
    pub(crate) fn words(&self, is_asked: impl Fn(&str) -> bool) -> String {
        let asked = self.0.iter().filter(|(key, _)| is_asked(key));
        asked.map(|(key, count)| format!("{key} +{count}")).collect::<Vec<_>>().join("\n")
    }

    /// Adds a text to a log of counts.
    pub(crate) fn note(file: &Path, heading: &str, text: &str) -> Result<()> {
        use std::io::Write;
        let mut log =
            std::fs::OpenOptions::new().create(true).append(true).open(file).context("open the log of counts")?;
        writeln!(log, "== {heading}\n{text}\n").context("write the log of counts")
    }
}

/// Whether a sample's label has one of these values.
fn has(key: &str, label: &str, values: &[&str]) -> bool {
    // After what begins a label: `subresource` ends like `resource`.
    let found = ['{', ','].iter().find_map(|begin| key.split_once(&format!("{begin}{label}=\"")));
    found.and_then(|(_, rest)| rest.split('"').next()).is_some_and(|found| values.contains(&found))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(lines: &str) -> Counts {
        Counts::read(lines, "apiserver_request_total{")
    }

    #[test]
    fn reads_and_writes_of_ours_are_told_apart_and_the_lease_is_neither() {
        let sample = |verb: &str, resource: &str, count: u8| {
            format!(
                "apiserver_request_total{{code=\"200\",resource=\"{resource}\",subresource=\"\",verb=\"{verb}\"}} {count}\n"
            )
        };
        let before = counts(&sample("LIST", "pods", 1));
        let lines = [
            ("LIST", "pods", 3),
            ("PATCH", "events", 4),
            ("PUT", "leases", 8),
            ("WATCH", "pods", 16),
            ("GET", "nodes", 32),
        ];
        let grown = counts(&lines.map(|(verb, resource, count)| sample(verb, resource, count)).concat()).since(&before);
        assert_eq!((grown.kubernetes_reads(), grown.kubernetes_writes()), (2.0, 4.0));
    }

    #[test]
    fn only_what_grew_is_left() {
        let before = counts("apiserver_request_total{a=\"1\"} 3\napiserver_request_total{a=\"2\"} 1\n");
        let after = counts("apiserver_request_total{a=\"1\"} 3\napiserver_request_total{a=\"2\"} 2\n");
        assert_eq!(after.since(&before).0.into_values().collect::<Vec<_>>(), [1.0]);
    }

    #[test]
    fn a_server_is_only_read_by_get() {
        let counts =
            Counts([("GET /a".to_owned(), 1.0), ("PUT /a".to_owned(), 2.0), ("POST /a".to_owned(), 4.0)].into());
        assert_eq!((counts.kanidm_reads(), counts.kanidm_writes()), (1.0, 6.0));
    }
}
