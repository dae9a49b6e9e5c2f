//! The rows of failures, deletions, successors and forced releases.

use kaniop_api::restore::{Cause, Maintenance, Phase, RestoreFailure, RestorePlan, Servers};
use kaniop_core::restore::{
    Answer, Decision, Effect, JobSeen, LiveProof, Other, OtherState, Saved, Sight, Task, holds, state,
    writes_are_paused,
};

use crate::scene::{Scene, claim, ended, group, plan, scale};

const AFTER: [Phase; 4] = [Phase::RestoringPrimary, Phase::Verifying, Phase::RebuildingReplicas, Phase::Resuming];

fn failure(phase: Phase) -> RestoreFailure {
    RestoreFailure { phase, cause: Cause::JobFailed, message: "it failed".to_owned() }
}

fn release() -> Effect {
    Effect::Release { version: "42".to_owned() }
}

/// Failed after the mutation, with everything stopped and claimed.
fn stranded() -> Scene {
    let mut scene = Scene::at(Phase::RestoringPrimary);
    scene.saved.failure = Some(failure(Phase::RestoringPrimary));
    scene.saved = scene.persists();
    assert_eq!((scene.saved.phase, scene.saved.mutated), (Phase::Failed, true));
    scene
}

#[test]
fn a_failure_before_the_mutation_puts_the_counts_back_and_lets_go_before_it_is_told() {
    let mut scene = Scene::at(Phase::Quiescing);
    scene.saved.failure = Some(failure(Phase::Quiescing));
    scene.job(Task::Preflight, JobSeen::Running(None));
    assert_eq!(scene.acts(), [Effect::DeleteJob(Task::Preflight)]);
    scene.world.jobs = Some([].into());
    assert_eq!(scene.acts(), [scale("idm-main", 2), scale("idm-read", 1), release()]);
    scene.scaled([2, 1]);
    assert_eq!(scene.acts(), [release()]);
    scene.target().claim = None;
    let next = scene.persists();
    assert_eq!((next.phase, next.mutated), (Phase::Failed, false));
    assert!(!holds(&next));
}

#[test]
fn a_deletion_before_the_mutation_undoes_and_then_the_object_goes() {
    let mut scene = Scene::at(Phase::Quiescing);
    scene.world.request.deleting = true;
    scene.saved = scene.fails("deleted");
    scene.target().claim = None;
    scene.saved = scene.persists();
    assert_eq!(scene.acts(), [Effect::DeleteJob(Task::Image)]);
    scene.world.jobs = Some([].into());
    assert_eq!(scene.acts(), [Effect::RemoveFinalizer]);
    for phase in [Phase::Pending, Phase::Validating] {
        let mut scene = Scene::at(phase);
        scene.world.request.deleting = true;
        scene.world.jobs = Some([].into());
        if phase == Phase::Validating {
            scene.saved = scene.fails("before anything was touched");
        }
        assert_eq!(scene.acts(), [Effect::RemoveFinalizer]);
    }
}

#[test]
fn a_deletion_after_the_mutation_stops_nothing() {
    for phase in AFTER {
        let (plain, mut deleted) = (Scene::at(phase), Scene::at(phase));
        deleted.world.request.deleting = true;
        assert_eq!(plain.decides(), deleted.decides(), "{phase:?}");
    }
}

#[test]
fn a_failure_after_the_mutation_stays_offline_and_claimed_whatever_people_do() {
    let mut scene = stranded();
    assert_eq!(scene.decides(), Decision::Finished);
    assert!(holds(&scene.saved));
    scene.scaled([1, 0]);
    assert_eq!(scene.acts(), [scale("idm-main", 0), scale("idm-mail-sender", 0)]);
    scene.scaled([0, 0]);
    scene.target().claim = None;
    assert_eq!(scene.acts(), [Effect::Claim { version: "42".to_owned() }], "removed by hand");
    scene.claimed(Servers::None);
    scene.world.request.deleting = true;
    assert_eq!(scene.decides(), Decision::Finished, "the finalizer stays");
    scene.job(Task::Restore, JobSeen::Running(None));
    assert_eq!(scene.acts(), [Effect::DeleteJob(Task::Restore)]);
}

