//! What the schema cannot know: which of the values that it allows a server takes, whom specs can name, and what must stay as it is.

use serde_json::{Value as Json, json};

/// A walk's kind of object.
#[derive(Debug)]
pub struct Variant {
    pub kind: &'static str,
    /// Tells its entries, mail addresses and numeric ids from those of the other walks.
    pub name: &'static str,
    /// Where its numeric ids begin.
    gids: i64,
    /// What every spec of the walk has: it cannot be changed.
    fixed: fn() -> Json,
    /// What the CRD's rules, or some servers, allow no object of the walk.
    never: &'static [&'static str],
}

pub const PERSON: Variant =
    Variant { kind: "KanidmPersonAccount", name: "walk-person", gids: 70_000, fixed: reference, never: &[] };
pub const GROUP: Variant =
    Variant { kind: "KanidmGroup", name: "walk-group", gids: 80_000, fixed: reference, never: &[] };
pub const SERVICE_ACCOUNT: Variant =
    Variant { kind: "KanidmServiceAccount", name: "walk-service", gids: 90_000, fixed: reference, never: &[] };
pub const CONFIDENTIAL: Variant = Variant {
    kind: "KanidmOAuth2Client",
    name: "walk-client",
    gids: 0,
    fixed: reference,
    never: &["allowLocalhostRedirect"],
};
pub const PUBLIC: Variant = Variant {
    kind: "KanidmOAuth2Client",
    name: "walk-public",
    gids: 0,
    fixed: || json!({ "kanidmRef": { "name": "idm" }, "public": true }),
    never: &[
        "allowInsecureClientDisablePkce",
        "secretRotation",
        "secretTemplate",
        "secretKeyAliases",
        // Kanidm 1.10 denies it for public clients; older ones do not.
        "disableConsentPrompt",
    ],
};
pub const VARIANTS: [&Variant; 5] = [&PERSON, &GROUP, &SERVICE_ACCOUNT, &CONFIDENTIAL, &PUBLIC];

fn reference() -> Json {
    json!({ "kanidmRef": { "name": "idm" } })
}

/// What cannot be changed, and why no walk tries to.
pub const FROZEN: &[(&str, &str)] = &[
    ("kanidmRef.name", "immutable: another Kanidm is another object"),
    ("kanidmRef.namespace", "immutable: another Kanidm is another object"),
    ("kanidmName", "immutable: the name of the entry is the walk's own"),
    ("public", "immutable: public and confidential clients have a walk each"),
];

/// People, groups and a service account that specs name; every server has them.
pub const PEOPLE: [&str; 3] = ["walk-ada", "walk-ben", "walk-cyd"];
pub const GROUPS: [&str; 4] = ["walk-crew", "walk-team", "walk-fans", "walk-owners"];

/// How values of a field are found where the schema does not say enough.
pub enum Hint {
    OneOf(&'static [&'static str]),
    Between(i64, i64),
}

impl Variant {
    pub fn fixed(&self) -> Json {
        (self.fixed)()
    }

    /// Whether edits may touch what is at a path.
    pub fn may_edit(&self, path: &str) -> bool {
        let covers =
            |prefix: &str| path == prefix || path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.'));
        path != "kanidmRef"
            && !self.never.iter().chain(FROZEN.iter().map(|(path, _)| path)).any(|prefix| covers(prefix))
    }

    /// The hint for a leaf, or for the keys of a map.
    pub fn hint(&self, path: &str) -> Option<Hint> {
        let last = path.rsplit('.').next().unwrap_or(path);
        Some(match last {
            "gidnumber" => Hint::Between(self.gids, self.gids + 9_999),
            "privilegeExpiry" => Hint::Between(1, 3600),
            _ => Hint::OneOf(texts(path, last)?),
        })
    }
}

