//! Sequences of specs, made from the schema of a kind: each differs from the one before it in one or a few fields, or goes back to an earlier one.
//!
//! A sequence depends on nothing but its variant, its seed and its length. What the schema allows and no edit has done yet comes first.

use fastrand::Rng;
use serde_json::{Map, Value as Json, json};

use super::hints::{Hint, Variant};
use super::record::{Mark, Record};
use super::schema::{Leaf, Node, Unique, join, leaves, objection, spec_of};

/// One step of a walk.
#[derive(Debug)]
pub struct Stop {
    /// What the object says now.
    pub spec: Json,
    /// The same with one thing more, each: what somebody else may set meanwhile, where the spec does not manage it.
    pub strangers: Vec<Json>,
}

/// Lists and maps grow to this length by choice.
const LONG: usize = 4;
/// How often an edit is tried before another one is.
const TRIES: usize = 64;

/// A sequence, and what it does to the leaves of the schema.
pub fn sequence(variant: &Variant, seed: u64, steps: usize) -> (Vec<Stop>, Record) {
    let root = spec_of(variant.kind);
    let (rng, record) = (Rng::with_seed(seed), Record::default());
    let mut generator = Generator { variant, root: &root, leaves: leaves(&root), rng, record };
    let mut stops: Vec<Stop> = Vec::new();
    while stops.len() < steps {
        let before = stops.last().map_or(Json::Null, |stop| stop.spec.clone());
        let spec = match stops.len() {
            0 => generator.first(),
            len if len > 2 && generator.rng.u8(..8) == 0 => stops[generator.rng.usize(..len - 1)].spec.clone(),
            _ => generator.next(&before),
        };
        generator.record.take(&root, &before, &spec);
        let strangers = if generator.rng.u8(..3) == 0 { generator.strangers(&spec) } else { Vec::new() };
        stops.push(Stop { spec, strangers });
    }
    (stops, generator.record)
}

struct Generator<'a> {
    variant: &'a Variant,
    root: &'a Node,
    leaves: Vec<(String, bool)>,
    rng: Rng,
    record: Record,
}

/// Something that can be done to a spec.
struct Edit<'a> {
    /// Where, as a JSON pointer to what holds the place.
    holder: String,
    /// Path in the schema of what changes.
    path: String,
    change: Change<'a>,
}

