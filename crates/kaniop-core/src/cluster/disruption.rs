//! The PodDisruptionBudget: machines can be emptied without stopping all servers at once.

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::validate::ValidatedCluster;
use super::{labels, metadata};

/// The budget, if the spec asks for it or there are several nodes. It never keeps the last node on its machine: that would only stop the emptying.
pub(super) fn budget(cluster: &ValidatedCluster) -> Option<PodDisruptionBudget> {
    let enabled = cluster.spec.pod_disruption_budget.map_or(cluster.replicas() > 1, |asked| asked.enabled);
    enabled.then(|| PodDisruptionBudget {
        metadata: metadata(cluster, cluster.name.clone()),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(1)),
            selector: Some(LabelSelector {
                match_labels: Some(labels::servers(&cluster.name)),
                match_expressions: None,
            }),
            ..PodDisruptionBudgetSpec::default()
        }),
        status: None,
    })
}
