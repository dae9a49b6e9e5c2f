//! The cluster that the demo and the tests use: our own development cluster, or one that the user
//! has. Callers need not know which; what differs is decided here.

mod cgroup;
mod check;
mod components;
mod config;
pub(crate) mod containerd;
mod down;
pub(crate) mod layout;
mod leftovers;
mod lock;
mod network;
pub(crate) mod pki;
mod status;
mod up;
pub(crate) mod wait;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, anyhow, bail};

use crate::command::output;
use crate::images::Built;
use crate::report::{note, phase, say};
use crate::workspace::root;
use crate::{command, tools};

/// The variable that says whose cluster is used.
pub(crate) const VARIABLE: &str = "KANIOP_CLUSTER";

/// How a person reaches the development cluster. Not by its kubeconfig alone: its addresses exist in its own network only.
const ACCESS: &str = "it has a network of its own: `cargo xtask kubectl -- get pods -A`; any other program: `cargo xtask in-network -- PROGRAM`";

/// A cluster to work with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cluster {
    /// Ours, in its own network namespace.
    Development {
        /// Its administrator's credentials.
        kubeconfig: PathBuf,
    },
    /// The user's, reached as `KUBECONFIG` says.
    External {
        /// What `KUBECONFIG` says.
        kubeconfig: PathBuf,
    },
}

impl Cluster {
    /// The cluster that the environment asks for: the development cluster, or with
    /// `KANIOP_CLUSTER=external` the one that `KUBECONFIG` names.
    ///
    /// # Errors
    /// When the variables contradict each other or name nothing.
    pub(crate) fn from_env() -> Result<Self> {
        Self::chosen(std::env::var(VARIABLE).ok().as_deref(), std::env::var_os("KUBECONFIG").map(PathBuf::from))
    }

    fn chosen(whose: Option<&str>, kubeconfig: Option<PathBuf>) -> Result<Self> {
        match whose {
            None | Some("" | "dev") => Ok(Self::Development { kubeconfig: layout::data(config::ADMIN_KUBECONFIG) }),
            Some("external") => match kubeconfig.filter(|path| !path.as_os_str().is_empty()) {
                Some(kubeconfig) => Ok(Self::External { kubeconfig }),
                None => bail!("{VARIABLE}=external needs KUBECONFIG: the path of your cluster's kubeconfig file"),
            },
            Some(other) => bail!("{VARIABLE}={other} is not known: leave it unset, or say `external`"),
        }
    }

    /// Whether it is the user's.
    pub(crate) fn is_external(&self) -> bool {
        matches!(self, Self::External { .. })
    }

    /// Whether it does not exist yet, not even as data: what is brought up now holds nothing of anybody's.
    pub(crate) fn is_new(&self) -> bool {
        !self.is_external() && !Path::new(layout::DATA).exists()
    }

    /// Credentials of its administrator.
    pub(crate) fn kubeconfig(&self) -> &Path {
        match self {
            Self::Development { kubeconfig } | Self::External { kubeconfig } => kubeconfig,
        }
    }

    /// Brings the development cluster up; of an external one it only verifies access.
    ///
    /// # Errors
    /// When something is missing or a component fails; nothing that was started is left then.
    pub(crate) fn up(&self) -> Result<()> {
        match self {
            Self::Development { .. } => {
                say("cluster up");
                up::up()?;
                note(ACCESS);
                Ok(())
            }
            Self::External { .. } => self.verify(),
        }
    }

    /// Takes the development cluster down; leaves an external one alone.
    ///
    /// # Errors
    /// When something cannot be ended; no data is deleted then.
    pub(crate) fn down(&self, keep_data: bool) -> Result<()> {
        match self {
            Self::Development { .. } => {
                say("cluster down");
                down::down(keep_data)
            }
            Self::External { .. } => {
                note("the cluster is yours: it is left as it is");
                Ok(())
            }
        }
    }

    /// Prints how the cluster is.
    ///
    /// # Errors
    /// When it is not wholly up, or cannot be reached.
    pub(crate) fn status(&self) -> Result<()> {
        match self {
            Self::Development { .. } => status::status(),
            Self::External { .. } => self.verify(),
        }
    }

