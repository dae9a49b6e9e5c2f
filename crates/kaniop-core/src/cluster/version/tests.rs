use kaniop_api::kanidm::UpgradeCheckResult;

use super::*;

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A server of 1.10 that told so, and this image.
fn beside<'a>(wanted: &'a Image, live: &'a [&'a str], levels: &'a [u32]) -> Evidence<'a> {
    Evidence {
        wanted,
        live,
        levels,
        complete: true,
        remembered: None,
        version: None,
        has_database: true,
        capable: None,
        unchecked: false,
        backup: Backup::NotNeeded,
    }
}

fn image(text: &str) -> Image {
    Image::parse(text).unwrap()
}

/// Why an image is open or blocked beside a server of 1.10, as one word.
fn word(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Open(Open::Upgrade { from, to }) => format!("{from} to {to}"),
        Verdict::Open(open) => format!("{open:?}"),
        Verdict::NeedsBackup { from, to } => format!("backup of {from} before {to}"),
        Verdict::Blocked(reason, _) => reason.to_string(),
    }
}

#[test]
fn one_minor_release_at_a_time_and_never_back() {
    let digest = format!("kanidm/server@{DIGEST}");
    let both = format!("kanidm/server:1.11.0@{DIGEST}");
    for (wanted, said) in [
        ("kanidm/server:1.10.5", "Same"),
        ("kanidm/server:1.10.6", "Patch"),
        ("kanidm/server:1.10.0", "Patch"),
        ("kanidm/server:1.10", "Patch"),
        ("registry.local:5000/idm:1.10.5", "Patch"),
        ("kanidm/server:1.11.0", "1.10 to 1.11"),
        ("registry.local:5000/kanidm/server:1.11.2", "1.10 to 1.11"),
        (both.as_str(), "1.10 to 1.11"),
        ("kanidm/server:1.12.0", "UpgradeSkipsRelease"),
        ("kanidm/server:1.13.0", "UpgradeSkipsRelease"),
        ("kanidm/server:2.0.0", "UpgradeSkipsRelease"),
        ("kanidm/server:1.9.9", "DowngradeRefused"),
        ("localhost/kanidm-dev:1.7", "DowngradeRefused"),
        (digest.as_str(), "ReleaseUnknown"),
        ("registry.local:5000/kanidm/server", "ReleaseUnknown"),
        ("kanidm/server:latest", "ReleaseUnknown"),
        ("kanidm/server:devel", "ReleaseUnknown"),
    ] {
        let wanted = image(wanted);
        let gate = judge(&beside(&wanted, &["kanidm/server:1.10.5"], &[14]));
        assert_eq!(word(&gate.image), said, "{wanted}");
        assert_eq!((gate.support, gate.level), (Support::Compatible, Some(14)));
    }
}

#[test]
fn a_refusal_says_what_happened_and_the_way_out() {
    for (wanted, said) in [
        (
            "r.local:5000/idm:1.12.0",
            vec!["release 1.10", "of 1.12", "release 1.11 first, such as 'r.local:5000/idm:1.11.0'"],
        ),
        ("kanidm/server:1.9.0", vec!["release 1.10", "of 1.9", "restore a backup that 1.9 made"]),
        ("kanidm/server:latest", vec!["'kanidm/server:1.11.0@sha256:…'", "disableUpgradeChecks: true"]),
    ] {
        let wanted = image(wanted);
        let gate = judge(&beside(&wanted, &["kanidm/server:1.10.5"], &[14]));
        let (_, message) = gate.blocked().unwrap();
        for said in said.into_iter().chain(["the servers keep the image that they have"]) {
            assert!(message.contains(said), "{said} is not in: {message}");
        }
    }
}

#[test]
fn what_the_server_says_counts_and_not_what_its_image_is_tagged_with() {
    let wanted = image("mirror/server:1.12.0");
    let gate = judge(&beside(&wanted, &["mirror/server:1.11.0"], &[14]));
    let (reason, message) = gate.blocked().unwrap();
    assert_eq!(reason, Reason::UpgradeSkipsRelease);
    assert!(message.contains("whatever the tag of 'mirror/server:1.11.0' says"), "{message}");
}

