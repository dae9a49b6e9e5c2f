//! The Gateway API: an HTTPRoute, and the BackendTLSPolicy that says how a Gateway verifies the servers. Its kinds come with a Gateway's installation,
//! perhaps later and perhaps never, so objects are built only of those that are there, in a version that is served.

use kube::core::ApiResource;
use serde_json::{Map, Value, json};

use super::child::Child;
use super::status::Obstacle;
use super::validate::ValidatedCluster;
use super::{metadata, names};
use crate::reason::Reason;

/// API group of the kinds.
pub const GROUP: &str = "gateway.networking.k8s.io";
/// Versions that can be written, the best first.
pub const VERSIONS: [&str; 2] = ["v1", "v1alpha3"];
const ROUTE: &str = "HTTPRoute";
const POLICY: &str = "BackendTLSPolicy";

/// Which of the kinds the API server has, each in the best version that can be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    route: Option<&'static str>,
    policy: Option<&'static str>,
}

impl Installed {
    /// With what a version is found to have. Versions are told in the order of [`VERSIONS`].
    #[must_use]
    pub fn with(self, version: &'static str, kinds: &[&str]) -> Self {
        // An HTTPRoute has been in v1 since before there was a policy of this form.
        let route = (version == "v1" && kinds.contains(&ROUTE)).then_some(version);
        let policy = kinds.contains(&POLICY).then_some(version);
        Self { route: self.route.or(route), policy: self.policy.or(policy) }
    }

    /// Whether nothing more can be found.
    #[must_use]
    pub const fn is_complete(self) -> bool {
        self.route.is_some() && self.policy.is_some()
    }

    /// The kinds that are there.
    #[must_use]
    pub fn kinds(self) -> Vec<ApiResource> {
        [self.route.map(route_kind), self.policy.map(policy_kind)].into_iter().flatten().collect()
    }
}

fn route_kind(version: &str) -> ApiResource {
    kind(ROUTE, version, "httproutes")
}

fn policy_kind(version: &str) -> ApiResource {
    kind(POLICY, version, "backendtlspolicies")
}

fn kind(kind: &str, version: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: GROUP.to_owned(),
        version: version.to_owned(),
        api_version: format!("{GROUP}/{version}"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// What is asked for and can be made of the kinds that are there.
pub(super) fn children(cluster: &ValidatedCluster, installed: Installed) -> Vec<Child> {
    [
        installed.route.and_then(|version| route(cluster, version)),
        installed.policy.and_then(|version| policy(cluster, version)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What is asked for and cannot be made, for its kind is not installed.
#[must_use]
pub fn missing(cluster: &ValidatedCluster, installed: Installed) -> Option<Obstacle> {
    let options = cluster.spec.gateway.as_ref()?;
    let route = installed.route.is_none().then_some((ROUTE, "spec.gateway", "1.0"));
    let policy = (options.backend_tls_policy.is_some() && installed.policy.is_none()).then_some((
        POLICY,
        "spec.gateway.backendTlsPolicy",
        "1.1",
    ));
    // Where all are missing, one installation brings them all.
    let (kind, field, release) = policy.or(route)?;
    let field = route.map_or(field, |(_, field, _)| field);
    let message = format!(
        "Kind {kind} of the Gateway API is not installed, so {field} is not carried out; everything else is. Install the CRDs of the Gateway API \
         (https://gateway-api.sigs.k8s.io, release {release} or newer), which is noticed within one interval, or take {field} out."
    );
    Some(Obstacle::known(Reason::GatewayApiMissing, message))
}

fn route(cluster: &ValidatedCluster, version: &str) -> Option<Child> {
    let options = cluster.spec.gateway.as_ref()?;
    let mut metadata = metadata(cluster, cluster.name.clone());
    metadata.annotations = options.annotations.clone();
    let everything = || json!([{"backendRefs": [{"name": cluster.name, "port": names::HTTPS_PORT}]}]);
    let spec = json!({
        "parentRefs": options.parent_refs,
        "hostnames": options.hostnames.clone().unwrap_or_else(|| vec![cluster.spec.domain.clone()]),
        "rules": options.rules.as_ref().map_or_else(everything, |rules| json!(rules)),
    });
    Some(child(route_kind(version), json!(metadata), spec))
}

fn policy(cluster: &ValidatedCluster, version: &str) -> Option<Child> {
    let options = cluster.spec.gateway.as_ref()?.backend_tls_policy.as_ref()?;
    let mut metadata = metadata(cluster, cluster.name.clone());
    metadata.annotations = options.annotations.clone();
    let asked = &options.validation;
    let hostname = asked.hostname.as_ref().unwrap_or(&cluster.spec.domain);
    let mut validation = Map::from_iter([("hostname".to_owned(), json!(hostname))]);
    if let Some(well_known) = &asked.well_known_ca_certificates {
        validation.insert("wellKnownCACertificates".to_owned(), json!(well_known));
    }
    if let Some(refs) = &asked.ca_certificate_refs {
        validation.insert("caCertificateRefs".to_owned(), json!(refs));
    }
    let spec = json!({
        "targetRefs": [{"group": "", "kind": "Service", "name": cluster.name}],
        "validation": validation,
    });
    Some(child(policy_kind(version), json!(metadata), spec))
}

fn child(kind: ApiResource, metadata: Value, spec: Value) -> Child {
    let manifest = json!({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec});
    Child { kind, manifest, apart: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_version_that_is_served_is_taken() {
        let versions = |installed: Installed| -> Vec<_> {
            installed.kinds().into_iter().map(|kind| format!("{} {}", kind.kind, kind.version)).collect()
        };
        let route = Installed::default().with("v1", &["Gateway", ROUTE]);
        assert_eq!(versions(route), ["HTTPRoute v1"]);
        assert!(!route.is_complete());
        let older = route.with("v1alpha3", &[POLICY, "TLSRoute"]);
        assert_eq!(versions(older), ["HTTPRoute v1", "BackendTLSPolicy v1alpha3"]);
        let newer = Installed::default().with("v1", &[ROUTE, POLICY]).with("v1alpha3", &[POLICY]);
        assert_eq!(versions(newer), ["HTTPRoute v1", "BackendTLSPolicy v1"]);
        assert!(newer.is_complete());
    }
}
