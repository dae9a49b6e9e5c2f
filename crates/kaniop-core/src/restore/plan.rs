//! The frozen plan: what there was before anything was touched. A successor of a failed restore takes its plan over, for what it would see
//! itself is what the failed one has left.

use kaniop_api::restore::{PlannedClaim, RestorePlan};

use super::world::{Other, Target, World};

/// The plan from what is seen; none while the primary's volume is not.
pub(super) fn fresh(world: &World, target: &Target) -> Option<RestorePlan> {
    let claims = world.claims.as_ref()?;
    let named = target.primary_claim.as_ref()?;
    let primary_claim = claims.iter().find(|claim| claim.id.name == *named)?.id.clone();
    let others = claims.iter().map(|claim| claim.id.clone()).filter(|claim| *claim != primary_claim);
    Some(RestorePlan {
        groups: target.groups.clone(),
        primary: target.primary.clone()?,
        claims: sorted(others.collect()),
        primary_claim,
        image: world.request.image.clone(),
        predecessors: Vec::new(),
    })
}

/// The plan of the successor of this restore: its own, with the new image, and every volume that is seen beside those that it knew.
pub(super) fn inherited(world: &World, target: &Target, from: Option<&Other>, holder: &str) -> Option<RestorePlan> {
    // A holder that is gone for good leaves no plan, and is taken for one that had begun to change the database.
    let seen = fresh(world, target);
    let mut plan = from.and_then(|other| other.plan.clone()).or_else(|| seen.clone())?;
    plan.image.clone_from(&world.request.image);
    if let Some(seen) = seen {
        // The same volume, or one that was made again in its place: only it can have the backup on it.
        plan.primary_claim = seen.primary_claim;
    }
    if plan.predecessors.last().is_none_or(|last| last != holder) {
        plan.predecessors.push(holder.to_owned());
    }
    Some(with_claims(&plan, world))
}

/// The plan with every volume that is seen by now: it only ever grows.
pub(super) fn with_claims(plan: &RestorePlan, world: &World) -> RestorePlan {
    let mut plan = plan.clone();
    let seen = world.claims.iter().flatten().map(|claim| claim.id.clone());
    plan.claims.extend(seen);
    plan.claims.retain(|claim| claim.name != plan.primary_claim.name);
    plan.claims = sorted(plan.claims);
    plan
}

fn sorted(mut claims: Vec<PlannedClaim>) -> Vec<PlannedClaim> {
    claims.sort();
    claims.dedup();
    claims
}
