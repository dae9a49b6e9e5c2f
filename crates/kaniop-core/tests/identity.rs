//! Golden plans of identities: `goldens/<Kind>/<field>.yaml` holds cases of what is wanted, what is seen, and the plan that follows.
//!
//! `KANIOP_BLESS=1 cargo test -p kaniop-core --test identity` writes the plans as they are now; read the difference before you commit it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kaniop_api::{KanidmGroup, KanidmOAuth2Client, KanidmPersonAccount, KanidmServiceAccount};
use kaniop_core::entry::{Attr, Claim, Collection, Entry, Join, Newcomer, Shape, Snapshot, Step, Value};
use kaniop_core::identity::{Desired, IdentityKind, Plan, plan};
use kaniop_core::name::Owner;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use uuid::Uuid;

#[derive(Serialize, Deserialize)]
struct Case {
    /// What the case shows, as the end of a sentence that begins with "it".
    it: String,
    spec: Json,
    /// Attributes of our entry; null when there is none.
    seen: Option<Map<String, Json>>,
    /// Classes of our entry besides its kind's.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    classes: BTreeSet<String>,
    /// Whom we made members before, by field.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    managed: BTreeMap<String, Vec<String>>,
    /// Names of other people on the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    others: Vec<String>,
    /// Groups on the server, with their members.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    groups: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    plan: Json,
}

fn named(name: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_DNS, name.as_bytes())
}

fn entry(uuid: Uuid, collection: Collection, name: &str, attrs: BTreeMap<String, Value>) -> Entry {
    Entry {
        uuid,
        collection,
        name: name.to_owned(),
        spn: format!("{name}@idm.example.com"),
        classes: BTreeSet::new(),
        attrs,
    }
}

fn to_value(attr: Attr, json: &Json) -> Value {
    let texts = |json: &Json| -> Vec<String> { serde_json::from_value(json.clone()).unwrap() };
    match attr.shape {
        Shape::Text => Value::Text(json.as_str().unwrap().to_owned()),
        Shape::Time => Value::Time(json.as_str().unwrap().parse().unwrap()),
        Shape::Mails => Value::Mails(texts(json)),
        Shape::References => Value::References(texts(json).iter().map(|name| named(name)).collect()),
        Shape::Reference => Value::References([named(json.as_str().unwrap())].into()),
        Shape::Int => Value::Int(json.as_i64().unwrap()),
        Shape::Bool => Value::Bool(json.as_bool().unwrap()),
        Shape::SshKeys => Value::SshKeys(serde_json::from_value(json.clone()).unwrap()),
        Shape::Urls => Value::Urls(texts(json).into_iter().collect()),
        Shape::Scopes => Value::Scopes(by_name(json)),
        Shape::Claims => Value::Claims(
            serde_json::from_value::<BTreeMap<String, Shown>>(json.clone())
                .unwrap()
                .into_iter()
                .map(|(name, shown)| (name, shown.into()))
                .collect(),
        ),
        Shape::Digest => Value::Digest(json.as_str().unwrap().to_owned()),
    }
}

/// A claim as a golden shows it.
#[derive(Deserialize)]
struct Shown {
    join: String,
    values: Json,
}

impl From<Shown> for Claim {
    fn from(shown: Shown) -> Self {
        let join = match shown.join.as_str() {
            "," => Join::Comma,
            " " => Join::Space,
            ";" => Join::List,
            other => panic!("{other:?} joins nothing"),
        };
        Self { join, values: by_name(&shown.values) }
    }
}

fn by_name(json: &Json) -> BTreeMap<Uuid, BTreeSet<String>> {
    let map: BTreeMap<String, BTreeSet<String>> = serde_json::from_value(json.clone()).unwrap();
    map.into_iter().map(|(name, values)| (named(&name), values)).collect()
}

fn to_json(value: &Value, seen: &Snapshot) -> Json {
    match value {
        Value::Text(text) => json!(text),
        Value::Time(time) => json!(time.to_string()),
        Value::Mails(mails) => json!(mails),
        Value::References(uuids) => json!(names(uuids, seen)),
        Value::Int(number) => json!(number),
        Value::Bool(yes) => json!(yes),
        Value::SshKeys(keys) => json!(keys),
        Value::Urls(urls) => json!(urls),
        Value::Scopes(map) => json!(to_names(map, seen)),
        Value::Claims(claims) => {
            let shown = |claim: &Claim| json!({"join": joined(claim.join), "values": to_names(&claim.values, seen)});
            claims.iter().map(|(name, claim)| (name.clone(), shown(claim))).collect::<Map<_, _>>().into()
        }
        Value::Digest(digest) => json!(digest),
    }
}

const fn joined(join: Join) -> &'static str {
    match join {
        Join::Comma => ",",
        Join::Space => " ",
        Join::List => ";",
    }
}

fn to_names<V: Clone>(map: &BTreeMap<Uuid, V>, seen: &Snapshot) -> BTreeMap<String, V> {
    map.iter().map(|(uuid, value)| (seen.get(*uuid).unwrap().name.clone(), value.clone())).collect()
}

fn names(uuids: &BTreeSet<Uuid>, seen: &Snapshot) -> BTreeSet<String> {
    uuids.iter().map(|uuid| seen.get(*uuid).unwrap().name.clone()).collect()
}

