//! From nothing to a running Kanidm with people in it, and back. What it shows at the end is asked of the server itself,
//! not of the operator.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};
use kaniop_outside::Session;
use serde_json::Value;

use crate::cluster::{Cluster, layout};
use crate::command::{interactive, output};
use crate::images::{self, Images};
use crate::install;
use crate::ownership::{self, Kind, Thing};
use crate::report::{duration, note, phase};
use crate::workspace::{root, write};
use crate::{interrupt, outside, setup};

mod ready;

/// Namespace of `examples/quickstart`.
const NAMESPACE: &str = "quickstart";
/// Its Kanidm.
const KANIDM: &str = "kanidm";
/// Its domain, for which the certificate is made.
const HOST: &str = "idm.example.com";

/// What the demo does.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Remove all that it made
    #[arg(long)]
    down: bool,
    /// When it fails, leave everything as it is, to look at
    #[arg(long)]
    keep: bool,
}

/// Runs the demo, or removes it.
///
/// # Errors
/// With what failed; what this run made is removed again then, unless it is to be kept. What was there before it stays.
pub(crate) fn run(options: &Options) -> Result<()> {
    interrupt::watch()?;
    let cluster = Cluster::from_env()?;
    let _ours = install::claim(&cluster)?;
    if options.down {
        return down(&cluster);
    }
    let start = Instant::now();
    let mut before = Before { is_new: cluster.is_new(), was_up: install::answers(&cluster), things: None };
    let prepared = prepare(&cluster, &mut before);
    if let Err(error) = prepared.and_then(|images| up(&cluster, &images)) {
        if options.keep {
            note("everything is left as it is; `make demo-down` removes it");
        } else if let Err(second) = undo(&cluster, &before) {
            note(format!("and what this run made could not be removed: {second:#}"));
        }
        return Err(error.context("the demo failed"));
    }
    println!("\nDone in {}. `make demo-down` removes all of it.", duration(start.elapsed()));
    Ok(())
}

/// How this run found the cluster.
struct Before {
    /// Absent, not even as data.
    is_new: bool,
    /// Running.
    was_up: bool,
    /// What was on it that we might have made; unknown until it was looked at, which comes before anything is installed.
    things: Option<Vec<Thing>>,
}

/// Everything that comes before something is installed.
fn prepare(cluster: &Cluster, before: &mut Before) -> Result<Images> {
    println!("\n== machine and cluster");
    if !cluster.is_external() {
        setup::setup()?;
    }
    cluster.up()?;
    if before.is_new {
        write(&mark(), "the cluster was brought up by the demo\n")?;
    }
    let things = look(cluster)?;
    ownership::refuse_others(&things)?;
    before.things = Some(things);
    println!("\n== images");
    let images = images::ensure(cluster)?;
    interrupt::check()?;
    Ok(images)
}

fn up(cluster: &Cluster, images: &Images) -> Result<()> {
    println!("\n== operator");
    install::install(cluster, images, None)?;
    interrupt::check()?;
    println!("\n== examples/quickstart");
    quickstart(cluster, images).inspect_err(|_| install::explain(cluster, &[NAMESPACE], "demo"))?;
    println!("\n== asking the server itself");
    prove(cluster).inspect_err(|_| install::explain(cluster, &[NAMESPACE], "demo"))?;
    show(cluster)
}

/// Removes what the demo made, by its marks: the cluster too, if it was not there before.
fn down(cluster: &Cluster) -> Result<()> {
    let things = if install::answers(cluster) { Some(look(cluster)?) } else { None };
    if takes_the_cluster(!cluster.is_external() && mark().exists(), things.as_deref()) {
        return cluster.down(false);
    }
    let Some(things) = things else {
        note("no cluster answers: there is nothing to remove");
        return Ok(());
    };
    println!("\n== removing the demo");
    remove_quickstart(cluster, &things)?;
    install::uninstall(cluster)?;
    if !cluster.is_external() {
        note(
            "the cluster was there before the demo, or somebody else uses it, and stays up; `make cluster-down` ends it",
        );
    }
    Ok(())
}

