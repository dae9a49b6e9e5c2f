//! What becomes of an entry when its object is deleted.

use std::time::Duration;

use kaniop_api::shared::DeletionPolicy;

use super::ownership::made;
use super::{Desired, IdentityKind};
use crate::entry::{Snapshot, Step};

/// How long an object in a namespace that is being deleted waits for a server that does not answer.
const PATIENCE: Duration = Duration::from_secs(300);

/// Why the entry cannot be looked at now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The Kanidm object is gone or going: nobody will ever serve this entry again under it.
    KanidmGone,
    /// The CustomResourceDefinition is going: somebody removes Kaniop, not the people.
    DefinitionGoing,
    /// The Kanidm no longer selects this namespace: the entry is not ours to delete any more.
    NotSelected,
    /// The Kanidm is paused.
    Paused,
    /// The server does not answer or does not do it; the text says why.
    Unreachable(String),
}

/// What to do with the object that is being deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// Delete the entry, then release the object.
    Delete(Step),
    /// Release the object; the note, if any, is worth a Warning.
    Release(Option<String>),
    /// Keep the object and say why.
    Wait(String),
}

/// Decides. `seen` is the server's snapshot or why there is none; `waited` is how long the object has been going;
/// `terminating` tells whether its namespace is going too.
#[must_use]
pub fn deletion<K: IdentityKind>(
    want: &Desired<'_, K>,
    seen: Result<&Snapshot, &Obstacle>,
    waited: Duration,
    terminating: bool,
) -> Deletion {
    match seen {
        Ok(snapshot) => match made(want, snapshot) {
            Some(own) if own.entry.is_built_in() || retained(want, own.adopted) => Deletion::Release(None),
            Some(own) => Deletion::Delete(Step::Delete { uuid: own.entry.uuid }),
            None => Deletion::Release(None),
        },
        Err(Obstacle::KanidmGone) => Deletion::Release(None),
        Err(Obstacle::DefinitionGoing) => Deletion::Release(Some(format!(
            "the CustomResourceDefinition is being deleted: the entry {:?} stays on the server",
            want.owner.entry
        ))),
        Err(Obstacle::NotSelected) => Deletion::Release(Some(format!(
            "the Kanidm no longer selects this namespace: the entry {:?} stays on the server",
            want.owner.entry
        ))),
        // An offboarded person must not live on because the server was down for a minute; a namespace must not hang for ever either.
        Err(Obstacle::Unreachable(why)) if terminating && waited >= PATIENCE => Deletion::Release(Some(format!(
            "the namespace is being deleted and the server did not delete the entry for {} minutes ({why}): {:?} may be left behind",
            PATIENCE.as_secs() / 60,
            want.owner.entry
        ))),
        Err(Obstacle::Unreachable(why)) => {
            Deletion::Wait(format!("the entry {:?} is deleted as soon as the server does it: {why}", want.owner.entry))
        }
        Err(Obstacle::Paused) if terminating && waited >= PATIENCE => Deletion::Release(Some(format!(
            "the namespace is being deleted and the Kanidm is paused: the entry {:?} stays on the server",
            want.owner.entry
        ))),
        Err(Obstacle::Paused) => {
            Deletion::Wait(format!("the Kanidm is paused: the entry {:?} is deleted when it is not", want.owner.entry))
        }
    }
}

/// Whether the entry stays on the server: as was said, else as it came.
fn retained<K: IdentityKind>(want: &Desired<'_, K>, adopted: bool) -> bool {
    want.deletion.map_or(adopted, |policy| policy == DeletionPolicy::Retain)
}
