//! A TLS Secret that changes under a server that serves: what is worse than what it has never takes it down.

use super::*;

impl World {
    /// A server that serves with a good certificate.
    async fn serving() -> Self {
        let world = Self::running().await;
        let mut pod = world.shelf.get(POD).unwrap();
        pod["status"] = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        world.shelf.put(POD, pod);
        world.settle().await;
        world.shelf.writes();
        world
    }

    /// Passes beside a StatefulSet's controller that keeps up.
    async fn settle(&self) {
        for _ in 0..3 {
            self.pass().await.unwrap();
            if let Some(mut set) = self.shelf.get(STATEFULSET) {
                set["status"] = json!({"observedGeneration": set["metadata"]["generation"], "replicas": 1});
                self.shelf.put(STATEFULSET, set);
            }
        }
    }

    fn give_certificate_for(&self, host: &str, key: Option<&str>) {
        let certified = rcgen::generate_simple_self_signed([host.to_owned()]).unwrap();
        let own = certified.signing_key.serialize_pem();
        self.shelf.put(&secret("idm-tls"), certificate_secret(&certified.cert.pem(), key.unwrap_or(&own)));
    }

    fn is_restarted(&self) -> bool {
        self.shelf.get(POD).is_none()
    }
}

#[tokio::test]
async fn a_key_that_does_not_belong_to_its_certificate_restarts_nothing_and_is_told() {
    let world = World::serving().await;
    let hash = world.wanted_hash();
    world.give_certificate_for("idm.example.com", Some(&rcgen::KeyPair::generate().unwrap().serialize_pem()));
    world.settle().await;
    let (verdict, message) = world.ready();
    assert_eq!(verdict, "False TlsSecretInvalid");
    assert!(message.contains("does not belong to its tls.crt") && message.contains("goes on"), "{message}");
    assert_eq!(world.wanted_hash(), hash);
    assert!(!world.is_restarted());
}

#[tokio::test]
async fn a_certificate_that_clients_refuse_waits_and_so_does_every_other_restart_until_it_is_good() {
    let world = World::serving().await;
    let hash = world.wanted_hash();
    world.give_certificate_for("other.example.com", None);
    world.settle().await;
    assert_eq!(world.ready().0, "False CertificateInvalid");
    let (verdict, message) = says(&world.shelf, "CertificatesValid");
    assert_eq!(verdict, "False CertificateWrongHost");
    assert!(message.contains("'idm-tls'") && message.contains("not for 'idm.example.com'"), "{message}");
    assert_eq!(world.wanted_hash(), hash);
    world.change("/spec/replicaGroups/0", json!({"name": "default", "replicas": 1, "nodeSelector": {"a": "b"}}));
    world.settle().await;
    assert_ne!(world.wanted_hash(), hash, "a pod that dies comes back as the spec says");
    assert!(!world.is_restarted());
    world.give_certificate_for("idm.example.com", None);
    world.settle().await;
    assert!(world.is_restarted());
}

#[tokio::test]
async fn a_certificate_of_another_authority_than_the_one_beside_it_is_told_and_waits() {
    let world = World::serving().await;
    let before = world.shelf.get(STATEFULSET).unwrap();
    world.give_certificate_for("idm.example.com", None);
    let stranger = rcgen::generate_simple_self_signed(["another".to_owned()]).unwrap().cert.pem();
    let stranger = serde_json::to_value(k8s_openapi::ByteString(stranger.into_bytes())).unwrap();
    world.shelf.change(&secret("idm-tls"), |secret| secret["data"]["ca.crt"] = stranger);
    world.settle().await;
    let (verdict, message) = says(&world.shelf, "CertificatesValid");
    assert_eq!(verdict, "False CertificateUntrusted");
    assert!(message.contains("not from the authority in ca.crt"), "{message}");
    assert_eq!(world.ready().0, "False CertificateInvalid");
    let after = world.shelf.get(STATEFULSET).unwrap();
    assert_eq!(after["spec"], before["spec"]);
    assert!(!world.is_restarted());
}
