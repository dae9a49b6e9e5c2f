//! A server that carries out steps, as plans imagine it.

use super::*;

/// What the server would hold after a step.
pub(super) fn carried_out(step: &Step, seen: &Snapshot) -> Snapshot {
    let mut after = seen.clone();
    let held = |uuid: Uuid| seen.get(uuid).expect("only entries that exist are changed").clone();
    match step {
        Step::Create { collection, uuid, attrs } => {
            let name = attrs.iter().find_map(|(attr, value)| match value {
                Value::Text(name) if *attr == Attr::NAME => Some(name.clone()),
                _ => None,
            });
            let mut made = entry(*uuid, *collection, &name.expect("a creation names its entry"));
            made.attrs = attrs.iter().map(|(attr, value)| (attr.name.to_owned(), value.clone())).collect();
            after.insert(made);
        }
        Step::CreateProvisional { name, newcomer } => after.insert(new(name, newcomer)),
        Step::Put { uuid, attrs } => {
            let mut changed = held(*uuid);
            for (attr, value) in attrs {
                match value {
                    Some(Value::Text(name)) if *attr == Attr::NAME => changed.name.clone_from(name),
                    Some(value) => drop(changed.attrs.insert(attr.name.to_owned(), value.clone())),
                    None => drop(changed.attrs.remove(attr.name)),
                }
            }
            after.insert(changed);
        }
        Step::Extend { uuid, class, .. } => {
            let mut changed = held(*uuid);
            changed.classes.insert((*class).to_owned());
            after.insert(changed);
        }
        Step::Adjust { uuid, attr, add, remove, .. } => {
            let mut changed = held(*uuid);
            let old = changed.attrs.remove(attr.name).unwrap_or(Value::References(BTreeSet::new()));
            let Value::References(old) = old else { panic!("{} holds no references", attr.name) };
            let new: BTreeSet<_> = old.union(add).filter(|uuid| !remove.contains(uuid)).copied().collect();
            if !new.is_empty() {
                changed.attrs.insert(attr.name.to_owned(), Value::References(new));
            }
            after.insert(changed);
        }
        Step::Delete { uuid } => after.remove(*uuid),
    }
    after
}

/// The entry that the server creates in a way of its own, under a UUID that nobody could know before.
fn new(name: &str, newcomer: &Newcomer) -> Entry {
    let (collection, attrs) = match newcomer {
        Newcomer::ServiceAccount { displayname, managed_by } => (
            Collection::ServiceAccount,
            vec![
                ("displayname", Value::Text(displayname.clone())),
                ("entry_managed_by", Value::References([*managed_by].into())),
            ],
        ),
        Newcomer::OAuth2Client { displayname, landing, .. } => (
            Collection::OAuth2Client,
            vec![
                ("displayname", Value::Text(displayname.clone())),
                ("oauth2_rs_origin_landing", Value::Text(landing.clone())),
            ],
        ),
    };
    let attrs = attrs.into_iter().map(|(attr, value)| (attr.to_owned(), value)).collect();
    Entry { attrs, ..entry(Uuid::new_v5(&Uuid::NAMESPACE_DNS, name.as_bytes()), collection, name) }
}

/// The world when every plan has been carried out.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) seen: Snapshot,
    /// How many requests that took.
    pub(super) requests: usize,
    /// The last plan, which has nothing to do.
    pub(super) plan: Plan,
    /// UUID of the entry as the status has it.
    pub(super) pinned: Option<Uuid>,
}

/// Carries out every plan, with the status written wherever a plan demands it, and nothing sent before it is.
pub(super) fn settled<K: IdentityKind>(want: &Desired<'_, K>, seen: &Snapshot) -> Settled {
    let (mut seen, mut requests, mut pinned, mut adopted) = (seen.clone(), 0, want.pinned, want.adopted);
    let mut managed = want.managed.clone();
    for _ in 0..12 {
        let want = Desired { owner: want.owner.clone(), pinned, adopted, managed: &managed, ..*want };
        let plan = plan(&want, &seen);
        if plan.pin {
            (pinned, adopted) = (plan.entry, plan.adopted);
            continue;
        }
        let Some(step) = &plan.step else { return Settled { seen, requests, plan, pinned } };
        requests += 1;
        seen = carried_out(step, &seen);
        managed.clone_from(&plan.managed);
    }
    panic!("the plans do not come to an end");
}
