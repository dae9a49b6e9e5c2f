//! The table of groups: field by field, what the spec wants of the entry.

use kaniop_api::{KanidmGroup, KanidmGroupSpec};

use super::{Field, IdentityKind, Wanted};
use crate::entry::{Attr, Collection, Shape};

impl IdentityKind for KanidmGroup {
    type Spec = KanidmGroupSpec;
    const KIND: &'static str = "KanidmGroup";
    const COLLECTION: Collection = Collection::Group;
    const FIELDS: &'static [Field<Self::Spec>] = &[
        Field {
            name: "description",
            attr: Attr::new("description", Shape::Text),
            want: |s| Wanted::text(s.description.as_ref()),
        },
        Field {
            name: "entryManagedBy",
            attr: Attr::new("entry_managed_by", Shape::Reference),
            want: |s| Wanted::entries(s.entry_managed_by.as_ref().map(std::slice::from_ref)),
        },
        Field { name: "mail", attr: Attr::new("mail", Shape::Mails), want: |s| Wanted::mails(s.mail.as_deref()) },
        Field {
            name: "members",
            attr: Attr::new("member", Shape::References),
            want: |s| Wanted::entries(s.members.as_deref()),
        },
    ];

    fn spec(&self) -> &Self::Spec {
        &self.spec
    }
}
