//! The rows of a restore that goes well, and what makes it wait or fail on the way.

use kaniop_api::restore::{Phase, Servers};
use kaniop_core::restore::{
    Answer, Credentials, Decision, Effect, Holder, JobSeen, LiveProof, Other, OtherState, Saved, Sight, Target, Task,
};

use crate::scene::{Scene, claim, ended, evidence, group, plan, scale};

#[test]
fn pending_gets_a_finalizer_and_is_validated() {
    let mut scene = Scene::at(Phase::Pending);
    scene.saved = Saved::default();
    scene.world.request.finalizer = false;
    assert_eq!(scene.acts(), [Effect::AddFinalizer]);
    scene.world.request.finalizer = true;
    let next = scene.persists();
    assert_eq!((next.phase, next.target_uid.as_deref()), (Phase::Validating, Some("target")));
}

#[test]
fn a_valid_request_tries_the_image_and_then_claims() {
    let mut scene = Scene::at(Phase::Validating);
    let version = "42".to_owned();
    assert_eq!(scene.acts(), [Effect::Claim { version }]);
    scene.world.jobs = Some([].into());
    assert_eq!(scene.acts(), [Effect::CreateJob(Task::Image)]);
    scene.job(Task::Image, JobSeen::Running(Some("image 'x' cannot be pulled".to_owned())));
    scene.waits_for("cannot be pulled");
    scene.job(Task::Image, JobSeen::Failed("exec format error".to_owned()));
    scene.fails("exec format error");
}

#[test]
fn a_wrong_request_fails_with_every_mistake_and_touches_nothing() {
    type Change = fn(&mut Target);
    let changes: [(Change, &str); 7] = [
        (|t| t.external_nodes = vec!["other-site".to_owned()], "other-site"),
        (|t| t.paused = true, "spec.paused"),
        (|t| t.primary = None, "not valid"),
        (|t| t.primary_claim = None, "no persistent volume"),
        (|t| t.primary_claim = Some("kanidm-data-idm-new-0".to_owned()), "kanidm-data-idm-new-0"),
        (|t| t.groups = vec![group("idm-main", 0)], "no replicas"),
        (|t| t.image = Some("kanidm/server:1.9.3".to_owned()), "cannot go on with"),
    ];
    for (change, said) in changes {
        let mut scene = Scene::at(Phase::Validating);
        change(scene.target());
        scene.world.request.file_name = "../kanidm.db".to_owned();
        scene.fails(said);
        scene.fails("'../kanidm.db' is not the plain name");
    }
    for (image, said) in [("kanidm/server", "exact tag"), ("kanidm/server:latest", "exact tag"), ("Kanidm", "image")] {
        let mut scene = Scene::at(Phase::Validating);
        scene.world.request.image = image.to_owned();
        scene.fails(said);
    }
}

#[test]
fn the_servers_may_be_of_the_backups_release_or_the_next() {
    for (servers, fits) in [("1.10.4", true), ("1.11.0", true), ("1.12.0", false), ("1.9.0", false), ("dev", true)] {
        let mut scene = Scene::at(Phase::Validating);
        scene.target().image = Some(format!("kanidm/server:{servers}"));
        assert_eq!(matches!(scene.decides(), Decision::Act(_)), fits, "{servers}");
    }
}

#[test]
fn a_live_server_proves_the_file_before_any_outage() {
    let mut scene = Scene::at(Phase::Validating);
    scene.world.live = LiveProof::Unknown;
    scene.waits_for("the running primary");
    scene.world.live = LiveProof::Refused("it ends in the middle".to_owned());
    scene.fails("it ends in the middle");
    let mut other = evidence();
    other.domain_uuid = "another".to_owned();
    scene.world.live = LiveProof::Proven(other);
    scene.fails("UUID 'another'");
    let mut older = evidence();
    older.version = "1.9".to_owned();
    scene.world.live = LiveProof::Proven(older);
    scene.fails("release 1.9");
    scene.world.live = LiveProof::NoServer;
    assert!(matches!(scene.decides(), Decision::Act(_)), "a dead primary is when a restore is needed");
}

#[test]
fn a_claim_is_never_taken_from_a_restore_that_is_under_way() {
    let mut scene = Scene::at(Phase::Validating);
    scene.target().claim = Some("other".to_owned());
    let other = |state| Other { name: "first".to_owned(), uid: "other".to_owned(), state, plan: None };
    scene.world.others = Some(vec![other(OtherState::Live)]);
    scene.fails("restore 'first' of this Kanidm is under way");
    scene.world.others = Some(vec![other(OtherState::Over)]);
    scene.waits_for("'first'");
    scene.world.others = None;
    scene.waits_for("the other restores");
}

#[test]
fn a_claim_that_somebody_removed_by_hand_is_not_free() {
    let mut scene = Scene::at(Phase::Validating);
    scene.claimed(Servers::None);
    let target = scene.target();
    target.claim = None;
    target.maintenance.as_mut().unwrap().uid = "other".to_owned();
    scene.waits_for("maintenance");
}

