use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::prelude::*;

use super::*;

const UID: &str = "uid-1";
const VALUE: &str = "correct-horse-battery";
const DAY: i64 = 24 * 3600;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn holder() -> Holder {
    let owner = OwnerReference { name: "robot".to_owned(), uid: UID.to_owned(), ..OwnerReference::default() };
    Holder { namespace: "default".to_owned(), manager: "kaniop-service-account".to_owned(), owner, entry: Uuid::nil() }
}

fn wanted(credential: Credential) -> Wanted {
    Wanted { name: "robot-secret".to_owned(), credential, rotation: None, template: MetadataTemplate::default() }
}

fn token(expiry: Option<Timestamp>) -> Wanted {
    wanted(Credential::ApiToken { label: "ci".to_owned(), purpose: TokenPurpose::ReadOnly, expiry })
}

fn client() -> Wanted {
    let names = |name: &str| BTreeSet::from([name.to_owned()]);
    wanted(Credential::ClientSecret { id: "app".to_owned(), id_aliases: names("user"), secret_aliases: names("pass") })
}

fn password() -> Wanted {
    wanted(Credential::Password)
}

fn rotated(wanted: Wanted, enabled: bool, period_days: i64) -> Wanted {
    Wanted { rotation: Some(SecretRotation { enabled, period_days }), ..wanted }
}

fn live(number: u128, label: &str) -> LiveToken {
    LiveToken { id: id(number), label: label.to_owned(), purpose: Some(TokenPurpose::ReadOnly), expiry: None }
}

fn held(token: Option<u128>) -> Held {
    Held { value: VALUE.to_owned(), made: at(1000), token: token.map(id), stray: Vec::new() }
}

/// The Secret as it is stored when this is held.
fn stored(wanted: &Wanted, held: &Held) -> Secret {
    wanted.secret(&holder(), held)
}

fn known<'a>(secret: Option<&'a Secret>, live: &'a [LiveToken], now: i64) -> Known<'a> {
    Known { secret, owner: UID, entry: Uuid::nil(), live, forced: None, now: at(now) }
}

fn next(wanted: &Wanted, secret: Option<&Secret>, live: &[LiveToken], now: i64) -> Next {
    wanted.next(&known(secret, live, now)).0
}

fn forced(wanted: &Wanted, secret: Option<&Secret>, since: i64) -> Next {
    let live = [live(1, "ci")];
    wanted.next(&Known { forced: Some(at(since)), ..known(secret, &live, since + 5) }).0
}

fn annotations(secret: &mut Secret) -> &mut BTreeMap<String, String> {
    secret.metadata.annotations.get_or_insert_default()
}

fn make(revoke: &[u128]) -> Next {
    Next::Make { revoke: revoke.iter().copied().map(id).collect() }
}

#[test]
fn what_was_stored_is_kept() {
    for (wanted, token) in [(client(), None), (password(), None), (token(None), Some(1))] {
        let secret = stored(&wanted, &held(token));
        let next = wanted.next(&known(Some(&secret), &[live(1, "ci")], 2000));
        assert_eq!(next, (Next::Keep(held(token)), None), "{}", wanted.key());
    }
}

#[test]
fn without_a_secret_a_client_secret_is_read_and_everything_else_made() {
    assert_eq!(next(&client(), None, &[], 0), Next::Read);
    assert_eq!(next(&password(), None, &[], 0), make(&[]));
    assert_eq!(next(&token(None), None, &[], 0), make(&[]));
}

#[test]
fn tokens_of_the_label_are_revoked_before_one_is_made_and_no_others() {
    let live = [live(1, "ci"), live(2, "other"), live(3, "ci")];
    assert_eq!(next(&token(None), None, &live, 0), make(&[1, 3]));
    assert_eq!(next(&password(), None, &live, 0), make(&[]));
}

#[test]
fn the_token_in_the_secret_is_kept_and_its_strays_are_known() {
    let secret = stored(&token(None), &held(Some(2)));
    let live = [live(1, "ci"), live(2, "ci"), live(3, "other")];
    assert_eq!(
        next(&token(None), Some(&secret), &live, 2000),
        Next::Keep(Held { stray: vec![id(1)], ..held(Some(2)) })
    );
}

#[test]
fn a_token_that_the_server_does_not_list_is_made_anew() {
    let secret = stored(&token(None), &held(Some(1)));
    assert_eq!(next(&token(None), Some(&secret), &[], 2000), make(&[]));
    assert_eq!(next(&token(None), Some(&secret), &[live(2, "ci")], 2000), make(&[2]), "another one has its label");
    assert_eq!(next(&token(None), Some(&secret), &[live(1, "other")], 2000), make(&[]), "its label is another one");
}

