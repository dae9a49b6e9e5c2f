//! The people and groups of a run: made from a number each, so that all runs have the same.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt, stream};
use kaniop_e2e::cluster::Cluster;
use kaniop_e2e::is_current;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::server::Server;

/// Members of each group.
pub(crate) const MEMBERS: usize = 50;
/// Requests under way at a time while objects are stored.
const AT_ONCE: usize = 16;
/// How often it is looked whether all are Ready.
const PAUSE: Duration = Duration::from_millis(100);
/// The kind of people.
pub(crate) const PERSON: &str = "KanidmPersonAccount";
/// The kind of groups.
const GROUP: &str = "KanidmGroup";

/// How many of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Population {
    /// People.
    pub(crate) people: usize,
    /// Groups.
    pub(crate) groups: usize,
}

impl Population {
    /// So many objects, one in eleven a group.
    pub(crate) const fn of(objects: usize) -> Self {
        let groups = objects / 11;
        Self { people: objects - groups, groups }
    }

    /// All of them.
    pub(crate) const fn objects(self) -> usize {
        self.people + self.groups
    }

    /// Their manifests, groups first: what they name is then not there yet, and they have to wait for it.
    fn manifests(self, kanidm: &str) -> Vec<Value> {
        let groups = (0..self.groups).map(|number| group(kanidm, number, self));
        groups.chain((0..self.people).map(|number| person(kanidm, number))).collect()
    }
}

/// Name of a person: object and entry. The Kanidm is part of it, for objects of several of them lie in one namespace.
pub(crate) fn person_name(kanidm: &str, number: usize) -> String {
    format!("{kanidm}-person-{number:05}")
}

/// Display name of a person, until it is changed.
pub(crate) fn displayname(number: usize) -> String {
    format!("Person Number {number}")
}

fn person(kanidm: &str, number: usize) -> Value {
    let name = person_name(kanidm, number);
    json!({
        "apiVersion": "kaniop.rs/v1beta1", "kind": PERSON, "metadata": {"name": name},
        "spec": {
            "kanidmRef": {"name": kanidm},
            "personAttributes": {"displayname": displayname(number), "mail": [format!("{name}@example.com")]},
            // A link for each person would be a request and a Secret more, and no part of what is compared with the plain loop.
            "credentialReset": {"delivery": "None"},
        },
    })
}

fn group(kanidm: &str, number: usize, all: Population) -> Value {
    let first = number * all.people / all.groups.max(1);
    let members: Vec<_> =
        (0..MEMBERS.min(all.people)).map(|nth| person_name(kanidm, (first + nth) % all.people)).collect();
    json!({
        "apiVersion": "kaniop.rs/v1beta1", "kind": GROUP, "metadata": {"name": format!("{kanidm}-group-{number:05}")},
        "spec": {"kanidmRef": {"name": kanidm}, "description": format!("Group Number {number}"), "members": members},
    })
}

/// Stores all of them in a namespace.
pub(crate) async fn store(cluster: &Cluster, namespace: &str, kanidm: &str, population: Population) -> Result<()> {
    let creations = population.manifests(kanidm).into_iter().map(|manifest| async move {
        let kind = manifest["kind"].as_str().unwrap_or_default();
        let object = serde_json::from_value(manifest.clone())?;
        let stored = cluster.api(kind, namespace).create(&PostParams::default(), &object).await;
        stored.map(drop).with_context(|| format!("store {}", manifest["metadata"]["name"]))
    });
    stream::iter(creations).buffer_unordered(AT_ONCE).try_collect().await
}

/// Waits until all of them are Ready, and returns when that was seen. The server is asked whether it has them before Kubernetes is: its count
/// costs next to nothing, and a list of all objects would slow down what is measured.
pub(crate) async fn all_ready(
    cluster: &Cluster,
    (namespace, kanidm): (&str, &str),
    server: &Server,
    population: Population,
    patience: Duration,
) -> Result<Instant> {
    let deadline = Instant::now() + patience;
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    let wanted = population.objects() as f64;
    loop {
        let created = server.counts().await?.sum(|route| route.starts_with("POST /scim/"));
        let ready = if created < wanted { 0 } else { ready(cluster, namespace, kanidm).await? };
        if ready >= population.objects() {
            return Ok(Instant::now());
        }
        if Instant::now() > deadline {
            bail!(
                "{created} of {wanted} entries were created and {ready} objects Ready within {} s",
                patience.as_secs()
            );
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// How many of a Kanidm are Ready at their newest generation.
async fn ready(cluster: &Cluster, namespace: &str, kanidm: &str) -> Result<usize> {
    let mut ready = 0;
    for kind in [PERSON, GROUP] {
        let found = cluster.api(kind, namespace).list(&ListParams::default()).await?;
        let ours = found.iter().filter(|object| object.data["spec"]["kanidmRef"]["name"] == kanidm);
        ready += ours.filter(|object| object.data["status"]["ready"] == true && is_current(object)).count();
    }
    Ok(ready)
}

/// Changes a person's display name, and returns when the API server has answered.
pub(crate) async fn change(cluster: &Cluster, namespace: &str, person: &str, displayname: &str) -> Result<Instant> {
    let patch = json!({"spec": {"personAttributes": {"displayname": displayname}}});
    let api = cluster.api(PERSON, namespace);
    api.patch(person, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .with_context(|| format!("change {person}"))?;
    Ok(Instant::now())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn eleven_hundred_objects_are_a_thousand_people_and_a_hundred_groups() {
        assert_eq!(Population::of(1100), Population { people: 1000, groups: 100 });
        assert_eq!(Population::of(5000).objects(), 5000);
        let manifests = Population::of(1100).manifests("idm");
        let groups: Vec<_> = manifests.iter().filter(|manifest| manifest["kind"] == GROUP).collect();
        assert_eq!((manifests.len(), groups.len()), (1100, 100));
        assert!(groups.iter().all(|group| group["spec"]["members"].as_array().unwrap().len() == MEMBERS));
    }

    #[test]
    fn members_are_people_of_the_run_and_none_is_named_twice() {
        let all = Population::of(60);
        let group = group("idm", all.groups - 1, all);
        let named = group["spec"]["members"].as_array().unwrap();
        let members: BTreeSet<_> = named.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let people: BTreeSet<_> = (0..all.people).map(|number| person_name("idm", number)).collect();
        assert!(members.len() == MEMBERS && members.is_subset(&people), "{members:?}");
    }
}