#[test]
fn nodes_on_both_sides_of_an_upgrade_bound_the_image_from_both_sides() {
    for (wanted, said) in [
        ("kanidm/server:1.11.0", "Same"),
        ("kanidm/server:1.11.1", "1.10 to 1.11"),
        ("kanidm/server:1.10.5", "DowngradeRefused"),
        ("kanidm/server:1.12.0", "UpgradeSkipsRelease"),
    ] {
        let wanted = image(wanted);
        let gate = judge(&beside(&wanted, &["kanidm/server:1.11.0"], &[14, 15]));
        assert_eq!((word(&gate.image).as_str(), gate.level), (said, Some(15)), "{wanted}");
    }
    // The crash between two StatefulSets: one has the image, the other has not.
    let wanted = image("kanidm/server:1.11.0");
    let gate = judge(&beside(&wanted, &["kanidm/server:1.10.5", "kanidm/server:1.11.0"], &[14]));
    assert_eq!(word(&gate.image), "1.10 to 1.11");
}

#[test]
fn a_node_that_cannot_tell_now_counts_by_what_was_told_before() {
    let older = image("kanidm/server:1.10.5");
    let gate = |levels: &[u32], complete, remembered| {
        let evidence = Evidence { complete, remembered, ..beside(&older, &["kanidm/server:1.11.0"], levels) };
        let gate = judge(&evidence);
        (word(&gate.image), gate.level)
    };
    assert_eq!(gate(&[], false, Some(15)), ("DowngradeRefused".to_owned(), Some(15)));
    assert_eq!(gate(&[14], false, Some(15)), ("DowngradeRefused".to_owned(), Some(15)));
    // All tell: a restore brought an older release back.
    assert_eq!(gate(&[14], true, Some(15)), ("Patch".to_owned(), Some(14)));
    // The newer image was never pulled, so nothing has been migrated.
    assert_eq!(gate(&[], false, Some(14)), ("Patch".to_owned(), Some(14)));
}

#[test]
fn the_first_start_is_free_but_for_releases_that_nobody_knows() {
    for (wanted, said) in [
        ("kanidm/server:1.12.0", "FirstStart"),
        ("kanidm/server:latest", "FirstStart"),
        ("localhost/kanidm-dev:1.7", "FirstStart"),
        ("kanidm/server:1.6.4", "UnsupportedVersion"),
        ("kanidm/server:1.13.0", "UnsupportedVersion"),
        ("kanidm/server:2.0.0", "UnsupportedVersion"),
    ] {
        let wanted = image(wanted);
        // Another image is in the template, and could never be pulled.
        for live in [&[][..], &["kanidm/server:typo"]] {
            let gate = judge(&Evidence { has_database: false, ..beside(&wanted, live, &[]) });
            assert_eq!((word(&gate.image).as_str(), gate.support), (said, Support::Unknown), "{wanted}");
        }
    }
}

#[test]
fn for_want_of_better_the_header_of_an_answer_counts_and_then_the_tag() {
    let wanted = image("kanidm/server:1.11.0");
    let say = |version, live: &str| word(&judge(&Evidence { version, ..beside(&wanted, &[live], &[]) }).image);
    assert_eq!(say(Some("1.10.5"), "kanidm/server:latest"), "1.10 to 1.11");
    assert_eq!(say(Some("1.9.0"), "kanidm/server:1.10.5"), "UpgradeSkipsRelease");
    assert_eq!(say(None, "kanidm/server:1.10.5"), "1.10 to 1.11");
    assert_eq!(say(None, "kanidm/server:latest"), "ReleaseUnknown");
}

#[test]
fn the_same_image_is_never_blocked_whatever_it_is_called() {
    let pinned = format!("kanidm/server:latest@{DIGEST}");
    for (wanted, live) in
        [("kanidm/server:latest", "kanidm/server:latest"), (pinned.as_str(), &*format!("mirror:5000/server@{DIGEST}"))]
    {
        let gate = judge(&beside(&image(wanted), &[live], &[14]));
        assert_eq!(word(&gate.image), "Same", "{wanted}");
    }
}