#[test]
fn a_token_of_another_purpose_or_end_is_made_anew() {
    let secret = stored(&token(None), &held(Some(1)));
    let [read_write, unknown, ending] = [
        LiveToken { purpose: Some(TokenPurpose::ReadWrite), ..live(1, "ci") },
        LiveToken { purpose: None, ..live(1, "ci") },
        LiveToken { expiry: Some(at(9000)), ..live(1, "ci") },
    ];
    for other in [read_write, unknown, ending] {
        assert_eq!(next(&token(None), Some(&secret), std::slice::from_ref(&other), 2000), make(&[1]), "{other:?}");
    }
    let later = token(Some(at(9000)));
    let secret = stored(&later, &held(Some(1)));
    assert_eq!(next(&later, Some(&secret), &[live(1, "ci")], 2000), make(&[1]), "the end was changed");
}

#[test]
fn the_server_counts_the_end_of_a_token_in_seconds() {
    let end: Timestamp = "2026-12-01T04:05:06.789Z".parse().expect("a time");
    let wanted = token(Some(end));
    let listed = LiveToken { expiry: Some(at(end.as_second())), ..live(1, "ci") };
    let secret = stored(&wanted, &held(Some(1)));
    assert_eq!(next(&wanted, Some(&secret), &[listed], 2000), Next::Keep(held(Some(1))));
}

#[test]
fn a_token_whose_end_is_over_is_neither_made_nor_kept_and_the_finding_says_what_to_do() {
    let wanted = token(Some(at(2000)));
    let listed = LiveToken { expiry: Some(at(2000)), ..live(1, "ci") };
    let secret = stored(&wanted, &held(Some(1)));
    for secret in [None, Some(&secret)] {
        let (next, due) = wanted.next(&known(secret, std::slice::from_ref(&listed), 2000));
        let Next::Refused(finding) = next else { panic!("{next:?}") };
        assert_eq!((finding.reason, due), (Reason::Expired, None));
        assert!(finding.message.contains("apiTokens[ci].expiry"), "{}", finding.message);
    }
    let (kept, due) = wanted.next(&known(Some(&secret), &[listed], 1999));
    assert_eq!((kept, due), (Next::Keep(held(Some(1))), Some(Duration::from_secs(1))));
}

#[test]
fn rotation_is_due_when_the_period_is_over_and_says_when_that_is() {
    for (wanted, token) in [(client(), None), (password(), None), (token(None), Some(1))] {
        let wanted = rotated(wanted, true, 2);
        let (secret, live) = (stored(&wanted, &held(token)), [live(1, "ci")]);
        let (kept, due) = wanted.next(&known(Some(&secret), &live, 1000 + 2 * DAY - 1));
        assert_eq!((kept, due), (Next::Keep(held(token)), Some(Duration::from_secs(1))));
        let revoke: &[u128] = if token.is_some() { &[1] } else { &[] };
        assert_eq!(next(&wanted, Some(&secret), &live, 1000 + 2 * DAY), make(revoke));
        let off = rotated(wanted, false, 2);
        assert_eq!(next(&off, Some(&stored(&off, &held(token))), &live, 1000 + 9 * DAY), Next::Keep(held(token)));
    }
}

#[test]
fn the_nearer_of_rotation_and_end_is_when_a_token_is_looked_at_again() {
    for (end, after) in [(1000 + DAY, DAY), (1000 + 5 * DAY, 2 * DAY)] {
        let wanted = rotated(token(Some(at(end))), true, 2);
        let secret = stored(&wanted, &held(Some(1)));
        let listed = LiveToken { expiry: Some(at(end)), ..live(1, "ci") };
        let (_, due) = wanted.next(&known(Some(&secret), &[listed], 1000));
        assert_eq!(due, Some(Duration::from_secs(after.unsigned_abs())));
    }
}

#[test]
fn whoever_asks_for_new_credentials_gets_each_made_once() {
    for (wanted, token, revoke) in
        [(client(), None, vec![]), (password(), None, vec![]), (token(None), Some(1), vec![1])]
    {
        let secret = stored(&wanted, &held(token));
        assert_eq!(forced(&wanted, Some(&secret), 1001), make(&revoke), "{} is older", wanted.key());
        // Made in the very pass that saw the wish: not again after a crash.
        assert_eq!(forced(&wanted, Some(&secret), 1000), Next::Keep(held(token)), "{} is new", wanted.key());
        assert_eq!(forced(&wanted, Some(&secret), 999), Next::Keep(held(token)), "{} is newer", wanted.key());
        assert_eq!(
            forced(&wanted, None, 1000),
            make(&[1][..usize::from(token.is_some())]),
            "{} is not there",
            wanted.key()
        );
    }
}

