//! The first start and its repair, beside a server that draws passwords and tokens: killed at every call, and changed behind our back.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;

use super::*;
use crate::scenario::node::Node;
use crate::scenario::{Faults, Side};
use crate::targets::{Health, ObjectKey};

pub(super) struct Scene {
    pub(super) shelf: Shelf,
    pub(super) node: Node,
    faults: Arc<Faults>,
}

fn idm() -> ObjectKey {
    ObjectKey { namespace: "default".to_owned(), name: "idm".to_owned() }
}

impl Scene {
    /// Everything up to a server that has started: what Kubernetes itself would bring about.
    pub(super) async fn with_a_started_server() -> Self {
        Self::with_a_started_server_on(Json::Null).await
    }

    /// The same, with its database on this storage.
    pub(super) async fn with_a_started_server_on(storage: Json) -> Self {
        let faults = Arc::new(Faults::none());
        let node = Node::start(faults.clone()).await;
        let scene = Self { shelf: Shelf::before(node.clone(), faults.clone()), node, faults };
        put_kanidm(&scene.shelf);
        let mut kanidm = scene.shelf.get(KANIDM).unwrap();
        kanidm["spec"]["storage"] = storage;
        scene.shelf.put(KANIDM, kanidm);
        let (certificate, key) = &scene.node.certificate;
        scene.shelf.put(&secret("idm-tls"), certificate_secret(certificate, key));
        scene.pass(&Life::begin(scene.shelf.client())).await.unwrap();
        scene.start_pod("containerd://1");
        scene
    }

    /// The claim of this pod, as the StatefulSet's controller makes it.
    fn put_claim(&self, pod: &str) {
        let name = format!("kanidm-data-{pod}");
        let path = format!("/api/v1/namespaces/default/persistentvolumeclaims/{name}");
        self.shelf.put(&path, json!({"metadata": {"name": name, "labels": {"kanidm.kaniop.rs/cluster": "idm"}}}));
    }

    pub(super) fn start_pod(&self, run: &str) {
        let set = self.shelf.get(STATEFULSET).unwrap();
        let hash = &set["spec"]["template"]["metadata"]["annotations"]["kanidm.kaniop.rs/template-hash"];
        self.shelf.put(
            POD,
            json!({
                "metadata": {
                    "name": "idm-default-0",
                    "labels": {"kanidm.kaniop.rs/cluster": "idm"},
                    "annotations": {"kanidm.kaniop.rs/template-hash": hash},
                    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "idm-default", "controller": true, "uid": set["metadata"]["uid"]}],
                },
                "status": {
                    "podIP": self.node.ip.to_string(),
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "containerStatuses": [{"name": "kanidm", "started": true, "ready": true, "restartCount": 0, "image": "i", "imageID": "i", "containerID": run}],
                },
            }),
        );
    }

    pub(super) async fn pass(&self, life: &Life) -> Result<Action, Error> {
        let kanidm: Kanidm = serde_json::from_value(self.shelf.get(KANIDM).unwrap()).unwrap();
        life.pass(&kanidm).await
    }

    pub(super) async fn begin(&self) -> Life {
        Life::begin(self.shelf.connected_client().await)
    }

    /// Passes until the server has answered and the Kanidm is Ready, woken as the controller would be. A new life finds it Ready.
    pub(super) async fn until_ready(&self, life: &Life) {
        let mut news = life.clusters.ctx.targets.subscribe();
        for _ in 0..100 {
            let again = self.pass(life).await.unwrap();
            let answers = life.clusters.ctx.targets.health(&idm()) == Health::Answers;
            if answers && ready(&self.shelf).0 == "True Ready" {
                return;
            }
            if again == Action::await_change() {
                panic!("it waits for a change: {:?}", ready(&self.shelf));
            }
            let _ = tokio::time::timeout(Duration::from_millis(200), news.recv()).await;
        }
        panic!("it does not become Ready: {:?}", ready(&self.shelf));
    }

    fn stored(&self, name: &str, key: &str) -> Option<String> {
        let secret: k8s_openapi::api::core::v1::Secret =
            serde_json::from_value(self.shelf.get(&secret(name))?).unwrap();
        Some(String::from_utf8(secret.data?.get(key)?.0.clone()).unwrap())
    }

    fn is_whole(&self) {
        let held = self.node.held.lock().unwrap();
        assert_eq!(self.stored("idm-admin-passwords", "ADMIN_PASSWORD").as_ref(), held.passwords.get("admin"));
        assert_eq!(self.stored("idm-admin-passwords", "IDM_ADMIN_PASSWORD").as_ref(), held.passwords.get("idm_admin"));
        let tokens: Vec<_> = held.tokens.keys().cloned().collect();
        assert_eq!(
            self.stored("idm-operator-token", "token").into_iter().collect::<Vec<_>>(),
            tokens,
            "one token, and it is stored"
        );
        assert!(held.admins.contains("kaniop-operator"));
        assert_eq!(self.shelf.get(KANIDM).unwrap()["status"]["domainUuid"], held.domain.to_string());
    }

    /// Resets of the administrators, and login attempts.
    fn counts(&self) -> (usize, usize) {
        let held = self.node.held.lock().unwrap();
        (held.resets, held.logins)
    }

    pub(super) fn events(&self) -> Vec<String> {
        std::mem::take(&mut self.shelf.held.lock().unwrap().events)
    }
}

