//! The table of people: field by field, what the spec wants of the entry.

use kaniop_api::{KanidmPersonAccount, KanidmPersonAccountSpec};

use super::validity::{EXPIRE, VALID_FROM};
use super::{Field, IdentityKind, Wanted};
use crate::entry::{Attr, Collection, Shape};

impl IdentityKind for KanidmPersonAccount {
    type Spec = KanidmPersonAccountSpec;
    const KIND: &'static str = "KanidmPersonAccount";
    const COLLECTION: Collection = Collection::Person;
    const FIELDS: &'static [Field<Self::Spec>] = &[
        Field {
            name: "personAttributes.displayname",
            attr: Attr::new("displayname", Shape::Text),
            want: |s| Wanted::text(Some(&s.person_attributes.displayname)),
        },
        Field {
            name: "personAttributes.mail",
            attr: Attr::new("mail", Shape::Mails),
            want: |s| Wanted::mails(s.person_attributes.mail.as_deref()),
        },
        Field {
            name: "personAttributes.legalname",
            attr: Attr::new("legalname", Shape::Text),
            want: |s| Wanted::text(s.person_attributes.legalname.as_ref()),
        },
        Field {
            name: "personAttributes.accountValidFrom",
            attr: VALID_FROM,
            want: |s| Wanted::time(s.person_attributes.account_valid_from.as_ref()),
        },
        Field {
            name: "personAttributes.accountExpire",
            attr: EXPIRE,
            want: |s| Wanted::time(s.person_attributes.account_expire.as_ref()),
        },
    ];

    fn spec(&self) -> &Self::Spec {
        &self.spec
    }
}
