//! What an entry has to look like after a step, from three portraits: of the entry before, of the entry now, and of one made from nothing with the
//! same spec. It asks no plan, so that what plans get wrong shows.

use std::collections::{BTreeMap, BTreeSet};

use kaniop_core::entry::{Entry, Join, Snapshot, Value};
use kaniop_core::identity::Field;
use serde_json::Value as Json;
use uuid::Uuid;

/// What an entry shows, by attribute: names stand for UUIDs, sets have no order, and what the server takes for the same is the same.
pub type Portrait = BTreeMap<String, BTreeSet<String>>;

/// The entry's classes, as if they were an attribute.
const CLASS: &str = "class";
/// What the server itself gives an entry without being asked for.
const GIVEN: [&str; 2] = ["gidnumber", "oauth2_strict_redirect_uri"];

/// How a spec deals with an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// It has exactly what the spec says, which may be nothing.
    Exactly,
    /// It has what the spec says, and what others added.
    AtLeast,
    /// It stays as it is.
    Left,
    /// The operator cannot see it.
    Hidden,
}

/// The rule of each attribute that a kind's table has.
pub type Rules = BTreeMap<&'static str, Rule>;

/// What the documents promise, told from the spec as it is written: what is absent is left alone, but for what an account policy leaves out.
pub fn rules<S>(fields: &'static [Field<S>], spec: &Json, hidden: bool) -> Rules {
    let rule = |field: &Field<S>| match at(spec, field.name) {
        _ if hidden && field.for_managers => Rule::Hidden,
        Some(_) if field.name == "members" && spec["membersPolicy"] == "Additive" => Rule::AtLeast,
        Some(_) => Rule::Exactly,
        None if field.name.starts_with(POLICY) && spec[POLICY].is_object() => Rule::Exactly,
        None => Rule::Left,
    };
    fields.iter().map(|field| (field.attr.name, rule(field))).collect()
}

/// Inside this block, what is absent is reset.
const POLICY: &str = "accountPolicy";

/// What a spec says at a path. An explicit null says nothing.
pub fn at<'s>(spec: &'s Json, path: &str) -> Option<&'s Json> {
    path.split('.').try_fold(spec, |value, name| value.get(name)).filter(|value| !value.is_null())
}

pub fn portrait(entry: &Entry, seen: &Snapshot) -> Portrait {
    let attrs = entry.attrs.iter().map(|(name, value)| (name.clone(), texts(value, seen)));
    attrs.chain([(CLASS.to_owned(), entry.classes.clone()), ("name".to_owned(), [entry.name.clone()].into())]).collect()
}

fn texts(value: &Value, seen: &Snapshot) -> BTreeSet<String> {
    let name = |uuid: &Uuid| seen.get(*uuid).map_or_else(|| uuid.to_string(), |entry| entry.name.clone());
    let row = |(group, values): (&Uuid, &BTreeSet<String>)| format!("{}: {values:?}", name(group));
    match value {
        Value::Text(text) | Value::Digest(text) => [text.clone()].into(),
        Value::Time(time) => [time.to_string()].into(),
        Value::Int(number) => [number.to_string()].into(),
        Value::Bool(yes) => [yes.to_string()].into(),
        Value::Urls(urls) => urls.clone(),
        Value::References(uuids) => uuids.iter().map(name).collect(),
        Value::SshKeys(keys) => keys.iter().map(|(label, key)| format!("{label}: {key}")).collect(),
        Value::Scopes(rows) => rows.iter().map(row).collect(),
        Value::Mails(mails) => {
            let primary = mails.iter().take(1).map(|mail| format!("{mail} (primary)"));
            primary.chain(mails.iter().skip(1).map(|mail| mail.to_lowercase())).collect()
        }
        Value::Claims(claims) => {
            let join = |join: Join| match join {
                Join::Comma => ",",
                Join::Space => " ",
                Join::List => "[]",
            };
            let claim = |(name, claim): (&String, &kaniop_core::entry::Claim)| {
                claim
                    .values
                    .iter()
                    .map(|at| format!("{name} by {:?} for {}", join(claim.join), row(at)))
                    .collect::<Vec<_>>()
            };
            claims.iter().flat_map(claim).collect()
        }
    }
}

