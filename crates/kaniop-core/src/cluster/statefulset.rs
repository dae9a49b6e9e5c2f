//! The StatefulSet of a replica group: what is immutable in it is taken from the live one, and a hash says whether its pods must be restarted.
//!
//! A pod that dies is always made again from the newest template, so nothing that must not happen yet may ever enter one.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kaniop_api::kanidm::ReplicaGroup;

use super::storage::Storage;
use super::validate::ValidatedCluster;
use super::{Surroundings, hash, labels, metadata, names, pod, scale, server_config};

/// The StatefulSet of a group, or none while it could not start: before there has been a certificate.
pub(super) fn of_group(
    cluster: &ValidatedCluster,
    group: &ReplicaGroup,
    around: &Surroundings<'_>,
) -> Option<StatefulSet> {
    let name = names::statefulset(&cluster.name, &group.name);
    let live = around.live.iter().find(|live| live.metadata.name.as_deref() == Some(&name));
    let live_spec = live.and_then(|live| live.spec.as_ref());
    // While the certificate is missing or unusable, the servers keep running with what they have loaded.
    let tls_hash =
        around.tls_hash.map(str::to_owned).or_else(|| annotation(live?, labels::TLS_HASH).map(str::to_owned));
    if tls_hash.is_none() && live.is_none() {
        return None;
    }
    let storage = cluster.storage.settled(live);
    let (replicas, _) = scale::replicas(cluster, group, live_replicas(live), around);
    let selector = live_spec.map_or_else(|| own_selector(cluster, group), |spec| spec.selector.clone());
    let template = template(cluster, group, TemplateParts { storage: &storage, selector: &selector, tls_hash, around });
    let mut metadata = metadata(cluster, name);
    if let Some(labels) = &mut metadata.labels {
        labels.insert(labels::REPLICA_GROUP.to_owned(), group.name.clone());
    }
    metadata.annotations.clone_from(&group.stateful_set_annotations);
    Some(StatefulSet {
        metadata,
        spec: Some(StatefulSetSpec {
            replicas: Some(replicas),
            min_ready_seconds: cluster.spec.min_ready_seconds,
            service_name: Some(
                live_spec
                    .and_then(|spec| spec.service_name.clone())
                    .unwrap_or_else(|| names::peer_service(&cluster.name)),
            ),
            // Nodes do not wait for each other: one that cannot start must not keep the others down.
            pod_management_policy: Some(
                live_spec.and_then(|spec| spec.pod_management_policy.clone()).unwrap_or_else(|| "Parallel".to_owned()),
            ),
            // Which pod is restarted, and when, is the operator's decision.
            update_strategy: Some(StatefulSetUpdateStrategy {
                type_: Some("OnDelete".to_owned()),
                rolling_update: None,
            }),
            volume_claim_templates: match storage {
                Storage::Claim(claim) => Some(vec![*claim]),
                Storage::Volume(_) => None,
            },
            persistent_volume_claim_retention_policy: cluster.spec.persistent_volume_claim_retention_policy.clone(),
            selector,
            template,
            ..StatefulSetSpec::default()
        }),
        status: None,
    })
}

struct TemplateParts<'a> {
    storage: &'a Storage,
    selector: &'a LabelSelector,
    tls_hash: Option<String>,
    around: &'a Surroundings<'a>,
}

fn template(cluster: &ValidatedCluster, group: &ReplicaGroup, parts: TemplateParts<'_>) -> PodTemplateSpec {
    let options = cluster.spec.pod_template.as_ref();
    let mut pod_labels = labels::common(&cluster.name);
    pod_labels.extend(labels::group(&cluster.name, &group.name));
    // The selector may be that of an older release, and a template that it does not match is refused.
    pod_labels.extend(parts.selector.match_labels.clone().unwrap_or_default());
    let pod_labels = labels::under(options.and_then(|options| options.labels.as_ref()), pod_labels);
    let mut annotations = BTreeMap::from([(labels::CONFIG_HASH.to_owned(), server_config::group_hash(cluster, group))]);
    annotations.extend(parts.tls_hash.map(|hash| (labels::TLS_HASH.to_owned(), hash)));
    let annotations = labels::under(options.and_then(|options| options.annotations.as_ref()), annotations);
    let mut template = PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(pod_labels),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        }),
        spec: Some(pod::spec(cluster, group, parts.storage, "")),
    };
    // Taken while the helper's image is blank: a new operator brings a new helper, and that restarts nothing.
    let hash = hash::of_manifest(&template);
    if let Some(annotations) = template.metadata.as_mut().and_then(|metadata| metadata.annotations.as_mut()) {
        annotations.insert(labels::TEMPLATE_HASH.to_owned(), hash);
    }
    template.spec = Some(pod::spec(cluster, group, parts.storage, parts.around.helper_image));
    template
}

/// The database volume of a group's nodes.
pub(super) fn storage(cluster: &ValidatedCluster, group: &ReplicaGroup, around: &Surroundings<'_>) -> Storage {
    let name = names::statefulset(&cluster.name, &group.name);
    cluster.storage.settled(around.live.iter().find(|live| live.metadata.name.as_deref() == Some(&name)))
}

/// How many nodes a group has now.
pub(super) fn live_replicas(live: Option<&StatefulSet>) -> i32 {
    live.and_then(|live| live.spec.as_ref()?.replicas).unwrap_or_default()
}

fn own_selector(cluster: &ValidatedCluster, group: &ReplicaGroup) -> LabelSelector {
    LabelSelector { match_labels: Some(labels::group(&cluster.name, &group.name)), match_expressions: None }
}

/// An annotation of a StatefulSet's pods.
pub(super) fn annotation<'a>(statefulset: &'a StatefulSet, key: &str) -> Option<&'a str> {
    let template = &statefulset.spec.as_ref()?.template;
    template.metadata.as_ref()?.annotations.as_ref()?.get(key).map(String::as_str)
}
