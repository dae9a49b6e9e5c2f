//! The schema of a kind's spec as a tree, read from the CustomResourceDefinition that users install: the one source of what a spec may be.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value as Json;

/// A node of the tree.
#[derive(Debug)]
pub enum Node {
    Object(Vec<Property>),
    List {
        item: Box<Node>,
        min: usize,
        max: usize,
        unique: Unique,
    },
    /// Values by keys that users choose.
    Map {
        value: Box<Node>,
        max: usize,
    },
    Leaf(Leaf),
}

/// A property of an object.
#[derive(Debug)]
pub struct Property {
    pub name: String,
    pub node: Node,
    pub required: bool,
    /// Whether the API server fills it in where it is absent.
    pub defaulted: bool,
}

/// What no two items of a list may have in common.
#[derive(Debug)]
pub enum Unique {
    Nothing,
    Itself,
    Key(String),
}

/// A single value.
#[derive(Debug)]
pub enum Leaf {
    Text { min: usize, max: usize, pattern: Option<String> },
    Choice(Vec<String>),
    Time,
    Int { min: Option<i64>, max: Option<i64> },
    Bool,
}

/// The spec of a kind.
pub fn spec_of(kind: &str) -> Node {
    static CRDS: LazyLock<Json> = LazyLock::new(|| serde_json::to_value(kaniop_api::crd::all().unwrap()).unwrap());
    let crd = CRDS.as_array().unwrap().iter().find(|crd| crd["spec"]["names"]["kind"] == kind).unwrap();
    let schema = &crd["spec"]["versions"][0]["schema"];
    node(&schema["openAPIV3Schema"]["properties"]["spec"], "spec")
}

fn node(schema: &Json, path: &str) -> Node {
    let below = |part: &str| format!("{path}{part}");
    match schema["type"].as_str() {
        Some("object") if schema["additionalProperties"].is_object() => Node::Map {
            value: Box::new(node(&schema["additionalProperties"], &below("{}"))),
            max: size(schema, "maxProperties").unwrap(),
        },
        Some("object") => {
            let required: Vec<_> = schema["required"].as_array().into_iter().flatten().collect();
            let properties = schema["properties"].as_object().unwrap().iter();
            let property = |(name, schema): (&String, &Json)| Property {
                name: name.clone(),
                node: node(schema, &below(&format!(".{name}"))),
                required: required.contains(&&Json::from(name.as_str())),
                defaulted: schema.get("default").is_some(),
            };
            Node::Object(properties.map(property).collect())
        }
        Some("array") => {
            let kind = schema["x-kubernetes-list-type"].as_str().unwrap_or("atomic");
            Node::List {
                item: Box::new(node(&schema["items"], &below("[]"))),
                min: size(schema, "minItems").unwrap_or(0),
                max: size(schema, "maxItems").unwrap(),
                unique: match kind {
                    "map" => Unique::Key(schema["x-kubernetes-list-map-keys"][0].as_str().unwrap().to_owned()),
                    "set" => Unique::Itself,
                    _ if path.ends_with(".mail") => Unique::Itself,
                    _ => Unique::Nothing,
                },
            }
        }
        Some("string") => Node::Leaf(text(schema, path)),
        Some("boolean") => Node::Leaf(Leaf::Bool),
        Some("integer") => Node::Leaf(Leaf::Int { min: number(schema, "minimum"), max: number(schema, "maximum") }),
        other => panic!("{path} is of type {other:?}: the walk has to learn how to make such values"),
    }
}

fn text(schema: &Json, path: &str) -> Leaf {
    if let Some(choices) = schema["enum"].as_array() {
        return Leaf::Choice(choices.iter().map(|choice| choice.as_str().unwrap().to_owned()).collect());
    }
    match schema["format"].as_str() {
        Some("date-time") => return Leaf::Time,
        Some(other) => panic!("{path} has the format {other:?}: the walk has to learn how to make such values"),
        None => {}
    }
    Leaf::Text {
        min: size(schema, "minLength").unwrap_or(0),
        // Only the values of labels and annotations are not bounded: Kubernetes does that.
        max: size(schema, "maxLength").unwrap_or(63),
        pattern: schema["pattern"].as_str().map(str::to_owned),
    }
}

