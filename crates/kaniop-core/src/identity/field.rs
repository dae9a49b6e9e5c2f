//! One row of a kind's table, and what it may want of its attribute.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::entry::{Attr, Join, Value, normal_ssh_key, normal_url};

/// Texts for each of some groups, which are named by name or SPN.
pub type ByGroup = Vec<(String, BTreeSet<String>)>;

/// What a field wants of its attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing: the attribute is managed elsewhere.
    Unmanaged,
    /// Something that no plan can compare: it is brought there beside the plan.
    Elsewhere,
    /// This value; an empty list purges.
    Value(Value),
    /// Nothing: what is there is purged.
    Absent,
    /// References to exactly these entries, by name, SPN or UUID.
    Entries(Vec<String>),
    /// References to these entries at least; others stay.
    AtLeast(Vec<String>),
    /// Exactly these scopes, by group.
    Scopes(ByGroup),
    /// Exactly these claims, by name, with values by group.
    Claims(Vec<(String, Join, ByGroup)>),
    /// Something that cannot be: what is wrong, for people.
    Invalid(String),
}

impl Wanted {
    /// A text, unmanaged when absent.
    #[must_use]
    pub fn text(text: Option<&String>) -> Self {
        text.map_or(Self::Unmanaged, |text| Self::Value(Value::Text(text.clone())))
    }

    /// Mail addresses, unmanaged when absent.
    #[must_use]
    pub fn mails(mails: Option<&[String]>) -> Self {
        mails.map_or(Self::Unmanaged, |mails| Self::Value(Value::Mails(mails.to_vec())))
    }

    /// A number, unmanaged when absent.
    #[must_use]
    pub fn int(number: Option<i64>) -> Self {
        number.map_or(Self::Unmanaged, |number| Self::Value(Value::Int(number)))
    }

    /// Yes or no, unmanaged when absent.
    #[must_use]
    pub fn bool(yes: Option<bool>) -> Self {
        yes.map_or(Self::Unmanaged, |yes| Self::Value(Value::Bool(yes)))
    }

    /// One URL.
    #[must_use]
    pub fn url(text: &str) -> Self {
        normal_url(text).map_or_else(|| not_a_url(text), |url| Self::Value(Value::Text(url)))
    }

    /// Exactly these URLs.
    #[must_use]
    pub fn urls(texts: &[String]) -> Self {
        let urls = texts.iter().map(|text| normal_url(text).ok_or(text)).collect::<Result<_, _>>();
        urls.map_or_else(|text| not_a_url(text), |urls| Self::Value(Value::Urls(urls)))
    }

    /// Exactly these SSH public keys, by label.
    pub fn ssh_keys<'k>(keys: impl Iterator<Item = (&'k String, &'k str)>) -> Self {
        let keys = keys.map(|(label, key)| Ok((label.clone(), normal_ssh_key(key).ok_or(label)?)));
        keys.collect::<Result<BTreeMap<_, _>, &String>>().map_or_else(
            |label| Self::Invalid(format!("{label:?} has more than one line: give each key a label of its own")),
            |keys| Self::Value(Value::SshKeys(keys)),
        )
    }

    /// Purged when absent, instead of unmanaged.
    #[must_use]
    pub fn or_absent(self) -> Self {
        if self == Self::Unmanaged { Self::Absent } else { self }
    }

    /// A point in time, unmanaged when absent.
    #[must_use]
    pub fn time(time: Option<&Time>) -> Self {
        time.map_or(Self::Unmanaged, |time| Self::Value(Value::Time(time.0)))
    }

    /// References, unmanaged when absent.
    #[must_use]
    pub fn entries(ids: Option<&[String]>) -> Self {
        ids.map_or(Self::Unmanaged, |ids| Self::Entries(ids.to_vec()))
    }
}

/// One row of a kind's table.
#[derive(Debug)]
pub struct Field<S> {
    /// Path in the spec, for messages.
    pub name: &'static str,
    /// The attribute that it governs.
    pub attr: Attr,
    /// What the spec wants of it.
    pub want: fn(&S) -> Wanted,
    /// Class that the entry needs before it may have the attribute.
    pub class: Option<&'static str>,
    /// Whether the server takes the attribute at the creation already.
    pub at_creation: bool,
    /// Whether the server shows the attribute to the entry's managers only.
    pub for_managers: bool,
}

impl<S> Field<S> {
    /// A row.
    pub const fn new(name: &'static str, attr: Attr, want: fn(&S) -> Wanted) -> Self {
        Self { name, attr, want, class: None, at_creation: true, for_managers: false }
    }

    /// The row of an attribute that the server's access rules let us change, but not give at the creation.
    pub const fn later(name: &'static str, attr: Attr, want: fn(&S) -> Wanted) -> Self {
        Self { name, attr, want, class: None, at_creation: false, for_managers: false }
    }

    /// The row of an attribute that only the entry's managers see.
    pub const fn for_managers(name: &'static str, attr: Attr, want: fn(&S) -> Wanted) -> Self {
        Self { name, attr, want, class: None, at_creation: true, for_managers: true }
    }

    /// The row of an attribute that only entries of a class may have.
    pub const fn of_class(class: &'static str, name: &'static str, attr: Attr, want: fn(&S) -> Wanted) -> Self {
        Self { name, attr, want, class: Some(class), at_creation: false, for_managers: false }
    }
}

fn not_a_url(text: &str) -> Wanted {
    Wanted::Invalid(format!("{text:?} is not an absolute URL"))
}