#[test]
fn the_plan_is_frozen_with_the_claim_and_has_volumes_of_former_nodes_and_groups() {
    let mut scene = Scene::at(Phase::Validating);
    scene.claimed(Servers::None);
    let next = scene.persists();
    assert_eq!((next.phase, next.mutated), (Phase::Quiescing, false));
    assert_eq!(next.plan, Some(plan()));
    // Deleting it now is undone from Quiescing, where the plan is.
    scene.world.request.deleting = true;
    assert_eq!(scene.persists().phase, Phase::Quiescing);
}

#[test]
fn quiescing_waits_for_the_acknowledgement_and_for_everybody_who_has_a_volume() {
    let mut scene = Scene::at(Phase::Quiescing);
    scene.scaled([2, 1]);
    scene.target().maintenance = None;
    scene.waits_for("status.maintenance");
    scene.claimed(Servers::None);
    assert_eq!(scene.acts(), [scale("idm-main", 0), scale("idm-read", 0), scale("idm-mail-sender", 0)]);
    scene.scaled([0, 0]);
    let holder = Holder { who: "pod 'idm-read-0'".to_owned(), claim: "kanidm-data-idm-read-0".to_owned() };
    scene.world.holders = Some(vec![holder]);
    scene.waits_for("pod 'idm-read-0' to leave volume claim 'kanidm-data-idm-read-0'");
    scene.clone().hours_later(1).fails("pod 'idm-read-0'");
    scene.world.holders = None;
    scene.waits_for("who has the volumes");
    scene.world.holders = Some(Vec::new());
    assert_eq!(scene.acts(), [Effect::CreateJob(Task::Preflight)]);
}

#[test]
fn the_mark_is_persisted_with_the_evidence_before_the_job_that_writes() {
    let mut scene = Scene::at(Phase::Quiescing);
    scene.job(Task::Preflight, ended(Answer::Source(evidence())));
    scene
        .world
        .claims
        .as_mut()
        .unwrap()
        .push(kaniop_core::restore::VolumeClaim { id: claim("idm-read-7"), ending: false });
    let next = scene.persists();
    assert_eq!((next.phase, next.mutated), (Phase::RestoringPrimary, true));
    assert_eq!(next.evidence.unwrap().source, evidence());
    assert!(next.plan.unwrap().claims.contains(&claim("idm-read-7")), "made by somebody's hand in the meantime");
    for (job, said) in [
        (JobSeen::Failed("no such file".to_owned()), "no such file"),
        (JobSeen::Ended(None), "without saying what it did"),
        (ended(Answer::Unmarked), "without saying what it did"),
    ] {
        scene.job(Task::Preflight, job);
        assert!(!scene.fails(said).mutated);
    }
}

#[test]
fn restoring_makes_one_job_and_believes_nothing_but_its_answer() {
    let mut scene = Scene::at(Phase::RestoringPrimary);
    assert_eq!(scene.acts(), [Effect::CreateJob(Task::Restore)]);
    scene.scaled([1, 0]);
    assert_eq!(scene.acts(), [scale("idm-main", 0), scale("idm-mail-sender", 0)], "somebody has scaled it up by hand");
    scene.scaled([0, 0]);
    scene.job(Task::Restore, JobSeen::Running(None));
    scene.waits_for("Job 'after-");
    scene.job(Task::Restore, ended(Answer::Restored(Some("/data/before".to_owned()))));
    let next = scene.persists();
    assert_eq!((next.phase, next.safety_copy.as_deref()), (Phase::Verifying, Some("/data/before")));
    scene.job(Task::Restore, JobSeen::Ended(None));
    assert!(scene.fails("without saying what it did").mutated);
    scene.job(Task::Restore, JobSeen::Failed("exit code 1".to_owned()));
    assert!(scene.fails("exit code 1").mutated);
}

#[test]
fn verifying_persists_that_both_agree_and_only_then_takes_the_mark_off() {
    let mut scene = Scene::at(Phase::Verifying);
    assert_eq!(scene.acts(), [Effect::CreateJob(Task::Verify)]);
    scene.job(Task::Verify, ended(Answer::Database(evidence())));
    let next = scene.persists();
    assert_eq!((next.phase, next.is_proven()), (Phase::Verifying, true));
    scene.saved = next;
    assert_eq!(scene.acts(), [Effect::CreateJob(Task::Unmark)]);
    scene.job(Task::Unmark, ended(Answer::Unmarked));
    assert_eq!(scene.persists().phase, Phase::RebuildingReplicas);
}

#[test]
fn what_differs_in_the_restored_database_is_named_and_stays_offline() {
    type Change = fn(&mut kaniop_api::restore::DatabaseEvidence);
    let changes: [(Change, &str); 6] = [
        (|e| e.version = "1.11".to_owned(), "the release"),
        (|e| e.domain_uuid = "x".to_owned(), "the domain's UUID"),
        (|e| e.server_uuid = "x".to_owned(), "the server's UUID"),
        (|e| e.key_handles = "x".to_owned(), "the hash of the keys"),
        (|e| e.entries = 65, "65 entries instead of 2836"),
        (|e| e.inconsistent = true, "found faults"),
    ];
    for (change, said) in changes {
        let mut scene = Scene::at(Phase::Verifying);
        let mut found = evidence();
        change(&mut found);
        scene.job(Task::Verify, ended(Answer::Database(found.clone())));
        let next = scene.fails(said);
        assert!(next.mutated && !next.is_proven());
        assert_eq!(next.evidence.unwrap().restored, Some(found));
    }
    let nothing = kaniop_api::restore::DatabaseEvidence::default();
    assert!(!kaniop_core::restore::differences(&nothing, &nothing).is_empty(), "two empty answers prove nothing");
}