/// Takes away what this run made: all of a cluster that was not there, else what was not on it.
fn undo(cluster: &Cluster, before: &Before) -> Result<()> {
    println!("\n== removing what this run made");
    if before.is_new {
        return cluster.down(false);
    }
    match &before.things {
        None => note("nothing was installed, and nothing is removed"),
        Some(things) => {
            let made = ownership::since(look(cluster)?, things);
            remove_quickstart(cluster, &made)?;
            install::remove(cluster, &made)?;
            if !things.is_empty() {
                note("what an earlier run made is left; `make demo-down` removes it");
            }
        }
    }
    // It was stopped, with its data.
    if before.was_up { Ok(()) } else { cluster.down(true) }
}

fn remove_quickstart(cluster: &Cluster, things: &[Thing]) -> Result<()> {
    if !ownership::ours(things, Kind::Namespace).contains(&NAMESPACE) {
        return Ok(());
    }
    phase("remove the quickstart", || {
        let delete = ["delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=8m"];
        output(&mut cluster.kubectl(delete)).map(drop)
    })
}

/// Whether the whole cluster goes: it is the demo's own, and nobody has put a Kaniop of theirs there since. When it does not answer, that it
/// is the demo's own is enough: it would not be ended otherwise.
fn takes_the_cluster(is_ours: bool, things: Option<&[Thing]>) -> bool {
    is_ours && things.is_none_or(ownership::all_ours)
}

fn look(cluster: &Cluster) -> Result<Vec<Thing>> {
    ownership::look(cluster, &[install::NAMESPACE, NAMESPACE])
}

/// Says that the cluster is the demo's own. It lies in the cluster's data, with which it goes.
fn mark() -> PathBuf {
    layout::data("made-by-the-demo")
}

fn quickstart(cluster: &Cluster, images: &Images) -> Result<()> {
    let manifests = manifests(&images.kanidm)?;
    note(format!("the server's image is {}", images.kanidm));
    phase("namespace and certificate", || {
        install::namespace(cluster, NAMESPACE)?;
        outside::ensure_certificate(cluster, NAMESPACE, &format!("{KANIDM}-tls"), HOST)
    })?;
    phase("apply", || manifests.iter().try_for_each(|manifest| install::apply(cluster, &manifest.to_string())))?;
    let objects: Vec<_> = manifests.iter().filter(|m| m["kind"] != "Namespace").collect();
    for object in &objects {
        ready::wait(cluster, object)?;
    }
    // The word of Kubernetes' own tool is what counts.
    let names = objects.iter().map(|object| ready::name(object));
    let mut wait = cluster.kubectl(["wait", "--for=condition=Ready", "--timeout=10s", "-n", NAMESPACE]);
    note(output(wait.args(names))?.trim().replace('\n', ", "));
    Ok(())
}

/// The objects of the quickstart, with the image that this cluster has.
fn manifests(image: &str) -> Result<Vec<Value>> {
    let written = install::manifests(&root().join("examples/quickstart"))?;
    let adapted = written.into_iter().map(|mut manifest| match manifest["kind"].as_str() {
        // Applied without it, the mark would be taken off again.
        Some("Namespace") => ownership::mark(manifest),
        Some("Kanidm") => {
            manifest["spec"]["image"] = image.into();
            manifest
        }
        _ => manifest,
    });
    Ok(adapted.collect())
}

/// Asks the server over HTTPS, as its administrator, for everything that was declared.
fn prove(cluster: &Cluster) -> Result<()> {
    let password = outside::secret(cluster, NAMESPACE, &format!("{KANIDM}-admin-passwords"), "IDM_ADMIN_PASSWORD")?;
    let wanted = manifests("")?;
    outside::with_server(cluster, NAMESPACE, KANIDM, HOST, |server| {
        let session =
            phase("HTTPS, certificate verified; login as idm_admin", || Ok(server.login("idm_admin", &password)?))?;
        wanted.iter().try_for_each(|object| compare(&session, object))
    })
}

