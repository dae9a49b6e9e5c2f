//! The table of groups: field by field, what the spec wants of the entry.

use kaniop_api::group::{AccountPolicy, MembersPolicy};
use kaniop_api::{KanidmGroup, KanidmGroupSpec};

use super::{Field, IdentityKind, MANAGED_BY, Wanted, posix};
use crate::entry::{Attr, Collection, Shape, Value};

impl IdentityKind for KanidmGroup {
    type Spec = KanidmGroupSpec;
    const KIND: &'static str = "KanidmGroup";
    const COLLECTION: Collection = Collection::Group;
    const FIELDS: &'static [Field<Self::Spec>] = &[
        // No server keeps an empty one, and some refuse it.
        Field::new("description", Attr::new("description", Shape::Text), |s| match s.description.as_deref() {
            Some("") => Wanted::Absent,
            _ => Wanted::text(s.description.as_ref()),
        }),
        Field::new("entryManagedBy", MANAGED_BY, |s| {
            Wanted::entries(s.entry_managed_by.as_ref().map(std::slice::from_ref))
        }),
        Field::new("mail", Attr::new("mail", Shape::Mails), |s| Wanted::mails(s.mail.as_deref())),
        Field::new("members", Attr::new("member", Shape::References), |s| match (&s.members, s.members_policy) {
            (None, _) => Wanted::Unmanaged,
            (Some(members), MembersPolicy::Exclusive) => Wanted::Entries(members.clone()),
            (Some(members), MembersPolicy::Additive) => Wanted::AtLeast(members.clone()),
        }),
        Field::of_class(posix::GROUP, "posixAttributes.gidnumber", posix::GID, |s| {
            Wanted::int(s.posix_attributes.as_ref().and_then(|posix| posix.gidnumber))
        }),
        policy("accountPolicy.authSessionExpiry", Attr::new("authsession_expiry", Shape::Int), |s| {
            in_policy(s, |policy| Wanted::int(policy.auth_session_expiry))
        }),
        policy("accountPolicy.credentialTypeMinimum", Attr::new("credential_type_minimum", Shape::Text), |s| {
            in_policy(s, |policy| {
                Wanted::text(policy.credential_type_minimum.map(|kind| kind.as_str().to_owned()).as_ref())
            })
        }),
        policy("accountPolicy.passwordMinimumLength", Attr::new("auth_password_minimum_length", Shape::Int), |s| {
            in_policy(s, |policy| Wanted::int(policy.password_minimum_length))
        }),
        policy("accountPolicy.privilegeExpiry", Attr::new("privilege_expiry", Shape::Int), |s| {
            in_policy(s, |policy| Wanted::int(policy.privilege_expiry))
        }),
        // What the server takes it does not show: setting it is no part of a plan, purging it is.
        policy("accountPolicy.webauthnAttestationCaList", CA_LIST, |s| {
            in_policy(s, |policy| match &policy.webauthn_attestation_ca_list {
                Some(_) => Wanted::Elsewhere,
                None => Wanted::Absent,
            })
        }),
        policy("accountPolicy.allowPrimaryCredFallback", Attr::new("allow_primary_cred_fallback", Shape::Bool), |s| {
            in_policy(s, |policy| {
                policy.allow_primary_cred_fallback.map_or(Wanted::Unmanaged, |allow| Wanted::Value(Value::Bool(allow)))
            })
        }),
        policy("accountPolicy.limitSearchMaxResults", Attr::new("limit_search_max_results", Shape::Int), |s| {
            in_policy(s, |policy| Wanted::int(policy.limit_search_max_results))
        }),
        policy("accountPolicy.limitSearchMaxFilterTest", Attr::new("limit_search_max_filter_test", Shape::Int), |s| {
            in_policy(s, |policy| Wanted::int(policy.limit_search_max_filter_test))
        }),
    ];
    const WATCHED: &'static [Attr] = &[CA_LIST];

    fn spec(&self) -> &Self::Spec {
        &self.spec
    }

    fn untold(spec: &Self::Spec) -> Option<&str> {
        spec.account_policy.as_ref()?.webauthn_attestation_ca_list.as_deref()
    }

    fn classes(spec: &Self::Spec) -> Vec<&'static str> {
        let posix = spec.posix_attributes.iter().map(|_| posix::GROUP);
        posix.chain(spec.account_policy.iter().map(|_| POLICY)).collect()
    }
}

/// Authorities whose passkeys count as attested; the server shows only names of it.
pub const CA_LIST: Attr = Attr::new("webauthn_attestation_ca_list", Shape::Digest);

/// Class of groups that carry rules for their members' accounts.
const POLICY: &str = "account_policy";

const fn policy(name: &'static str, attr: Attr, want: fn(&KanidmGroupSpec) -> Wanted) -> Field<KanidmGroupSpec> {
    Field::of_class(POLICY, name, attr, want)
}

/// Inside the block, what is absent is reset; without the block nothing is managed.
fn in_policy(spec: &KanidmGroupSpec, want: impl FnOnce(&AccountPolicy) -> Wanted) -> Wanted {
    spec.account_policy.as_ref().map_or(Wanted::Unmanaged, |policy| want(policy).or_absent())
}