#[test]
fn servers_older_than_supported_count_where_they_have_what_is_needed() {
    let wanted = image("localhost/kanidm-dev:1.7");
    let gate = |capable| judge(&Evidence { capable, ..beside(&wanted, &["localhost/kanidm-dev:1.7"], &[11]) });
    assert!(is_to_be_asked(&[11]) && is_to_be_asked(&[12]) && !is_to_be_asked(&[13, 16]));
    assert_eq!(gate(Some(true)).support, Support::Compatible);
    assert_eq!(gate(None).support, Support::Unknown);
    assert_eq!((gate(Some(true)).refusal(), gate(None).refusal()), (None, None));
    let refusal = gate(Some(false)).refusal().unwrap();
    assert_eq!(refusal.reason, Reason::UnsupportedVersion);
    assert!(
        refusal.message.contains("of release 1.7") && refusal.message.contains("it is for 1.9 to 1.12"),
        "{refusal:?}"
    );
}

#[test]
fn a_server_that_nobody_knows_is_not_touched_but_for_the_one_way_out() {
    let refused = |wanted: &str, level, unchecked| {
        let wanted = image(wanted);
        let evidence = Evidence {
            capable: Some(false),
            unchecked,
            ..beside(&wanted, &["kanidm/server:1.8.0"], std::slice::from_ref(&level))
        };
        judge(&evidence).refusal().map(|obstacle| obstacle.reason)
    };
    let unsupported = Some(Reason::UnsupportedVersion);
    assert_eq!(refused("kanidm/server:1.8.0", 12, false), unsupported);
    assert_eq!(refused("kanidm/server:1.9.0", 12, false), None, "the next release is a supported one");
    assert_eq!(refused("kanidm/server:1.10.0", 12, false), unsupported);
    assert_eq!(refused("kanidm/server:1.8.0", 11, false), unsupported);
    assert_eq!(refused("kanidm/server:1.12.0", 17, false), unsupported);
    assert_eq!(refused("kanidm/server:1.12.0", 10, false), unsupported);
    for level in [10, 12, 17] {
        assert_eq!(refused("kanidm/server:1.12.0", level, true), None, "the user asked for it");
    }
}

#[test]
fn the_status_has_a_word_for_each_verdict() {
    let words = |wanted: &str, unchecked| {
        let wanted = image(wanted);
        let gate = judge(&Evidence { unchecked, ..beside(&wanted, &["kanidm/server:1.10.5"], &[14]) });
        (gate.check(), gate.images(Some("served")))
    };
    let kept = Images::Kept(Some("served"));
    assert_eq!(words("kanidm/server:1.11.0", false), (UpgradeCheckResult::Passed, Images::Wanted));
    assert_eq!(words("kanidm/server:1.12.0", false), (UpgradeCheckResult::Failed, kept));
    assert_eq!(words("kanidm/server:latest", false), (UpgradeCheckResult::Unknown, kept));
    assert_eq!(words("kanidm/server:1.12.0", true), (UpgradeCheckResult::Skipped, Images::Wanted));
}

#[test]
fn an_upgrade_waits_for_a_proven_backup_and_nothing_else_does() {
    let made = UpgradeBackup { file_name: "on-demand-a.json.gz".to_owned(), image: "kanidm/server:1.10.5".to_owned() };
    let say = |wanted: &str, backup: Backup, unchecked| {
        let wanted = image(wanted);
        judge(&Evidence { backup, unchecked, ..beside(&wanted, &["kanidm/server:1.10.5"], &[14]) })
    };
    let awaited = say("kanidm/server:1.11.0", Backup::Awaited, false);
    assert_eq!(word(&awaited.image), "backup of 1.10 before 1.11");
    assert_eq!(
        (awaited.images(None), awaited.blocked(), awaited.check()),
        (Images::Kept(None), None, UpgradeCheckResult::Passed)
    );
    let failed = say("kanidm/server:1.11.0", Backup::Failed("the volume is full".to_owned()), false);
    let (reason, message) = failed.blocked().unwrap();
    assert_eq!(reason, Reason::UpgradeNeedsBackup);
    assert!(message.contains("the volume is full") && message.contains("disableUpgradeChecks: true"), "{message}");
    let proven = say("kanidm/server:1.11.0", Backup::Proven(made.clone()), false);
    assert_eq!((word(&proven.image).as_str(), proven.backup), ("1.10 to 1.11", Some(made)));
    for (wanted, said) in [("kanidm/server:1.10.6", "Patch"), ("kanidm/server:1.12.0", "UpgradeSkipsRelease")] {
        assert_eq!(word(&say(wanted, Backup::Awaited, false).image), said);
    }
    assert_eq!(word(&say("kanidm/server:1.11.0", Backup::Awaited, true).image), "Unchecked");
}
