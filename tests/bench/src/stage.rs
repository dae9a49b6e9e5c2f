//! A stage for measurements: a namespace with a Kanidm whose server runs as a process, and an operator that can be started and ended there.
//! Each stage has a server and a namespace of its own, so that nothing of an earlier one counts.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http::Request;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kaniop_e2e::cluster::Cluster;
use kaniop_e2e::{condition, eventually};
use kube::api::{Api, DynamicObject, PostParams};
use serde_json::json;

use crate::counts::Counts;
use crate::kubelet;
use crate::operator::{Operator, Start};
use crate::population::{self, Population};
use crate::server::Server;

/// Name of the Kanidm of every stage.
pub(crate) const KANIDM: &str = "idm";
/// Name of the operator's service account.
const ACCOUNT: &str = "kaniop";
/// Lists that the operator reads in one look at a server: the entries, and who has a credential.
pub(crate) const LISTS: f64 = 2.0;
/// How long the API server may take for anything.
const SOON: Duration = Duration::from_secs(60);
/// How often the counts are looked at.
const PAUSE: Duration = Duration::from_millis(100);

/// What is measured, and where logs go.
#[derive(Debug)]
pub(crate) struct Programs {
    /// The operator.
    pub(crate) operator: PathBuf,
    /// The development server.
    pub(crate) server: PathBuf,
    /// Folder of logs.
    pub(crate) logs: PathBuf,
}

/// A Kanidm with its server, and how to start an operator for it.
pub(crate) struct Stage {
    /// The API server.
    pub(crate) cluster: Cluster,
    /// The namespace.
    pub(crate) namespace: String,
    /// The server.
    pub(crate) server: Server,
    /// The people and groups.
    pub(crate) population: Population,
    /// How the operator is started.
    pub(crate) start: Start,
    /// How long anything may take.
    pub(crate) patience: Duration,
    /// Kubeconfig of the administrator, which lies where the API server was started.
    pub(crate) kubeconfig: PathBuf,
    /// Where counts are written down in words.
    pub(crate) log: PathBuf,
}

/// All counts at one moment.
pub(crate) struct Moment {
    /// When.
    pub(crate) at: Instant,
    /// Of the API server.
    pub(crate) kubernetes: Counts,
    /// Of the Kanidm server.
    pub(crate) kanidm: Counts,
    /// Of the operator.
    pub(crate) operator: Counts,
}

/// Connects, and brings the definitions.
pub(crate) async fn connect() -> Result<Cluster> {
    let cluster = Cluster::connect().await;
    for definition in kaniop_api::crd::all()? {
        let name = definition.metadata.name.clone().unwrap_or_default();
        cluster.apply(&serde_json::to_value(&definition)?).await;
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        eventually(&format!("{name} established"), SOON, || async {
            let request = Request::get(&path).body(Vec::new()).map_err(|error| error.to_string())?;
            let text = cluster.client.request_text(request).await.map_err(|error| error.to_string())?;
            let found: DynamicObject = serde_json::from_str(&text).map_err(|error| error.to_string())?;
            condition(&found, "Established").filter(|(status, ..)| status == "True").ok_or_else(|| "not yet".to_owned())
        })
        .await;
    }
    Ok(cluster)
}

impl Stage {
    /// Sets the stage: everything is stored, the Kanidm is Ready, its people and groups are not on the server, no operator runs.
    pub(crate) async fn set(
        cluster: &Cluster,
        programs: &Programs,
        population: Population,
        interval: u32,
        patience: Duration,
    ) -> Result<Self> {
        let namespace = format!("bench-{}", population.objects());
        println!("\n{} objects: {} people, {} groups", population.objects(), population.people, population.groups);
        cluster.namespace(&namespace).await;
        let server = Server::start(&programs.server).await?;
        let ours = std::env::var_os("KUBECONFIG").context("KUBECONFIG is not set: run this by `cargo xtask bench`")?;
        let ours = PathBuf::from(ours);
        let start = Start {
            binary: programs.operator.clone(),
            kubeconfig: kubeconfig(cluster, &ours, &namespace, server.folder()).await?,
            namespace: namespace.clone(),
            interval,
            log: programs.logs.join(format!("{namespace}.log")),
        };
        let log = programs.logs.join("counts.log");
        let (cluster, kubeconfig) = (cluster.clone(), ours);
        let stage = Self { cluster, namespace, server, population, start, patience, kubeconfig, log };
        kubelet::store(&stage.cluster, &stage.namespace, KANIDM, &stage.server).await?;
        let operator = stage.operator()?;
        kubelet::run_pod(&stage.cluster, &stage.namespace, KANIDM, &stage.server).await?;
        operator.stop().await?;
        population::store(&stage.cluster, &stage.namespace, KANIDM, population).await?;
        Ok(stage)
    }