#[test]
fn a_client_secret_that_was_lost_after_it_was_made_is_read_again_even_while_the_wish_stands() {
    let mut secret = stored(&client(), &held(None));
    secret.data.get_or_insert_default().remove("CLIENT_SECRET");
    assert_eq!(forced(&client(), Some(&secret), 1000), Next::Read);
    assert_eq!(forced(&client(), Some(&secret), 1001), make(&[]));
}

#[test]
fn an_edited_secret_is_not_what_we_wrote() {
    for (wanted, token) in [(client(), None), (password(), None), (token(None), Some(1))] {
        let good = stored(&wanted, &held(token));
        let again =
            if wanted.key() == "CLIENT_SECRET" { Next::Read } else { make(&[1][..usize::from(token.is_some())]) };
        for key in good.data.clone().unwrap_or_default().keys() {
            let (mut changed, mut emptied, mut taken) = (good.clone(), good.clone(), good.clone());
            changed.data.get_or_insert_default().insert(key.clone(), ByteString(b"edited".to_vec()));
            emptied.data.get_or_insert_default().insert(key.clone(), ByteString(Vec::new()));
            taken.data.get_or_insert_default().remove(key);
            for edited in [changed, emptied, taken] {
                assert_eq!(next(&wanted, Some(&edited), &[live(1, "ci")], 2000), again, "{key}");
            }
        }
        let mut moved = good.clone();
        annotations(&mut moved).insert(CONTENT_HASH.to_owned(), content_hash("uid-2", VALUE));
        assert_eq!(next(&wanted, Some(&moved), &[live(1, "ci")], 2000), again, "the hash is of another object");
    }
}

#[test]
fn a_value_that_is_no_text_is_not_what_we_wrote() {
    let mut secret = stored(&password(), &held(None));
    secret.data.get_or_insert_default().insert("password".to_owned(), ByteString(vec![0xff, 0xfe]));
    assert_eq!(next(&password(), Some(&secret), &[], 2000), make(&[]));
}

#[test]
fn keys_and_annotations_of_somebody_else_are_left_out_of_account() {
    for (wanted, token) in [(client(), None), (password(), None), (token(None), Some(1))] {
        let mut secret = stored(&wanted, &held(token));
        secret.data.get_or_insert_default().insert("theirs".to_owned(), ByteString(b"x".to_vec()));
        annotations(&mut secret).insert("example.com/theirs".to_owned(), "x".to_owned());
        assert_eq!(next(&wanted, Some(&secret), &[live(1, "ci")], 2000), Next::Keep(held(token)));
        let built = stored(&wanted, &held(token));
        assert!(!built.data.unwrap_or_default().contains_key("theirs"), "nor is it written");
    }
}

#[test]
fn an_alias_that_is_new_in_the_spec_makes_the_client_secret_be_read_again() {
    let plain = wanted(Credential::ClientSecret {
        id: "app".to_owned(),
        id_aliases: BTreeSet::new(),
        secret_aliases: BTreeSet::new(),
    });
    let secret = stored(&plain, &held(None));
    assert_eq!(next(&client(), Some(&secret), &[], 2000), Next::Read);
}

/// Releases before this one kept neither hash nor token id, and some no time.
#[test]
fn the_secret_of_an_older_release_counts_where_nothing_could_be_read_again() {
    let old = |wanted: &Wanted| {
        let mut secret = stored(wanted, &held(None));
        secret.metadata.annotations = None;
        secret.metadata.creation_timestamp = Some(Time(at(500)));
        secret
    };
    let kept = |token| Next::Keep(Held { made: at(500), ..held(token) });
    assert_eq!(next(&client(), Some(&old(&client())), &[], 2000), Next::Read);
    assert_eq!(next(&password(), Some(&old(&password())), &[], 2000), kept(None));
    let token = token(None);
    assert_eq!(next(&token, Some(&old(&token)), &[live(1, "ci"), live(2, "other")], 2000), kept(Some(1)));
    assert_eq!(next(&token, Some(&old(&token)), &[live(1, "ci"), live(3, "ci")], 2000), make(&[1, 3]), "whose is it?");
    assert_eq!(next(&token, Some(&old(&token)), &[], 2000), make(&[]));
}

