//! Who has a Kanidm, and what that means for others. The claim is an annotation, taken and given back with the object's `resourceVersion`; the
//! cluster's controller acknowledges it in `status.maintenance` and stays in maintenance for as long as the restore [`holds`], whatever becomes
//! of the annotation.

use kaniop_api::restore::{Maintenance, Phase};

use super::saved::Saved;
use super::world::OtherState;

/// Whether a restore that the cluster's controller has acknowledged still has its target. A restore that does not exist has nothing.
#[must_use]
pub fn holds(saved: &Saved) -> bool {
    match saved.phase {
        Phase::Pending | Phase::Completed => false,
        // It has taken over what its predecessor held, and only has not written that down yet.
        Phase::Validating => inherits(saved),
        Phase::Quiescing => saved.mutated || saved.failure.is_none(),
        Phase::RestoringPrimary | Phase::Verifying | Phase::RebuildingReplicas => true,
        Phase::Resuming => !saved.credentials_renewed,
        Phase::Failed => is_stranded(saved) || (!saved.mutated && inherits(saved)),
    }
}

/// How a restore stands, as another one of the same target sees it.
#[must_use]
pub fn state(saved: &Saved) -> OtherState {
    match saved.phase {
        Phase::Completed => OtherState::Over,
        Phase::Failed if is_stranded(saved) => OtherState::Stranded,
        Phase::Failed => OtherState::Over,
        _ => OtherState::Live,
    }
}

/// It failed after the database may have been changed, and nobody has let the Kanidm go.
fn is_stranded(saved: &Saved) -> bool {
    saved.mutated && !(saved.forced.is_some() && saved.replicas_cleared)
}

/// It is the successor of a restore that failed after the database may have been changed.
pub(super) fn inherits(saved: &Saved) -> bool {
    saved.plan.as_ref().is_some_and(|plan| !plan.predecessors.is_empty())
}

/// Whether nothing may be written to the identities of a Kanidm: a restore has claimed it, or its end is not known yet.
#[must_use]
pub fn writes_are_paused(claim: Option<&str>, maintenance: Option<&Maintenance>) -> bool {
    claim.is_some() || maintenance.is_some()
}