#[test]
fn a_failure_in_each_phase_after_the_mutation_ends_its_jobs_and_frees_nothing() {
    for phase in AFTER {
        let mut scene = Scene::at(phase);
        scene.saved.failure = Some(failure(phase));
        scene.job(Task::Verify, JobSeen::Running(None));
        assert_eq!(scene.acts(), [Effect::DeleteJob(Task::Verify)]);
        scene.world.jobs = Some([].into());
        let next = scene.persists();
        assert_eq!((next.phase, next.mutated, holds(&next)), (Phase::Failed, true, true), "{phase:?}");
    }
}

#[test]
fn a_successor_inherits_latch_and_plan_and_takes_the_claim_over() {
    let mut scene = Scene::at(Phase::Validating);
    scene.target().claim = Some("first".to_owned());
    scene.target().maintenance = Some(Maintenance { uid: "first".to_owned(), ..Maintenance::default() });
    scene.target().groups = vec![group("idm-main", 1), group("idm-read", 0)];
    scene.world.live = LiveProof::NoServer;
    let theirs = RestorePlan { image: "kanidm/server:1.10.1".to_owned(), ..plan() };
    let first = |plan| Other { name: "a".to_owned(), uid: "first".to_owned(), state: OtherState::Stranded, plan };
    scene.world.others = Some(vec![first(Some(theirs))]);
    scene.saved = scene.persists();
    let inherited = scene.saved.plan.clone().unwrap();
    assert_eq!(inherited, RestorePlan { predecessors: vec!["first".to_owned()], ..plan() });
    assert_eq!((scene.saved.phase, scene.saved.mutated), (Phase::Validating, false), "nothing is ours yet");
    assert_eq!(scene.acts(), [Effect::Claim { version: "42".to_owned() }]);
    scene.target().claim = Some("restore".to_owned());
    let next = scene.persists();
    assert_eq!((next.phase, next.mutated, next.plan), (Phase::Quiescing, true, Some(inherited)));
}

#[test]
fn a_holder_that_is_gone_for_good_is_taken_for_one_that_had_changed_the_database() {
    let mut scene = Scene::at(Phase::Validating);
    scene.target().claim = Some("vanished".to_owned());
    scene.saved = scene.persists();
    scene.target().claim = Some("restore".to_owned());
    assert!(scene.persists().mutated);
}

#[test]
fn a_claim_that_passed_holds_before_that_is_written_down() {
    let mut scene = Scene::at(Phase::Validating);
    scene.saved.plan = Some(RestorePlan { predecessors: vec!["first".to_owned()], ..plan() });
    assert!(holds(&scene.saved) && !holds(&Scene::at(Phase::Validating).saved));
    scene.claimed(Servers::None);
    scene.target().claim = None;
    assert_eq!(scene.acts(), [Effect::Claim { version: "42".to_owned() }], "removed by hand");
    scene.saved.phase = Phase::Failed;
    scene.saved.phase_times = [(Phase::Failed, scene.now)].into();
    assert!(scene.persists().mutated, "it failed beside that, with a view from before");
}

#[test]
fn a_successor_that_lost_its_predecessor_before_the_claim_owes_nothing() {
    let mut scene = Scene::at(Phase::Validating);
    scene.saved.plan = Some(RestorePlan { predecessors: vec!["first".to_owned()], ..plan() });
    assert_eq!(scene.persists().plan, None, "the first one was let go by force");
}

#[test]
fn a_successor_counts_as_mutated_from_its_first_phase() {
    let mut scene = Scene::at(Phase::Quiescing);
    scene.saved.mutated = true;
    scene.saved.plan.as_mut().unwrap().predecessors.push("first".to_owned());
    scene.world.request.deleting = true;
    assert_eq!(scene.acts(), [Effect::CreateJob(Task::Preflight)], "a deletion stops nothing");
    scene.saved.failure = Some(failure(Phase::Quiescing));
    let next = scene.persists();
    assert_eq!((next.phase, holds(&next)), (Phase::Failed, true));
}

#[test]
fn a_late_failure_beside_a_claim_that_had_passed_already_takes_the_latch_on() {
    let mut scene = stranded();
    scene.saved.mutated = false;
    scene.saved.plan.as_mut().unwrap().predecessors.push("first".to_owned());
    assert!(scene.persists().mutated);
}