    /// Starts an operator.
    pub(crate) fn operator(&self) -> Result<Operator> {
        Operator::start(&self.start)
    }

    /// Waits until everything is Ready; returns when it was.
    pub(crate) async fn all_ready(&self) -> Result<Instant> {
        let place = (self.namespace.as_str(), KANIDM);
        population::all_ready(&self.cluster, place, &self.server, self.population, self.patience).await
    }

    /// All counts now.
    pub(crate) async fn moment(&self, operator: &Operator) -> Result<Moment> {
        Ok(Moment {
            at: Instant::now(),
            kubernetes: Counts::of_kubernetes(&self.cluster.client).await?,
            kanidm: self.server.counts().await?,
            operator: operator.counts().await?,
        })
    }

    /// Waits until the operator has told what it had to tell: events come behind the work.
    pub(crate) async fn all_told(&self, operator: &mut Operator) -> Result<()> {
        let deadline = Instant::now() + self.patience;
        while operator.counts().await?.sum(|key| key == "kaniop_events_waiting") > 0.0 {
            operator.must_run(&self.start.log)?;
            ensure!(Instant::now() < deadline, "events still wait to be published after {:?}", self.patience);
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Waits until the operator has read the whole server so many times more.
    pub(crate) async fn looks(&self, operator: &mut Operator, more: u64) -> Result<()> {
        let (before, deadline) = (self.lists_so_far().await?, Instant::now() + self.patience);
        #[expect(clippy::cast_precision_loss, reason = "a few")]
        while self.lists_so_far().await? < before + LISTS * more as f64 {
            operator.must_run(&self.start.log)?;
            ensure!(Instant::now() < deadline, "the operator did not look at the server within {:?}", self.patience);
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    async fn lists_so_far(&self) -> Result<f64> {
        Ok(self.server.counts().await?.sum(|route| route == "GET /scim/v1/Entry"))
    }

    /// Writes down what is behind numbers.
    pub(crate) fn note(&self, heading: &str, grown: &[&Counts]) -> Result<()> {
        let text = grown.iter().map(|counts| counts.words(|_| true)).collect::<Vec<_>>().join("\n");
        Counts::note(&self.log, &format!("{} {heading}", self.namespace), &text)
    }
}

/// Makes a service account that may do everything, and returns the file with its credentials.
async fn kubeconfig(cluster: &Cluster, ours: &Path, namespace: &str, folder: &Path) -> Result<PathBuf> {
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client.clone(), namespace);
    accounts.create(&PostParams::default(), &serde_json::from_value(json!({"metadata": {"name": ACCOUNT}}))?).await?;
    let binding = json!({
        "metadata": {"name": format!("{namespace}-operator")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    });
    let bindings: Api<k8s_openapi::api::rbac::v1::ClusterRoleBinding> = Api::all(cluster.client.clone());
    bindings.create(&PostParams::default(), &serde_json::from_value(binding)?).await?;
    let request = TokenRequest { spec: TokenRequestSpec::default(), ..TokenRequest::default() };
    let issued = accounts.create_token_request(ACCOUNT, &PostParams::default(), &request).await?;
    let token = issued.status.context("the API server issued no token")?.token;
    let mut config = kube::config::Kubeconfig::read_from(ours).context("read KUBECONFIG")?;
    for user in &mut config.auth_infos {
        user.auth_info = Some(serde_json::from_value(json!({ "token": token }))?);
    }
    let file = folder.join(format!("{namespace}.kubeconfig"));
    // JSON is YAML.
    std::fs::write(&file, serde_json::to_string(&config)?).context("write the operator's kubeconfig")?;
    Ok(file)
}
