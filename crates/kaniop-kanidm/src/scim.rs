//! How entries and values look on the wire (SCIM JSON), in both directions. Nothing here decides what a value should be.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::civil::DateTime;
use kaniop_core::entry::{Attr, Claim, Collection, Entry, Join, Shape, Value, normal_url};
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use uuid::Uuid;

/// An entry, or a body that makes one.
pub(crate) type Object = Map<String, Json>;

/// The answer to a list.
#[derive(Deserialize)]
pub(crate) struct List {
    /// The entries.
    pub resources: Vec<Object>,
}

/// What is asked of every entry besides the attributes of a kind.
const ALWAYS: [&str; 3] = ["class", "name", "spn"];

/// The filter that finds every entry of every collection.
pub(crate) fn everything() -> String {
    Collection::ALL.map(|collection| format!("class eq \"{}\"", collection.class())).join(" or ")
}

/// The list of attributes to be answered.
pub(crate) fn attributes(attrs: &[Attr]) -> String {
    let names: BTreeSet<_> = attrs.iter().map(|attr| attr.name).chain(ALWAYS).collect();
    names.into_iter().collect::<Vec<_>>().join(",")
}

/// The body that creates an entry. Empty lists are left out: the server does not tell them from absent attributes.
pub(crate) fn creation(collection: Collection, uuid: Uuid, attrs: &[(Attr, Value)]) -> Object {
    let mut body = Object::new();
    for (attr, value) in attrs.iter().filter(|(_, value)| !value.is_empty()) {
        body.insert(attr.name.to_owned(), encode(value));
    }
    body.insert("class".to_owned(), json!(collection.classes()));
    body.insert("uuid".to_owned(), json!(uuid));
    body
}

/// The body that sets and purges attributes of an entry.
pub(crate) fn change(uuid: Uuid, attrs: &[(Attr, Option<Value>)]) -> Object {
    let mut body = Object::new();
    for (attr, value) in attrs {
        let value = value.as_ref().filter(|value| !value.is_empty());
        body.insert(attr.name.to_owned(), value.map_or(Json::Null, encode));
    }
    body.insert("id".to_owned(), json!(uuid));
    body
}

fn encode(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!(text),
        Value::Time(time) => json!(time.to_string()),
        Value::Int(number) => json!(number),
        Value::Bool(yes) => json!(yes),
        Value::SshKeys(keys) => keys.iter().map(|(label, key)| json!({ "label": label, "value": key })).collect(),
        Value::Mails(mails) => {
            mails.iter().enumerate().map(|(nth, mail)| json!({ "primary": nth == 0, "value": mail })).collect()
        }
        Value::References(ids) => ids.iter().map(|id| json!({ "uuid": id })).collect(),
        Value::Urls(urls) => json!(urls),
        Value::Scopes(map) => {
            map.iter().map(|(group, scopes)| json!({ "groupUuid": group, "scopes": scopes })).collect()
        }
        Value::Claims(claims) => claims.iter().flat_map(|(name, claim)| rows(name, claim)).collect(),
        // Nobody can write what is shown as its digest only.
        Value::Digest(_) => Json::Null,
    }
}

/// One claim, as one row for each group.
fn rows(name: &str, claim: &Claim) -> Vec<Json> {
    let row = |(group, values): (&Uuid, &BTreeSet<String>)| json!({ "claim": name, "joinChar": join(claim.join), "groupUuid": group, "values": values });
    claim.values.iter().map(row).collect()
}

const fn join(join: Join) -> &'static str {
    match join {
        Join::Comma => ",",
        Join::Space => " ",
        Join::List => ";",
    }
}

/// An entry as the server showed it; `None` when it belongs to no collection or may not be seen by name.
///
/// # Errors
/// What is wrong, when it has no UUID.
pub(crate) fn entry(object: &Object, attrs: &[Attr]) -> Result<Option<Entry>, String> {
    let uuid = object.get("id").and_then(Json::as_str).and_then(|id| Uuid::parse_str(id).ok());
    let uuid = uuid.ok_or("an entry without a UUID as its id")?;
    let classes = texts(object.get("class").unwrap_or(&Json::Null)).unwrap_or_default();
    let collection = Collection::ALL.into_iter().find(|kind| classes.iter().any(|class| class == kind.class()));
    let (Some(collection), Some(name), Some(spn)) = (collection, single(object, "name"), single(object, "spn")) else {
        tracing::debug!(%uuid, "an entry without a known class, a name or an SPN is left out");
        return Ok(None);
    };
    let mut entry =
        Entry { uuid, collection, name, spn, classes: classes.into_iter().collect(), attrs: Default::default() };
    for attr in attrs {
        let Some(json) = object.get(attr.name).filter(|json| !json.is_null()) else { continue };
        // One value that cannot be read must not hide all others: the attribute counts as unset, and whoever manages it says that it differs.
        let Some(value) = decode(attr.shape, json) else {
            tracing::warn!(
                attribute = attr.name,
                entry = entry.spn,
                value = brief(json),
                "an attribute has an unknown form"
            );
            continue;
        };
        if !value.is_empty() {
            entry.attrs.insert(attr.name.to_owned(), value);
        }
    }
    Ok(Some(entry))
}