const MAILS: &[&str] = &[
    "a@{}.example.test",
    "B.b@{}.Example.test",
    "b.B@{}.example.test",
    "c+tag@{}.example.test",
    "o'd@{}.example.test",
];
const MEMBERS: &[&str] = &[
    "walk-ada",
    "WALK-Ada@Example.test",
    "walk-ben@example.test",
    "walk-cyd",
    "walk-crew",
    "Walk-Team",
    "idm_all_persons",
];
const SCOPING: &[&str] =
    &["walk-crew", "walk-crew@example.test", "Walk-Team", "walk-fans@example.test", "idm_all_persons"];
/// The operator is in all of them but one.
const MANAGERS: &[&str] = &["idm_admins", "IDM_admins@example.test", "walk-owners", "kaniop-operator", STRANGERS];
const STRANGERS: &str = "walk-fans";

/// Whether the server hides from the operator what only an entry's managers see.
pub fn is_hidden(spec: &Json) -> bool {
    spec["serviceAccountAttributes"]["entryManagedBy"] == STRANGERS
}

const WORDS: &[&str] = &["openid", "email", "groups", "Read_1", "_", "0"];
const LANDINGS: &[&str] = &[
    "https://walk.example.test",
    "https://WALK.example.test/",
    "https://walk.example.test:443/a/../b?c=d e#f",
    "https://walk.example.test:8443/",
    "https://wälk.example.test/ö",
];
const REDIRECTS: &[&str] = &[
    "https://walk.example.test/back",
    "https://walk.example.test:443/back",
    "https://WALK.example.test/Back?x=1",
    "walk.app:///back",
    "walk.app://back",
    "http://localhost:8080/back",
];
const TIMES: &[&str] = &[
    "2026-01-02T03:04:05Z",
    "2026-01-02T05:04:05+02:00",
    "2036-12-31T23:59:59.999999Z",
    "1999-12-31T23:59:59.5Z",
    "2030-06-07T08:09:10.123456789-09:30",
    "0001-01-01T00:00:00Z",
    "1969-07-20T20:17:40Z",
    "9998-12-31T23:59:59Z",
];
const SSH_KEYS: &[&str] = &[
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAeGXTnkOgnIq8mKTJrNfHZpvwZ2ghUvWNxwoY8cDqOe",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAeGXTnkOgnIq8mKTJrNfHZpvwZ2ghUvWNxwoY8cDqOe somebody@laptop",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAeGXTnkOgnIq8mKTJrNfHZpvwZ2ghUvWNxwoY8cDqOe  words of a comment \n",
    "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBBEkw9s5h9xRAJXsB2X7xZaqINHq4Cy4CvXcpt0hM5hPJvGvGZFWU96BR3qhF2TVMx6GBajOAt6Q90ouVrtxxR8= ecdsa",
];

fn texts(path: &str, last: &str) -> Option<&'static [&'static str]> {
    Some(match last {
        "mail[]" => MAILS,
        "members[]" => MEMBERS,
        "entryManagedBy" => MANAGERS,
        "group" => SCOPING,
        "scopes[]" | "values[]" => WORDS,
        "name" if path.starts_with("claimMap") => &["role", "Role", "team_1", "level"],
        "origin" => LANDINGS,
        "redirectUrl[]" => REDIRECTS,
        "accountValidFrom" | "accountExpire" | "expiry" => TIMES,
        "loginshell" => &["/bin/sh", "/bin/zsh", "/usr/sbin/nologin", "none"],
        "sshPublicKeys{}" => SSH_KEYS,
        "sshPublicKeys" => &["laptop", "Desk top", "a/b", "ü"],
        "url" => &["https://pictures.example.test/a.png", "https://pictures.example.test/b.svg"],
        "clientId[]" => &["OIDC_ID", "oidc.id", "id-2"],
        "clientSecret[]" => &["OIDC_SECRET", "oidc.secret", "secret-2"],
        "annotations" | "labels" => &["a", "b.example.test/c", "d"],
        "label" => &["reader", "CI.1", "b-2"],
        "secretName" => &["token-a", "token-b", "token.c", "d"],
        _ => return None,
    })
}
