//! A renewed certificate beside a server that serves: shown without a restart where the server reads it again, with one where it does not.

use super::bootstrap::Scene;
use super::*;

impl Scene {
    /// A new certificate is in the Secret, and not yet in the pod.
    fn renew(&self) {
        let certified = rcgen::generate_simple_self_signed(["idm.example.com".to_owned()]).unwrap();
        let renewed = (certified.cert.pem(), certified.signing_key.serialize_pem());
        self.shelf.put(&secret("idm-tls"), certificate_secret(&renewed.0, &renewed.1));
        self.node.held.lock().unwrap().files.1.clear();
        self.renewed.lock().unwrap().replace(renewed);
    }

    /// The kubelet brings it into the pod.
    fn deliver(&self) {
        let renewed = self.renewed.lock().unwrap().take().unwrap();
        self.node.held.lock().unwrap().files = renewed;
    }

    fn reloads(&self) -> usize {
        self.node.held.lock().unwrap().reloads
    }

    /// A pass beside a StatefulSet's controller that keeps up.
    async fn settled_pass(&self, life: &Life) -> Action {
        let again = self.pass(life).await.unwrap();
        let mut set = self.shelf.get(STATEFULSET).unwrap();
        set["status"] = json!({"observedGeneration": set["metadata"]["generation"], "replicas": 1});
        self.shelf.put(STATEFULSET, set);
        again
    }

    fn is_restarted(&self) -> bool {
        self.shelf.get(POD).is_none()
    }

    /// Passes until the pod was deleted; how many that took.
    async fn until_restarted(&self, life: &Life) -> usize {
        for nth in 1..=10 {
            self.settled_pass(life).await;
            if self.is_restarted() {
                return nth;
            }
        }
        panic!("it is not restarted");
    }
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_without_a_restart_once_it_is_in_the_pod() {
    let scene = Scene::with_a_started_server().await;
    let life = scene.begin().await;
    scene.until_ready(&life).await;
    let (counts, hash) = (scene.counts(), scene.template_hash());
    scene.events();
    scene.renew();
    for _ in 0..3 {
        let again = scene.settled_pass(&life).await;
        assert!(again == Action::requeue(Duration::from_secs(5)), "{again:?}");
        // What it shows is still good, and so is the way that was found with it.
        assert_eq!(ready(&scene.shelf).0, "True Ready");
        assert_eq!(says(&scene.shelf, "Progressing").0, "True RollingOut");
    }
    assert_eq!((scene.reloads(), scene.events()), (0, vec![]), "the pod has not got it yet");
    scene.deliver();
    scene.settled_pass(&life).await;
    assert_eq!((scene.reloads(), scene.events()), (1, vec!["CertificateReloaded".to_owned()]));
    scene.until_ready(&life).await;
    assert_eq!(says(&scene.shelf, "Progressing").0, "False Ready");
    assert!(!scene.is_restarted());
    assert_eq!((scene.counts(), scene.template_hash()), (counts, hash));
    scene.shelf.writes();
    for life in [&life, &scene.begin().await] {
        scene.until_ready(life).await;
        scene.settled_pass(life).await;
    }
    assert_eq!((scene.shelf.writes(), scene.reloads()), (vec![], 1), "at rest");
}

#[tokio::test]
async fn a_server_that_goes_on_to_show_the_former_certificate_is_restarted_once() {
    let scene = Scene::with_a_started_server().await;
    let life = scene.begin().await;
    scene.until_ready(&life).await;
    scene.events();
    scene.node.held.lock().unwrap().obeys = false;
    scene.renew();
    scene.deliver();
    let passes = scene.until_restarted(&life).await;
    assert_eq!((scene.reloads(), scene.events()), (3, vec!["PodRestarted".to_owned()]), "after {passes} passes");
    // Not even that helps: then no second restart does.
    scene.start_pod("containerd://2");
    for _ in 0..8 {
        scene.settled_pass(&life).await;
        assert!(!scene.is_restarted());
    }
    scene.node.restart();
    scene.start_pod("containerd://3");
    scene.until_ready(&life).await;
    assert_eq!(scene.events(), Vec::<String>::new());
}

#[tokio::test]
async fn a_pod_in_which_nothing_can_be_started_is_restarted_for_its_certificate() {
    let scene = Scene::with_a_started_server().await;
    let life = scene.begin().await;
    scene.until_ready(&life).await;
    scene.shelf.held.lock().unwrap().refuse_exec = Some(403);
    scene.renew();
    scene.deliver();
    scene.until_restarted(&life).await;
    assert_eq!(scene.reloads(), 0);
    scene.node.restart();
    scene.shelf.held.lock().unwrap().refuse_exec = None;
    scene.start_pod("containerd://2");
    scene.until_ready(&life).await;
}

#[tokio::test]
async fn a_server_that_would_lose_a_backup_by_a_reload_is_restarted_instead() {
    let switch = json!([{"name": "KANIDM_ONLINE_BACKUP_SCHEDULE", "value": "@daily"}]);
    let scene = Scene::with_a_started_server_of(|kanidm| kanidm["spec"]["env"] = switch).await;
    let life = scene.begin().await;
    scene.until_ready(&life).await;
    scene.renew();
    scene.deliver();
    scene.until_restarted(&life).await;
    assert_eq!(scene.reloads(), 0);
    scene.node.restart();
    scene.start_pod("containerd://2");
    scene.until_ready(&life).await;
}

#[tokio::test]
async fn a_server_that_was_started_with_another_certificate_shows_the_right_one_without_a_restart() {
    let scene = Scene::with_a_started_server().await;
    scene.renew();
    scene.deliver();
    let life = scene.begin().await;
    scene.until_ready(&life).await;
    assert_eq!(scene.reloads(), 1);
    assert!(!scene.is_restarted());
}

#[tokio::test]
async fn a_renewed_certificate_that_clients_refuse_reaches_no_server() {
    let scene = Scene::with_a_started_server().await;
    let life = scene.begin().await;
    scene.until_ready(&life).await;
    let certified = rcgen::generate_simple_self_signed(["other.example.com".to_owned()]).unwrap();
    let wrong = (certified.cert.pem(), certified.signing_key.serialize_pem());
    scene.shelf.put(&secret("idm-tls"), certificate_secret(&wrong.0, &wrong.1));
    scene.node.held.lock().unwrap().files = wrong;
    for _ in 0..5 {
        scene.settled_pass(&life).await;
    }
    assert_eq!(says(&scene.shelf, "CertificatesValid").0, "False CertificateWrongHost");
    assert_eq!(scene.reloads(), 0);
    assert!(!scene.is_restarted());
}
