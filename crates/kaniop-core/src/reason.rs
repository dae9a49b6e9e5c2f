//! The closed list of reasons that conditions carry. Reasons are API: scripts and alerts match on them, so none is renamed or reused.

use std::fmt;

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Why a condition is as it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Reason {
            /// Every reason with its meaning, for the reference pages.
            pub const ALL: &'static [(Self, &'static str)] = &[$((Self::$name, concat!($($doc),+)),)+];

            /// The reason as it stands in a condition.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }
        }
    };
}

reasons! {
    /// Everything is as the spec says, and the server said so.
    Ready,
    /// The server refused: the operator's account may not do this. Check the account's groups.
    AccessDenied,
    /// The newest backup cannot be restored; the message names the file and what is wrong with it.
    BackupInvalid,
    /// Two runs of the schedule in a row left no whole backup.
    BackupMissed,
    /// There is no backup yet that could be restored with the image that runs.
    BackupPending,
    /// The newest backup of the schedule was read from its first to its last byte.
    BackupProven,
    /// The built-in administrators were reset and their Secret is written.
    Bootstrapped,
    /// The first start is not over: the administrators or the operator's own account are not set up yet.
    Bootstrapping,
    /// The server's certificate does not fit the host, has expired, or is from an authority that is not trusted.
    CertificateInvalid,
    /// The certificate in the Secret ends within two weeks.
    CertificateExpiring,
    /// The certificate in the Secret has ended.
    CertificateExpired,
    /// The certificate in the Secret is valid from a later time on.
    CertificateNotYetValid,
    /// The certificate in the Secret is from another authority than the one beside it.
    CertificateUntrusted,
    /// The certificate in the Secret is good.
    CertificateValid,
    /// The certificate in the Secret is for other hosts than the origin's.
    CertificateWrongHost,
    /// The request could not be carried out in time; it is tried again.
    ConnectionFailed,
    /// The entry is being deleted.
    Deleting,
    /// An older object stands for the same entry; the message names it. This one touches nothing.
    Conflict,
    /// The person has a credential, so no link for a first one is needed.
    CredentialExists,
    /// The node shows another domain than the one recorded. Nothing is done to it.
    DomainMismatch,
    /// The image is of an older release than the database, and Kanidm never goes back. The way back is a restore.
    DowngradeRefused,
    /// An entry of this name exists and was not created by this object.
    EntryExists,
    /// The picture cannot be fetched from its URL; the message says why. What is on the server stays.
    ImageFetchError,
    /// A kind of the Gateway API that the spec needs is not installed; the message names it. Everything else goes on.
    GatewayApiMissing,
    /// The image cannot be pulled or its name is wrong.
    ImageUnavailable,
    /// Something that should never happen; the message has the operation id for a report.
    InternalError,
    /// The spec asks for what cannot be. The message lists every field at fault.
    InvalidSpec,
    /// The server refuses a value. The message names the field.
    InvalidValue,
    /// The Kanidm that the object refers to does not exist.
    KanidmNotFound,
    /// The Kanidm that the object refers to is not Ready.
    KanidmNotReady,
    /// The operator's own token or password was refused and could not be renewed.
    LoginFailed,
    /// Something of this name exists and is not controlled by this object; it is left alone.
    NameConflict,
    /// The Kanidm does not select this object's namespace.
    NamespaceNotSelected,
    /// `spec.paused` is set.
    Paused,
    /// A node holds another domain than the primary, so it serves nobody: it was added or emptied, and joins, or cannot.
    NodeJoining,
    /// The certificate of a peer is not known (yet), so it cannot replicate.
    PeersUnknown,
    /// Pods are not serving yet.
    PodsNotReady,
    /// Something that the object refers to does not exist on the server (yet).
    ReferenceNotFound,
    /// Nobody can tell which release the image or the database is of. The message says how to tell.
    ReleaseUnknown,
    /// A node's replication certificate has ended, ends soon, or is for another host. It is renewed.
    ReplicationCertificateInvalid,
    /// Everything that the server shows of replication is as it should be. It does not show whether changes arrive.
    ReplicationUnknown,
    /// A link for setting a first credential was handed out and not used yet.
    ResetLinkOpen,
    /// The link for setting a first credential was not used in time. Delete its Secret to get a new one.
    ResetLinkExpired,
    /// Servers are being restarted one by one, to take over a newer configuration.
    RollingOut,
    /// Zero replicas are asked for.
    ScaledToZero,
    /// The Secret's template asks for a label or annotation that is the operator's own.
    SecretTemplateConflict,
    /// The TLS Secret lacks a key or its content does not parse.
    TlsSecretInvalid,
    /// The TLS Secret does not exist (yet).
    TlsSecretMissing,
    /// Nobody could say: the server was not asked or did not answer.
    Unknown,
    /// The server or the image is of a release that this operator is not made for. Nothing of such a server is touched.
    UnsupportedVersion,
    /// The image may run on the database.
    UpgradeAllowed,
    /// The image may not run on the database, so the servers keep theirs; everything else of the spec is applied.
    UpgradeBlocked,
    /// `spec.disableUpgradeChecks` is set: nobody checks whether the image may run on the database.
    UpgradeChecksDisabled,
    /// The backup that is made and proven before an upgrade failed; the message says why.
    UpgradeNeedsBackup,
    /// A release lies between the database's and the image's. The message names the next one.
    UpgradeSkipsRelease,
    /// Claims were asked to grow, and their volumes have not followed yet; the message says how far each is.
    VolumesGrowing,
    /// The account's time has not come.
    NotYetValid,
    /// The restore has not been looked at yet.
    Pending,
    /// The restore is being checked; nothing is touched yet.
    Validating,
    /// The servers are being stopped and the backup is proven once more. A failure up to here is undone.
    Quiescing,
    /// The database of the primary is being replaced.
    RestoringPrimary,
    /// The restored database is being compared with the backup.
    Verifying,
    /// Older databases are discarded and the servers are started: the primary first, then the others.
    RebuildingReplicas,
    /// Credentials that the backup brought back are being replaced.
    Resuming,
    /// The restore is over and was successful.
    Completed,
    /// The restore is over and was not successful.
    Failed,
    /// The restored data is served.
    RestoreCompleted,
    /// The restored data is not served (yet).
    RestoreNotCompleted,
    /// The restore failed; the message says what to do.
    RestoreFailed,
    /// The restore has not failed.
    NoRestoreFailure,
    /// The account's time is over.
    Expired,
    /// The account can be used now, as far as its dates go.
    WithinValidity,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