fn single(object: &Object, name: &str) -> Option<String> {
    texts(object.get(name)?)?.into_iter().next()
}

fn decode(shape: Shape, json: &Json) -> Option<Value> {
    match shape {
        Shape::Text => Some(Value::Text(one(texts(json)?)?)),
        Shape::Time => Some(Value::Time(instant(&one(texts(json)?)?)?)),
        Shape::Mails => Some(Value::Mails(mails(json)?)),
        Shape::Int => Some(Value::Int(json.as_i64().or_else(|| one(texts(json)?)?.parse().ok())?)),
        Shape::Bool => Some(Value::Bool(json.as_bool().or_else(|| one(texts(json)?)?.parse().ok())?)),
        Shape::SshKeys => {
            let key =
                |json: &Json| Some((json["label"].as_str()?.to_owned(), json["value"].as_str()?.trim().to_owned()));
            Some(Value::SshKeys(list(json).iter().map(key).collect::<Option<_>>()?))
        }
        Shape::Urls => {
            // What is no URL to us stays as it is: it differs from all that are.
            let normal = |url: String| normal_url(&url).unwrap_or(url);
            Some(Value::Urls(texts(json)?.into_iter().map(normal).collect()))
        }
        Shape::Scopes => {
            let row = |row: &Json| Some((group(row)?, set(&row["scopes"])?));
            Some(Value::Scopes(list(json).iter().map(row).collect::<Option<_>>()?))
        }
        Shape::Claims => claims(json),
        // Whatever it is, that it changed shows.
        Shape::Digest => Some(Value::Digest(texts(json).and_then(one).unwrap_or_else(|| json.to_string()))),
        Shape::Reference | Shape::References => {
            let found = list(json).iter().map(target).collect::<Option<BTreeSet<_>>>()?;
            (shape == Shape::References || found.len() <= 1).then_some(Value::References(found))
        }
    }
}

/// A list, or a single value where the server shows a list of one as the value itself.
fn list(json: &Json) -> &[Json] {
    json.as_array().map_or(std::slice::from_ref(json), Vec::as_slice)
}

fn texts(json: &Json) -> Option<Vec<String>> {
    list(json).iter().map(|value| value.as_str().map(str::to_owned)).collect()
}

fn one(mut texts: Vec<String>) -> Option<String> {
    (texts.len() == 1).then(|| texts.swap_remove(0))
}

/// A point in time. People write the last second of the year 9999 for "never", which is later than any that we can count: it becomes the last one.
fn instant(text: &str) -> Option<Timestamp> {
    let counted = text.parse::<Timestamp>().ok();
    counted.or_else(|| {
        text.trim_end_matches('Z').parse::<DateTime>().ok().filter(|time| time.year() == 9999).map(|_| Timestamp::MAX)
    })
}

fn mails(json: &Json) -> Option<Vec<String>> {
    let mut mails = list(json)
        .iter()
        .map(|mail| match mail {
            Json::String(address) => Some((false, address.clone())),
            mail => Some((mail["primary"].as_bool().unwrap_or(false), mail["value"].as_str()?.to_owned())),
        })
        .collect::<Option<Vec<_>>>()?;
    // Stable: the server's order stays but for the primary.
    mails.sort_by_key(|(primary, _)| !primary);
    Some(mails.into_iter().map(|(_, address)| address).collect())
}

