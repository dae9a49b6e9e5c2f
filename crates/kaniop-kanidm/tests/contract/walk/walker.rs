//! Walks: carries out plans for one spec after the other on a server, and on a second one for entries made from nothing, which may have the same names,
//! mail addresses and numbers there.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::OnceLock;

use kaniop_core::entry::{Snapshot, Step};
use kaniop_core::identity::{Desired, Field, IdentityKind, Managed, attributes, plan};
use kaniop_core::name::{OPERATOR_ACCOUNT, Owner};
use kaniop_core::reason::Reason;
use kaniop_kanidm::Client;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use uuid::Uuid;

use super::generator::{Stop, sequence};
use super::hints::{GROUPS, PEOPLE, Variant, is_hidden};
use super::oracle::{self, Passage, Portrait, Rule, Rules, at, portrait, rules};
use crate::entries::{create, group, person};
use crate::server::{MEMBER, Shared, start_with};

/// No object needs more requests than this in one step.
const ENDLESS: usize = 8;

/// The server of the walks, and the one of the entries made from nothing.
pub fn servers() -> &'static [Shared; 2] {
    static SERVERS: OnceLock<[Shared; 2]> = OnceLock::new();
    SERVERS.get_or_init(|| {
        let start = || std::thread::spawn(|| tokio::runtime::Runtime::new().unwrap().block_on(peopled()));
        [start(), start()].map(|started| started.join().unwrap())
    })
}

/// A server with everybody whom specs name.
async fn peopled() -> Shared {
    let server = start_with(OPERATOR_ACCOUNT).await;
    let operator = server.operator();
    for name in PEOPLE {
        create(&operator, &person(name, &[])).await;
    }
    for name in GROUPS {
        create(&operator, &group(name, &[])).await;
    }
    operator.add_member("walk-owners", "idm_admins").await.unwrap();
    server
}

/// An object and what its status would hold.
pub struct Object<K> {
    client: Client,
    namespace: String,
    name: &'static str,
    pinned: Option<Uuid>,
    managed: Managed,
    kind: PhantomData<K>,
}

impl<K: IdentityKind<Spec: DeserializeOwned>> Object<K> {
    pub fn new(server: &Shared, namespace: String, name: &'static str) -> Self {
        Self { client: server.operator(), namespace, name, pinned: None, managed: Managed::new(), kind: PhantomData }
    }

    async fn everything(&self) -> Snapshot {
        Snapshot::new(self.client.entries(&attributes()).await.unwrap())
    }

    /// Carries out plans until nothing is left: how many requests that took, and what the entry is then.
    /// Where the operator cannot see all of it, that is the one thing that plans find fault with.
    pub async fn rest(&mut self, spec: &K::Spec, hidden: bool) -> Result<(usize, Uuid, Portrait), String> {
        let attrs = attributes();
        let owner = Owner { kind: K::KIND, namespace: &self.namespace, name: self.name, entry: self.name };
        for requests in 0..ENDLESS {
            let seen = self.everything().await;
            let want =
                Desired::<K> { pinned: self.pinned, managed: &self.managed, ..Desired::first(owner.clone(), spec) };
            let planned = plan(&want, &seen);
            let (denied, others): (Vec<_>, Vec<_>) =
                planned.findings.iter().partition(|finding| finding.reason == Reason::AccessDenied);
            let lacks = hidden && planned.step.is_none() && denied.is_empty();
            if let Some(finding) = others.iter().chain(denied.iter().filter(|_| !hidden)).next() {
                return Err(format!("{}: {}", finding.reason, finding.message));
            } else if lacks {
                return Err("nothing is said of what the operator cannot see".to_owned());
            }
            self.pinned = planned.entry.filter(|_| planned.pin).or(self.pinned);
            let Some(step) = planned.step else {
                self.managed = planned.managed;
                let entry = planned.entry.and_then(|uuid| seen.get(uuid)).ok_or("at rest without an entry")?;
                return Ok((requests, entry.uuid, portrait(entry, &seen)));
            };
            if requests + 1 == ENDLESS {
                return Err(format!(
                    "it does not come to rest: {} differs for ever, {step:?}",
                    planned.changes.join(", ")
                ));
            }
            self.client.execute(&step, &attrs).await.map_err(|error| format!("{step:?}: {error}"))?;
            self.managed = planned.managed;
        }
        Err("it does not come to rest".to_owned())
    }
}

