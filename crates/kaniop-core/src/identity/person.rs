//! The table of people: field by field, what the spec wants of the entry.

use std::time::Duration;

use kaniop_api::{KanidmPersonAccount, KanidmPersonAccountSpec};

use super::validity::{EXPIRE, VALID_FROM};
use super::{Field, FirstCredential, IdentityKind, Wanted, posix};
use crate::entry::{Attr, Collection, Shape};

impl IdentityKind for KanidmPersonAccount {
    type Spec = KanidmPersonAccountSpec;
    const KIND: &'static str = "KanidmPersonAccount";
    const COLLECTION: Collection = Collection::Person;
    const FIELDS: &'static [Field<Self::Spec>] = &[
        Field::new("personAttributes.displayname", Attr::new("displayname", Shape::Text), |s| {
            Wanted::text(Some(&s.person_attributes.displayname))
        }),
        Field::new("personAttributes.mail", Attr::new("mail", Shape::Mails), |s| {
            Wanted::mails(s.person_attributes.mail.as_deref())
        }),
        Field::later("personAttributes.legalname", Attr::new("legalname", Shape::Text), |s| {
            Wanted::text(s.person_attributes.legalname.as_ref())
        }),
        Field::new("personAttributes.accountValidFrom", VALID_FROM, |s| {
            Wanted::time(s.person_attributes.account_valid_from.as_ref())
        }),
        Field::new("personAttributes.accountExpire", EXPIRE, |s| {
            Wanted::time(s.person_attributes.account_expire.as_ref())
        }),
        Field::later("sshPublicKeys", Attr::new("ssh_publickey", Shape::SshKeys), |s| {
            let keys = s.ssh_public_keys.as_ref();
            keys.map_or(Wanted::Unmanaged, |keys| {
                Wanted::ssh_keys(keys.iter().map(|(label, key)| (label, key.0.as_str())))
            })
        }),
        Field::of_class(posix::ACCOUNT, "posixAttributes.gidnumber", posix::GID, |s| {
            Wanted::int(s.posix_attributes.as_ref().and_then(|posix| posix.gidnumber))
        }),
        Field::of_class(posix::ACCOUNT, "posixAttributes.loginshell", posix::SHELL, |s| {
            Wanted::text(s.posix_attributes.as_ref().and_then(|posix| posix.loginshell.as_ref()))
        }),
    ];

    fn spec(&self) -> &Self::Spec {
        &self.spec
    }

    fn classes(spec: &Self::Spec) -> Vec<&'static str> {
        spec.posix_attributes.iter().map(|_| posix::ACCOUNT).collect()
    }

    fn first_credential(spec: &Self::Spec) -> Option<FirstCredential> {
        let ttl = Duration::from_secs(spec.credentials_token_ttl.unsigned_abs());
        Some(FirstCredential { delivery: spec.credential_reset.delivery, ttl })
    }
}
