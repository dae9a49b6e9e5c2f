//! Several nodes in pods, with what Kubernetes would do for them: pods made for StatefulSets, files of Secrets mounted, start-up probes asked; and
//! what the servers would: replicate with peers that know them, and show the certificate that their volume holds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use base64::Engine;
use kaniop_core::cluster::server_config::digest;
use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::node::Node;
use super::shelf::Shelf;

const NAMESPACE: &str = "default";

/// A node's volume, and the run of the server on it.
#[derive(Clone)]
pub(crate) struct Member {
    /// The domain that its database holds.
    pub(crate) domain: Uuid,
    /// Its certificate, as the server writes it.
    pub(crate) certificate: String,
    /// How often it was started.
    pub(crate) starts: usize,
    host: String,
    config: String,
    file: toml::Table,
}

/// The nodes. The first is the primary, whose accounts a [`Node`] holds.
#[derive(Clone)]
pub(crate) struct Fleet {
    pub(crate) node: Node,
    pub(crate) primary: &'static str,
    pub(crate) members: Arc<Mutex<BTreeMap<String, Member>>>,
    drawn: Arc<Mutex<u128>>,
}

/// A certificate as a server makes it, valid from 2020 until this year.
pub(crate) fn certificate(host: &str, until: i32) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec![host.to_owned()]).unwrap();
    (params.not_before, params.not_after) = (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(until, 1, 1));
    let certificate = params.self_signed(&key).unwrap();
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(certificate.der())
}

impl Fleet {
    pub(crate) fn new(node: Node, primary: &'static str) -> Self {
        Self { node, primary, members: Arc::default(), drawn: Arc::new(Mutex::new(100)) }
    }

    /// What the node helper of a pod prints.
    pub(crate) fn helper(&self, pod: &str, arguments: &[String]) -> Json {
        let words: Vec<_> = arguments.iter().skip(2).map(String::as_str).collect();
        let mut members = self.members.lock().unwrap();
        let Some(member) = members.get_mut(pod) else { return json!({"error": "no such pod"}) };
        match words.as_slice() {
            ["report"] => {
                let domain = if pod == self.primary { self.node.held.lock().unwrap().domain } else { member.domain };
                json!({"ok": {
                    "domain": {"name": "idm.example.com", "displayname": "idm", "uuid": domain, "level": 11},
                    "certificate": member.certificate, "config": member.config,
                }})
            }
            ["renew-certificate"] => {
                member.certificate = certificate(&host_of(&member.file), 2040);
                json!({"ok": null})
            }
            _ => self.node.helper(arguments),
        }
    }

    /// Empties the volume of a node, as a new claim would: its next start makes another domain and certificate.
    pub(crate) fn wipe(&self, shelf: &Shelf, pod: &str) {
        self.members.lock().unwrap().get_mut(pod).unwrap().host.clear();
        shelf.delete(&pod_path(pod));
    }

    /// The pods, started as often as each was.
    pub(crate) fn starts(&self) -> BTreeMap<String, usize> {
        self.members.lock().unwrap().iter().map(|(pod, member)| (pod.clone(), member.starts)).collect()
    }

    /// Kubernetes and the servers do what is theirs to do, once.
    pub(crate) fn turn(&self, shelf: &Shelf) {
        let sets: Vec<Json> = {
            let held = shelf.held.lock().unwrap();
            held.objects
                .iter()
                .filter(|(path, _)| path.contains("/statefulsets/"))
                .map(|(_, set)| set.clone())
                .collect()
        };
        let config = shelf.get(&format!("/api/v1/namespaces/{NAMESPACE}/secrets/idm-config")).unwrap_or_default();
        for set in &sets {
            self.settle(shelf, set, &config);
        }
        let gone: Vec<_> = {
            let held = shelf.held.lock().unwrap();
            let pods = held.objects.keys().filter(|path| path.contains("/pods/")).cloned();
            pods.filter(|path| !sets.iter().any(|set| belongs(path, set))).collect()
        };
        gone.iter().for_each(|path| shelf.delete(path));
        self.replicate();
        self.probe(shelf, &config);
    }

    fn settle(&self, shelf: &Shelf, set: &Json, config: &Json) {
        let name = set["metadata"]["name"].as_str().unwrap();
        let replicas = set["spec"]["replicas"].as_i64().unwrap();
        for ordinal in 0..replicas {
            let pod = format!("{name}-{ordinal}");
            let file = text(config, &format!("{pod}.toml"));
            // Without its file, its init container would fail and be run again.
            if let Some(file) = file.filter(|_| shelf.get(&pod_path(&pod)).is_none()) {
                let run = self.start(&pod, &file);
                shelf.put(&pod_path(&pod), pod_object(&pod, set, run));
            }
        }
    }

