//! The table of service accounts: field by field, what the spec wants of the entry.

use kaniop_api::shared::{MetadataTemplate, SecretRotation};
use kaniop_api::{KanidmServiceAccount, KanidmServiceAccountSpec};

use super::credential::{self, Credential};
use super::validity::{EXPIRE, VALID_FROM};
use super::{Field, Finding, IdentityKind, MANAGED_BY, Wanted, posix};
use crate::entry::{Attr, Collection, Newcomer, Shape, Snapshot};
use crate::name::{OPERATOR_ACCOUNT, Owner};
use crate::reason::Reason;

impl IdentityKind for KanidmServiceAccount {
    type Spec = KanidmServiceAccountSpec;
    const KIND: &'static str = "KanidmServiceAccount";
    const COLLECTION: Collection = Collection::ServiceAccount;
    const FIELDS: &'static [Field<Self::Spec>] = &[
        Field::for_managers("serviceAccountAttributes.displayname", Attr::new("displayname", Shape::Text), |s| {
            Wanted::text(Some(&s.service_account_attributes.displayname))
        }),
        Field::new("serviceAccountAttributes.entryManagedBy", MANAGED_BY, |s| {
            Wanted::entries(Some(std::slice::from_ref(&s.service_account_attributes.entry_managed_by)))
        }),
        Field::for_managers("serviceAccountAttributes.mail", Attr::new("mail", Shape::Mails), |s| {
            Wanted::mails(s.service_account_attributes.mail.as_deref())
        }),
        Field::for_managers("serviceAccountAttributes.accountValidFrom", VALID_FROM, |s| {
            Wanted::time(s.service_account_attributes.account_valid_from.as_ref())
        }),
        Field::for_managers("serviceAccountAttributes.accountExpire", EXPIRE, |s| {
            Wanted::time(s.service_account_attributes.account_expire.as_ref())
        }),
        Field::of_class(posix::ACCOUNT, "posixAttributes.gidnumber", posix::GID, |s| {
            Wanted::int(s.posix_attributes.as_ref().and_then(|posix| posix.gidnumber))
        }),
        Field::of_class(posix::ACCOUNT, "posixAttributes.loginshell", posix::SHELL, |s| {
            Wanted::text(s.posix_attributes.as_ref().and_then(|posix| posix.loginshell.as_ref()))
        }),
    ];

    const WATCHED: &'static [Attr] = &[Attr::new("api_token_session", Shape::Digest)];

    fn spec(&self) -> &Self::Spec {
        &self.spec
    }

    fn classes(spec: &Self::Spec) -> Vec<&'static str> {
        spec.posix_attributes.iter().map(|_| posix::ACCOUNT).collect()
    }

    fn secrets(owner: &Owner<'_>, spec: &Self::Spec) -> Vec<credential::Wanted> {
        let wanted = |name, credential, rotation: &Option<SecretRotation>| credential::Wanted {
            name,
            credential,
            rotation: rotation.clone(),
            template: MetadataTemplate::default(),
        };
        let tokens = spec.api_tokens.iter().flatten().map(|token| {
            let name = token.secret_name.clone().unwrap_or_else(|| token_secret(owner.name, &token.label));
            let (label, purpose) = (token.label.clone(), token.purpose);
            let expiry = token.expiry.as_ref().map(|time| time.0);
            wanted(name, Credential::ApiToken { label, purpose, expiry }, &spec.api_token_rotation)
        });
        let password = spec
            .generate_credentials
            .then(|| wanted(password_secret(owner.name), Credential::Password, &spec.credentials_rotation));
        tokens.chain(password).collect()
    }

    fn not_manager(spec: &Self::Spec, seen: &Snapshot) -> Option<Finding> {
        let (operator, managed_by) = (seen.find(OPERATOR_ACCOUNT)?, &spec.service_account_attributes.entry_managed_by);
        let group = seen.find(managed_by)?;
        (!seen.is_within(operator.uuid, group.uuid)).then(|| Finding {
            reason: Reason::AccessDenied,
            message: format!(
                "serviceAccountAttributes.entryManagedBy: the server lets only {managed_by:?} see and set mail, dates and credentials of this account, \
                 and {OPERATOR_ACCOUNT:?} is not in it: name idm_admins or another group that has it, or add it"
            ),
        })
    }

    fn newcomer(spec: &Self::Spec, seen: &Snapshot) -> Option<Newcomer> {
        let attributes = &spec.service_account_attributes;
        let managed_by = seen.find(&attributes.entry_managed_by)?.uuid;
        Some(Newcomer::ServiceAccount { displayname: attributes.displayname.clone(), managed_by })
    }
}

/// Name of the Secret with the account's password.
#[must_use]
pub fn password_secret(object: &str) -> String {
    format!("{object}-kanidm-service-account-credentials")
}

/// Name of a token's Secret where the spec gives none: a label may have what a name may not.
fn token_secret(object: &str, label: &str) -> String {
    format!("{object}-{}-api-token", label.to_lowercase().replace('_', "-"))
}