enum Change<'a> {
    /// Give a property or a key that is absent.
    Give(String, &'a Node),
    /// Take a property or a key away; or say null, where the first is allowed.
    Take(String, bool),
    /// Another value for a leaf.
    Replace(&'a Node),
    Insert(&'a Node),
    Delete,
    /// The same items in another order.
    Turn,
}

impl<'a> Generator<'a> {
    /// A spec with what is required and little else.
    fn first(&mut self) -> Json {
        let root = self.root;
        let mut spec = self.value(root, "", 6);
        merge(&mut spec, self.variant.fixed());
        self.lawful(spec).unwrap_or_else(|| self.first())
    }

    /// A spec that differs in a few places.
    fn next(&mut self, before: &Json) -> Json {
        loop {
            let (mut spec, mut touched) = (before.clone(), Vec::<String>::new());
            for _ in 0..self.rng.usize(1..=4) {
                let tried = (0..TRIES).find_map(|_| {
                    let mut edits = self.edits(&spec, false);
                    edits.retain(|edit| {
                        !touched.iter().any(|path| is_under(&edit.path, path) || is_under(path, &edit.path))
                    });
                    let edit = self.choose(edits)?;
                    let mut edited = spec.clone();
                    self.carry_out(&edit, &mut edited);
                    Some((self.lawful(edited)?, edit.path))
                });
                if let Some((edited, path)) = tried {
                    spec = edited;
                    touched.push(path);
                }
            }
            if spec != *before {
                return spec;
            }
        }
    }

    /// The spec with one thing more, each time another.
    fn strangers(&mut self, spec: &Json) -> Vec<Json> {
        let mut edits = self.edits(spec, true);
        self.rng.shuffle(&mut edits);
        let edited = edits.into_iter().take(8).filter_map(|edit| {
            let mut edited = spec.clone();
            self.carry_out(&edit, &mut edited);
            self.lawful(edited)
        });
        edited.collect()
    }

    /// What the API server takes, of what the schema allows.
    fn lawful(&self, spec: Json) -> Option<Json> {
        let names: Vec<_> =
            spec["apiTokens"].as_array().into_iter().flatten().map(|token| &token["secretName"]).collect();
        let named = |nth: usize| !names[nth].is_null() && names[..nth].contains(&names[nth]);
        let twice = (0..names.len()).any(named);
        (!twice && objection(self.root, &spec, "spec").is_none()).then_some(spec)
    }

    /// Something that was not done yet, mostly, as long as there is any; else anything, each field of the spec as likely as any other.
    fn choose(&mut self, mut edits: Vec<Edit<'a>>) -> Option<Edit<'a>> {
        if self.rng.u8(..8) > 0 {
            let news: Vec<_> = edits.iter().map(|edit| self.news(edit)).collect();
            let most = news.iter().max().copied().unwrap_or_default();
            if most > 0 {
                let best: Vec<_> = (0..edits.len()).filter(|nth| news[*nth] == most).collect();
                return Some(edits.swap_remove(best[self.rng.usize(..best.len())]));
            }
        }
        let top = |edit: &Edit<'_>| edit.path.split(['.', '[', '{']).next().unwrap_or_default().to_owned();
        let field = top(edits.get(self.rng.usize(..edits.len().max(1)))?);
        edits.retain(|edit| top(edit) == field);
        let nth = self.rng.usize(..edits.len());
        Some(edits.swap_remove(nth))
    }

    /// How much an edit brings that was not done yet. What is there is changed before it is taken away, and given again for what is still to be done.
    fn news(&self, edit: &Edit<'_>) -> u8 {
        let touched = self.leaves.iter().filter(|(leaf, _)| is_under(leaf, &edit.path) && self.variant.may_edit(leaf));
        let new = |mark| touched.clone().any(|(leaf, _)| !self.record.has(leaf, mark));
        match edit.change {
            Change::Replace(_) if new(Mark::Changed) => 3,
            Change::Give(..) | Change::Insert(_) if new(Mark::Set) => 2,
            Change::Take(..) | Change::Delete if new(Mark::Removed) => 2,
            Change::Give(..) | Change::Insert(_) if new(Mark::Changed) || new(Mark::Removed) => 1,
            _ => 0,
        }
    }

    fn edits(&self, spec: &Json, only_gifts: bool) -> Vec<Edit<'a>> {
        let mut edits = Vec::new();
        self.collect(self.root, spec, (String::new(), String::new()), &mut edits);
        edits.retain(|edit| self.variant.may_edit(&edit.path));
        if only_gifts {
            edits.retain(|edit| matches!(edit.change, Change::Give(..)));
        }
        edits
    }

    fn collect(&self, node: &'a Node, value: &Json, (holder, path): (String, String), into: &mut Vec<Edit<'a>>) {
        let mut edit = |path: &str, change| into.push(Edit { holder: holder.clone(), path: path.to_owned(), change });
        let mut below = Vec::new();
        match node {
            Node::Leaf(_) => edit(&path, Change::Replace(node)),
            Node::Object(properties) => {
                for property in properties {
                    let (name, path) = (&property.name, join(&path, &property.name));
                    match value.get(name) {
                        None | Some(Json::Null) => edit(&path, Change::Give(name.clone(), &property.node)),
                        Some(value) => {
                            if !property.required {
                                edit(&path, Change::Take(name.clone(), !property.defaulted));
                            }
                            below.push((&property.node, value, (format!("{holder}/{name}"), path)));
                        }
                    }
                }
            }
            Node::List { item, .. } => {
                let (items, path) = (value.as_array().map_or(&[][..], Vec::as_slice), format!("{path}[]"));
                edit(&path, Change::Insert(item));
                if !items.is_empty() {
                    edit(&path, Change::Delete);
                    edit(&path, Change::Turn);
                }
                below.extend(
                    items.iter().enumerate().map(|(nth, it)| (&**item, it, (format!("{holder}/{nth}"), path.clone()))),
                );
            }
            Node::Map { value: node, .. } => {
                let Some(Hint::OneOf(keys)) = self.variant.hint(&path) else {
                    panic!("{path} needs a hint for its keys")
                };
                let path = format!("{path}{{}}");
                for key in keys {
                    match value.get(key) {
                        None => edit(&path, Change::Give((*key).to_owned(), node)),
                        Some(value) => {
                            edit(&path, Change::Take((*key).to_owned(), false));
                            below.push((node, value, (format!("{holder}/{}", escaped(key)), path.clone())));
                        }
                    }
                }
            }
        }
        for (node, value, place) in below {
            self.collect(node, value, place, into);
        }
    }

    fn carry_out(&mut self, edit: &Edit<'_>, spec: &mut Json) {
        let holder = spec.pointer_mut(&edit.holder).unwrap();
        match &edit.change {
            Change::Give(name, node) => {
                let value = self.value(node, &edit.path, 1);
                holder[name] = value;
            }
            Change::Take(name, true) if self.rng.bool() => holder[name] = Json::Null,
            Change::Take(name, _) => drop(holder.as_object_mut().unwrap().remove(name)),
            Change::Replace(node) => {
                let other = (0..TRIES).map(|_| self.value(node, &edit.path, 1)).find(|value| value != holder);
                *holder = other.unwrap_or_else(|| panic!("{} has but one value", edit.path));
            }
            Change::Insert(node) => {
                let value = self.value(node, &edit.path, 1);
                let items = holder.as_array_mut().unwrap();
                items.insert(self.rng.usize(..=items.len()), value);
                items.truncate(2 * LONG);
            }
            Change::Delete => {
                let items = holder.as_array_mut().unwrap();
                items.remove(self.rng.usize(..items.len()));
            }
            Change::Turn => holder.as_array_mut().unwrap().rotate_left(1),
        }
    }

    /// A value; one in `sparse + 1` of what may be absent is there.
    fn value(&mut self, node: &Node, path: &str, sparse: usize) -> Json {
        match node {
            Node::Leaf(leaf) => self.leaf(leaf, path),
            Node::Object(properties) => {
                let mut object = Map::new();
                for property in properties {
                    let path = join(path, &property.name);
                    if property.required || (self.variant.may_edit(&path) && self.rng.usize(..=sparse) == 0) {
                        object.insert(property.name.clone(), self.value(&property.node, &path, sparse));
                    }
                }
                Json::Object(object)
            }
            Node::List { item, min, unique, .. } => {
                let path = format!("{path}[]");
                let mut items: Vec<Json> =
                    (0..self.rng.usize(*min..=LONG)).map(|_| self.value(item, &path, sparse)).collect();
                unique_only(&mut items, unique);
                Json::Array(items)
            }
            Node::Map { value, .. } => {
                let Some(Hint::OneOf(keys)) = self.variant.hint(path) else {
                    panic!("{path} needs a hint for its keys")
                };
                let chosen: Vec<_> = keys.iter().filter(|_| self.rng.bool()).collect();
                let path = format!("{path}{{}}");
                chosen.into_iter().map(|key| ((*key).to_owned(), self.value(value, &path, sparse))).collect()
            }
        }
    }

    fn leaf(&mut self, leaf: &Leaf, path: &str) -> Json {
        match (self.variant.hint(path), leaf) {
            (Some(Hint::OneOf(texts)), _) => json!(self.one_of(texts).replace("{}", self.variant.name)),
            (Some(Hint::Between(least, most)), _) => self.int(least, most),
            (None, Leaf::Text { pattern: Some(pattern), .. }) => panic!("{path} needs a hint that matches {pattern}"),
            (None, Leaf::Text { min, max, .. }) => json!(self.text(*min, *max)),
            (None, Leaf::Choice(choices)) => json!(choices[self.rng.usize(..choices.len())]),
            (None, Leaf::Int { min, max }) => match (min, max) {
                (Some(min), Some(max)) => self.int(*min, *max),
                _ => panic!("{path} needs a hint: the schema does not bound it"),
            },
            (None, Leaf::Time) => panic!("{path} needs a hint"),
            (None, Leaf::Bool) => json!(self.rng.bool()),
        }
    }

    fn one_of(&mut self, texts: &[&'static str]) -> &'static str {
        texts[self.rng.usize(..texts.len())]
    }

    /// A number, often a bound.
    fn int(&mut self, least: i64, most: i64) -> Json {
        match self.rng.u8(..6) {
            0 => json!(least),
            1 => json!(most),
            _ => json!(self.rng.i64(least..=most)),
        }
    }

    /// One line of text, sometimes as short or as long as it may be, often one that something could take for something else.
    fn text(&mut self, min: usize, max: usize) -> String {
        const ODD: &[&str] = &[
            "true",
            "null",
            "0",
            "{\"a\":[1]}",
            "[]",
            "\"quoted\" \\ back",
            " spaces ",
            "Ümläut ß 漢字 🦀",
            "a%20b&c=d",
            "name@example.test",
            "00000000-0000-0000-0000-000000000000",
            "2026-01-02T03:04:05Z",
            "x,y;z",
            "<b>&amp;</b>",
            "e\u{301}",
            "Words of a sentence.",
        ];
        let text = match self.rng.u8(..8) {
            0 => "x".repeat(min),
            1 => "ü".repeat(max),
            _ => format!("{} {}", self.one_of(ODD), self.rng.u16(..)),
        };
        let odd = self.rng.u8(..3) == 0;
        let text = if odd { self.one_of(ODD).to_owned() } else { text };
        text.chars().take(max).collect()
    }
}

/// Whether a leaf is what is at a path, or part of it.
fn is_under(leaf: &str, path: &str) -> bool {
    leaf.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '{']))
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn unique_only(items: &mut Vec<Json>, unique: &Unique) {
    let key = |item: &Json| match unique {
        Unique::Nothing => None,
        Unique::Itself => item.as_str().map(str::to_lowercase),
        Unique::Key(name) => item[name].as_str().map(str::to_lowercase),
    };
    let mut seen = Vec::new();
    items.retain(|item| {
        let key = key(item);
        let again = key.is_some() && seen.contains(&key);
        seen.push(key);
        !again
    });
}

fn merge(spec: &mut Json, fixed: Json) {
    let Json::Object(fixed) = fixed else { return };
    for (name, value) in fixed {
        spec[name] = value;
    }
}
