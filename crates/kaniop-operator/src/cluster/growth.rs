//! Lets the databases' volumes grow: reads the claims and their StorageClasses, carries out what the core decides, and says what came of it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::storage::v1::StorageClass;
use kaniop_core::cluster::growth::{Class, Growth, classes, growth};
use kaniop_core::cluster::storage::Storage;
use kaniop_core::cluster::{ValidatedCluster, labels};
use kube::api::{Api, ListParams};

use super::Clusters;
use super::observe::Servers;
use super::pass::Valid;
use crate::apply::{self, Applied};
use crate::context::Context;
use crate::error::Error;

impl Clusters {
    /// Asks every claim for more room that is smaller than the spec says and may grow. What is left in the answer is for people.
    pub(super) async fn grow(&self, valid: &Valid<'_>, servers: &Servers) -> Result<Growth, Error> {
        let cluster = &valid.cluster;
        if !matches!(cluster.storage, Storage::Claim(_)) {
            return Ok(Growth::default());
        }
        let live = &servers.statefulsets;
        let claims = claims(&self.ctx, cluster).await?;
        let mut known = BTreeMap::new();
        for name in classes(cluster, live, &claims) {
            known.insert(name.to_owned(), class(&self.ctx, name).await?);
        }
        let mut growth = growth(cluster, live, &claims, &known);
        for larger in std::mem::take(&mut growth.larger) {
            match apply::grow(&self.ctx, valid.owner.namespace, &larger).await? {
                Applied::Refused(why) => growth.refused.push(larger.refused(&why)),
                Applied::Written => {
                    self.tell(valid.kanidm, false, "ClaimExpanded", &larger.to_string());
                    growth.under_way.push(larger.to_string());
                }
                Applied::Unchanged | Applied::Ending | Applied::Conflict(_) => {}
            }
        }
        Ok(growth)
    }
}

/// The claims of the servers, by the label that the StatefulSet's controller gives them from its selector.
async fn claims(ctx: &Context, cluster: &ValidatedCluster) -> Result<Vec<PersistentVolumeClaim>, Error> {
    let ours = ListParams::default().labels(&format!("{}={}", labels::CLUSTER, cluster.name));
    let api: Api<PersistentVolumeClaim> = Api::namespaced(ctx.client.clone(), &cluster.namespace);
    Ok(api.list(&ours).await?.items)
}

/// What a StorageClass says of growing. An operator that watches one namespace may not be allowed to read it: then the API server is simply asked.
async fn class(ctx: &Context, name: &str) -> Result<Class, Error> {
    let api: Api<StorageClass> = Api::all(ctx.client.clone());
    match api.get_opt(name).await {
        Ok(Some(class)) if class.allow_volume_expansion == Some(true) => Ok(Class::Allows),
        Ok(Some(_)) => Ok(Class::Refuses),
        Ok(None) => Ok(Class::Gone),
        Err(kube::Error::Api(status)) if status.is_forbidden() => Ok(Class::Unknown),
        Err(error) => Err(error.into()),
    }
}
