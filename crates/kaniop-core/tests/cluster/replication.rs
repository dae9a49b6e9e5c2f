//! Which node knows which, by whose certificate; and what of it restarts whom.

use std::collections::BTreeMap;

use kaniop_core::cluster::server_config::digests;
use uuid::Uuid;

use super::*;

const PRIMARY: &str = "my-idm-main-0";

fn replicated() -> Kanidm {
    kanidm(include_str!("replicated.yaml"))
}

fn certificates(nodes: &[&str], external: &[&str]) -> Certificates {
    let of = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), format!("certificate-of-{name}"))).collect();
    Certificates { nodes: of(nodes), external: of(external) }
}

fn everybody() -> Certificates {
    certificates(&[PRIMARY, "my-idm-main-1", "my-idm-edge-0"], &["paris", "oslo", "rome"])
}

fn files(kanidm: &Kanidm, certificates: &Certificates) -> BTreeMap<String, String> {
    let around = Surroundings { certificates, domain: Some(Uuid::from_u128(7)), ..fresh() };
    digests(&validate(kanidm).unwrap(), &around)
}

/// The nodes whose files differ.
fn changed(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> Vec<String> {
    one.iter().filter(|(pod, digest)| other.get(*pod) != Some(digest)).map(|(pod, _)| pod.clone()).collect()
}

#[test]
fn every_node_knows_the_primary_and_the_primary_everybody() {
    let certificates = everybody();
    let around = Surroundings { certificates: &certificates, domain: Some(Uuid::from_u128(7)), ..fresh() };
    let config = manifests(&children(&replicated(), &around)).swap_remove(0);
    insta::assert_yaml_snapshot!("replicated-files", config["data"]);
}

#[test]
fn another_secondary_and_another_certificate_of_one_concern_the_primary_alone() {
    let (kanidm, all) = (replicated(), everybody());
    let before = files(&kanidm, &all);
    let mut renewed = all.clone();
    renewed.nodes.insert("my-idm-main-1".to_owned(), "renewed".to_owned());
    assert_eq!(changed(&before, &files(&kanidm, &renewed)), [PRIMARY]);
    let mut more = kanidm.clone();
    more.spec.replica_groups[1].replicas = 2;
    let mut known = all.clone();
    known.nodes.insert("my-idm-edge-1".to_owned(), "new".to_owned());
    assert_eq!(changed(&before, &files(&more, &known)), [PRIMARY]);
    let mut elsewhere = all;
    elsewhere.external.remove("paris");
    assert_eq!(changed(&before, &files(&kanidm, &elsewhere)), [PRIMARY]);
}

#[test]
fn another_certificate_of_the_primary_concerns_everybody_else() {
    let (kanidm, all) = (replicated(), everybody());
    let mut renewed = all.clone();
    renewed.nodes.insert(PRIMARY.to_owned(), "renewed".to_owned());
    assert_eq!(changed(&files(&kanidm, &all), &files(&kanidm, &renewed)), ["my-idm-edge-0", "my-idm-main-1"]);
}

#[test]
fn no_peer_is_a_part_of_the_template_so_that_groups_do_not_restart_each_other() {
    let hash = |certificates: &Certificates| {
        let around = Surroundings { certificates, domain: Some(Uuid::from_u128(7)), ..fresh() };
        let sets = children(&replicated(), &around);
        sets.iter().filter_map(Child::read).map(|set| template_hash(&set).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(hash(&everybody()), hash(&certificates(&[PRIMARY], &[])));
}

#[test]
fn nodes_are_made_when_the_primary_is_set_up_and_not_before() {
    let replicas = |around: &Surroundings<'_>| {
        let sets = children(&replicated(), around);
        sets.iter()
            .filter_map(Child::read::<StatefulSet>)
            .map(|set| set.spec.unwrap().replicas.unwrap())
            .collect::<Vec<_>>()
    };
    let (none, primary) = (Certificates::new(), certificates(&[PRIMARY], &[]));
    let known = Some(Uuid::from_u128(7));
    assert_eq!(replicas(&Surroundings { certificates: &none, ..fresh() }), [1, 0]);
    assert_eq!(replicas(&Surroundings { certificates: &none, domain: known, ..fresh() }), [1, 0]);
    assert_eq!(replicas(&Surroundings { certificates: &primary, domain: known, ..fresh() }), [2, 1]);
}

#[test]
fn a_node_must_hold_the_domain_and_while_none_is_known_only_the_primary_may_serve() {
    let domains = |domain: Option<Uuid>| {
        let config = manifests(&children(&replicated(), &Surroundings { domain, ..fresh() })).swap_remove(0);
        let data = config["data"].as_object().unwrap().clone();
        data.into_iter()
            .filter(|(key, _)| key.ends_with(".domain"))
            .map(|(key, value)| format!("{key} {value}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(domains(None), ["my-idm-edge-0.domain \"\"", "my-idm-main-1.domain \"\""]);
    let uuid = Uuid::from_u128(7).to_string();
    let all = ["my-idm-edge-0", "my-idm-main-0", "my-idm-main-1"].map(|pod| format!("{pod}.domain \"{uuid}\""));
    assert_eq!(domains(Some(Uuid::from_u128(7))), all);
}