/// One step of a walk, as portraits.
pub struct Passage<'a> {
    pub rules: &'a Rules,
    /// `None` where the step created the entry.
    pub before: Option<&'a Portrait>,
    pub after: &'a Portrait,
    /// Of an entry made from nothing with the same spec.
    pub fresh: &'a Portrait,
    /// What the object itself had added to sets that others add to as well.
    pub ours: &'a BTreeSet<String>,
    /// Whether the operator could not see all of the entry before: then it has to become one of its managers first.
    pub was_hidden: bool,
}

impl Passage<'_> {
    /// What is not as it has to be, in a sentence.
    pub fn fault(&self) -> Option<String> {
        let nothing = Portrait::new();
        let before = self.before.unwrap_or(&nothing);
        let names: BTreeSet<_> = [before, self.after, self.fresh].into_iter().flat_map(BTreeMap::keys).collect();
        names.into_iter().find_map(|name| {
            let of = |portrait: &Portrait| portrait.get(name).cloned().unwrap_or_default();
            let (was, is, fresh) = (of(before), of(self.after), of(self.fresh));
            let (wanted, why): (BTreeSet<_>, _) = match self.rules.get(name.as_str()) {
                // Which of them an operator sees that is no manager differs between releases.
                Some(Rule::Hidden) => return None,
                Some(Rule::Exactly) => (fresh, "as a fresh apply of the spec gives"),
                Some(Rule::AtLeast) => {
                    let lost: BTreeSet<_> = self.ours.difference(&fresh).cloned().collect();
                    (was.difference(&lost).chain(&fresh).cloned().collect(), "what the spec says and what others added")
                }
                None if name == CLASS => (was.union(&fresh).cloned().collect(), "what it was and what the spec needs"),
                None if name == "name" => (fresh, "as a fresh apply of the spec gives"),
                Some(Rule::Left) | None if was.is_empty() && GIVEN.contains(&name.as_str()) => {
                    // The server chose it: that there is one is all that can be said.
                    if fresh.is_empty() { (fresh, "nothing") } else { (is.clone(), "of the server's choice") }
                }
                Some(Rule::Left) | None if was.is_empty() && !fresh.is_empty() => {
                    return Some(format!("a fresh apply sets {name} to {fresh:?}, which the spec does not manage"));
                }
                Some(Rule::Left) | None => (was, "as it was, for the spec does not manage it"),
            };
            let missing = is.is_empty() && why == "of the server's choice";
            (is != wanted || missing).then(|| format!("{name} is {is:?} and has to be {wanted:?}: {why}"))
        })
    }

    /// How many requests the step has to take: what changed says so.
    pub fn requests<S>(&self, fields: &[Field<S>], draws_uuids: bool) -> usize {
        let nothing = Portrait::new();
        let before = self.before.unwrap_or(&nothing);
        let created = usize::from(self.before.is_none());
        let changed = |field: &&Field<S>| before.get(field.attr.name) != self.after.get(field.attr.name);
        let of = |wanted: Rule| fields.iter().filter(move |field| self.rules.get(field.attr.name) == Some(&wanted));
        let needs_class = |class: &&str| !before.get(CLASS).is_some_and(|had| had.contains(*class));
        let classes: BTreeSet<_> = fields.iter().filter_map(|field| field.class).filter(needs_class).collect();
        let extended =
            self.after.get(CLASS).map_or(0, |has| classes.iter().filter(|class| has.contains(**class)).count());
        let provisional = created == 1 && draws_uuids;
        let put: Vec<_> =
            of(Rule::Exactly).filter(changed).filter(|field| created == 0 || !field.at_creation).collect();
        let afterwards = self.was_hidden && put.iter().any(|field| field.for_managers);
        let put = provisional || put.iter().any(|field| !(self.was_hidden && field.for_managers));
        let adjusted = created == 0 && of(Rule::AtLeast).any(|field| changed(&field));
        created + extended + usize::from(put) + usize::from(afterwards) + usize::from(adjusted)
    }
}
