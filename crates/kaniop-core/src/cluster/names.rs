//! Names of the children of a Kanidm, and paths inside its pods. All of them are API: scripts, dashboards and backups rely on them.

/// Container of the server in each pod.
pub const SERVER_CONTAINER: &str = "kanidm";
/// Init container that copies the node helper into the pod.
pub const HELPER_CONTAINER: &str = "node";
/// Volume and claim template of the database.
pub const DATA: &str = "kanidm-data";
/// Volume of certificate and key.
pub const TLS_VOLUME: &str = "tls";
/// Volume of the `<pod>.toml` files.
pub const CONFIG_VOLUME: &str = "config";
/// Volume of the node helper.
pub const HELPER_VOLUME: &str = "node";
/// Where the database lies in the pod.
pub const DATA_PATH: &str = "/data";
/// The server's admin socket.
pub const SOCKET_PATH: &str = "/data/kanidmd.sock";
/// Where `tls.crt` and `tls.key` lie in the pod.
pub const TLS_PATH: &str = "/etc/kanidm/tls";
/// Where the `<pod>.toml` files lie in the pod.
pub const CONFIG_PATH: &str = "/etc/kanidm/config";
/// Where the node helper lies in the pod.
pub const HELPER_PATH: &str = "/kaniop";
/// The node helper itself.
pub const HELPER_BINARY: &str = "/kaniop/kaniop";
/// Port of the server's HTTPS listener in pods and Services.
pub const HTTPS_PORT: i32 = 8443;
/// Port of the server's LDAPS listener in pods and Services.
pub const LDAP_PORT: i32 = 3636;
/// Port of the server's replication listener.
pub const REPLICATION_PORT: i32 = 8444;
/// Where the init container notes the digest of the configuration that the server starts with.
pub const STARTED_CONFIG: &str = "/kaniop/started-config";

/// Secret with a `server.toml` for each pod.
#[must_use]
pub fn config_secret(cluster: &str) -> String {
    format!("{cluster}-config")
}

/// Key of a pod's `server.toml` in [`config_secret`].
#[must_use]
pub fn config_key(pod: &str) -> String {
    format!("{pod}.toml")
}

/// Key in [`config_secret`] of the domain that a node must hold before it serves clients.
#[must_use]
pub fn domain_key(pod: &str) -> String {
    format!("{pod}.domain")
}

/// Secret with the replication certificate of a node, key [`CERTIFICATE_KEY`].
#[must_use]
pub fn certificate_secret(pod: &str) -> String {
    format!("{pod}-cert")
}

/// Key of the certificate in [`certificate_secret`]: base64url of DER.
pub const CERTIFICATE_KEY: &str = "tls.der.b64url";

/// Secret with certificate and key, where the spec names none.
#[must_use]
pub fn tls_secret(cluster: &str) -> String {
    format!("{cluster}-tls")
}

/// Secret with the certificate of the region's Ingress, where the spec names none.
#[must_use]
pub fn region_tls_secret(cluster: &str) -> String {
    format!("{cluster}-region-tls")
}

/// Ingress of a region.
#[must_use]
pub fn region_ingress(cluster: &str, region: &str) -> String {
    format!("{cluster}-{region}")
}

/// Host of a region.
#[must_use]
pub fn region_host(region: &str, domain: &str) -> String {
    format!("{region}.{domain}")
}

/// Secret with the passwords of the built-in administrators.
#[must_use]
pub fn admin_secret(cluster: &str) -> String {
    format!("{cluster}-admin-passwords")
}

/// Secret with the operator's own API token, key `token`.
#[must_use]
pub fn token_secret(cluster: &str) -> String {
    format!("{cluster}-operator-token")
}

/// Headless Service that gives each pod a name in DNS.
#[must_use]
pub fn peer_service(cluster: &str) -> String {
    format!("{cluster}-peers")
}

/// StatefulSet of a replica group.
#[must_use]
pub fn statefulset(cluster: &str, group: &str) -> String {
    format!("{cluster}-{group}")
}

/// Pod of a replica group.
#[must_use]
pub fn pod(cluster: &str, group: &str, ordinal: i32) -> String {
    format!("{cluster}-{group}-{ordinal}")
}

/// What the name of every database claim of a StatefulSet begins with; the ordinal of its pod follows.
#[must_use]
pub fn claim_prefix(statefulset: &str) -> String {
    format!("{DATA}-{statefulset}-")
}