fn describe(plan: &Plan, seen: &Snapshot) -> Json {
    let mut shown = Map::new();
    match &plan.step {
        None => {}
        Some(Step::Create { attrs, .. }) => {
            let attrs: Map<_, _> =
                attrs.iter().map(|(attr, value)| (attr.name.to_owned(), to_json(value, seen))).collect();
            shown.insert("create".to_owned(), Json::Object(attrs));
        }
        Some(Step::CreateProvisional { newcomer, .. }) => {
            let newcomer = match newcomer {
                Newcomer::ServiceAccount { displayname, managed_by } => {
                    json!({"displayname": displayname, "managed_by": seen.get(*managed_by).unwrap().name})
                }
                Newcomer::OAuth2Client { displayname, landing, public } => {
                    json!({"displayname": displayname, "landing": landing, "public": public})
                }
            };
            shown.insert("create under a provisional name".to_owned(), newcomer);
        }
        Some(Step::Put { attrs, .. }) => {
            let json = |value: &Option<Value>| value.as_ref().map_or(Json::Null, |value| to_json(value, seen));
            let attrs: Map<_, _> = attrs.iter().map(|(attr, value)| (attr.name.to_owned(), json(value))).collect();
            shown.insert("put".to_owned(), Json::Object(attrs));
        }
        Some(Step::Extend { class, .. }) => {
            shown.insert("extend".to_owned(), json!(class));
        }
        Some(Step::Adjust { attr, add, remove, .. }) => {
            let adjust = json!({"attr": attr.name, "add": names(add, seen), "remove": names(remove, seen)});
            shown.insert("adjust".to_owned(), adjust);
        }
        Some(Step::Delete { .. }) => panic!("a plan never deletes"),
    }
    if !plan.findings.is_empty() {
        let findings: Vec<_> = plan.findings.iter().map(|f| format!("{}: {}", f.reason, f.message)).collect();
        shown.insert("findings".to_owned(), json!(findings));
    }
    Json::Object(shown)
}

fn planned<K: IdentityKind<Spec: DeserializeOwned>>(case: &Case) -> Json {
    let spec: K::Spec = serde_json::from_value(case.spec.clone()).expect("the spec reads");
    let owner = Owner { kind: K::KIND, namespace: "default", name: "subject", entry: "subject" };
    let attr = |name: &str| K::FIELDS.iter().map(|field| field.attr).find(|attr| attr.name == name);
    let ours = case.seen.as_ref().map(|seen| {
        let attrs = seen.iter().filter_map(|(name, json)| Some((name.clone(), to_value(attr(name)?, json))));
        Entry { classes: case.classes.clone(), ..entry(owner.uuid(0), K::COLLECTION, "subject", attrs.collect()) }
    });
    let others = case.others.iter().map(|name| entry(named(name), Collection::Person, name, BTreeMap::new()));
    let groups = case.groups.iter().map(|(name, members)| {
        let members = members.iter().map(|name| named(name)).collect();
        entry(named(name), Collection::Group, name, [("member".to_owned(), Value::References(members))].into())
    });
    let seen = Snapshot::new(others.chain(groups).chain(ours));
    let managed = case
        .managed
        .iter()
        .map(|(field, names)| (field.clone(), names.iter().map(|name| named(name)).collect()))
        .collect();
    let desired = Desired::<K> { managed: &managed, ..Desired::first(owner, &spec) };
    describe(&plan(&desired, &seen), &seen)
}

fn folder(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(kind)
}

fn check<K: IdentityKind<Spec: DeserializeOwned>>() {
    let mut wrong = Vec::new();
    for file in std::fs::read_dir(folder(K::KIND)).unwrap().map(|file| file.unwrap().path()) {
        let mut cases: Vec<Case> =
            serde_norway::from_str(&std::fs::read_to_string(&file).unwrap()).expect("the golden reads");
        assert!(!cases.is_empty(), "{} holds no case", file.display());
        let mut changed = false;
        for case in &mut cases {
            let now = planned::<K>(case);
            if now != case.plan {
                wrong.push(format!("{} it {}:\n  golden {}\n  now    {now}", file.display(), case.it, case.plan));
                case.plan = now;
                changed = true;
            }
        }
        if changed && std::env::var_os("KANIOP_BLESS").is_some() {
            std::fs::write(&file, serde_norway::to_string(&cases).unwrap()).unwrap();
        }
    }
    assert!(wrong.is_empty() || std::env::var_os("KANIOP_BLESS").is_some(), "{}", wrong.join("\n"));
}

fn check_every_field_has_a_golden<K: IdentityKind>() {
    for field in K::FIELDS {
        let file = folder(K::KIND).join(format!("{}.yaml", field.name.rsplit('.').next().unwrap()));
        assert!(file.exists(), "{} has no golden: write {}", field.name, file.display());
    }
}

#[test]
fn a_group_is_planned_as_the_goldens_say() {
    check::<KanidmGroup>();
}

#[test]
fn a_person_is_planned_as_the_goldens_say() {
    check::<KanidmPersonAccount>();
}

#[test]
fn an_oauth2_client_is_planned_as_the_goldens_say() {
    check::<KanidmOAuth2Client>();
}

#[test]
fn a_service_account_is_planned_as_the_goldens_say() {
    check::<KanidmServiceAccount>();
}

#[test]
fn no_field_is_without_a_golden() {
    check_every_field_has_a_golden::<KanidmOAuth2Client>();
    check_every_field_has_a_golden::<KanidmServiceAccount>();
    check_every_field_has_a_golden::<KanidmGroup>();
    check_every_field_has_a_golden::<KanidmPersonAccount>();
}
