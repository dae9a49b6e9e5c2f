use proptest::prelude::*;

use super::*;

const UID: &str = "uid-1";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn link(expires: i64) -> Link {
    Link { origin: "https://idm.example.com/".to_owned(), token: "56kr1-token".to_owned(), expires: at(expires) }
}

fn stored(link: &Link) -> Secret {
    let owner = k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
        name: "alice".to_owned(),
        uid: UID.to_owned(),
        ..Default::default()
    };
    let holder =
        Holder { namespace: "default".to_owned(), manager: "kaniop-person".to_owned(), owner, ..Holder::default() };
    link.secret(&holder, "alice-credential-reset")
}

fn known(delivery: ResetDelivery, secret: Option<&Secret>) -> Known<'_> {
    Known { delivery, has_credential: false, secret, owner: UID, sent_until: None, now: at(1000) }
}

/// What is done, and what is said: truth and reason.
fn told(known: &Known<'_>) -> (Next, Option<(Truth, Reason)>, Option<u64>) {
    let (next, said, due) = next(known);
    (next, said.map(|said| (said.truth, said.reason)), due.map(|due| due.as_secs()))
}

const DELIVERIES: [ResetDelivery; 3] = [ResetDelivery::Secret, ResetDelivery::Email, ResetDelivery::None];

#[test]
fn whoever_has_a_credential_needs_no_link_and_the_secret_goes() {
    let secret = stored(&link(2000));
    let said = Some((Truth::True, Reason::CredentialExists));
    for delivery in DELIVERIES {
        let with = Known { has_credential: true, ..known(delivery, Some(&secret)) };
        assert_eq!(told(&with), (Next::Remove, said, None), "{delivery:?}");
        let without = Known { has_credential: true, ..known(delivery, None) };
        assert_eq!(told(&without), (Next::Keep, said, None), "{delivery:?}");
    }
}

#[test]
fn a_link_is_issued_once_and_stays_until_its_end() {
    assert_eq!(told(&known(ResetDelivery::Secret, None)), (Next::Issue, None, None));
    let secret = stored(&link(1500));
    let open = (Next::Keep, Some((Truth::False, Reason::ResetLinkOpen)), Some(500));
    assert_eq!(told(&known(ResetDelivery::Secret, Some(&secret))), open);
}

#[test]
fn a_link_that_ended_unused_is_not_made_again_by_itself() {
    for now in [1500, 9000] {
        let secret = stored(&link(1500));
        let ended = Known { now: at(now), ..known(ResetDelivery::Secret, Some(&secret)) };
        assert_eq!(told(&ended), (Next::Keep, Some((Truth::False, Reason::ResetLinkExpired)), None));
        let sent = Known { now: at(now), sent_until: Some(at(1500)), ..known(ResetDelivery::Email, None) };
        assert_eq!(told(&sent), (Next::Keep, Some((Truth::False, Reason::ResetLinkExpired)), None));
    }
}

#[test]
fn a_secret_that_somebody_edited_gets_a_new_link() {
    let good = stored(&link(1500));
    for key in ["url", "token", "expires"] {
        let (mut changed, mut taken) = (good.clone(), good.clone());
        changed.data.get_or_insert_default().insert(key.to_owned(), ByteString(b"2030-01-01T00:00:00Z".to_vec()));
        taken.data.get_or_insert_default().remove(key);
        for edited in [changed, taken] {
            assert_eq!(told(&known(ResetDelivery::Secret, Some(&edited))).0, Next::Issue, "{key}");
        }
    }
    let mut bare = good.clone();
    bare.metadata.annotations = None;
    assert_eq!(told(&known(ResetDelivery::Secret, Some(&bare))).0, Next::Issue, "without its hash");
    let other = Known { owner: "uid-2", ..known(ResetDelivery::Secret, Some(&good)) };
    assert_eq!(told(&other).0, Next::Issue, "the hash is of another object");
    let mut more = good;
    more.data.get_or_insert_default().insert("theirs".to_owned(), ByteString(b"x".to_vec()));
    assert_eq!(told(&known(ResetDelivery::Secret, Some(&more))).0, Next::Keep, "what others add is theirs");
}

#[test]
fn a_link_by_mail_is_sent_once() {
    assert_eq!(told(&known(ResetDelivery::Email, None)), (Next::Send, None, None));
    let sent = Known { sent_until: Some(at(1300)), ..known(ResetDelivery::Email, None) };
    assert_eq!(told(&sent), (Next::Keep, Some((Truth::False, Reason::ResetLinkOpen)), Some(300)));
}

#[test]
fn where_no_link_is_to_be_stored_a_stored_one_goes_first() {
    let secret = stored(&link(1500));
    for delivery in [ResetDelivery::None, ResetDelivery::Email] {
        // Of the stored link the status says that it is open: that is no mail that was sent.
        let was_stored = Known { sent_until: Some(at(1500)), ..known(delivery, Some(&secret)) };
        assert_eq!(told(&was_stored), (Next::Remove, None, None), "{delivery:?}");
    }
    assert_eq!(told(&known(ResetDelivery::None, None)), (Next::Keep, None, None));
}

#[test]
fn the_secret_has_a_page_to_open_whatever_the_origin_ends_with() {
    for origin in ["https://idm.example.com", "https://idm.example.com/"] {
        let secret = stored(&Link { origin: origin.to_owned(), ..link(1500) });
        assert_eq!(text(&secret, "url").as_deref(), Some("https://idm.example.com/ui/reset?token=56kr1-token"));
        assert_eq!(text(&secret, "token").as_deref(), Some("56kr1-token"));
        assert_eq!(text(&secret, "expires"), Some(at(1500).to_string()));
    }
}

proptest! {
    #[test]
    fn a_stored_link_reads_back_until_its_end(token in "[a-z0-9-]{1,30}", second in -9_000i64..9_000, nano in 0i32..1_000_000_000) {
        let expires = Timestamp::new(second, nano).or_else(|_| Timestamp::new(second, -nano)).expect("a time");
        let secret = stored(&Link { token, expires, ..link(0) });
        prop_assert_eq!(expiry(&secret, UID), Some(expires));
    }

    #[test]
    fn a_token_is_never_shown_for_debugging_nor_said(token in "[a-z]{12,20}", expires in 0i64..2000) {
        let link = Link { token: token.clone(), ..link(expires) };
        let secret = stored(&link);
        let (_, said, _) = next(&known(ResetDelivery::Secret, Some(&secret)));
        let shown = format!("{link:?} {said:?}");
        prop_assert!(!shown.contains(&token), "{}", shown);
    }
}
