//! What users add to the pods, and what stays ours.

use k8s_openapi::api::core::v1::{Container, PodSpec};

use super::*;

fn pod(kanidm: &Kanidm) -> PodSpec {
    statefulset(kanidm, &fresh()).unwrap().spec.unwrap().template.spec.unwrap()
}

fn with(field: &str, value: &str) -> Kanidm {
    let mut object = serde_json::to_value(minimal()).unwrap();
    object["spec"][field] = serde_norway::from_str(value).unwrap();
    serde_json::from_value(object).unwrap()
}

/// What Pod Security *restricted* asks of a pod and of each of its containers, for what our pods can hold.
fn offences(pod: &PodSpec) -> Vec<String> {
    let of_pod = pod.security_context.clone().unwrap_or_default();
    let all = || pod.containers.iter().chain(pod.init_containers.iter().flatten());
    let mut offences = Vec::new();
    let mut ask = |holds: bool, what: String| {
        if !holds {
            offences.push(what);
        }
    };
    ask(of_pod.run_as_non_root == Some(true), "runAsNonRoot".to_owned());
    ask(of_pod.run_as_user != Some(0), "runAsUser".to_owned());
    let profile = of_pod.seccomp_profile.map(|profile| profile.type_);
    ask(profile.as_deref() == Some("RuntimeDefault"), "seccompProfile".to_owned());
    ask(
        !(pod.host_network == Some(true) || pod.host_pid == Some(true) || pod.host_ipc == Some(true)),
        "host".to_owned(),
    );
    for volume in pod.volumes.iter().flatten() {
        let kinds = serde_json::to_value(volume).unwrap();
        let free = [
            "name",
            "configMap",
            "csi",
            "downwardAPI",
            "emptyDir",
            "ephemeral",
            "persistentVolumeClaim",
            "projected",
            "secret",
        ];
        ask(kinds.as_object().unwrap().keys().all(|kind| free.contains(&kind.as_str())), volume.name.clone());
    }
    for Container { name, security_context, ports, .. } in all() {
        let context = security_context.clone().unwrap_or_default();
        let capabilities = context.capabilities.unwrap_or_default();
        ask(context.allow_privilege_escalation == Some(false), format!("{name}: allowPrivilegeEscalation"));
        ask(capabilities.drop.is_some_and(|drop| drop == ["ALL"]), format!("{name}: capabilities.drop"));
        ask(capabilities.add.is_none_or(|add| add == ["NET_BIND_SERVICE"]), format!("{name}: capabilities.add"));
        ask(context.run_as_user != Some(0) && context.run_as_non_root != Some(false), format!("{name}: root"));
        ask(context.privileged != Some(true), format!("{name}: privileged"));
        ask(ports.iter().flatten().all(|port| port.host_port.is_none()), format!("{name}: hostPort"));
    }
    offences
}

#[test]
fn with_defaults_only_a_pod_and_whatever_stands_beside_the_server_is_restricted() {
    assert_eq!(offences(&pod(&minimal())), Vec::<String>::new());
    for field in ["containers", "initContainers"] {
        let kanidm = with(field, "[{name: more, image: i, ports: [{containerPort: 9100}]}]");
        assert_eq!(offences(&pod(&kanidm)), Vec::<String>::new(), "{field}");
    }
}

#[test]
fn whoever_asks_for_less_security_gets_it() {
    for (field, value, offence) in [
        ("securityContext", "{runAsUser: 0}", "runAsNonRoot"),
        (
            "containers",
            "[{name: kanidm, securityContext: {allowPrivilegeEscalation: true}}]",
            "kanidm: allowPrivilegeEscalation",
        ),
        ("containers", "[{name: more, image: i, securityContext: {runAsUser: 0}}]", "more: root"),
        ("initContainers", "[{name: node, securityContext: {privileged: true}}]", "node: privileged"),
    ] {
        let offences = offences(&pod(&with(field, value)));
        assert!(offences.contains(&offence.to_owned()), "{field}: {offences:?}");
    }
}

#[test]
fn a_privileged_container_is_not_kept_from_becoming_so() {
    let pod = pod(&with("containers", "[{name: more, image: i, securityContext: {privileged: true}}]"));
    assert_eq!(pod.containers[1].security_context.as_ref().unwrap().allow_privilege_escalation, None);
}

#[test]
fn no_patch_takes_from_a_container_what_the_server_cannot_live_without() {
    let before = pod(&minimal());
    let patch = "[{name: kanidm, env: [{name: POD_NAME, value: x}, {name: KANIDM_CONFIG, value: x}, {name: KANIDM_DB_PATH, value: x}],
        ports: [{name: https, containerPort: 8443, protocol: TCP}], volumeMounts: [{name: tls, mountPath: /etc/kanidm/tls/, readOnly: false}]}]";
    assert_eq!(pod(&with("containers", patch)), before);
    let patch = "[{name: node, args: [x], restartPolicy: Always, volumeMounts: [{name: node, mountPath: /kaniop, readOnly: true}]}]";
    assert_eq!(pod(&with("initContainers", patch)), before);
}

#[test]
fn a_probe_of_a_user_asks_in_its_own_way_alone() {
    let pod = pod(&with("containers", "[{name: kanidm, startupProbe: {httpGet: {port: 8443}}}]"));
    let probe = pod.containers[0].startup_probe.clone().unwrap();
    assert!(probe.exec.is_none() && probe.http_get.is_some());
    assert_eq!(probe.failure_threshold, Some(900), "what is not said stays ours");
}