/// Long texts of one letter are made to be long and not to be read.
fn brief(text: &str) -> String {
    let (mut brief, mut last, mut run) = (String::new(), None, 0);
    for letter in text.chars() {
        run = if last == Some(letter) { run + 1 } else { 0 };
        last = Some(letter);
        match run {
            0..8 => brief.push(letter),
            8 => brief.push('…'),
            _ => {}
        }
    }
    brief
}

/// A walk under way.
struct Walker<K> {
    variant: &'static Variant,
    object: Object<K>,
    /// The entry as the last step left it.
    last: Option<Portrait>,
    /// Members whom the object itself added while others may add some too.
    ours: BTreeSet<String>,
    /// Whether the operator cannot see all of the entry.
    hidden: bool,
    /// Where it was, with what its spec managed there.
    been: Vec<(Json, Portrait)>,
    /// How often somebody else changed something.
    strangers: usize,
}

/// Walks along the path of a seed.
pub async fn walk<K: IdentityKind<Spec: DeserializeOwned>>(variant: &'static Variant, seed: u64, steps: usize) {
    let (seed, steps) = (given("KANIOP_WALK_SEED", seed), given("KANIOP_WALK_STEPS", steps));
    println!("walk of {}: KANIOP_WALK_SEED={seed} KANIOP_WALK_STEPS={steps}", variant.name);
    let object = Object::<K>::new(&servers()[0], "walk".to_owned(), variant.name);
    let (last, ours, been) = (None, BTreeSet::new(), Vec::new());
    let mut walker = Walker { variant, object, last, ours, hidden: false, been, strangers: 0 };
    let mut before = Json::Null;
    for (nth, stop) in sequence(variant, seed, steps).0.into_iter().enumerate() {
        if let Err(fault) = walker.step(nth, &stop).await {
            panic!(
                "{fault}\n  before: {}\n  now:    {}\nstep {nth} of {}; again: KANIOP_WALK_SEED={seed} KANIOP_WALK_STEPS={}",
                brief(&before.to_string()),
                brief(&stop.spec.to_string()),
                variant.name,
                nth + 1
            );
        }
        before = stop.spec;
    }
    assert!(steps < 30 || walker.strangers > 2, "somebody else changed something in {} steps only", walker.strangers);
}

fn given<T: std::str::FromStr>(name: &str, otherwise: T) -> T {
    std::env::var(name)
        .ok()
        .map_or(otherwise, |text| text.parse().ok().unwrap_or_else(|| panic!("{name} is no number: {text}")))
}

impl<K: IdentityKind<Spec: DeserializeOwned>> Walker<K> {
    async fn step(&mut self, nth: usize, stop: &Stop) -> Result<(), String> {
        let spec: K::Spec = read(&stop.spec)?;
        let hidden = is_hidden(&stop.spec);
        let rules = rules(K::FIELDS, &stop.spec, hidden);
        let draws = K::COLLECTION.draws_uuids();
        let (requests, _, after) = self.object.rest(&spec, hidden).await?;
        let (made, fresh) =
            self.fresh(nth, &spec, hidden).await.map_err(|fault| format!("made from nothing: {fault}"))?;

        let nobody = BTreeSet::new();
        let passage =
            Passage { rules: &rules, before: None, after: &fresh, fresh: &fresh, ours: &nobody, was_hidden: false };
        same("a creation", made, passage.requests(K::FIELDS, draws))?;
        let passage = Passage {
            rules: &rules,
            before: self.last.as_ref(),
            after: &after,
            fresh: &fresh,
            ours: &self.ours,
            was_hidden: self.hidden,
        };
        passage.fault().map_or(Ok(()), Err)?;
        same("the step", requests, passage.requests(K::FIELDS, draws))?;

        let managed = |attr: &String| rules.get(attr.as_str()) == Some(&Rule::Exactly);
        let now: Portrait =
            after.iter().filter(|(attr, _)| managed(attr)).map(|(a, v)| (a.clone(), v.clone())).collect();
        match self.been.iter().find(|(spec, _)| *spec == stop.spec) {
            Some((_, then)) if *then != now => {
                return Err(format!("back at a spec, its fields are {now:?}, not {then:?}"));
            }
            Some(_) => {}
            None => self.been.push((stop.spec.clone(), now)),
        }
        self.remember(&rules, &fresh);
        let before = self.last.replace(after).unwrap_or_default();
        self.hidden = hidden;
        if !hidden {
            return self.stranger(&spec, stop, &rules).await;
        }
        // It is still there.
        let unseen = before.into_iter().filter(|(attr, _)| rules.get(attr.as_str()) == Some(&Rule::Hidden));
        self.last.get_or_insert_default().extend(unseen);
        Ok(())
    }

