//! What the operator may do to the Kubernetes API, as data: the chart's roles are generated from this table.
//!
//! Least privilege starts here: a rule is added with the code that needs it, with the reason beside it, and removed with that code.
//! Nothing here grants anything; `cargo xtask gen` writes the roles, the chart binds them.

/// Where a rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Objects that have no namespace; needed wherever the operator is installed.
    Cluster,
    /// Objects that have no namespace; needed only when all namespaces are watched.
    AllNamespaces,
    /// The namespaces that the operator watches: all of them, or the one that it is told.
    Watched,
    /// The operator's own namespace only.
    Own,
}

/// Verbs on some resources of one API group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Where it holds.
    pub scope: Scope,
    /// API group, empty for the core group.
    pub group: &'static str,
    /// Plural names, with `/subresource` where one is meant.
    pub resources: &'static [&'static str],
    /// Names of the only objects that are meant; empty for all.
    pub names: &'static [&'static str],
    /// What may be done.
    pub verbs: &'static [&'static str],
    /// Why the operator needs it: one sentence, which is written into the chart as a comment.
    pub why: &'static str,
}

/// Every rule, by scope, then group, then resource.
pub const RULES: &[Rule] = &[
    Rule {
        scope: Scope::Cluster,
        group: "apiextensions.k8s.io",
        resources: &["customresourcedefinitions"],
        names: &[
            "kanidmgroups.kaniop.rs",
            "kanidmoauth2clients.kaniop.rs",
            "kanidmpersonaccounts.kaniop.rs",
            "kanidmserviceaccounts.kaniop.rs",
        ],
        verbs: &["get"],
        why: "When a kind itself is being removed, its objects go without their entries.",
    },
    Rule {
        scope: Scope::AllNamespaces,
        group: "",
        resources: &["namespaces"],
        names: &[],
        verbs: &["list", "watch"],
        why: "The namespace selectors of a Kanidm choose by labels.",
    },
    Rule {
        scope: Scope::AllNamespaces,
        group: "storage.k8s.io",
        resources: &["storageclasses"],
        names: &[],
        verbs: &["get"],
        why: "Whether volumes can grow; where it may not be read, the API server's refusal is told instead.",
    },
    Rule {
        scope: Scope::Watched,
        group: "",
        resources: &["namespaces"],
        names: &[],
        verbs: &["get"],
        why: "In a namespace that ends, objects are released even when their server does not answer.",
    },
    Rule {
        scope: Scope::Watched,
        group: "",
        resources: &["persistentvolumeclaims"],
        names: &[],
        verbs: &["list", "watch", "patch"],
        why: "A larger size in the spec is asked of the claims that exist, none is ever deleted; and a primary that came back empty is not set \
              up anew while another claim may hold the domain.",
    },
    Rule {
        scope: Scope::Watched,
        group: "",
        resources: &["pods"],
        names: &[],
        verbs: &["get", "list", "watch", "delete"],
        why: "Servers are watched, and restarted one by one: rollouts are the operator's, so it deletes the pod that is next.",
    },
    Rule {
        scope: Scope::Watched,
        group: "",
        resources: &["pods/exec"],
        names: &[],
        verbs: &["get", "create"],
        why: "The first administrators are set up through the admin socket in the pod, which no network reaches.",
    },
    Rule {
        scope: Scope::Watched,
        group: "",
        resources: &["secrets"],
        names: &[],
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        why: "TLS Secrets are read, credentials and server configuration are written; list and watch ask for metadata only, \
              which roles cannot express.",
    },
    Rule {
        scope: Scope::Watched,
        group: "",
        resources: &["services"],
        names: &[],
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        why: "How clients and nodes reach the servers.",
    },
    Rule {
        scope: Scope::Watched,
        group: "apps",
        resources: &["deployments"],
        names: &[],
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        why: "What serves beside the servers; one that is not wanted any more is removed.",
    },
    Rule {
        scope: Scope::Watched,
        group: "apps",
        resources: &["statefulsets"],
        names: &[],
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        why: "One for each replica group; one whose group is gone is deleted when it has no pods left.",
    },
    Rule {
        scope: Scope::Watched,
        group: "events.k8s.io",
        resources: &["events"],
        names: &[],
        verbs: &["create", "patch"],
        why: "Transitions are told as events.",
    },
    Rule {
        scope: Scope::Watched,
        group: "gateway.networking.k8s.io",
        resources: &["backendtlspolicies", "httproutes"],
        names: &[],
        verbs: &["get", "list", "create", "patch", "delete"],
        why: "How clients reach the servers through a Gateway; the kinds may be installed later.",
    },
    Rule {
        scope: Scope::Watched,
        group: "kaniop.rs",
        resources: &["kanidmgroups", "kanidmoauth2clients", "kanidmpersonaccounts", "kanidms", "kanidmserviceaccounts"],
        names: &[],
        verbs: &["get", "list", "watch", "patch"],
        why: "What users write; patch sets and removes the finalizer.",
    },
    Rule {
        scope: Scope::Watched,
        group: "kaniop.rs",
        resources: &[
            "kanidmoauth2clients/finalizers",
            "kanidmpersonaccounts/finalizers",
            "kanidms/finalizers",
            "kanidmserviceaccounts/finalizers",
        ],
        names: &[],
        verbs: &["update"],
        why: "Children and Secrets name their object as owner, which some clusters allow only with this.",
    },
    Rule {
        scope: Scope::Watched,
        group: "kaniop.rs",
        resources: &[
            "kanidmgroups/status",
            "kanidmoauth2clients/status",
            "kanidmpersonaccounts/status",
            "kanidms/status",
            "kanidmserviceaccounts/status",
        ],
        names: &[],
        verbs: &["patch"],
        why: "What was observed is reported.",
    },
    Rule {
        scope: Scope::Watched,
        group: "networking.k8s.io",
        resources: &["ingresses", "networkpolicies"],
        names: &[],
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        why: "How clients reach the servers, and who else may.",
    },
    Rule {
        scope: Scope::Watched,
        group: "policy",
        resources: &["poddisruptionbudgets"],
        names: &[],
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        why: "Machines are emptied one by one without stopping all servers at once.",
    },
    Rule {
        scope: Scope::Own,
        group: "coordination.k8s.io",
        resources: &["leases"],
        names: &[],
        verbs: &["get", "create", "update"],
        why: "One operator acts at a time.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_granted_by_wildcard() {
        for rule in RULES {
            assert!(!rule.verbs.contains(&"*") && !rule.resources.contains(&"*") && rule.group != "*", "{rule:?}");
        }
    }

    #[test]
    fn every_rule_says_why_in_one_sentence() {
        for rule in RULES {
            assert!(rule.why.ends_with('.') && !rule.why.contains('\n') && rule.why.len() > 20, "{rule:?}");
        }
    }

    #[test]
    fn roles_bindings_and_webhooks_are_out_of_reach() {
        for rule in RULES {
            assert!(!["rbac.authorization.k8s.io", "admissionregistration.k8s.io"].contains(&rule.group), "{rule:?}");
            assert!(rule.group != "apiextensions.k8s.io" || rule.verbs == ["get"], "{rule:?}");
            assert!(
                !rule.resources.iter().any(|r| r.starts_with("serviceaccounts") || r.starts_with("nodes")),
                "{rule:?}"
            );
        }
    }
}
