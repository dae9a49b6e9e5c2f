//! The Secrets with credentials: the built-in administrators' passwords for people, and the operator's own API token. Their content is made
//! once, by the server, and cannot be built again; so they are written when it was made and never as a part of [`build`](super::build).

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use uuid::Uuid;

use super::validate::ValidatedCluster;
use super::{labels, metadata, names};

/// Built-in administrator of the domain and the system.
pub const ADMIN: &str = "admin";
/// Built-in administrator of people, groups and the like.
pub const IDM_ADMIN: &str = "idm_admin";
/// Key of the operator's token.
const TOKEN: &str = "token";

/// Content of the administrators' Secret, complete.
#[derive(Clone, PartialEq, Eq)]
pub struct Administrators {
    /// Password of [`ADMIN`].
    pub admin: String,
    /// Password of [`IDM_ADMIN`].
    pub idm_admin: String,
    /// When they were made, if that is known.
    pub made: Option<Timestamp>,
    /// The domain that they are for, if that is known.
    pub domain: Option<Uuid>,
}

impl std::fmt::Debug for Administrators {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Administrators").field("made", &self.made).finish_non_exhaustive()
    }
}

impl Administrators {
    /// Reads the Secret; `None` when anything is missing, and then both passwords have to be made anew.
    #[must_use]
    pub fn read(secret: &Secret) -> Option<Self> {
        let names_right = text(secret, "ADMIN_USERNAME")? == ADMIN && text(secret, "IDM_ADMIN_USERNAME")? == IDM_ADMIN;
        names_right.then_some(())?;
        Some(Self {
            admin: text(secret, "ADMIN_PASSWORD")?,
            idm_admin: text(secret, "IDM_ADMIN_PASSWORD")?,
            made: annotation(secret, labels::ROTATED_AT).and_then(|time| time.parse().ok()),
            domain: domain(secret),
        })
    }

    /// The Secret.
    #[must_use]
    pub fn secret(&self, cluster: &ValidatedCluster) -> Secret {
        let pairs = [
            ("ADMIN_USERNAME", ADMIN),
            ("ADMIN_PASSWORD", &self.admin),
            ("IDM_ADMIN_USERNAME", IDM_ADMIN),
            ("IDM_ADMIN_PASSWORD", &self.idm_admin),
        ];
        let mut secret = secret(cluster, names::admin_secret(&cluster.name), labels::ADMIN_PASSWORDS);
        secret.data = Some(data(pairs));
        let annotations = secret.metadata.annotations.get_or_insert_default();
        annotations.extend(self.made.map(|made| (labels::ROTATED_AT.to_owned(), made.to_string())));
        annotations.extend(self.domain.map(|uuid| (labels::DOMAIN_UUID.to_owned(), uuid.to_string())));
        secret
    }
}

/// The operator's API token.
#[derive(Clone, PartialEq, Eq)]
pub struct OperatorToken {
    /// The token.
    pub token: String,
    /// The domain that it is for.
    pub domain: Option<Uuid>,
}

impl std::fmt::Debug for OperatorToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OperatorToken").field("domain", &self.domain).finish_non_exhaustive()
    }
}

impl OperatorToken {
    /// Reads the Secret; `None` when it has no token.
    #[must_use]
    pub fn read(secret: &Secret) -> Option<Self> {
        Some(Self { token: text(secret, TOKEN)?, domain: domain(secret) })
    }

    /// The Secret.
    #[must_use]
    pub fn secret(&self, cluster: &ValidatedCluster) -> Secret {
        let mut secret = secret(cluster, names::token_secret(&cluster.name), labels::OPERATOR_TOKEN);
        secret.data = Some(data([(TOKEN, &*self.token)]));
        let annotations = secret.metadata.annotations.get_or_insert_default();
        annotations.extend(self.domain.map(|uuid| (labels::DOMAIN_UUID.to_owned(), uuid.to_string())));
        secret
    }
}