/// Fails unless the server's entry says what the object says.
fn compare(session: &Session, object: &Value) -> Result<()> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let spec = &object["spec"];
    let (path, attribute, wanted) = match object["kind"].as_str() {
        Some("KanidmPersonAccount") => {
            (format!("/v1/person/{name}"), "displayname", vec![spec["personAttributes"]["displayname"].clone()])
        }
        Some("KanidmGroup") => {
            let members = spec["members"].as_array().into_iter().flatten();
            let spns = members.map(|member| format!("{}@{HOST}", member.as_str().unwrap_or_default()).into());
            (format!("/v1/group/{name}"), "member", spns.collect())
        }
        _ => return Ok(()),
    };
    let mut found = session.values(&path, attribute)?;
    found.sort();
    println!("  · GET {path}: {attribute} = {}", found.join(", "));
    if wanted.iter().any(|value| !found.iter().any(|found| value == found)) || wanted.len() != found.len() {
        bail!("the server's {attribute} of {name} is not what the manifest says: {wanted:?}");
    }
    Ok(())
}

fn show(cluster: &Cluster) -> Result<()> {
    println!("\n== as Kubernetes shows it");
    interactive(&mut cluster.kubectl(["get", "kaniop", "-n", NAMESPACE]))?;
    let kubectl = if cluster.is_external() { "kubectl" } else { "cargo xtask kubectl --" };
    if !cluster.is_external() {
        println!(
            "\nThe cluster has a network of its own, which a plain kubectl does not reach. From this checkout:\n  \
             cargo xtask kubectl -- …\n  cargo xtask helm -- …\n  cargo xtask in-network -- PROGRAM …"
        );
    }
    println!(
        "\nThe administrators' passwords are in a Secret:\n  {kubectl} get secret {KANIDM}-admin-passwords -n {NAMESPACE} \
         -o jsonpath='{{.data.IDM_ADMIN_PASSWORD}}' | base64 -d\n\nSo is the link with which ada sets a first credential:\n  \
         {kubectl} get secret ada-credential-reset -n {NAMESPACE} -o jsonpath='{{.data.url}}' | base64 -d\n\n\
         How to log in with either: docs/src/start/try-it.md\n\nWhat to try next:\n  \
         {kubectl} patch person ada -n {NAMESPACE} --type merge -p '{{\"spec\":{{\"personAttributes\":{{\"displayname\":\"Ada King\"}}}}}}'\n  \
         {kubectl} patch kg crew -n {NAMESPACE} --type merge -p '{{\"spec\":{{\"members\":[\"ada\"]}}}}'\n  \
         {kubectl} describe person ada -n {NAMESPACE}\n  \
         {kubectl} delete person grace -n {NAMESPACE}\n  \
         {kubectl} logs -n {} deployment/{}",
        install::NAMESPACE,
        install::RELEASE,
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_goes_only_when_the_demo_made_it_and_nobody_elses_kaniop_is_there() {
        let (ours, theirs) = ownership::examples();
        assert!(takes_the_cluster(true, Some(&[])));
        assert!(takes_the_cluster(true, Some(&ours)));
        assert!(takes_the_cluster(true, None));
        assert!(!takes_the_cluster(true, Some(&theirs)));
        assert!(!takes_the_cluster(false, Some(&ours)));
        assert!(!takes_the_cluster(false, None));
    }

    #[test]
    fn the_quickstart_is_one_kanidm_with_the_clusters_image_and_people_in_it() {
        let all = manifests("localhost/x:1").unwrap();
        let kinds: Vec<_> = all.iter().map(|object| object["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["Namespace", "Kanidm", "KanidmGroup", "KanidmPersonAccount", "KanidmPersonAccount"]);
        assert_eq!(all[1]["spec"]["image"], "localhost/x:1");
        assert_eq!(all[0], ownership::mark(all[0].clone()), "the namespace is marked as the demo's");
        assert_eq!(
            (all[1]["metadata"]["name"].as_str(), all[1]["spec"]["domain"].as_str()),
            (Some(KANIDM), Some(HOST))
        );
        assert!(all.iter().skip(1).all(|object| object["metadata"]["namespace"] == NAMESPACE));
    }
}
