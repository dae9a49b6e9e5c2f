//! The cluster's own certificate authority and what it signs. Certificates never expire within the
//! life of a development cluster, and none of this is fit for anything else.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use base64::{Engine, prelude::BASE64_STANDARD};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use serde_json::json;

/// Whom a client certificate stands for.
pub(crate) struct Client {
    /// The name of its files.
    pub(crate) file: &'static str,
    /// The user (common name).
    pub(crate) user: &'static str,
    /// The group (organisation).
    pub(crate) group: &'static str,
}

const fn client(file: &'static str, user: &'static str, group: &'static str) -> Client {
    Client { file, user, group }
}

/// All that speak to the API server from outside of a pod. The API server itself is among them: it
/// presents `apiserver-kubelet` to the kubelet for logs and exec.
pub(crate) const CLIENTS: &[Client] = &[
    client("admin", "admin", "system:masters"),
    client("apiserver-kubelet", "kube-apiserver-kubelet-client", "system:masters"),
    client("controller-manager", "system:kube-controller-manager", "kaniop-dev"),
    client("scheduler", "system:kube-scheduler", "kaniop-dev"),
    client("kubelet", "system:node:dev", "system:nodes"),
    client("proxy", "system:kube-proxy", "kaniop-dev"),
    client("dns", "kaniop-dev:dns", "system:masters"),
    client("storage", "kaniop-dev:storage", "system:masters"),
];

/// Makes all keys and certificates, unless `folder` exists: it appears only when it is complete.
///
/// # Errors
/// When a file cannot be written.
pub(crate) fn ensure(folder: &Path, server_names: &[&str]) -> Result<()> {
    if folder.exists() {
        return Ok(());
    }
    let unfinished = folder.with_extension("unfinished");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished)?;
    }
    fs::create_dir_all(&unfinished).with_context(|| format!("create {}", unfinished.display()))?;
    create(&unfinished, server_names)?;
    fs::rename(&unfinished, folder).with_context(|| format!("create {}", folder.display()))
}

/// The kubeconfig by which `client` reaches the API server at `url`; its certificates are inside.
///
/// # Errors
/// When the certificates in `folder` cannot be read.
pub(crate) fn kubeconfig(folder: &Path, client: &str, url: &str) -> Result<String> {
    let read = |name: String| -> Result<String> {
        let path = folder.join(name);
        Ok(BASE64_STANDARD.encode(fs::read(&path).with_context(|| format!("read {}", path.display()))?))
    };
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "kaniop-dev", "cluster": {"server": url, "certificate-authority-data": read("ca.crt".into())?}}],
        "users": [{"name": client, "user": {
            "client-certificate-data": read(format!("{client}.crt"))?,
            "client-key-data": read(format!("{client}.key"))?,
        }}],
        "contexts": [{"name": "kaniop-dev", "context": {"cluster": "kaniop-dev", "user": client}}],
        "current-context": "kaniop-dev",
    });
    Ok(serde_json::to_string_pretty(&config)?)
}

/// Writes a file that only its owner may read.
pub(crate) fn write_private(path: &Path, content: &str) -> Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(content.as_bytes())).with_context(|| format!("write {}", path.display()))
}

fn create(folder: &Path, server_names: &[&str]) -> Result<()> {
    let key = KeyPair::generate()?;
    let mut params = named("kaniop-dev-ca", "kaniop-dev")?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    let authority = params.self_signed(&key)?;
    write_private(&folder.join("ca.key"), &key.serialize_pem())?;
    write_private(&folder.join("ca.crt"), &authority.pem())?;
    let issuer = Issuer::new(params, key);

    let mut server = named("kube-apiserver", "kaniop-dev")?;
    let names = server_names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    server.subject_alt_names = CertificateParams::new(names)?.subject_alt_names;
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    sign(folder, "server", server, &issuer)?;

    for client in CLIENTS {
        let mut params = named(client.user, client.group)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        sign(folder, client.file, params, &issuer)?;
    }

    let accounts = KeyPair::generate()?;
    write_private(&folder.join("sa.key"), &accounts.serialize_pem())?;
    write_private(&folder.join("sa.pub"), &accounts.public_key_pem())
}

fn named(user: &str, group: &str) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, user);
    params.distinguished_name.push(DnType::OrganizationName, group);
    Ok(params)
}

fn sign(folder: &Path, file: &str, mut params: CertificateParams, issuer: &Issuer<'_, KeyPair>) -> Result<()> {
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, issuer)?;
    write_private(&folder.join(format!("{file}.key")), &key.serialize_pem())?;
    write_private(&folder.join(format!("{file}.crt")), &certificate.pem())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn keys_are_made_once_and_readable_by_their_owner_only() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("pki");
        ensure(&folder, &["localhost", "127.0.0.1"]).unwrap();
        let first = fs::read_to_string(folder.join("ca.crt")).unwrap();
        ensure(&folder, &["localhost", "127.0.0.1"]).unwrap();
        assert_eq!(fs::read_to_string(folder.join("ca.crt")).unwrap(), first);
        let mode = fs::metadata(folder.join("ca.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn an_interrupted_start_is_begun_anew() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("pki");
        fs::create_dir(parent.path().join("pki.unfinished")).unwrap();
        fs::write(parent.path().join("pki.unfinished/ca.key"), "half").unwrap();
        ensure(&folder, &["localhost"]).unwrap();
        assert!(fs::read_to_string(folder.join("ca.key")).unwrap().contains("PRIVATE KEY"));
        assert!(!parent.path().join("pki.unfinished").exists());
    }

    #[test]
    fn a_kubeconfig_names_the_server_and_carries_the_certificates() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("pki");
        ensure(&folder, &["localhost"]).unwrap();
        let text = kubeconfig(&folder, "admin", "https://127.0.0.1:1").unwrap();
        let config: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(config["clusters"][0]["cluster"]["server"], "https://127.0.0.1:1");
        let encoded = config["users"][0]["user"]["client-certificate-data"].as_str().unwrap();
        let pem = String::from_utf8(BASE64_STANDARD.decode(encoded).unwrap()).unwrap();
        assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(kubeconfig(&folder, "nobody", "https://127.0.0.1:1").is_err());
    }
}
