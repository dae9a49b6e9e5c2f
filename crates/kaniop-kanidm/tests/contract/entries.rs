//! Entries: create, read, change, delete.

use std::collections::BTreeSet;
use std::sync::Arc;

use kaniop_core::entry::{Attr, Collection, Entry, Newcomer, Step, Value};
use kaniop_kanidm::{Client, Endpoint, Error, Operation, Outcome, Requests};
use uuid::Uuid;

use crate::server::{
    ATTRS, DESCRIPTION, DISPLAYNAME, EXPIRE, LEGALNAME, MAIL, MANAGED_BY, MEMBER, VALID_FROM, shared,
    start_with_operator, uuid,
};

pub fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

pub fn mails<const N: usize>(mails: [&str; N]) -> Value {
    Value::Mails(mails.map(str::to_owned).to_vec())
}

/// Creates an entry whose UUID the server draws, and answers it.
pub async fn newcomer(client: &Client, name: &str, newcomer: &Newcomer) -> Result<Uuid, Error> {
    client.create_newcomer(name, newcomer).await?;
    Ok(client.entry_named(name, ATTRS).await?.ok_or(Error::NotFound)?.uuid)
}

pub fn person(name: &str, more: &[(Attr, Value)]) -> Step {
    let attrs = [&[(Attr::NAME, text(name)), (DISPLAYNAME, text(name))], more].concat();
    Step::Create { collection: Collection::Person, uuid: uuid(name), attrs }
}

pub fn group(name: &str, more: &[(Attr, Value)]) -> Step {
    let attrs = [&[(Attr::NAME, text(name))], more].concat();
    Step::Create { collection: Collection::Group, uuid: uuid(name), attrs }
}

pub async fn create(client: &Client, step: &Step) -> Entry {
    client.execute(step, ATTRS).await.unwrap().unwrap()
}

async fn put(client: &Client, uuid: Uuid, attrs: &[(Attr, Option<Value>)]) -> Entry {
    client.execute(&Step::Put { uuid, attrs: attrs.to_vec() }, ATTRS).await.unwrap().unwrap()
}

#[tokio::test]
#[ignore = "needs a server"]
async fn one_request_lists_every_person_group_and_service_account() {
    let shared = shared();
    let operator = shared.operator();
    let made = create(&operator, &person("listed-person", &[(MAIL, mails(["listed@example.test"]))])).await;
    let endpoint = Endpoint { requests: Arc::new(Requests::default()), ..shared.endpoint() };
    let entries = Client::new(&endpoint, shared.token.clone()).unwrap().entries(ATTRS).await.unwrap();
    assert_eq!(endpoint.requests.count(Operation::List, Outcome::Done), 1);
    assert_eq!(Operation::ALL.into_iter().map(|operation| endpoint.requests.of(operation)).sum::<u64>(), 1);
    assert_eq!(entries.iter().find(|entry| entry.uuid == made.uuid), Some(&made));
    let find =
        |name: &str| entries.iter().find(|entry| entry.name == name).map(|entry| (entry.collection, &*entry.spn));
    assert_eq!(find("idm_admins"), Some((Collection::Group, "idm_admins@example.test")));
    assert_eq!(find("idm_all_persons"), Some((Collection::Group, "idm_all_persons@example.test")));
    assert_eq!(find("idm_admin"), Some((Collection::ServiceAccount, "idm_admin@example.test")));
    assert_eq!(find("operator"), Some((Collection::ServiceAccount, "operator@example.test")));
}