#[test]
fn a_helper_from_a_mirror_stays_there_when_the_operator_is_upgraded() {
    let kanidm = with("initContainers", "[{name: node, image: mirror.example.com/kaniop}]");
    let image = |helper| {
        let set = statefulset(&kanidm, &Surroundings { helper_image: helper, ..fresh() }).unwrap();
        let pod = set.spec.as_ref().unwrap().template.spec.clone().unwrap();
        (template_hash(&set).unwrap().to_owned(), pod.init_containers.unwrap()[0].image.clone().unwrap())
    };
    assert_eq!(image("kaniop:1"), image("kaniop:2"));
    assert_eq!(image("kaniop:1").1, "mirror.example.com/kaniop");
}

#[test]
fn a_volume_inside_the_database_s_volume_is_possible() {
    let kanidm = with("volumeMounts", "[{name: b, mountPath: /data/backups}]");
    let mounts = pod(&kanidm).containers[0].volume_mounts.clone().unwrap();
    assert!(mounts.iter().any(|mount| mount.mount_path == "/data/backups"));
}

mod whatever_is_added {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Names and paths from a small choice, so that many are ours or meet.
    fn additions() -> impl Strategy<Value = Kanidm> {
        let name = || prop::sample::select(vec!["kanidm", "node", "tls", "config", "kanidm-data", "a", "b", "c"]);
        let path = prop::sample::select(vec![
            "/",
            "/a",
            "/a/",
            "/data",
            "/data/b",
            "/etc/kanidm/tls",
            "/etc/kanidm/config/x",
            "/kaniop/",
            "/b",
        ]);
        let mount = (name(), path).prop_map(|(name, path)| json!({"name": name, "mountPath": path}));
        let mounts = prop::collection::vec(mount, 0..3);
        let env = prop::collection::vec(prop::sample::select(vec!["POD_NAME", "KANIDM_CONFIG", "A"]), 0..3)
            .prop_map(|names| names.into_iter().map(|name| json!({"name": name, "value": "x"})).collect::<Vec<_>>());
        let port = (prop::sample::select(vec!["https", "x", "y"]), prop::sample::select(vec![8443, 8444, 9000]))
            .prop_map(|(name, port)| json!([{"name": name, "containerPort": port}]));
        let container = (name(), mounts.clone(), env, port).prop_map(|(name, mounts, env, ports)| {
            let ours = ["kanidm", "node"].contains(&name);
            let image = if ours { Value::Null } else { json!("i") };
            json!({"name": name, "image": image, "volumeMounts": mounts, "env": env, "ports": ports, "args": ["x"]})
        });
        let containers = || prop::collection::vec(container.clone(), 0..3);
        let volumes = prop::collection::vec(name().prop_map(|name| json!({"name": name, "emptyDir": {}})), 0..3);
        (containers(), containers(), volumes, mounts).prop_map(|(containers, before, volumes, mounts)| {
            let mut object = serde_json::to_value(minimal()).unwrap();
            for (field, value) in
                [("containers", containers), ("initContainers", before), ("volumes", volumes), ("volumeMounts", mounts)]
            {
                object["spec"][field] = value.into();
            }
            serde_json::from_value(object).unwrap()
        })
    }

    fn are_unique<T: Ord>(items: impl IntoIterator<Item = T>) -> bool {
        let mut seen = BTreeSet::new();
        items.into_iter().all(|item| seen.insert(item))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 768, ..ProptestConfig::default() })]

        #[test]
        fn a_spec_that_is_not_refused_has_every_name_once_and_all_that_is_ours(kanidm in additions()) {
            if validate(&kanidm).is_err() {
                return Ok(());
            }
            let (plain, pod) = (pod(&minimal()), pod(&kanidm));
            let all = || pod.containers.iter().chain(pod.init_containers.iter().flatten());
            prop_assert!(are_unique(all().map(|container| &container.name)));
            prop_assert!(are_unique(pod.volumes.iter().flatten().map(|volume| &volume.name)));
            prop_assert_eq!(&pod.containers[0].name, "kanidm");
            let ours = plain.containers.iter().chain(plain.init_containers.iter().flatten());
            for (ours, made) in ours.zip([&pod.containers[0], &pod.init_containers.as_ref().unwrap()[0]]) {
                prop_assert!(are_unique(made.volume_mounts.iter().flatten().map(|mount| mount.mount_path.trim_end_matches('/'))));
                prop_assert!(are_unique(made.env.iter().flatten().map(|variable| &variable.name)));
                let mounts = made.volume_mounts.clone().unwrap();
                prop_assert!(ours.volume_mounts.iter().flatten().all(|mount| mounts.contains(mount)));
                let env = made.env.clone().unwrap();
                prop_assert!(ours.env.iter().flatten().all(|variable| env.contains(variable)));
                let ports = made.ports.clone().unwrap_or_default();
                prop_assert!(ours.ports.iter().flatten().all(|port| ports.contains(port)));
            }
            prop_assert_eq!(&pod.init_containers.unwrap()[0].args, &plain.init_containers.unwrap()[0].args);
        }
    }
}
