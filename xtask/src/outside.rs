//! What a bystander of the cluster needs to ask a Kanidm server: a way to its address, the authority to trust, a password to log in with.
//! It makes certificates for demonstrations; no key of theirs is kept anywhere but in the cluster.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::process::{Child, Stdio};
use std::thread;

use anyhow::{Context, Result, anyhow};
use base64::{Engine, prelude::BASE64_STANDARD};
use kaniop_outside::Server;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cluster::{Cluster, layout};
use crate::command::{not_started, output, succeeds};
use crate::install;

/// The server's port.
const PORT: u16 = 8443;

/// The objects of a YAML file.
///
/// # Errors
/// When it is no YAML.
pub(crate) fn objects(yaml: &str) -> Result<Vec<Value>> {
    let documents = serde_norway::Deserializer::from_str(yaml);
    let objects = documents.map(Value::deserialize).collect::<Result<Vec<_>, _>>()?;
    Ok(objects.into_iter().filter(|object| !object.is_null()).collect())
}

/// A value of a Secret.
///
/// # Errors
/// When there is none.
pub(crate) fn secret(cluster: &Cluster, namespace: &str, name: &str, key: &str) -> Result<String> {
    let seen = output(&mut cluster.kubectl(["get", "secret", name, "-n", namespace, "-o", "json"]))?;
    let seen: Value = serde_json::from_str(&seen)?;
    let encoded = seen["data"][key].as_str().with_context(|| format!("Secret {name} has no key {key}"))?;
    Ok(String::from_utf8(BASE64_STANDARD.decode(encoded)?)?)
}

/// Makes the Secret with a certificate for `host`, its key and a new authority's certificate, unless it is there.
///
/// # Errors
/// When the cluster refuses.
pub(crate) fn ensure_certificate(cluster: &Cluster, namespace: &str, name: &str, host: &str) -> Result<()> {
    if succeeds(&mut cluster.kubectl(["get", "secret", name, "-n", namespace])) {
        return Ok(());
    }
    let (authority, certificate, key) = certificate(host)?;
    let object = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": name, "namespace": namespace},
        "stringData": {"tls.crt": certificate, "tls.key": key, "ca.crt": authority},
    });
    install::apply(cluster, &object.to_string())
}

/// Name of the authority. Another one than the certificate's: OpenSSL takes a certificate that is issued by its own name for self-signed.
const AUTHORITY: &str = "Kaniop demo authority";

/// A certificate for `host`: the authority's certificate, its own, its key, as PEM. The authority's key is dropped.
fn certificate(host: &str) -> Result<(String, String, String)> {
    let authority_key = KeyPair::generate()?;
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.distinguished_name.push(DnType::CommonName, AUTHORITY);
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let authority_pem = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate()?;
    let mut leaf = CertificateParams::new(vec![host.to_owned()])?;
    leaf.distinguished_name.push(DnType::CommonName, host);
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.use_authority_key_identifier_extension = true;
    Ok((authority_pem, leaf.signed_by(&key, &issuer)?.pem(), key.serialize_pem()))
}

/// Lets `ask` speak to the server of a Kanidm, from outside of the cluster's pods.
///
/// # Errors
/// When there is no way to it, and those of `ask`.
pub(crate) fn with_server<T: Send>(
    cluster: &Cluster,
    namespace: &str,
    kanidm: &str,
    host: &str,
    ask: impl FnOnce(&Server) -> Result<T> + Send,
) -> Result<T> {
    let authority = secret(cluster, namespace, &format!("{kanidm}-tls"), "ca.crt")?;
    if cluster.is_external() {
        let tunnel = Tunnel::to(cluster, namespace, kanidm)?;
        return ask(&Server::new(tunnel.address, host, &authority)?);
    }
    let service =
        output(&mut cluster.kubectl(["get", "service", kanidm, "-n", namespace, "-o", "jsonpath={.spec.clusterIP}"]))?;
    let address: IpAddr =
        service.trim().parse().with_context(|| format!("Service {kanidm} has no address: {service:?}"))?;
    let server = Server::new(SocketAddr::from((address, PORT)), host, &authority)?;
    in_development_network(|| ask(&server))
}

/// Does `work` on a thread inside the development cluster's network.
fn in_development_network<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let network = File::open(layout::NETNS_FILE).context("the development cluster's network is not there")?;
    let enter_and_work = || {
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
            .context("enter the cluster's network")?;
        work()
    };
    thread::scope(|scope| scope.spawn(enter_and_work).join())
        .map_err(|_| anyhow!("the thread that asked the server died"))?
}

/// A `kubectl port-forward` that ends when it is dropped.
struct Tunnel {
    child: Child,
    address: SocketAddr,
}

impl Tunnel {
    fn to(cluster: &Cluster, namespace: &str, service: &str) -> Result<Self> {
        let arguments = ["port-forward", "-n", namespace, &format!("service/{service}"), &format!(":{PORT}")];
        let mut forward = cluster.kubectl(arguments);
        let started = forward.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(|error| not_started("kubectl", error))?;
        let mut line = String::new();
        if let Some(said) = child.stdout.as_mut() {
            BufReader::new(said).read_line(&mut line)?;
        }
        match forwarded(&line) {
            Some(address) => Ok(Self { child, address }),
            None => {
                child.kill()?;
                child.wait()?;
                Err(anyhow!("kubectl port-forward did not say where it listens: {line:?}"))
            }
        }
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        // It may have ended by itself, which is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `Forwarding from 127.0.0.1:39011 -> 8443`.
fn forwarded(line: &str) -> Option<SocketAddr> {
    line.strip_prefix("Forwarding from ")?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubectl_says_where_it_listens() {
        assert_eq!(
            forwarded("Forwarding from 127.0.0.1:39011 -> 8443\n"),
            Some(SocketAddr::from(([127, 0, 0, 1], 39011)))
        );
        assert_eq!(forwarded("error: no pod"), None);
    }

    #[test]
    fn several_objects_of_a_file_are_read_and_empty_ones_are_none() {
        let found = objects("---\nkind: A\n---\n# nothing\n---\nkind: B\n").unwrap();
        assert_eq!(found, [json!({"kind": "A"}), json!({"kind": "B"})]);
    }

    #[test]
    fn a_certificate_is_made_anew_each_time() {
        let (authority, leaf, key) = certificate("idm.example.com").unwrap();
        assert!(
            authority.contains("BEGIN CERTIFICATE")
                && leaf.contains("BEGIN CERTIFICATE")
                && key.contains("PRIVATE KEY")
        );
        assert_ne!(certificate("idm.example.com").unwrap().1, leaf);
    }

    #[test]
    fn authority_and_certificate_have_different_names() {
        let (authority, leaf, _) = certificate("idm.example.com").unwrap();
        let names = |pem: &str, name: &str| {
            let lines: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
            let der = BASE64_STANDARD.decode(lines).unwrap();
            der.windows(name.len()).filter(|part| *part == name.as_bytes()).count()
        };
        // Issuer and subject; the host stands among the names that the certificate is for too.
        assert_eq!((names(&authority, AUTHORITY), names(&authority, "idm.example.com")), (2, 0));
        assert_eq!((names(&leaf, AUTHORITY), names(&leaf, "idm.example.com")), (1, 2));
    }
}