#[test]
fn exactly_the_planned_volumes_are_discarded_and_not_the_primarys() {
    let mut scene = Scene::at(Phase::RebuildingReplicas);
    let stranger = kaniop_core::restore::VolumeClaim { id: claim("idm-new-0"), ending: false };
    scene.world.claims.as_mut().unwrap().push(stranger);
    let all = ["idm-main-1", "idm-main-4", "idm-read-0", "idm-gone-0"].map(|name| Effect::Discard(claim(name)));
    assert_eq!(scene.acts(), all);
    for seen in scene.world.claims.as_mut().unwrap() {
        seen.ending = seen.id != claim("idm-main-0");
    }
    scene.waits_for("volume claim 'kanidm-data-idm-main-1' to be gone");
    // One that is made again under its name is another.
    let again = kaniop_api::restore::PlannedClaim { uid: "another".to_owned(), ..claim("idm-main-1") };
    let left = [claim("idm-main-0"), again].map(|id| kaniop_core::restore::VolumeClaim { id, ending: false });
    scene.world.claims = Some(left.to_vec());
    assert!(scene.persists().replicas_cleared);
    scene.world.claims = None;
    scene.waits_for("volume claims");
}

#[test]
fn the_primary_starts_alone_and_the_others_when_it_serves() {
    let mut scene = Scene::at(Phase::RebuildingReplicas);
    scene.saved.replicas_cleared = true;
    let allow = |servers| Effect::Allow { servers, version: "42".to_owned() };
    assert_eq!(scene.acts(), [allow(Servers::Primary)]);
    scene.target().servers = Servers::Primary;
    scene.waits_for("status.maintenance");
    scene.claimed(Servers::Primary);
    assert_eq!(scene.acts(), [scale("idm-main", 1)]);
    scene.scaled([1, 0]);
    scene.waits_for("pod 'idm-main-0' to exist");
    scene.serving(&["idm-main-0"]);
    scene.world.nodes.as_mut().unwrap()[0].domain_uuid = Some("another".to_owned());
    scene.waits_for("pod 'idm-main-0' to show the restored domain");
    scene.serving(&["idm-main-0"]);
    assert_eq!(scene.acts(), [allow(Servers::All)]);
    scene.claimed(Servers::All);
    assert_eq!(scene.acts(), [scale("idm-main", 2), scale("idm-read", 1)]);
    scene.scaled([2, 1]);
    scene.waits_for("pod 'idm-main-1' to exist, pod 'idm-read-0' to exist");
    scene.serving(&["idm-main-0", "idm-main-1", "idm-read-0"]);
    assert_eq!(scene.persists().phase, Phase::Resuming);
}

#[test]
fn it_is_complete_when_the_credentials_work_and_the_claim_is_given_back() {
    let mut scene = Scene::at(Phase::Resuming);
    scene.claimed(Servers::All);
    scene.scaled([2, 1]);
    scene.serving(&["idm-main-0", "idm-main-1", "idm-read-0"]);
    assert_eq!(scene.acts(), [Effect::RenewCredentials]);
    scene.world.credentials = Credentials::Unknown;
    scene.waits_for("credentials");
    scene.world.credentials = Credentials::Renewed;
    scene.saved = scene.persists();
    assert!(scene.saved.credentials_renewed && scene.saved.phase == Phase::Resuming);
    assert_eq!(scene.acts(), [Effect::Release { version: "42".to_owned() }]);
    scene.target().claim = None;
    assert_eq!(scene.persists().phase, Phase::Completed);
}

#[test]
fn whatever_cannot_be_read_is_waited_for_in_every_phase() {
    let phases = [
        Phase::Validating,
        Phase::Quiescing,
        Phase::RestoringPrimary,
        Phase::Verifying,
        Phase::RebuildingReplicas,
        Phase::Resuming,
    ];
    for phase in phases {
        let mut scene = Scene::at(phase);
        scene.world.target = Sight::Unknown;
        scene.waits_for("Kanidm 'idm'");
        scene.hours_later(3).fails("Kanidm 'idm'");
        let mut scene = Scene::at(phase);
        scene.world.workloads = None;
        if phase != Phase::Resuming {
            scene.waits_for("StatefulSets");
        }
    }
}

#[test]
fn a_status_that_has_lost_its_times_gets_new_ones_before_anything_else() {
    let mut scene = Scene::at(Phase::Quiescing);
    scene.saved.phase_times.clear();
    assert_eq!(scene.persists(), Scene::at(Phase::Quiescing).saved);
}
