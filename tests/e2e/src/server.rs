//! The Kanidm server of a test, asked as a bystander asks it: by its Service's address, with the password from the Secret.

use std::net::SocketAddr;

use k8s_openapi::api::core::v1::Service;
use kaniop_outside::{Error, Server, Session};
use kube::api::Api;
use serde_json::Value;

use crate::cluster::Cluster;

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
        let services: Api<Service> = Api::namespaced(cluster.client.clone(), namespace);
        let spec = services.get(name).await.unwrap().spec.unwrap();
        let port = u16::try_from(spec.ports.unwrap()[0].port).unwrap();
        let address = SocketAddr::new(spec.cluster_ip.unwrap().parse().unwrap(), port);
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