fn size(schema: &Json, name: &str) -> Option<usize> {
    schema[name].as_u64().and_then(|size| size.try_into().ok())
}

/// Bounds of integers are written as floats in a schema.
fn number(schema: &Json, name: &str) -> Option<i64> {
    schema[name].as_number().map(|number| number.to_string().trim_end_matches(".0").parse().unwrap())
}

/// Every leaf by its path, and whether a spec can be without it.
pub fn leaves(root: &Node) -> Vec<(String, bool)> {
    fn collect(node: &Node, path: &str, optional: bool, into: &mut Vec<(String, bool)>) {
        match node {
            Node::Object(properties) => {
                for property in properties {
                    collect(&property.node, &join(path, &property.name), optional || !property.required, into);
                }
            }
            Node::List { item, .. } => collect(item, &format!("{path}[]"), true, into),
            Node::Map { value, .. } => collect(value, &format!("{path}{{}}"), true, into),
            Node::Leaf(_) => into.push((path.to_owned(), optional)),
        }
    }
    let mut all = Vec::new();
    collect(root, "", false, &mut all);
    all
}

/// The path of a property.
pub fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// What the schema says against a value, if anything: the walk must not send what an API server would refuse.
pub fn objection(node: &Node, value: &Json, path: &str) -> Option<String> {
    let wrong = |what: &str| Some(format!("{path}: {what}: {value}"));
    match node {
        Node::Object(properties) => {
            let Some(object) = value.as_object() else { return wrong("no object") };
            let known = |name: &String| properties.iter().any(|property| property.name == *name);
            if let Some(name) = object.keys().find(|name| !known(name)) {
                return wrong(&format!("{name} is unknown"));
            }
            properties.iter().find_map(|property| match object.get(&property.name) {
                None | Some(Json::Null) if property.required => wrong(&format!("{} is missing", property.name)),
                None | Some(Json::Null) => None,
                Some(value) => objection(&property.node, value, &join(path, &property.name)),
            })
        }
        Node::List { item, min, max, unique } => {
            let Some(items) = value.as_array() else { return wrong("no list") };
            if !(*min..=*max).contains(&items.len()) {
                return wrong("too few or too many items");
            }
            let keys: Vec<_> = items.iter().filter_map(|item| key(unique, item)).collect();
            if keys.iter().collect::<BTreeSet<_>>().len() < keys.len() {
                return wrong("two items of one key");
            }
            items.iter().find_map(|value| objection(item, value, &format!("{path}[]")))
        }
        Node::Map { value: node, max } => {
            let Some(map) = value.as_object() else { return wrong("no map") };
            if map.len() > *max {
                return wrong("too many keys");
            }
            map.values().find_map(|value| objection(node, value, &format!("{path}{{}}")))
        }
        Node::Leaf(leaf) => (!allows(leaf, value)).then(|| wrong("not allowed")).flatten(),
    }
}

fn key(unique: &Unique, item: &Json) -> Option<String> {
    let key = match unique {
        Unique::Nothing => return None,
        Unique::Itself => item,
        Unique::Key(name) => &item[name],
    };
    key.as_str().map(str::to_lowercase)
}

fn allows(leaf: &Leaf, value: &Json) -> bool {
    let text = value.as_str();
    match leaf {
        Leaf::Text { min, max, .. } => text.is_some_and(|text| (*min..=*max).contains(&text.chars().count())),
        Leaf::Choice(choices) => text.is_some_and(|text| choices.iter().any(|choice| choice == text)),
        Leaf::Time => text.is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok()),
        Leaf::Int { min, max } => {
            value.as_i64().is_some_and(|n| min.is_none_or(|min| n >= min) && max.is_none_or(|max| n <= max))
        }
        Leaf::Bool => value.is_boolean(),
    }
}