    /// An entry of the same name made from nothing with the same spec, on a server where nobody has its name, addresses and numbers yet.
    async fn fresh(&self, nth: usize, spec: &K::Spec, hidden: bool) -> Result<(usize, Portrait), String> {
        let mut twin = Object::<K>::new(&servers()[1], format!("fresh-{nth}"), self.variant.name);
        let (requests, uuid, portrait) = twin.rest(spec, hidden).await?;
        let gone = twin.client.execute(&Step::Delete { uuid }, &[]).await;
        gone.map_err(|error| format!("its deletion: {error}"))?;
        Ok((requests, portrait))
    }

    /// Whom the object added itself, while others may add somebody too.
    fn remember(&mut self, rules: &Rules, fresh: &Portrait) {
        let shared = rules.iter().find(|(_, rule)| **rule == Rule::AtLeast);
        let of = |portrait: &Portrait| shared.and_then(|(attr, _)| portrait.get(*attr)).cloned().unwrap_or_default();
        let had = self.last.as_ref().map(of).unwrap_or_default();
        self.ours = of(fresh).into_iter().filter(|name| self.ours.contains(name) || !had.contains(name)).collect();
    }

    /// Somebody else sets what the spec does not manage: nothing is planned because of it, and it stays.
    async fn stranger(&mut self, spec: &K::Spec, stop: &Stop, rules: &Rules) -> Result<(), String> {
        let theirs = stop.strangers.iter().find(|theirs| {
            let rules_then = oracle::rules(K::FIELDS, theirs, false);
            let differs = |field: &&Field<K::Spec>| {
                at(&stop.spec, field.name) != at(theirs, field.name)
                    || rules.get(field.attr.name) != rules_then.get(field.attr.name)
            };
            let changed: Vec<_> = K::FIELDS.iter().filter(differs).collect();
            !changed.is_empty() && changed.iter().all(|field| rules.get(field.attr.name) == Some(&Rule::Left))
        });
        let ours = self.object.managed.clone();
        let shared = rules.get(MEMBER.name) == Some(&Rule::AtLeast) && !stop.strangers.is_empty();
        if let Some(theirs) = theirs {
            let theirs = read(theirs)?;
            self.object.rest(&theirs, false).await.map_err(|fault| format!("somebody else: {fault}"))?;
        }
        if shared {
            let added =
                self.object.client.add_member(self.variant.name, PEOPLE[stop.strangers.len() % PEOPLE.len()]).await;
            added.map_err(|error| format!("somebody else: {error}"))?;
        }
        self.object.managed = ours;
        let seen = self.object.everything().await;
        let entry = seen.find(self.variant.name).ok_or("the entry is gone")?;
        let left = portrait(entry, &seen);
        self.strangers += usize::from(self.last.as_ref() != Some(&left));
        let (requests, _, after) = self.object.rest(spec, false).await?;
        same("what somebody else set", requests, 0)?;
        if after != left {
            return Err(format!("somebody else had made it {left:?} and it is {after:?}"));
        }
        self.last = Some(after);
        Ok(())
    }
}

fn read<S: DeserializeOwned>(spec: &Json) -> Result<S, String> {
    serde_json::from_value(spec.clone())
        .map_err(|error| format!("a spec that the schema allows does not read: {error}"))
}

fn same(what: &str, took: usize, needed: usize) -> Result<(), String> {
    if took == needed { Ok(()) } else { Err(format!("{what} took {took} requests and needs {needed}")) }
}
