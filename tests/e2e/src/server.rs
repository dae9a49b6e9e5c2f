//! The Kanidm server of a test, asked as a bystander asks it: by its Service's address, with the password from the Secret. On a cluster
//! whose addresses are out of reach (`KANIOP_CLUSTER=external`) the way leads through the API server instead.

use std::net::SocketAddr;

use k8s_openapi::api::core::v1::{Pod, Service};
use kaniop_outside::{Error, Server, Session};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::cluster::Cluster;

/// Port of the server in its pod.
const PORT: u16 = 8443;

/// A way to the server of a Kanidm, logged in as `idm_admin`.
#[derive(Clone)]
pub struct Bystander {
    session: Session,
    server: Server,
}

impl Bystander {
    /// Logs in to the Kanidm `name`, whose certificate is for `host`.
    ///
    /// # Panics
    /// When there is no way to it, or the password is wrong.
    pub async fn of(cluster: &Cluster, namespace: &str, name: &str, host: &str) -> Self {
        let address = Self::address(cluster, namespace, name).await;
        Self::through(cluster, namespace, name, host, address).await
    }

    /// Whether the Kanidm shows a certificate that this authority alone has signed.
    ///
    /// # Panics
    /// When there is no way to it.
    pub async fn is_signed_by(cluster: &Cluster, (namespace, name): (&str, &str), host: &str, authority: &str) -> bool {
        let server = Server::new(Self::address(cluster, namespace, name).await, host, authority).unwrap();
        tokio::task::spawn_blocking(move || server.get("/status").is_ok()).await.unwrap()
    }