    /// Proves with real pods that the development cluster does all that is asked of one.
    ///
    /// # Errors
    /// When it does not, or the cluster is not the development cluster.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::Development { .. } => check::check(),
            Self::External { .. } => bail!("only the development cluster can be checked"),
        }
    }

    /// kubectl with these arguments, as administrator. The caller runs it, and may add more.
    pub(crate) fn kubectl<I: IntoIterator<Item = S>, S: AsRef<std::ffi::OsStr>>(&self, arguments: I) -> Command {
        let built = built("kube");
        let mut kubectl = match self {
            Self::Development { .. } => self.in_network(&components::kube_binary()),
            Self::External { .. } if tools::locate("kubectl").is_none() && built.exists() => {
                self.in_network(&built.to_string_lossy())
            }
            Self::External { .. } => {
                let mut kubectl = self.in_network("kubectl");
                kubectl.args(arguments);
                return kubectl;
            }
        };
        kubectl.arg("kubectl").args(arguments);
        kubectl
    }

    /// Helm with these arguments, as administrator.
    pub(crate) fn helm<I: IntoIterator<Item = S>, S: AsRef<std::ffi::OsStr>>(&self, arguments: I) -> Command {
        let built = built("helm");
        let mut helm = match self {
            Self::External { .. } if tools::locate("helm").is_some() || !built.exists() => self.in_network("helm"),
            _ => self.in_network(&built.to_string_lossy()),
        };
        helm.args(arguments);
        helm
    }

    /// A command that runs `program` where the cluster's addresses are reachable, with `KUBECONFIG`
    /// set. Cluster DNS names are not known there.
    pub(crate) fn in_network(&self, program: &str) -> Command {
        let mut command = match self {
            Self::Development { .. } => network::enter(program),
            Self::External { .. } => Command::new(program),
        };
        command.env("KUBECONFIG", self.kubeconfig()).env("PATH", tools::search_path());
        command
    }

    /// Loads an image that was built here, unless this very build is loaded already.
    ///
    /// # Errors
    /// For an external cluster, whose ways we do not know.
    pub(crate) fn load_image(&self, image: &Built) -> Result<()> {
        match self {
            Self::Development { .. } => containerd::load(image),
            Self::External { .. } => {
                Err(anyhow!("load {} into your cluster from {}", image.name, image.archive.display()))
            }
        }
    }

    /// Makes sure that an image is there. An external cluster pulls it when it starts a pod.
    ///
    /// # Errors
    /// When the development cluster has it not and it cannot be pulled.
    pub(crate) fn ensure_image(&self, image: &str) -> Result<()> {
        match self {
            Self::Development { .. } => containerd::ensure(image),
            Self::External { .. } => Ok(()),
        }
    }

    fn verify(&self) -> Result<()> {
        phase("your cluster", || {
            let mut allowed = self.kubectl(["auth", "can-i", "*", "*", "--all-namespaces"]);
            output(&mut allowed)
                .map_err(|e| e.context("KUBECONFIG must give an administrator's access to a running cluster"))?;
            Ok(())
        })
    }
}

/// Fails with one line unless we are root.
///
/// # Errors
/// When we are not.
pub(crate) fn require_root(what: &str) -> Result<()> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    bail!("{what} needs root: run it with sudo")
}

/// The same for the development cluster, to which there is an alternative.
fn require_root_or_external() -> Result<()> {
    require_root("the development cluster (namespaces, mounts, control groups)")
        .map_err(|e| anyhow!("{e}, or use a cluster of your own with {VARIABLE}=external and KUBECONFIG"))
}

/// Replaces this process by `command`. Returns only when that fails.
pub(crate) fn become_command(mut command: Command) -> anyhow::Error {
    use std::os::unix::process::CommandExt;
    let name = command.get_program().to_string_lossy().into_owned();
    command::not_started(&name, command.exec())
}

fn built(name: &str) -> PathBuf {
    root().join("target/dev-cluster").join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_development_cluster_is_the_default_whatever_kubeconfig_says() {
        for whose in [None, Some(""), Some("dev")] {
            let cluster = Cluster::chosen(whose, Some("/home/me/.kube/config".into())).unwrap();
            assert_eq!(cluster.kubeconfig(), Path::new("/var/lib/kaniop-dev/admin.kubeconfig"));
            assert!(!cluster.is_external());
        }
    }

    #[test]
    fn an_external_cluster_needs_a_kubeconfig() {
        let cluster = Cluster::chosen(Some("external"), Some("/home/me/kind".into())).unwrap();
        assert!(cluster.is_external());
        assert_eq!(cluster.kubeconfig(), Path::new("/home/me/kind"));
        for nothing in [None, Some(PathBuf::new())] {
            let error = Cluster::chosen(Some("external"), nothing).unwrap_err().to_string();
            assert!(error.contains("KUBECONFIG") && !error.contains('\n'), "{error}");
        }
        assert!(Cluster::chosen(Some("kind"), None).is_err());
    }

    #[test]
    fn commands_for_the_development_cluster_enter_its_network() {
        let kubectl = Cluster::chosen(None, None).unwrap().kubectl(["get", "pods"]);
        let words: Vec<_> = kubectl.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(kubectl.get_program(), "nsenter");
        assert_eq!(words[..2], ["--net=/run/netns/kaniop-dev", "--"]);
        assert_eq!(words[words.len() - 3..], ["kubectl", "get", "pods"]);
    }

    #[test]
    fn commands_for_an_external_cluster_run_directly() {
        let cluster = Cluster::chosen(Some("external"), Some("/k".into())).unwrap();
        assert_eq!(cluster.in_network("sh").get_program(), "sh");
        assert!(
            cluster.load_image(&Built { name: "x".into(), archive: "/x.tar".into(), digest: String::new() }).is_err()
        );
    }
}