#[tokio::test]
async fn a_fresh_server_is_set_up_once_and_then_left_alone() {
    let scene = Scene::with_a_started_server().await;
    let life = scene.begin().await;
    scene.until_ready(&life).await;
    scene.is_whole();
    assert_eq!(scene.counts(), (1, 1));
    scene.shelf.writes();
    for _ in 0..3 {
        scene.pass(&life).await.unwrap();
    }
    // A new life of the operator asks the server again who it is, and changes nothing, not even the status for the moment that this takes.
    scene.shelf.writes();
    let next = scene.begin().await;
    scene.until_ready(&next).await;
    scene.pass(&next).await.unwrap();
    assert_eq!(scene.shelf.writes(), Vec::<String>::new());
    assert_eq!((scene.counts(), ready(&scene.shelf).0.as_str()), ((1, 1), "True Ready"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_call_it_ends_with_one_token_and_resets_again_only_where_the_answer_was_lost() {
    let scene = Scene::with_a_started_server().await;
    scene.until_ready(&scene.begin().await).await;
    let calls = scene.faults.calls();
    let lives = (1..=calls).flat_map(|nth| [(nth, Side::Before), (nth, Side::After)]);
    let killed: Vec<_> =
        futures::stream::iter(lives).map(|(nth, side)| killed_at(nth, side)).buffer_unordered(16).collect().await;
    let early = killed.iter().filter(|killed| **killed).count();
    assert!(early > calls, "{early} of {} lives ended early", killed.len());
}

/// Whether the first life ended there. What the second one leaves is checked.
async fn killed_at(nth: usize, side: Side) -> bool {
    let scene = Scene::with_a_started_server().await;
    let life = scene.begin().await;
    scene.faults.arm(nth, side);
    let killed = tokio::select! {
        () = scene.until_ready(&life) => false,
        () = scene.faults.death() => true,
    };
    life.clusters.ctx.targets.remove(&idm());
    scene.faults.disarm();
    let resets = scene.counts().0;
    let lost = resets > 0 && scene.stored("idm-admin-passwords", "ADMIN_PASSWORD").is_none();
    scene.until_ready(&scene.begin().await).await;
    scene.is_whole();
    let again = scene.counts().0 - resets;
    assert_eq!(again, usize::from(lost || resets == 0), "killed {side:?} call {nth}: {resets} resets, then {again}");
    killed
}

#[tokio::test]
async fn a_token_that_was_revoked_is_replaced_without_a_reset_and_told_once() {
    let scene = Scene::with_a_started_server().await;
    scene.until_ready(&scene.begin().await).await;
    scene.events();
    scene.node.held.lock().unwrap().tokens.clear();
    let life = scene.begin().await;
    scene.until_ready(&life).await;
    scene.is_whole();
    assert_eq!(scene.node.held.lock().unwrap().resets, 1);
    assert_eq!(scene.events(), ["TokenReplaced"]);
}

#[tokio::test]
async fn a_password_and_token_changed_behind_our_back_heal_with_one_reset_and_no_storm_of_logins() {
    let scene = Scene::with_a_started_server().await;
    scene.until_ready(&scene.begin().await).await;
    scene.events();
    {
        let mut held = scene.node.held.lock().unwrap();
        held.tokens.clear();
        held.passwords.insert("idm_admin".to_owned(), "somebody's".to_owned());
        held.logins = 0;
    }
    let life = scene.begin().await;
    scene.until_ready(&life).await;
    scene.is_whole();
    assert_eq!(scene.counts(), (2, 2), "one refused login, one reset, one login");
    assert_eq!(scene.events(), ["PasswordsReset", "TokenReplaced"]);
}

#[tokio::test]
async fn a_server_that_refuses_even_new_passwords_is_reset_once_and_asked_ever_more_rarely() {
    let scene = Scene::with_a_started_server().await;
    let life = scene.begin().await;
    scene.until_ready(&life).await;
    scene.node.held.lock().unwrap().tokens.clear();
    scene.shelf.held.lock().unwrap().objects.remove(&secret("idm-operator-token"));
    for _ in 0..30 {
        scene.node.held.lock().unwrap().passwords.insert("idm_admin".to_owned(), "always another".to_owned());
        scene.pass(&life).await.unwrap();
    }
    assert_eq!(scene.counts(), (2, 2), "30 passes at once");
}

#[tokio::test]
async fn a_deleted_secret_with_passwords_resets_both() {
    let scene = Scene::with_a_started_server().await;
    let life = scene.begin().await;
    scene.until_ready(&life).await;
    scene.shelf.held.lock().unwrap().objects.remove(&secret("idm-admin-passwords"));
    scene.pass(&life).await.unwrap();
    scene.is_whole();
    assert_eq!(scene.node.held.lock().unwrap().resets, 2);
}

#[tokio::test]
async fn no_password_is_made_that_could_not_be_stored() {
    let scene = Scene::with_a_started_server().await;
    scene.shelf.put(&secret("idm-admin-passwords"), json!({"metadata": {"name": "idm-admin-passwords"}}));
    scene.pass(&scene.begin().await).await.unwrap();
    assert_eq!(ready(&scene.shelf).0, "False NameConflict");
    assert_eq!(scene.node.held.lock().unwrap().resets, 0);
}

#[tokio::test]
async fn a_primary_that_came_back_empty_is_set_up_anew_where_nothing_else_could_hold_the_domain() {
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let scene = Scene::with_a_started_server_on(json!({"volumeClaimTemplate": claim})).await;
    let life = scene.begin().await;
    scene.until_ready(&life).await;
    scene.events();
    {
        let mut held = scene.node.held.lock().unwrap();
        (held.domain, held.passwords, held.tokens) = (uuid::Uuid::from_u128(2), [].into(), [].into());
        (held.accounts, held.admins) = ([].into(), [].into());
    }
    scene.put_claim("idm-default-0");
    scene.start_pod("containerd://2");
    scene.until_ready(&life).await;
    scene.pass(&life).await.unwrap();
    scene.until_ready(&life).await;
    scene.is_whole();
    assert_eq!(scene.node.held.lock().unwrap().resets, 2);
    assert_eq!(scene.events().iter().filter(|event| *event == "DatabaseReplaced").count(), 1);
}

#[tokio::test]
async fn a_primary_that_came_back_empty_beside_another_claim_is_told_and_nothing_is_done_to_it() {
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let scene = Scene::with_a_started_server_on(json!({"volumeClaimTemplate": claim})).await;
    scene.until_ready(&scene.begin().await).await;
    scene.node.held.lock().unwrap().domain = uuid::Uuid::from_u128(2);
    scene.put_claim("idm-default-1");
    scene.start_pod("containerd://2");
    let life = scene.begin().await;
    scene.pass(&life).await.unwrap();
    let (verdict, message) = ready(&scene.shelf);
    assert_eq!(verdict, "False DomainMismatch");
    assert!(message.contains("removing status.domainUuid"), "{message}");
    assert_eq!(scene.node.held.lock().unwrap().resets, 1);
    assert!(life.clusters.ctx.targets.get(&idm()).is_none());
}

#[tokio::test]
async fn a_database_that_ended_with_its_pod_is_set_up_anew() {
    let scene = Scene::with_a_started_server().await;
    let life = scene.begin().await;
    scene.until_ready(&life).await;
    {
        let mut held = scene.node.held.lock().unwrap();
        (held.domain, held.passwords, held.tokens) = (uuid::Uuid::from_u128(2), [].into(), [].into());
        (held.accounts, held.admins) = ([].into(), [].into());
    }
    scene.start_pod("containerd://2");
    scene.until_ready(&life).await;
    scene.pass(&life).await.unwrap();
    scene.until_ready(&life).await;
    scene.is_whole();
    assert_eq!(scene.node.held.lock().unwrap().resets, 2);
}

#[tokio::test]
async fn a_pod_in_which_nothing_can_be_started_is_told_and_asked_ever_more_rarely() {
    for code in [403, 500, 502] {
        let scene = Scene::with_a_started_server().await;
        scene.shelf.held.lock().unwrap().refuse_exec = Some(code);
        let life = scene.begin().await;
        for _ in 0..2 {
            scene.pass(&life).await.unwrap();
        }
        let (verdict, message) = ready(&scene.shelf);
        assert_eq!(verdict, "Unknown ConnectionFailed");
        assert!(message.contains("could not be started in it") && message.contains(&code.to_string()), "{message}");
        assert!(life.clusters.retry.next(idm()) >= Duration::from_secs(2), "the third wait");
        assert_eq!(scene.counts(), (0, 0));
        scene.shelf.held.lock().unwrap().refuse_exec = None;
        scene.until_ready(&life).await;
    }
}

#[tokio::test]
async fn a_new_life_needs_no_process_in_the_pod_while_the_server_takes_the_stored_token() {
    let scene = Scene::with_a_started_server().await;
    scene.until_ready(&scene.begin().await).await;
    scene.shelf.held.lock().unwrap().refuse_exec = Some(502);
    let life = scene.begin().await;
    scene.until_ready(&life).await;
    scene.pass(&life).await.unwrap();
    assert_eq!(ready(&scene.shelf).0, "True Ready");
    assert_eq!(scene.counts(), (1, 1));
    // A token that the server does not take proves nothing, and nothing is done without knowing the domain.
    scene.node.held.lock().unwrap().tokens.clear();
    let next = scene.begin().await;
    for _ in 0..100 {
        scene.pass(&next).await.unwrap();
        if ready(&scene.shelf).0 == "Unknown ConnectionFailed" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(ready(&scene.shelf).1.contains("could not be asked through its pod"), "{:?}", ready(&scene.shelf));
    assert_eq!(scene.counts(), (1, 1));
}

#[tokio::test]
async fn nothing_is_made_on_the_server_while_its_secret_is_refused() {
    for (name, resets) in [("idm-admin-passwords", 0), ("idm-operator-token", 1)] {
        let scene = Scene::with_a_started_server().await;
        scene.shelf.held.lock().unwrap().full = Some(secret(name));
        let life = scene.begin().await;
        for _ in 0..3 {
            scene.pass(&life).await.unwrap();
        }
        let (verdict, message) = ready(&scene.shelf);
        assert_eq!(verdict, "False InvalidSpec");
        assert!(message.contains(&format!("refuses Secret '{name}'")), "{message}");
        assert_eq!(scene.counts(), (resets, 0), "{name}");
        assert!(life.clusters.retry.next(idm()) >= Duration::from_secs(4), "the fourth wait");
        scene.shelf.held.lock().unwrap().full = None;
        scene.until_ready(&life).await;
        scene.is_whole();
        assert_eq!(scene.counts(), (1, 1));
    }
}

#[tokio::test]
async fn while_its_secret_is_being_deleted_no_password_is_made() {
    let scene = Scene::with_a_started_server().await;
    let life = scene.begin().await;
    scene.until_ready(&life).await;
    let whole = scene.shelf.get(&secret("idm-admin-passwords")).unwrap();
    let mut ending = whole.clone();
    ending["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
    ending["metadata"]["finalizers"] = json!(["example.com/slow"]);
    ending["data"].as_object_mut().unwrap().remove("ADMIN_PASSWORD");
    scene.shelf.put(&secret("idm-admin-passwords"), ending);
    scene.pass(&life).await.unwrap();
    assert_eq!(ready(&scene.shelf).0, "False Bootstrapping");
    assert_eq!(scene.node.held.lock().unwrap().resets, 1);
}

#[tokio::test]
async fn a_lease_that_is_lost_on_the_way_ends_it_before_a_token_is_revoked_or_made() {
    let scene = Scene::with_a_started_server().await;
    scene.until_ready(&scene.begin().await).await;
    let tokens = scene.node.held.lock().unwrap().tokens.clone();
    scene.shelf.held.lock().unwrap().objects.remove(&secret("idm-operator-token"));
    let life = scene.begin().await;
    scene.node.held.lock().unwrap().lapse = Some(life.clusters.ctx.guard.clone());
    assert!(matches!(scene.pass(&life).await, Err(Error::NotLeader)));
    let held = scene.node.held.lock().unwrap();
    assert!(held.lapse.is_none(), "it did not get as far as the tokens");
    assert_eq!(held.tokens, tokens);
}

#[tokio::test]
async fn another_kanidm_of_the_same_name_inherits_no_waits() {
    let scene = Scene::with_a_started_server().await;
    scene.shelf.held.lock().unwrap().refuse_exec = Some(403);
    let life = scene.begin().await;
    for _ in 0..6 {
        scene.pass(&life).await.unwrap();
    }
    life.clusters.remember(&idm(), |memory| memory.no_reset_before = Duration::MAX);
    let mut again = scene.shelf.get(KANIDM).unwrap();
    again["metadata"]["uid"] = json!("another");
    scene.shelf.put(KANIDM, again);
    // Its children still are the former one's.
    scene.pass(&life).await.unwrap();
    assert_eq!(ready(&scene.shelf).0, "False NameConflict");
    assert_eq!(life.clusters.memory(&idm()).no_reset_before, Duration::ZERO);
    assert!(life.clusters.retry.next(idm()) < Duration::from_secs(2));
}
