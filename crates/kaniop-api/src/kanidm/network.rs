//! How clients reach the servers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The Service that clients use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceOptions {
    /// Annotations of the Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Type of the Service, `ClusterIP` when absent.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<ServiceType>,
    /// Labels besides the operator's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_labels: Option<BTreeMap<String, String>>,
}

/// Types of Service that a Kanidm can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ServiceType {
    /// An address inside the cluster.
    ClusterIP,
    /// A port on every node.
    NodePort,
    /// An address from the cloud.
    LoadBalancer,
}

/// An Ingress for the domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressOptions {
    /// Annotations of the Ingress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Class of the Ingress; the cluster's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub ingress_class_name: Option<String>,
    /// Secret with the certificate that the Ingress shows, `<name>-tls` when absent. The servers use it too where `spec.tlsSecretName` names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub tls_secret_name: Option<String>,
    /// Hosts of the certificate besides the domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub extra_tls_hosts: Option<Vec<String>>,
}

/// An Ingress for one region: host `<region>.<domain>`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegionIngressOptions {
    /// Name of the region, a DNS label.
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub region: String,
    /// Annotations of the Ingress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Class of the Ingress; the cluster's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub ingress_class_name: Option<String>,
    /// Secret with the certificate that the Ingress shows, `<name>-region-tls` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub tls_secret_name: Option<String>,
}

/// A route of the Gateway API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewayOptions {
    /// The Gateways that the HTTPRoute attaches to.
    #[schemars(length(max = 32))]
    #[x_kube(validation = ("self.size() >= 1", "At least one ParentRef is required"))]
    pub parent_refs: Vec<ParentRef>,
    /// Host names of the route; the domain when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 253)))]
    pub hostnames: Option<Vec<String>>,
    /// Annotations of the HTTPRoute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Rules of the HTTPRoute as the Gateway API has them; one that sends everything to the Service when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16))]
    pub rules: Option<Vec<RouteRule>>,
    /// How the Gateway verifies the servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend_tls_policy: Option<BackendTlsPolicyOptions>,
}

/// One rule of an HTTPRoute. What may stand in it depends on the release of the Gateway API, so that judges it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RouteRule(pub Map<String, Value>);

impl JsonSchema for RouteRule {
    fn schema_name() -> Cow<'static, str> {
        "RouteRule".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
    }
}

/// A Gateway, or one of its listeners.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParentRef {
    /// API group, `gateway.networking.k8s.io` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub group: Option<String>,
    /// Kind, `Gateway` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub kind: Option<String>,
    /// Namespace, the Kanidm's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
    /// Name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Listener; all of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub section_name: Option<String>,
    /// Port of the listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
}

/// A BackendTLSPolicy for the Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackendTlsPolicyOptions {
    /// Annotations of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// What the servers' certificate must be.
    #[serde(default)]
    pub validation: BackendTlsValidation,
}

/// What the servers' certificate must be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackendTlsValidation {
    /// Name in the certificate; the domain when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub hostname: Option<String>,
    /// Well-known authorities, `System`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub well_known_ca_certificates: Option<String>,
    /// ConfigMaps with authorities, key `ca.crt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8))]
    pub ca_certificate_refs: Option<Vec<CaCertificateRef>>,
}

/// An object with authorities.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaCertificateRef {
    /// API group, empty for the core group.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub group: String,
    /// Kind, for example `ConfigMap`.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Something that is there or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Toggle {
    /// Whether it is there.
    pub enabled: bool,
}
