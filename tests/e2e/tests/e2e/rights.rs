//! What the installed operator may do, as the API server judges it.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kaniop_core::rbac::{RULES, Scope};
use kaniop_e2e::cluster::Cluster;
use kaniop_e2e::setting;
use kube::api::{Api, PostParams};

async fn may(cluster: &Cluster, attributes: ResourceAttributes) -> bool {
    let namespace = setting("KANIOP_NAMESPACE");
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(format!("system:serviceaccount:{namespace}:kaniop")),
            groups: Some(vec!["system:serviceaccounts".to_owned(), "system:authenticated".to_owned()]),
            resource_attributes: Some(attributes),
            ..Default::default()
        },
        ..Default::default()
    };
    let api: Api<SubjectAccessReview> = Api::all(cluster.client.clone());
    api.create(&PostParams::default(), &review).await.unwrap().status.is_some_and(|status| status.allowed)
}

fn attributes(namespace: Option<&str>, group: &str, resource: &str, verb: &str) -> ResourceAttributes {
    let (resource, subresource) =
        resource.split_once('/').map_or((resource, None), |(resource, sub)| (resource, Some(sub.to_owned())));
    ResourceAttributes {
        namespace: namespace.map(str::to_owned),
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        subresource,
        verb: Some(verb.to_owned()),
        ..Default::default()
    }
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn the_operator_may_do_what_its_table_says() {
    let (cluster, own) = (Cluster::connect().await, setting("KANIOP_NAMESPACE"));
    for rule in RULES {
        let namespace = match rule.scope {
            Scope::Cluster | Scope::AllNamespaces => None,
            Scope::Watched => Some("default"),
            Scope::Own => Some(own.as_str()),
        };
        for resource in rule.resources {
            for verb in rule.verbs {
                let mut wanted = attributes(namespace, rule.group, resource, verb);
                wanted.name = rule.names.first().map(|name| (*name).to_owned());
                assert!(may(&cluster, wanted).await, "{verb} {resource} in {namespace:?}: {}", rule.why);
            }
        }
    }
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn the_operator_may_do_nothing_that_would_give_it_more_or_destroy_data() {
    let cluster = Cluster::connect().await;
    let refused = [
        ("", "persistentvolumeclaims", "create"),
        ("", "persistentvolumeclaims", "delete"),
        ("", "persistentvolumes", "get"),
        ("", "namespaces", "delete"),
        ("", "nodes", "get"),
        ("", "nodes/proxy", "get"),
        ("", "pods", "create"),
        ("", "pods/ephemeralcontainers", "patch"),
        ("", "serviceaccounts", "impersonate"),
        ("", "serviceaccounts/token", "create"),
        ("", "users", "impersonate"),
        ("apps", "deployments", "deletecollection"),
        ("apps", "daemonsets", "create"),
        ("apps", "statefulsets", "deletecollection"),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations", "create"),
        ("apiextensions.k8s.io", "customresourcedefinitions", "patch"),
        ("coordination.k8s.io", "leases", "update"),
        ("kaniop.rs", "kanidms", "delete"),
        ("kaniop.rs", "kanidmgroups/finalizers", "update"),
        ("kaniop.rs", "kanidmpersonaccounts", "create"),
        ("kaniop.rs", "kanidmgroups/finalizers", "update"),
        ("rbac.authorization.k8s.io", "clusterroles", "escalate"),
        ("rbac.authorization.k8s.io", "clusterrolebindings", "create"),
        ("rbac.authorization.k8s.io", "rolebindings", "create"),
    ];
    for (group, resource, verb) in refused {
        for namespace in [None, Some("default"), Some("kube-system")] {
            assert!(
                !may(&cluster, attributes(namespace, group, resource, verb)).await,
                "{verb} {resource} in {namespace:?}"
            );
        }
    }
}
