//! What can go wrong in the shell, and what that means for the next try.

use kaniop_kanidm::Class;

/// Something that kept a pass from ending.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused or did not answer.
    #[error("Kubernetes: {0}")]
    Kubernetes(#[source] Box<kube::Error>),
    /// The Kanidm server refused or did not answer.
    #[error("Kanidm: {0}")]
    Kanidm(#[from] kaniop_kanidm::Error),
    /// The lease may be somebody else's by now: nothing is done in doubt.
    #[error("leadership is in doubt: the lease was not renewed in time")]
    NotLeader,
    /// The pass took longer than it may.
    #[error("the pass did not end within {0:?}")]
    Deadline(std::time::Duration),
    /// A process in a pod could not be run or did not answer as agreed.
    #[error("pod {pod}: {what}")]
    Pod {
        /// Which pod.
        pod: String,
        /// What happened.
        what: String,
    },
    /// Something that should never happen.
    #[error("{0}")]
    Bug(String),
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        Self::Kubernetes(Box::new(error))
    }
}

impl Error {
    /// What the error means for the next try.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Kubernetes(error) => match error.as_ref() {
                kube::Error::Api(status) if status.is_forbidden() || status.is_invalid() => Class::Blocked,
                _ => Class::Retry,
            },
            Self::Kanidm(error) => error.class(),
            Self::NotLeader | Self::Deadline(_) | Self::Pod { .. } => Class::Retry,
            Self::Bug(_) => Class::Bug,
        }
    }

    /// Label for metrics.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Kubernetes(_) => "kubernetes",
            Self::Kanidm(_) => "kanidm",
            Self::NotLeader => "not_leader",
            Self::Deadline(_) => "deadline",
            Self::Pod { .. } => "pod",
            Self::Bug(_) => "bug",
        }
    }
}