#[test]
fn labels_and_annotations_of_the_operator_are_not_for_templates() {
    let with = |labels: &[&str], annotations: &[&str]| {
        let map = |keys: &[&str]| Some(keys.iter().map(|key| ((*key).to_owned(), "x".to_owned())).collect());
        let template = MetadataTemplate { labels: map(labels), annotations: map(annotations) };
        Wanted { template, ..token(None) }
    };
    for (labels, annotations, taken) in [
        (vec![labels::MANAGED_BY], vec![], labels::MANAGED_BY),
        (vec![ACCOUNT], vec![], ACCOUNT),
        (vec![TOKEN_LABEL], vec![], TOKEN_LABEL),
        (vec![], vec![CONTENT_HASH], CONTENT_HASH),
        (vec![], vec![labels::ROTATED_AT], labels::ROTATED_AT),
        (vec![], vec![labels::APPLIED_HASH], labels::APPLIED_HASH),
        (vec![], vec![ROTATION_PERIOD], ROTATION_PERIOD),
    ] {
        let finding = with(&labels, &annotations).template_conflict().expect("a conflict");
        assert_eq!(finding.reason, Reason::SecretTemplateConflict);
        assert!(finding.message.contains(taken), "{}", finding.message);
    }
    let harmless = with(&["team", "example.com/tier"], &["example.com/note"]);
    assert_eq!(harmless.template_conflict(), None);
    let metadata = stored(&harmless, &held(Some(1))).metadata;
    assert_eq!(metadata.labels.unwrap_or_default()["team"], "x");
    assert_eq!(metadata.annotations.unwrap_or_default()["example.com/note"], "x");
}

#[test]
fn a_secret_says_whose_it_is_when_it_was_made_and_when_it_is_made_anew() {
    let secret = stored(&rotated(token(None), true, 30), &held(Some(1)));
    let (labels, annotations) =
        (secret.metadata.labels.unwrap_or_default(), secret.metadata.annotations.unwrap_or_default());
    let label = |key: &str| labels[key].as_str();
    assert_eq!((label(labels::MANAGED_BY), label(ACCOUNT)), ("kaniop-service-account", "robot"));
    assert_eq!(label(TOKEN_LABEL), "ci");
    assert_eq!(annotations[labels::ROTATED_AT], at(1000).to_string());
    assert_eq!((annotations[ROTATION_ENABLED].as_str(), annotations[ROTATION_PERIOD].as_str()), ("true", "30"));
    assert_eq!(annotations[TOKEN_ID], id(1).to_string());
    assert_eq!(secret.metadata.owner_references.unwrap_or_default()[0].uid, UID);
    let long = Holder { owner: OwnerReference { name: "x".repeat(64), ..holder().owner }, ..holder() };
    assert!(!long.metadata("s").labels.unwrap_or_default().contains_key(ACCOUNT), "no label can have such a value");
}

#[test]
fn two_credentials_of_one_secret_are_a_finding() {
    let other = Wanted { name: "another".to_owned(), ..password() };
    assert_eq!(doubled(&[token(None), other]), None);
    let finding = doubled(&[token(None), password()]).expect("a finding");
    assert_eq!(finding.reason, Reason::InvalidValue);
    assert!(finding.message.contains("robot-secret"), "{}", finding.message);
}

fn credentials() -> impl Strategy<Value = Wanted> {
    let ends = proptest::option::of(20_000i64..90_000);
    let rotation = proptest::option::of((any::<bool>(), 1i64..4));
    let credential = prop_oneof![Just(client()), Just(password()), ends.prop_map(|end| token(end.map(at)))];
    (credential, rotation).prop_map(|(wanted, rotation)| match rotation {
        Some((enabled, days)) => rotated(wanted, enabled, days),
        None => wanted,
    })
}

/// A server with its tokens, and the Secret beside it.
struct World {
    live: Vec<LiveToken>,
    secret: Option<Secret>,
    drawn: u128,
}

impl World {
    /// Does what was decided. Returns how many credentials were made.
    fn carry_out(&mut self, wanted: &Wanted, next: Next, now: i64) -> usize {
        let (held, made) = match next {
            Next::Keep(held) => {
                self.live.retain(|token| !held.stray.contains(&token.id));
                (held, 0)
            }
            Next::Read => (Held { made: at(now), ..held(None) }, 0),
            Next::Make { revoke } => {
                self.live.retain(|token| !revoke.contains(&token.id));
                self.drawn += 1;
                let mut held = Held { made: at(now), value: format!("value-{}", self.drawn), ..held(None) };
                if let Credential::ApiToken { purpose, expiry, .. } = &wanted.credential {
                    let issued = LiveToken { purpose: Some(*purpose), expiry: *expiry, ..live(self.drawn, "ci") };
                    held.token = Some(issued.id);
                    self.live.push(issued);
                }
                (held, 1)
            }
            Next::Refused(_) => return 0,
        };
        self.secret = Some(stored(wanted, &held));
        made
    }
}

