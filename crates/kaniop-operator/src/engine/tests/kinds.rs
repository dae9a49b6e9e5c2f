//! One object of each kind, and what is to be seen when it has come to rest.

use kaniop_api::{KanidmGroup, KanidmOAuth2Client, KanidmPersonAccount, KanidmServiceAccount};
use serde_json::{Value as Json, json};

use super::super::Managed;
use super::world::World;

/// A kind with an object to try it with.
pub(super) trait Sample: Managed {
    /// The object, which uses all that the kind has of credentials.
    fn sample() -> Json;
    /// Its name.
    const NAME: &'static str;
    /// Names of the Secrets that it is to have, in order.
    const SECRETS: &'static [&'static str];
    /// Checks what is in the Secrets against what the server takes; `entry` is the entry's name.
    fn fits(world: &World<Self>, entry: &str);
}

/// The same with one field more.
pub(super) fn with(mut object: Json, pointer: &str, value: Json) -> Json {
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[field] = value;
    object
}

/// A person who gets no link.
pub(super) fn alice() -> Json {
    json!({
        "metadata": {"name": "alice", "namespace": "default"},
        "spec": {"kanidmRef": {"name": "idm"}, "personAttributes": {"displayname": "Alice", "mail": ["alice@example.com"]}, "credentialReset": {"delivery": "None"}},
    })
}

impl Sample for KanidmPersonAccount {
    const NAME: &'static str = "alice";
    const SECRETS: &'static [&'static str] = &["alice-credential-reset"];

    fn sample() -> Json {
        with(alice(), "/spec/credentialReset/delivery", json!("Secret"))
    }

    fn fits(world: &World<Self>, _entry: &str) {
        let secret = world.secret(Self::SECRETS[0]).unwrap();
        assert_eq!(Some(&secret["token"]), world.credentials().told.last(), "the Secret has the last link");
        assert_eq!(secret["url"], format!("https://idm.example.com/ui/reset?token={}", secret["token"]));
        assert_eq!(world.condition("CredentialReady"), ("False".to_owned(), "ResetLinkOpen".to_owned()));
    }
}

impl Sample for KanidmGroup {
    const NAME: &'static str = "staff";
    const SECRETS: &'static [&'static str] = &[];

    fn sample() -> Json {
        json!({
            "metadata": {"name": "staff", "namespace": "default"},
            "spec": {"kanidmRef": {"name": "idm"}, "description": "Staff", "members": ["kaniop-operator"], "membersPolicy": "Additive", "posixAttributes": {}},
        })
    }

    fn fits(world: &World<Self>, entry: &str) {
        let entry = world.entries(entry).remove(0);
        assert_eq!(entry["member"].as_array().map(Vec::len), Some(1));
        assert!(entry["class"].as_array().unwrap().contains(&json!("posixgroup")));
    }
}

impl Sample for KanidmOAuth2Client {
    const NAME: &'static str = "app";
    const SECRETS: &'static [&'static str] = &["app-kanidm-oauth2-credentials"];

    fn sample() -> Json {
        json!({
            "metadata": {"name": "app", "namespace": "default"},
            "spec": {
                "kanidmRef": {"name": "idm"}, "displayname": "App", "origin": "https://app.test/", "redirectUrl": ["https://app.test/back"],
                "scopeMap": [{"group": "idm_admins", "scopes": ["openid"]}],
                "secretKeyAliases": {"clientId": ["user"], "clientSecret": ["pass"]},
                "secretRotation": {"enabled": true, "periodDays": 30},
            },
        })
    }

    fn fits(world: &World<Self>, entry: &str) {
        let secret = world.secret(Self::SECRETS[0]).unwrap();
        let uuid = world.entries(entry)[0]["id"].as_str().unwrap().to_owned();
        let taken = world.credentials().secrets[&uuid].clone();
        assert_eq!((&secret["CLIENT_SECRET"], &secret["pass"]), (&taken, &taken));
        assert_eq!((secret["CLIENT_ID"].as_str(), secret["user"].as_str()), (entry, entry));
        assert_eq!(world.condition("CredentialReady"), ("True".to_owned(), "Ready".to_owned()));
    }
}

impl Sample for KanidmServiceAccount {
    const NAME: &'static str = "robot";
    const SECRETS: &'static [&'static str] =
        &["robot-ci-api-token", "robot-cd-api-token", "robot-kanidm-service-account-credentials"];

    fn sample() -> Json {
        json!({
            "metadata": {"name": "robot", "namespace": "default"},
            "spec": {
                "kanidmRef": {"name": "idm"},
                "serviceAccountAttributes": {"displayname": "Robot", "entryManagedBy": "idm_admins"},
                "posixAttributes": {},
                "apiTokens": [{"label": "ci"}, {"label": "cd", "purpose": "readwrite", "expiry": "2099-01-01T00:00:00Z"}],
                "generateCredentials": true,
                "apiTokenRotation": {"enabled": true, "periodDays": 30},
                "credentialsRotation": {"enabled": true, "periodDays": 30},
            },
        })
    }

    fn fits(world: &World<Self>, entry: &str) {
        let uuid = world.entries(entry)[0]["id"].as_str().unwrap().to_owned();
        let credentials = world.credentials();
        let object = world.object().unwrap();
        for wanted in object.spec.api_tokens.iter().flatten() {
            let of_label: Vec<_> =
                credentials.tokens[&uuid].iter().filter(|token| token.label == wanted.label).collect();
            assert_eq!(of_label.len(), 1, "live tokens of the label {:?}", wanted.label);
            let name = format!("robot-{}-api-token", wanted.label);
            let secret = world.secret(&name).unwrap_or_else(|| panic!("there is no Secret {name}"));
            assert_eq!(secret["token"], of_label[0].value, "the token in {name}");
        }
        if object.spec.generate_credentials {
            assert_eq!(world.secret(Self::SECRETS[2]).unwrap()["password"], credentials.secrets[&uuid]);
        }
        assert_eq!(world.condition("CredentialReady"), ("True".to_owned(), "Ready".to_owned()));
    }
}

impl<K: Sample> World<K> {
    /// A world in which the sample has come to rest.
    pub(super) async fn at_rest() -> Self {
        let world = Self::with(K::sample()).await;
        let life = world.live().await;
        world.settle(&life).await;
        world
    }

    /// One entry, which is ours, with exactly the Secrets that there should be, which hold what the server takes.
    pub(super) fn is_complete(&self) {
        assert!(self.is_ready(), "{:?}", self.object().unwrap().identity_status());
        let object = self.object().unwrap();
        let name = object.kanidm_name().unwrap_or(K::NAME).to_owned();
        let entries = self.entries(&name);
        assert_eq!(entries.len(), 1, "entries named {name}");
        assert_eq!(self.kanidm.held.lock().unwrap().entries.len(), 3, "the operator, its group and this entry");
        let pinned = object.identity_status().and_then(|status| status.uuid.clone());
        assert_eq!(pinned.as_deref(), entries[0]["id"].as_str());
        let mut secrets = self.secrets();
        secrets.sort_by_key(|name| K::SECRETS.iter().position(|wanted| wanted == name));
        assert_eq!(secrets, K::SECRETS);
        K::fits(self, &name);
    }
}