    fn start(&self, pod: &str, file: &str) -> usize {
        let mut members = self.members.lock().unwrap();
        let parsed: toml::Table = toml::from_str(file).unwrap();
        let host = host_of(&parsed);
        let starts = members.get(pod).map_or(0, |member| member.starts) + 1;
        let is_new = members.get(pod).is_none_or(|member| member.host.is_empty());
        if is_new {
            let mut drawn = self.drawn.lock().unwrap();
            *drawn += 1;
            let domain = Uuid::from_u128(*drawn);
            if pod == self.primary && starts > 1 {
                let mut held = self.node.held.lock().unwrap();
                (held.domain, held.passwords, held.tokens) = (domain, [].into(), [].into());
            }
            let certificate = certificate(&host, 2040);
            let member = Member { domain, certificate, starts, host, config: String::new(), file: parsed.clone() };
            members.insert(pod.to_owned(), member);
        }
        let member = members.get_mut(pod).unwrap();
        (member.starts, member.config, member.file) = (starts, digest(file.as_bytes()), parsed);
        starts
    }

    /// A secondary whose certificate the primary knows, and that knows the primary's, takes over its domain.
    fn replicate(&self) {
        let mut members = self.members.lock().unwrap();
        let Some(primary) = members.get(self.primary).cloned() else { return };
        let domain = self.node.held.lock().unwrap().domain;
        for (pod, member) in members.iter_mut().filter(|(pod, _)| *pod != self.primary) {
            let knows = |one: &Member, other: &Member| peer(&one.file, &other.host) == Some(&other.certificate);
            if knows(&primary, member) && knows(member, &primary) && member.starts > 0 && !pod.is_empty() {
                member.domain = domain;
            }
        }
    }

    /// The start-up probe of each pod: a node serves when it holds the domain that it must.
    fn probe(&self, shelf: &Shelf, config: &Json) {
        let members = self.members.lock().unwrap();
        for (pod, member) in members.iter() {
            let Some(mut object) = shelf.get(&pod_path(pod)) else { continue };
            let domain = if pod == self.primary { self.node.held.lock().unwrap().domain } else { member.domain };
            let expected = text(config, &format!("{pod}.domain"));
            let serves = expected.is_none_or(|expected| expected == domain.to_string());
            object["status"] = status(member, serves, &self.node.ip.to_string());
            shelf.put(&pod_path(pod), object);
        }
    }
}

pub(crate) fn pod_path(pod: &str) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}")
}

fn belongs(path: &str, set: &Json) -> bool {
    let pod = path.rsplit('/').next().unwrap();
    let (name, ordinal) = pod.rsplit_once('-').unwrap();
    set["metadata"]["name"] == name && set["spec"]["replicas"].as_i64().unwrap() > ordinal.parse().unwrap()
}

fn pod_object(pod: &str, set: &Json, run: usize) -> Json {
    let hash = &set["spec"]["template"]["metadata"]["annotations"]["kanidm.kaniop.rs/template-hash"];
    json!({"metadata": {
        "name": pod, "uid": format!("{pod}-{run}"), "labels": {"kanidm.kaniop.rs/cluster": "idm"},
        "annotations": {"kanidm.kaniop.rs/template-hash": hash},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": set["metadata"]["name"], "controller": true, "uid": set["metadata"]["uid"]}],
    }})
}

fn status(member: &Member, serves: bool, ip: &str) -> Json {
    let ready = if serves { "True" } else { "False" };
    json!({
        "podIP": ip, "conditions": [{"type": "Ready", "status": ready}],
        "containerStatuses": [{
            "name": "kanidm", "started": serves, "ready": serves, "restartCount": 0, "image": "i", "imageID": "i",
            "containerID": format!("containerd://{}", member.starts), "state": {"running": {}},
        }],
    })
}

fn text(secret: &Json, key: &str) -> Option<String> {
    let encoded = secret["data"][key].as_str()?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).ok()?;
    String::from_utf8(bytes).ok()
}

fn host_of(file: &toml::Table) -> String {
    let origin = file["replication"]["origin"].as_str().unwrap();
    origin.trim_start_matches("repl://").trim_end_matches(":8444").to_owned()
}

/// The certificate by which a node knows this peer.
fn peer<'a>(file: &'a toml::Table, host: &str) -> Option<&'a String> {
    match file["replication"].get(format!("repl://{host}:8444"))?.get("partner_cert")? {
        toml::Value::String(certificate) => Some(certificate),
        _ => None,
    }
}