proptest! {
    #[test]
    fn a_secret_reads_back_as_it_was_held(wanted in credentials(), value in "\\PC{1,40}", made in 0i64..10_000, number in 1u128..9) {
        let token = matches!(wanted.credential, Credential::ApiToken { .. }).then(|| id(number));
        let held = Held { value, made: at(made), token, stray: Vec::new() };
        let expiry = match &wanted.credential { Credential::ApiToken { expiry, .. } => *expiry, _ => None };
        let live = [LiveToken { expiry, ..live(number, "ci") }];
        prop_assert_eq!(next(&wanted, Some(&stored(&wanted, &held)), &live, 10_000), Next::Keep(held));
    }

    #[test]
    fn a_value_is_never_shown_for_debugging(value in "[a-z]{12,20}", made in 0i64..10_000) {
        let held = Held { value: value.clone(), made: at(made), token: Some(id(1)), stray: vec![id(2)] };
        let shown = format!("{held:?} {:?} {:#?}", Next::Keep(held.clone()), Some(&held));
        prop_assert!(!shown.contains(&value), "{}", shown);
    }

    #[test]
    fn one_step_is_enough_and_then_one_token_of_the_label_lives_and_all_others_do(
        wanted in credentials(), before in credentials(), labels in proptest::collection::vec("ci|other|Ci", 0..5),
        stored_before in any::<bool>(), edited in any::<bool>(), since in proptest::option::of(0i64..20_000), now in 10_000i64..19_000,
    ) {
        let live: Vec<_> = labels.iter().zip(100..).map(|(label, number)| live(number, label)).collect();
        let mut world = World { live, secret: None, drawn: 0 };
        if stored_before {
            world.carry_out(&before, Next::Make { revoke: Vec::new() }, 5000);
        }
        if let Some(secret) = world.secret.as_mut().filter(|_| edited) {
            secret.data.get_or_insert_default().insert(wanted.key().to_owned(), ByteString(b"edited".to_vec()));
        }
        let others: Vec<_> = world.live.iter().filter(|token| token.label != "ci").cloned().collect();
        let forced = since.map(at).filter(|since| *since <= at(now));
        let mut made = 0;
        for _ in 0..3 {
            let secret = world.secret.clone();
            let live = world.live.clone();
            let (next, _) = wanted.next(&Known { secret: secret.as_ref(), owner: UID, entry: Uuid::nil(), live: &live, forced, now: at(now) });
            made += world.carry_out(&wanted, next, now);
        }
        prop_assert!(made <= 1, "{} were made", made);
        let left: Vec<_> = world.live.iter().filter(|token| token.label != "ci").cloned().collect();
        prop_assert_eq!(left, others);
        if let Credential::ApiToken { .. } = wanted.credential {
            prop_assert_eq!(world.live.iter().filter(|token| token.label == "ci").count(), 1);
        }
        let (secret, live) = (world.secret, world.live);
        let (last, _) = wanted.next(&Known { secret: secret.as_ref(), owner: UID, entry: Uuid::nil(), live: &live, forced, now: at(now) });
        prop_assert!(matches!(&last, Next::Keep(held) if held.stray.is_empty()), "{:?}", last);
    }
}

#[test]
fn a_credential_of_an_entry_that_was_made_anew_is_another_one() {
    let of = |wanted: &Wanted| {
        let secret = stored(wanted, &held(None));
        wanted.next(&Known { entry: id(9), ..known(Some(&secret), &[], 2000) }).0
    };
    assert_eq!(of(&client()), Next::Read);
    assert_eq!(of(&password()), make(&[]));
}

#[test]
fn a_time_in_the_future_puts_no_rotation_off() {
    let wanted = rotated(password(), true, 1);
    let secret = stored(&wanted, &Held { made: at(1000 + 400 * DAY), ..held(None) });
    let (next, due) = wanted.next(&known(Some(&secret), &[], 1000));
    assert_eq!(next, Next::Keep(held(None)), "it counts as made now");
    assert_eq!(due, Some(Duration::from_secs(DAY.unsigned_abs())));
}