/// The Secret with a node's replication certificate. Nothing secret is in it; it is one because that is where readers of older releases look.
#[must_use]
pub fn certificate_secret(cluster: &ValidatedCluster, pod: &str, certificate: &str) -> Secret {
    let mut secret = secret(cluster, names::certificate_secret(pod), labels::REPLICA_CERTIFICATE);
    secret.metadata.labels.get_or_insert_default().insert(labels::REPLICA.to_owned(), pod.to_owned());
    secret.data = Some(data([(names::CERTIFICATE_KEY, certificate)]));
    secret
}

/// The node and its certificate that such a Secret is for.
#[must_use]
pub fn read_certificate(secret: &Secret) -> Option<(String, String)> {
    let pod = secret.metadata.name.as_deref()?.strip_suffix("-cert")?;
    Some((pod.to_owned(), text(secret, names::CERTIFICATE_KEY)?.trim().to_owned()))
}

fn domain(secret: &Secret) -> Option<Uuid> {
    annotation(secret, labels::DOMAIN_UUID).and_then(|uuid| uuid.parse().ok())
}

fn annotation<'a>(secret: &'a Secret, key: &str) -> Option<&'a str> {
    secret.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

fn secret(cluster: &ValidatedCluster, name: String, kind: &str) -> Secret {
    let mut metadata = metadata(cluster, name);
    metadata.labels.get_or_insert_default().insert(labels::SECRET_TYPE.to_owned(), kind.to_owned());
    Secret { metadata, type_: Some("Opaque".to_owned()), ..Secret::default() }
}

fn data<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, ByteString> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), ByteString(value.as_bytes().to_vec()))).collect()
}

fn text(secret: &Secret, key: &str) -> Option<String> {
    let value = &secret.data.as_ref()?.get(key)?.0;
    String::from_utf8(value.clone()).ok().filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::validate;

    fn cluster() -> ValidatedCluster {
        let yaml = "
apiVersion: kaniop.rs/v1beta1
kind: Kanidm
metadata: {name: idm, namespace: default, uid: u}
spec: {domain: idm.example.com, replicaGroups: [{name: default, replicas: 1}]}
";
        validate(&serde_norway::from_str(yaml).unwrap()).unwrap()
    }

    fn administrators() -> Administrators {
        let made = Some("2030-01-01T00:00:00Z".parse().unwrap());
        let domain = Some(Uuid::from_u128(7));
        Administrators { admin: "a".to_owned(), idm_admin: "b".to_owned(), made, domain }
    }

    #[test]
    fn the_administrators_secret_has_exactly_four_keys_and_reads_back() {
        let secret = administrators().secret(&cluster());
        let keys: Vec<_> = secret.data.as_ref().unwrap().keys().cloned().collect();
        assert_eq!(keys, ["ADMIN_PASSWORD", "ADMIN_USERNAME", "IDM_ADMIN_PASSWORD", "IDM_ADMIN_USERNAME"]);
        assert_eq!(secret.metadata.labels.as_ref().unwrap()[labels::SECRET_TYPE], "admin-passwords");
        assert_eq!(Administrators::read(&secret), Some(administrators()));
    }

    #[test]
    fn a_secret_that_lacks_any_key_does_not_count() {
        for key in ["ADMIN_USERNAME", "ADMIN_PASSWORD", "IDM_ADMIN_USERNAME", "IDM_ADMIN_PASSWORD"] {
            for value in [None, Some("")] {
                let mut secret = administrators().secret(&cluster());
                let data = secret.data.as_mut().unwrap();
                data.remove(key);
                data.extend(value.map(|value: &str| (key.to_owned(), ByteString(value.as_bytes().to_vec()))));
                assert_eq!(Administrators::read(&secret), None, "{key} = {value:?}");
            }
        }
    }

    #[test]
    fn a_password_is_never_shown_for_debugging() {
        let shown = format!("{:?}", Administrators { admin: "s3cret".to_owned(), ..administrators() });
        assert!(!shown.contains("s3cret") && shown.contains("2030"), "{shown}");
    }

    #[test]
    fn the_token_reads_back() {
        let token = OperatorToken { token: "t".to_owned(), domain: Some(Uuid::from_u128(7)) };
        assert_eq!(OperatorToken::read(&token.secret(&cluster())), Some(token));
    }
}