/// Claims, which are shown as one row for each claim and group.
fn claims(json: &Json) -> Option<Value> {
    let mut claims = BTreeMap::<String, Claim>::new();
    for row in list(json) {
        let joined = match row["joinChar"].as_str()? {
            "," => Join::Comma,
            " " => Join::Space,
            ";" => Join::List,
            _ => return None,
        };
        let claim = claims.entry(row["claim"].as_str()?.to_owned());
        let claim = claim.or_insert_with(|| Claim { join: joined, values: BTreeMap::new() });
        claim.values.insert(group(row)?, set(&row["values"])?);
    }
    Some(Value::Claims(claims))
}

fn group(row: &Json) -> Option<Uuid> {
    Uuid::parse_str(row["groupUuid"].as_str()?).ok()
}

fn set(json: &Json) -> Option<BTreeSet<String>> {
    texts(json).map(|texts| texts.into_iter().collect())
}

/// Whom a reference leads to; the name that the server shows beside the UUID can change and is not kept.
fn target(json: &Json) -> Option<Uuid> {
    Uuid::parse_str(json.as_str().or_else(|| json["uuid"].as_str())?).ok()
}

fn brief(json: &Json) -> String {
    json.to_string().chars().take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Uuid = Uuid::from_u128(0xa);
    const B: Uuid = Uuid::from_u128(0xb);

    fn mails(list: &[&str]) -> Value {
        Value::Mails(list.iter().map(|&mail| mail.to_owned()).collect())
    }

    fn references(list: &[Uuid]) -> Value {
        Value::References(list.iter().copied().collect())
    }

    fn claim(join: Join) -> Claim {
        let values = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Claim { join, values: [(A, values(&["x", "y"])), (B, values(&["x"]))].into() }
    }

    fn time(text: &str) -> Value {
        Value::Time(text.parse().unwrap())
    }

    #[test]
    fn every_shape_is_read_from_every_form_it_takes() {
        let text = || Value::Text("x".to_owned());
        #[rustfmt::skip]
        let table = [
            (Shape::Text, json!("x"), Some(text())),
            (Shape::Text, json!(["x"]), Some(text())),
            (Shape::Text, json!(["x", "y"]), None),
            (Shape::Text, json!(7), None),
            (Shape::Time, json!("2026-12-01T04:05:06Z"), Some(time("2026-12-01T04:05:06Z"))),
            (Shape::Time, json!(["2026-12-01T06:05:06+02:00"]), Some(time("2026-12-01T04:05:06Z"))),
            (Shape::Time, json!("yesterday"), None),
            (Shape::Mails, json!([{"primary": false, "value": "a@x"}, {"primary": true, "value": "b@x"}, {"value": "c@x"}]), Some(mails(&["b@x", "a@x", "c@x"]))),
            (Shape::Mails, json!({"primary": true, "value": "a@x"}), Some(mails(&["a@x"]))),
            (Shape::Mails, json!(["a@x", "b@x"]), Some(mails(&["a@x", "b@x"]))),
            (Shape::Mails, json!([{"primary": true}]), None),
            (Shape::References, json!([{"uuid": B, "value": "b@x"}, {"uuid": A, "value": "a@x"}]), Some(references(&[A, B]))),
            (Shape::References, json!({"uuid": A, "value": "a@x"}), Some(references(&[A]))),
            (Shape::References, json!([A.to_string()]), Some(references(&[A]))),
            (Shape::References, json!([]), Some(references(&[]))),
            (Shape::References, json!([{"value": "a@x"}]), None),
            (Shape::Reference, json!({"uuid": A, "value": "a@x"}), Some(references(&[A]))),
            (Shape::Reference, json!([{"uuid": A, "value": "a@x"}]), Some(references(&[A]))),
            (Shape::Reference, json!([{"uuid": A}, {"uuid": B}]), None),
            (Shape::Urls, json!("https://a.test"), Some(Value::Urls(["https://a.test/".to_owned()].into()))),
            (Shape::Scopes, json!([{"group": "g@x", "groupUuid": A, "scopes": ["openid"]}]), Some(Value::Scopes([(A, ["openid".to_owned()].into())].into()))),
            (Shape::Scopes, json!([{"group": "g@x", "scopes": ["openid"]}]), None),
            (Shape::Claims, json!([{"claim": "c", "joinChar": "?", "groupUuid": A, "values": ["v"]}]), None),
            (Shape::Digest, json!(["ab12"]), Some(Value::Digest("ab12".to_owned()))),
        ];
        for (shape, json, value) in table {
            assert_eq!(decode(shape, &json), value, "{shape:?} {json}");
        }
    }

    #[test]
    fn what_is_sent_reads_back_the_same() {
        for (shape, value) in [
            (Shape::Text, Value::Text("Ümläut \"quoted\"".to_owned())),
            (Shape::Time, time("2026-12-01T04:05:06Z")),
            (Shape::Mails, mails(&["z@x", "a@x"])),
            (Shape::References, references(&[A, B])),
            (Shape::Reference, references(&[A])),
            (Shape::Urls, Value::Urls(["https://a.test/".to_owned(), "app:/back".to_owned()].into())),
            (Shape::Scopes, Value::Scopes([(A, ["openid".to_owned(), "email".to_owned()].into())].into())),
            (
                Shape::Claims,
                Value::Claims([("role".to_owned(), claim(Join::Space)), ("team".to_owned(), claim(Join::List))].into()),
            ),
        ] {
            assert_eq!(decode(shape, &encode(&value)), Some(value), "{shape:?}");
        }
    }

    #[test]
    fn a_creation_has_class_and_uuid_and_leaves_out_empty_lists() {
        let attrs = [
            (Attr::NAME, Value::Text("staff".to_owned())),
            (Attr::new("member", Shape::References), references(&[])),
            (Attr::new("mail", Shape::Mails), mails(&["a@x"])),
        ];
        let expected = json!({
            "class": ["object", "group"], "uuid": A, "name": "staff", "mail": [{"primary": true, "value": "a@x"}],
        });
        assert_eq!(Json::Object(creation(Collection::Group, A, &attrs)), expected);
    }

    #[test]
    fn a_change_purges_what_is_absent_or_empty() {
        let attrs = [
            (Attr::new("description", Shape::Text), None),
            (Attr::new("member", Shape::References), Some(references(&[]))),
            (Attr::new("entry_managed_by", Shape::Reference), Some(references(&[B]))),
        ];
        let expected = json!({ "id": A, "description": null, "member": null, "entry_managed_by": [{ "uuid": B }] });
        assert_eq!(Json::Object(change(A, &attrs)), expected);
    }

    fn object(json: Json) -> Object {
        json.as_object().unwrap().clone()
    }

    #[test]
    fn an_entry_has_its_collection_and_only_set_attributes() {
        let attrs = [Attr::new("mail", Shape::Mails), Attr::new("legalname", Shape::Text), Attr::new("x", Shape::Text)];
        let shown = object(json!({
            "id": A, "class": ["account", "object", "person"], "name": "ada", "spn": ["ada@x"], "mail": [], "x": null,
            "displayname": "not asked for",
        }));
        let seen = entry(&shown, &attrs).unwrap().unwrap();
        let (collection, attrs) = (Collection::Person, Default::default());
        assert_eq!(
            seen,
            Entry {
                uuid: A,
                collection,
                name: "ada".to_owned(),
                spn: "ada@x".to_owned(),
                classes: ["account", "object", "person"].map(str::to_owned).into(),
                attrs
            }
        );
    }

    #[test]
    fn entries_of_other_classes_are_left_out_and_an_unknown_form_hides_only_itself() {
        let domain = object(json!({ "id": A, "class": ["domain_info"], "name": "c", "spn": "c@x" }));
        assert_eq!(entry(&domain, &[]), Ok(None));
        let nameless = object(json!({ "id": A, "class": "group" }));
        assert_eq!(entry(&nameless, &[]), Ok(None));
        assert!(entry(&object(json!({ "class": "group" })), &[]).is_err());
        let odd = object(json!({ "id": A, "class": "group", "name": "g", "spn": "g@x", "mail": 7 }));
        let seen = entry(&odd, &[Attr::new("mail", Shape::Mails)]).unwrap().unwrap();
        assert_eq!((seen.name.as_str(), seen.attrs.is_empty()), ("g", true));
    }

    #[test]
    fn a_date_that_means_never_is_the_last_one_that_can_be_counted() {
        assert_eq!(instant("9999-12-31T23:59:59Z"), Some(Timestamp::MAX));
        assert_eq!(instant("2026-01-02T03:04:05Z"), "2026-01-02T03:04:05Z".parse().ok());
        assert_eq!(instant("never"), None);
    }

    #[test]
    fn the_list_asks_for_every_collection_and_each_attribute_once() {
        assert_eq!(
            everything(),
            r#"class eq "person" or class eq "group" or class eq "service_account" or class eq "oauth2_resource_server""#
        );
        assert_eq!(attributes(&[Attr::NAME, Attr::new("mail", Shape::Mails)]), "class,mail,name,spn");
    }
}