#[test]
fn one_that_was_followed_leaves_everything_to_its_successor_and_goes_when_that_is_done() {
    let mut scene = stranded();
    scene.target().claim = Some("second".to_owned());
    scene.scaled([2, 1]);
    scene.world.request.deleting = true;
    assert_eq!(scene.decides(), Decision::Finished, "not ours to stop");
    scene.target().claim = None;
    scene.target().maintenance = Some(Maintenance { uid: "second".to_owned(), ..Maintenance::default() });
    assert_eq!(scene.decides(), Decision::Finished, "not ours to claim");
    scene.target().maintenance = None;
    scene.world.jobs = Some([].into());
    assert_eq!(scene.acts(), [Effect::RemoveFinalizer]);
}

#[test]
fn a_forced_release_takes_the_mark_off_discards_and_then_lets_go() {
    let mut scene = stranded();
    scene.world.request.force_release = Some("we have another copy".to_owned());
    scene.saved = scene.persists();
    assert_eq!(scene.saved.forced.as_deref(), Some("we have another copy"));
    assert_eq!(scene.acts(), [Effect::CreateJob(Task::Unmark)]);
    scene.job(Task::Unmark, JobSeen::Failed("busy".to_owned()));
    assert_eq!(scene.acts(), [Effect::DeleteJob(Task::Unmark)], "and again");
    scene.job(Task::Unmark, ended(Answer::Unmarked));
    assert_eq!(scene.acts().len(), 4, "every planned volume but the primary's");
    scene.world.claims.as_mut().unwrap().retain(|seen| seen.id == claim("idm-main-0"));
    scene.saved = scene.persists();
    assert!(!holds(&scene.saved) && scene.saved.replicas_cleared);
    assert_eq!(scene.acts(), [release()]);
    scene.target().claim = None;
    scene.target().maintenance = None;
    assert_eq!(scene.decides(), Decision::Finished);
}

#[test]
fn a_target_that_is_gone_ending_or_another_is_left_alone() {
    for phase in [Phase::Validating, Phase::Quiescing, Phase::Verifying, Phase::Resuming] {
        let mut gone = Scene::at(phase);
        gone.world.target = Sight::Gone;
        let mut another = Scene::at(phase);
        another.target().uid = "made again".to_owned();
        let mut ending = Scene::at(phase);
        ending.target().deleting = true;
        for mut scene in [gone, another, ending] {
            scene.job(Task::Restore, JobSeen::Running(None));
            assert_eq!(scene.acts(), [Effect::DeleteJob(Task::Restore)]);
            scene.world.jobs = Some([].into());
            while scene.saved.phase != Phase::Failed {
                scene.saved = scene.persists();
            }
            assert_eq!(scene.saved.failure.as_ref().unwrap().cause, Cause::TargetGone);
            assert_eq!(scene.decides(), Decision::Finished);
            scene.world.request.deleting = true;
            assert_eq!(scene.acts(), [Effect::RemoveFinalizer]);
        }
    }
}

#[test]
fn a_claim_that_went_elsewhere_fails_the_restore_without_touching_it() {
    let mut scene = Scene::at(Phase::Quiescing);
    scene.target().claim = Some("second".to_owned());
    scene.saved = scene.fails("'second'");
    assert_eq!(scene.persists().phase, Phase::Failed);
}

#[test]
fn identity_writes_are_paused_for_as_long_as_anybody_may_hold_the_claim() {
    let known = Maintenance::default();
    assert!(writes_are_paused(Some("restore"), None) && writes_are_paused(None, Some(&known)));
    assert!(!writes_are_paused(None, None));
}

#[test]
fn others_see_whether_a_restore_is_under_way_over_or_stranded() {
    for phase in AFTER.into_iter().chain([Phase::Pending, Phase::Validating, Phase::Quiescing]) {
        assert_eq!(state(&Scene::at(phase).saved), OtherState::Live);
    }
    assert_eq!(state(&stranded().saved), OtherState::Stranded);
    let harmless = Saved { mutated: false, ..stranded().saved };
    assert_eq!(state(&harmless), OtherState::Over);
    assert_eq!(state(&Scene::at(Phase::Completed).saved), OtherState::Over);
}