#[tokio::test]
#[ignore = "needs a server"]
async fn an_entry_is_created_under_our_uuid_and_answered_as_it_reads_back() {
    let operator = shared().operator();
    let more = [(MAIL, mails(["made@example.test", "a@example.test"]))];
    let made = create(&operator, &person("made-person", &more)).await;
    assert_eq!((made.uuid, made.collection), (uuid("made-person"), Collection::Person));
    assert_eq!((made.name.as_str(), made.spn.as_str()), ("made-person", "made-person@example.test"));
    assert_eq!(made.attrs["displayname"], text("made-person"));
    assert!(made.attrs["mail"].same(&more[0].1), "{made:?}");
    assert_eq!(operator.entry(made.uuid, ATTRS).await.unwrap(), Some(made));
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_creation_that_is_sent_again_is_recognised_by_its_uuid() {
    let operator = shared().operator();
    let step = group("sent-twice", &[(DESCRIPTION, text("once"))]);
    let made = create(&operator, &step).await;
    assert_eq!(operator.execute(&step, ATTRS).await.unwrap_err(), Error::UuidTaken);
    assert_eq!(operator.entry(uuid("sent-twice"), ATTRS).await.unwrap(), Some(made));
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_uuid_stays_taken_after_deletion_and_a_second_deletion_is_done_already() {
    let operator = shared().operator();
    let step = group("deleted-group", &[]);
    let made = create(&operator, &step).await;
    for _ in 0..2 {
        assert_eq!(operator.execute(&Step::Delete { uuid: made.uuid }, ATTRS).await.unwrap(), None);
    }
    assert_eq!(operator.entry(made.uuid, ATTRS).await.unwrap(), None);
    assert_eq!(operator.execute(&step, ATTRS).await.unwrap_err(), Error::UuidTaken);
    let attrs = vec![(Attr::NAME, text("deleted-group"))];
    let next = Step::Create { collection: Collection::Group, uuid: uuid("deleted-group 1"), attrs };
    assert_eq!(create(&operator, &next).await.name, "deleted-group");
}

#[tokio::test]
#[ignore = "needs a server"]
async fn an_entry_that_never_was_reads_as_none() {
    assert_eq!(shared().operator().entry(uuid("never was"), ATTRS).await.unwrap(), None);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn many_attributes_change_in_one_request() {
    let shared = shared();
    let made = create(&shared.operator(), &person("changed-person", &[])).await;
    let named = Step::Put { uuid: made.uuid, attrs: vec![(LEGALNAME, Some(text("Old")))] };
    shared.operator().execute(&named, ATTRS).await.unwrap();
    let endpoint = shared.endpoint();
    let operator = Client::new(&endpoint, shared.token.clone()).unwrap();
    let new = [
        (Attr::NAME, Some(text("renamed-person"))),
        (DISPLAYNAME, Some(text("New \"quoted\" Ümläut"))),
        (LEGALNAME, None),
        (MAIL, Some(mails(["new@example.test"]))),
    ];
    let changed = put(&operator, made.uuid, &new).await;
    assert_eq!(endpoint.requests.of(Operation::Write), 1);
    assert_eq!((changed.name.as_str(), changed.spn.as_str()), ("renamed-person", "renamed-person@example.test"));
    assert_eq!(changed.attrs["displayname"], text("New \"quoted\" Ümläut"));
    assert_eq!(changed.attrs.get("legalname"), None);
    assert_eq!(changed.attrs["mail"], mails(["new@example.test"]));
    assert_eq!(operator.entry(made.uuid, ATTRS).await.unwrap(), Some(changed));
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_change_with_one_bad_attribute_changes_nothing() {
    let operator = shared().operator();
    let made = create(&operator, &person("all-or-nothing", &[])).await;
    let attrs = vec![(DISPLAYNAME, Some(text("changed"))), (MAIL, Some(mails(["no mail address"])))];
    let error = operator.execute(&Step::Put { uuid: made.uuid, attrs }, ATTRS).await.unwrap_err();
    assert!(matches!(error, Error::InvalidValue { .. }), "{error:?}");
    assert_eq!(operator.entry(made.uuid, ATTRS).await.unwrap(), Some(made));
}

#[tokio::test]
#[ignore = "needs a server"]
async fn absent_and_empty_values_purge() {
    let operator = shared().operator();
    let member = create(&operator, &person("purged-member", &[])).await;
    let more = [
        (DESCRIPTION, text("old")),
        (MAIL, mails(["purged@example.test"])),
        (MEMBER, Value::References([member.uuid].into())),
    ];
    let made = create(&operator, &group("purged-group", &more)).await;
    assert_eq!(made.attrs.len(), 3, "{made:?}");
    let nothing = [
        (DESCRIPTION, None),
        (MAIL, Some(Value::Mails(Vec::new()))),
        (MEMBER, Some(Value::References(BTreeSet::new()))),
    ];
    let purged = put(&operator, made.uuid, &nothing).await;
    assert!(purged.attrs.is_empty(), "{purged:?}");
    assert_eq!(put(&operator, made.uuid, &nothing).await, purged);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn the_first_mail_address_is_the_primary_one() {
    let operator = shared().operator();
    let first = ["z@mail.example.test", "a@mail.example.test", "m@mail.example.test"];
    let made = create(&operator, &person("mail-person", &[(MAIL, mails(first))])).await;
    assert!(made.attrs["mail"].same(&mails(first)), "{made:?}");
    for order in [["m@mail.example.test", "z@mail.example.test"], ["z@mail.example.test", "m@mail.example.test"]] {
        let changed = put(&operator, made.uuid, &[(MAIL, Some(mails(order)))]).await;
        assert!(changed.attrs["mail"].same(&mails(order)), "{changed:?}");
        let read = operator.entry(made.uuid, ATTRS).await.unwrap().unwrap();
        assert!(read.attrs["mail"].same(&mails(order)), "{read:?}");
    }
    let grouped =
        create(&operator, &group("mail-group", &[(MAIL, mails(["y@mail.example.test", "b@mail.example.test"]))])).await;
    assert!(grouped.attrs["mail"].same(&mails(["y@mail.example.test", "b@mail.example.test"])), "{grouped:?}");
}

#[tokio::test]
#[ignore = "needs a server"]
async fn members_are_set_as_a_whole_and_added_by_name_and_spn() {
    let operator = shared().operator();
    let mut people = Vec::new();
    for name in ["member-a", "member-b", "member-c"] {
        people.push(create(&operator, &person(name, &[])).await.uuid);
    }
    let nested = create(&operator, &group("member-group", &[])).await.uuid;
    let set = |members: &[Uuid]| Value::References(members.iter().copied().collect());
    let made = create(&operator, &group("members", &[(MEMBER, set(&[people[0], nested]))])).await;
    assert_eq!(made.attrs["member"], set(&[people[0], nested]));
    let changed = put(&operator, made.uuid, &[(MEMBER, Some(set(&people)))]).await;
    assert_eq!(changed.attrs["member"], set(&people));
    let changed = put(&operator, made.uuid, &[(MEMBER, Some(set(&people[1..2])))]).await;
    assert_eq!(changed.attrs["member"], set(&people[1..2]));
    for member in ["member-a", "member-c@example.test", "member-c@example.test"] {
        operator.add_member("members", member).await.unwrap();
    }
    let read = operator.entry(made.uuid, ATTRS).await.unwrap().unwrap();
    assert_eq!(read.attrs["member"], set(&people));
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_group_has_the_manager_that_it_was_given() {
    let operator = shared().operator();
    let managers = [
        create(&operator, &group("manager-a", &[])).await.uuid,
        create(&operator, &person("manager-b", &[])).await.uuid,
    ];
    let by = |uuid: Uuid| Value::References([uuid].into());
    let made = create(&operator, &group("managed", &[(MANAGED_BY, by(managers[0]))])).await;
    assert_eq!(made.attrs["entry_managed_by"], by(managers[0]));
    let changed = put(&operator, made.uuid, &[(MANAGED_BY, Some(by(managers[1])))]).await;
    assert_eq!(changed.attrs["entry_managed_by"], by(managers[1]));
    let purged = put(&operator, made.uuid, &[(MANAGED_BY, None)]).await;
    assert_eq!(purged.attrs.get("entry_managed_by"), None);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn validity_times_come_back_as_they_were_set() {
    let operator = shared().operator();
    let time = |text: &str| Value::Time(text.parse().unwrap());
    let (from, until) = (time("2026-01-02T03:04:05Z"), time("2031-06-07T08:09:10+02:00"));
    let made = create(&operator, &person("valid-person", &[(VALID_FROM, from.clone()), (EXPIRE, until.clone())])).await;
    assert_eq!((&made.attrs["account_valid_from"], &made.attrs["account_expire"]), (&from, &until));
    let later = time("2040-12-31T23:59:59Z");
    let changed = put(&operator, made.uuid, &[(VALID_FROM, None), (EXPIRE, Some(later.clone()))]).await;
    assert_eq!((changed.attrs.get("account_valid_from"), &changed.attrs["account_expire"]), (None, &later));
    assert_eq!(operator.entry(made.uuid, ATTRS).await.unwrap(), Some(changed));
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_token_lists_more_than_a_thousand_entries_at_once() {
    let shared = start_with_operator().await;
    let operator = shared.operator();
    let tasks: Vec<_> = (0..8)
        .map(|worker| {
            let operator = operator.clone();
            tokio::spawn(async move {
                for nth in 0..130 {
                    create(&operator, &group(&format!("many-{worker}-{nth}"), &[])).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let entries = operator.entries(ATTRS).await.unwrap();
    let ours = entries.iter().filter(|entry| entry.name.starts_with("many-")).count();
    assert_eq!(ours, 1040);
    // The trap that makes tokens necessary.
    let session = Client::login(&shared.endpoint(), "idm_admin", &shared.idm_admin).await.unwrap();
    let error = session.entries(ATTRS).await.unwrap_err();
    assert!(matches!(error, Error::Busy { status: 500, .. }), "{error:?}");
}