    async fn address(cluster: &Cluster, namespace: &str, name: &str) -> SocketAddr {
        let services: Api<Service> = Api::namespaced(cluster.client.clone(), namespace);
        let spec = services.get(name).await.unwrap().spec.unwrap();
        if is_external() {
            let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), namespace);
            let labels: Vec<_> = spec.selector.iter().flatten().map(|(key, value)| format!("{key}={value}")).collect();
            let pod = pods.list(&ListParams::default().labels(&labels.join(","))).await.unwrap().items.remove(0);
            forwarded(cluster, namespace, pod.name_any()).await
        } else {
            let port = spec.ports.as_ref().unwrap()[0].port;
            SocketAddr::new(spec.cluster_ip.as_ref().unwrap().parse().unwrap(), port.try_into().unwrap())
        }
    }

    /// Logs in to one node of the Kanidm `name`, past its Service.
    ///
    /// # Panics
    /// When there is no way to it, or the password is wrong.
    pub async fn of_node(cluster: &Cluster, namespace: &str, name: &str, host: &str, pod: &str) -> Self {
        let address = if is_external() {
            forwarded(cluster, namespace, pod.to_owned()).await
        } else {
            let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), namespace);
            let ip = pods.get(pod).await.unwrap().status.unwrap().pod_ip.unwrap();
            SocketAddr::new(ip.parse().unwrap(), PORT)
        };
        Self::through(cluster, namespace, name, host, address).await
    }

    async fn through(cluster: &Cluster, namespace: &str, name: &str, host: &str, address: SocketAddr) -> Self {
        let authority = cluster.secret(namespace, &format!("{name}-tls"), "ca.crt").await;
        let password = cluster.secret(namespace, &format!("{name}-admin-passwords"), "IDM_ADMIN_PASSWORD").await;
        let server = Server::new(address, host, &authority).unwrap();
        let (asked, host) = (server.clone(), host.to_owned());
        let session = tokio::task::spawn_blocking(move || asked.login("idm_admin", &password)).await.unwrap();
        let session = session.unwrap_or_else(|error| panic!("login at {host}: {error}"));
        Self { session, server }
    }

    /// Does something with the session.
    ///
    /// # Errors
    /// Those of what is done.
    pub async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&Session) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let session = self.session.clone();
        tokio::task::spawn_blocking(move || ask(&session)).await.unwrap()
    }

    /// Values of an attribute, in the server's order.
    ///
    /// # Panics
    /// When the server does not answer.
    pub async fn values(&self, path: &str, attribute: &str) -> Vec<String> {
        let (path, attribute) = (path.to_owned(), attribute.to_owned());
        self.ask(move |session| session.values(&path, &attribute)).await.unwrap()
    }

    /// Sets an attribute behind the operator's back.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn put(&self, path: &str, attribute: &str, values: &'static [&'static str]) {
        let (path, attribute) = (path.to_owned(), attribute.to_owned());
        self.ask(move |session| session.put(&path, &attribute, values)).await.unwrap();
    }

    /// Deletes behind the operator's back.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn delete(&self, path: &str) {
        let path = path.to_owned();
        self.ask(move |session| session.delete(&path)).await.unwrap();
    }

    /// What an OAuth2 client's name and secret are worth to the server; `None` when it refuses them.
    ///
    /// # Panics
    /// When the server does not answer.
    pub async fn introspect(&self, client_id: &str, client_secret: &str) -> Option<Value> {
        let (server, id, secret) = (self.server.clone(), client_id.to_owned(), client_secret.to_owned());
        tokio::task::spawn_blocking(move || server.introspect(&id, &secret)).await.unwrap().unwrap()
    }

    /// SPN of whoever shows this token; `None` when the server does not take it.
    ///
    /// # Panics
    /// When the server does not answer.
    pub async fn whoami(&self, token: &str) -> Option<String> {
        let session = self.server.bearer(token);
        let me = tokio::task::spawn_blocking(move || session.get("/v1/self")).await.unwrap();
        match me {
            Ok(me) => me["youare"]["attrs"]["spn"][0].as_str().map(str::to_owned),
            Err(Error::Refused { status: 401, .. }) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Logs in as somebody else.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn log_in(&self, name: &str, password: &str) {
        let (server, name, password) = (self.server.clone(), name.to_owned(), password.to_owned());
        let session = tokio::task::spawn_blocking(move || server.login(&name, &password).map(drop)).await.unwrap();
        session.unwrap();
    }

    /// Labels of a service account's API tokens, sorted.
    ///
    /// # Panics
    /// When the server does not answer.
    pub async fn tokens(&self, account: &str) -> Vec<String> {
        let path = format!("/v1/service_account/{account}/_api_token");
        let listed = self.ask(move |session| session.get(&path)).await.unwrap();
        let labels = listed.as_array().into_iter().flatten().filter_map(|token| token["label"].as_str());
        let mut labels: Vec<_> = labels.map(str::to_owned).collect();
        labels.sort();
        labels
    }

    /// Issues an API token behind the operator's back.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn issue_token(&self, account: &str, label: &str) {
        let path = format!("/v1/service_account/{account}/_api_token");
        let body = serde_json::json!({"label": label, "expiry": null, "read_write": false, "compact": false});
        self.ask(move |session| session.post(&path, &body).map(drop)).await.unwrap();
    }

    /// Names of all people or groups.
    ///
    /// # Panics
    /// When the server does not answer.
    pub async fn names(&self, collection: &'static str) -> Vec<String> {
        let all = self.ask(move |session| session.get(&format!("/v1/{collection}"))).await.unwrap();
        let entries = all.as_array().cloned().unwrap_or_default();
        entries.iter().filter_map(|entry| entry["attrs"]["name"][0].as_str().map(str::to_owned)).collect()
    }

    /// How often each route was used, where the server counts that: the development server does.
    pub async fn requests(&self) -> Option<Value> {
        let server = self.server.clone();
        tokio::task::spawn_blocking(move || server.get("/dev/requests")).await.unwrap().ok().filter(Value::is_object)
    }
}

fn is_external() -> bool {
    std::env::var("KANIOP_CLUSTER").is_ok_and(|whose| whose == "external")
}

/// A local address that leads to a pod, through the API server, for as long as the test runs.
async fn forwarded(cluster: &Cluster, namespace: &str, pod: String) -> SocketAddr {
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), namespace);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let mut forwarder = pods.portforward(&pod, &[PORT]).await.unwrap();
            let mut far = forwarder.take_stream(PORT).unwrap();
            // Either side may end the connection at any time.
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
        }
    });
    address
}
