//! How the server refuses, and what becomes of it.

use kaniop_core::entry::{Attr, Shape, Step, Value};
use kaniop_core::reason::Reason;
use kaniop_kanidm::{Class, Error};

use crate::entries::{create, group, mails, person, text};
use crate::server::{ATTRS, DESCRIPTION, DISPLAYNAME, MAIL, MEMBER, shared, uuid};

#[tokio::test]
#[ignore = "needs a server"]
async fn a_taken_name_is_a_conflict_that_names_the_attribute() {
    let operator = shared().operator();
    create(&operator, &group("taken-name", &[])).await;
    let Step::Create { collection, attrs, .. } = group("taken-name", &[]) else { unreachable!() };
    let again = Step::Create { collection, uuid: uuid("taken-name again"), attrs };
    let error = operator.execute(&again, ATTRS).await.unwrap_err();
    let Error::Conflict { attributes } = &error else { panic!("{error:?}") };
    assert!(attributes.iter().any(|name| name == "name"), "{attributes:?}");
    assert_eq!((error.class(), error.reason()), (Class::Blocked, Reason::EntryExists));
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_taken_name_or_mail_is_a_conflict_in_a_change_too() {
    let operator = shared().operator();
    create(&operator, &person("taken-a", &[(MAIL, mails(["taken@example.test"]))])).await;
    let other = create(&operator, &person("taken-b", &[])).await;
    for (attr, value) in [(Attr::NAME, text("taken-a")), (MAIL, mails(["taken@example.test"]))] {
        let step = Step::Put { uuid: other.uuid, attrs: vec![(attr, Some(value))] };
        let error = operator.execute(&step, ATTRS).await.unwrap_err();
        let Error::Conflict { attributes } = &error else { panic!("{}: {error:?}", attr.name) };
        assert!(attributes.iter().any(|name| name == attr.name), "{attributes:?}");
    }
}

#[tokio::test]
#[ignore = "needs a server"]
async fn an_unknown_member_is_an_unknown_reference() {
    let operator = shared().operator();
    let nobody = Value::References([uuid("nobody at all")].into());
    let error = operator.execute(&group("refers-wrongly", &[(MEMBER, nobody.clone())]), ATTRS).await.unwrap_err();
    assert_eq!((&error, error.class()), (&Error::UnknownReference, Class::Blocked));
    assert_eq!(error.reason(), Reason::ReferenceNotFound);
    let made = create(&operator, &group("refers-later", &[])).await;
    let step = Step::Put { uuid: made.uuid, attrs: vec![(MEMBER, Some(nobody))] };
    assert_eq!(operator.execute(&step, ATTRS).await.unwrap_err(), Error::UnknownReference);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_missing_or_misplaced_attribute_is_named() {
    let operator = shared().operator();
    let Step::Create { collection, uuid, mut attrs } = person("without-displayname", &[]) else { unreachable!() };
    attrs.retain(|(attr, _)| *attr != DISPLAYNAME);
    let error = operator.execute(&Step::Create { collection, uuid, attrs }, ATTRS).await.unwrap_err();
    assert!(matches!(&error, Error::InvalidValue { attribute: Some(name), .. } if name == "displayname"), "{error:?}");
    assert_eq!((error.class(), error.reason()), (Class::Blocked, Reason::InvalidValue));

    const NONSENSE: Attr = Attr::new("no_such_attribute", Shape::Text);
    let error = operator.execute(&group("with-nonsense", &[(NONSENSE, text("x"))]), ATTRS).await.unwrap_err();
    assert!(matches!(&error, Error::InvalidValue { .. }), "{error:?}");
    assert!(error.to_string().contains("no_such_attribute"), "{error}");
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_name_that_the_server_forbids_is_an_invalid_value() {
    let operator = shared().operator();
    for name in ["with space", "root"] {
        let error = operator.execute(&person(name, &[]), ATTRS).await.unwrap_err();
        assert!(matches!(error, Error::InvalidValue { .. }), "{name}: {error:?}");
        assert_eq!(error.class(), Class::Blocked);
    }
}

#[tokio::test]
#[ignore = "needs a server"]
async fn changing_an_entry_that_is_gone_is_worth_another_look() {
    let step = Step::Put { uuid: uuid("gone"), attrs: vec![(DISPLAYNAME, Some(text("x")))] };
    let error = shared().operator().execute(&step, ATTRS).await.unwrap_err();
    assert_eq!((&error, error.class()), (&Error::NotFound, Class::Retry));
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_value_of_a_mebibyte_reaches_the_server_and_more_than_two_are_too_large() {
    let operator = shared().operator();
    let made = create(&operator, &group("too-large", &[])).await;
    let step = |size| Step::Put { uuid: made.uuid, attrs: vec![(DESCRIPTION, Some(text(&"x".repeat(size))))] };
    operator.execute(&step(1 << 20), ATTRS).await.unwrap();
    let error = operator.execute(&step(2 << 20), ATTRS).await.unwrap_err();
    assert_eq!((&error, error.class()), (&Error::TooLarge, Class::Blocked));
    operator.execute(&Step::Delete { uuid: made.uuid }, &[]).await.unwrap();
}
