//! Counts what is written and read: by the API server's own metrics, by the operator's, by the versions of objects.

use std::collections::BTreeMap;

use http::Request;
use kube::ResourceExt;
use kube::api::ListParams;

use crate::cluster::Cluster;
use crate::setting;

/// Verbs of the API server's metrics that change something.
const WRITES: &[&str] = &["POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"];
/// Resources that an operator at rest must not write. Leases are left out: the election renews one, and so does every node.
const OURS: &[&str] = &[
    "kanidms",
    "kanidmgroups",
    "kanidmpersonaccounts",
    "kanidmoauth2clients",
    "kanidmserviceaccounts",
    "secrets",
    "services",
    "statefulsets",
    "events",
    "persistentvolumeclaims",
    "configmaps",
];
/// Kinds whose objects' versions must stand still.
const KINDS: &[&str] = &[
    "Kanidm",
    "KanidmGroup",
    "KanidmPersonAccount",
    "KanidmOAuth2Client",
    "KanidmServiceAccount",
    "Secret",
    "Service",
    "StatefulSet",
    "PersistentVolumeClaim",
];

/// Samples of a metrics page: name and labels, value.
pub type Samples = BTreeMap<String, f64>;

impl Cluster {
    /// How often each of our resources was written, by anybody, since the API server started.
    ///
    /// # Panics
    /// When the API server does not tell.
    pub async fn writes(&self) -> Samples {
        let page = self.client.request_text(Request::get("/metrics").body(Vec::new()).unwrap()).await.unwrap();
        let mut counts = samples(&page, "apiserver_request_total{");
        counts.retain(|key, _| {
            let written = WRITES.iter().any(|verb| key.contains(&format!("verb=\"{verb}\"")));
            written && OURS.iter().any(|resource| key.contains(&format!("resource=\"{resource}\"")))
        });
        counts
    }

    /// How often the operator asked Kanidm servers for what, since it started.
    ///
    /// # Panics
    /// When the operator does not tell.
    pub async fn kanidm_requests(&self) -> Samples {
        let (pod, namespace) = (self.operator().await.name_any(), setting("KANIOP_NAMESPACE"));
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}:8080/proxy/metrics");
        let page = self.client.request_text(Request::get(path).body(Vec::new()).unwrap()).await.unwrap();
        let counts = samples(&page, "kaniop_kanidm_requests_total{");
        assert!(!counts.is_empty(), "the operator's metrics have no kaniop_kanidm_requests_total:\n{page}");
        counts
    }

    /// The version of every object of ours in a namespace.
    ///
    /// # Panics
    /// When they cannot be listed.
    pub async fn versions(&self, namespace: &str) -> BTreeMap<String, String> {
        let mut versions = BTreeMap::new();
        for kind in KINDS {
            for object in self.api(kind, namespace).list(&ListParams::default()).await.unwrap() {
                versions.insert(format!("{kind} {}", object.name_any()), object.resource_version().unwrap_or_default());
            }
        }
        versions
    }
}

/// What grew between two samples, and by how much.
#[must_use]
pub fn growth(before: &Samples, after: &Samples) -> Samples {
    let grown = after.iter().map(|(key, count)| (key.clone(), count - before.get(key).copied().unwrap_or_default()));
    grown.filter(|(_, by)| *by != 0.0).collect()
}

fn samples(page: &str, prefix: &str) -> Samples {
    let lines = page.lines().filter(|line| line.starts_with(prefix));
    lines
        .filter_map(|line| line.rsplit_once(' '))
        .filter_map(|(key, value)| Some((key.to_owned(), value.parse().ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_grew_is_shown() {
        let before = samples("a{x=\"1\"} 3\na{x=\"2\"} 1\nb 9\n", "a{");
        let after = samples("a{x=\"1\"} 3\na{x=\"2\"} 2\na{x=\"3\"} 1\n", "a{");
        let grown: Vec<_> = growth(&before, &after).into_iter().collect();
        assert_eq!(grown, [("a{x=\"2\"}".to_owned(), 1.0), ("a{x=\"3\"}".to_owned(), 1.0)]);
    }
}
