//! The admin socket, `scripting`, and exit codes that lie.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Authority, Site, ask, connect, eventually, free_port};

#[tokio::test]
async fn one_connection_answers_many_requests_in_plain_json() {
    let server = Site::new().start();
    let mut stream = connect(&server);

    let domain = ask(&mut stream, &json!("DomainShow"));
    let info = &domain["DomainShow"]["domain_info"];
    assert_eq!((&info["name"], &info["level"]), (&json!("idm.example.com"), &json!(11)));
    assert!(info["uuid"].is_string() && info["displayname"].is_string(), "{domain}");

    let check = ask(&mut stream, &json!("DomainUpgradeCheck"));
    assert_eq!(check["DomainUpgradeCheck"]["report"]["report_items"], json!([]));

    let recovered = ask(&mut stream, &json!({"RecoverAccount": {"name": "idm_admin"}}));
    let password = recovered["RecoverAccount"]["password"].as_str().unwrap();
    assert_eq!(password.len(), 48);
    server.login("idm_admin", password).await.unwrap();

    assert_eq!(ask(&mut stream, &json!({"DisableAccount": {"name": "idm_admin"}})), json!("Success"));
    assert!(server.login("idm_admin", password).await.is_err());
}

#[test]
fn what_cannot_be_done_is_answered_by_a_bare_error() {
    let server = Site::new().start();
    let mut stream = connect(&server);
    for request in [
        json!({"RecoverAccount": {"name": "nobody_of_that_name"}}),
        json!("ShowReplicationCertificate"),
        json!("ShowReplicationCertificateMetadata"),
        json!("RenewReplicationCertificate"),
        json!("RefreshReplicationConsumer"),
        json!("DomainRaise"),
        json!({"DomainRemigrate": {"level": null}}),
    ] {
        assert_eq!(ask(&mut stream, &request), json!("Error"), "{request}");
    }
}

#[test]
fn something_that_is_no_request_is_met_with_silence_for_ever() {
    let server = Site::new().start();
    let mut stream = connect(&server);
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    stream.write_all(b"\"ShowRuv\"").unwrap();
    stream.write_all(b"\"DomainShow\"").unwrap();
    let silence = stream.read(&mut [0; 64]).unwrap_err();
    assert_eq!(silence.kind(), std::io::ErrorKind::WouldBlock, "neither an answer nor an end");
    ask(&mut connect(&server), &json!("DomainShow"));
}

#[test]
fn the_replication_certificate_survives_a_restart() {
    let site = Site::new();
    site.configure(&format!(
        "[replication]\norigin = \"repl://idm-0.example.com:8444\"\nbindaddress = \"127.0.0.1:{}\"",
        free_port()
    ));
    let server = site.start();
    let show = json!("ShowReplicationCertificate");
    let first = ask(&mut connect(&server), &show);
    let text = first["ShowReplicationCertificate"]["cert"].as_str().unwrap().to_owned();
    assert!(text.starts_with("MII") && !text.contains(['+', '/', '=']), "{text}");
    let about = ask(&mut connect(&server), &json!("ShowReplicationCertificateMetadata"));
    let about = &about["ShowReplicationCertificateMetadata"];
    assert!(about["subject"].as_str().unwrap().starts_with("O=Kanidm Replication,CN="), "{about}");
    assert_eq!(about["expired"], json!(false));
    assert!(about["not_before"].as_str().unwrap().ends_with('Z'));

    let (_, _, site) = server.stop();
    assert_eq!(ask(&mut connect(&site.start()), &show), first);
}

#[tokio::test]
async fn a_clean_stop_leaves_the_socket_and_the_write_ahead_log_behind() {
    let server = Site::new().start();
    // An idle connection that the client keeps open must not delay the stop.
    let client = server.client.clone();
    client.get(server.url("/status")).send().await.unwrap();
    let socket = server.site.path("kanidmd.sock");
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o750);
    let (code, took, site) = server.stop();
    assert_eq!(code, Some(0));
    assert!(took < Duration::from_secs(1), "a clean stop took {took:?}");
    assert_eq!(UnixStream::connect(&socket).unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
    assert!(std::fs::metadata(site.path("kanidm.db-wal")).unwrap().len() > 0);
    site.start();
}

#[test]
fn a_killed_server_starts_again_over_its_leftovers() {
    let site = Site::new();
    let server = site.start();
    let (answer, _) = server.site.scripting(&["recover-account", "admin"]);
    assert_eq!(answer["status"], "ok");
    server.signal(Signal::KILL);
    let (_, _, site) = server.stop();
    assert!(site.path("kanidmd.sock").exists(), "the leftover is what this test is about");
    site.start();
}

#[test]
fn scripting_failures_are_told_by_json_and_not_by_the_exit_code() {
    let site = Site::new();
    for arguments in [&["recover-account", "admin"][..], &["reload"]] {
        let (answer, code) = site.scripting(arguments);
        assert_eq!((&answer["status"], code), (&json!("error"), 0), "{answer}");
        assert!(answer["reason"].is_string() && answer["message"].is_string(), "{answer}");
    }
    let (answer, code) = site.scripting(&["healthcheck"]);
    assert_eq!((&answer["status"], code), (&json!("error"), 1), "{answer}");

    let server = site.start();
    let (answer, code) = server.site.scripting(&["recover-account", "nobody_of_that_name"]);
    assert_eq!((&answer["status"], code), (&json!("error"), 0), "{answer}");
    let (answer, code) = server.site.scripting(&["healthcheck"]);
    assert_eq!((&answer["status"], code), (&json!("ok"), 0), "{answer}");
    let (answer, code) = server.site.scripting(&["healthcheck", "-v"]);
    assert_eq!((&answer["status"], code), (&json!("error"), 1), "our authority is not in the system's store: {answer}");
}

#[test]
fn commands_for_people_exit_0_without_a_server_and_1_when_they_do_not_exist_here() {
    let site = Site::new();
    for arguments in [
        &["recover-account", "admin"][..],
        &["disable-account", "admin"],
        &["domain", "show"],
        &["domain", "upgrade-check"],
        &["show-replication-certificate"],
        &["show-replication-certificate-metadata"],
        &["refresh-replication-consumer"],
    ] {
        assert_eq!(site.run(arguments).status.code(), Some(0), "{arguments:?}");
    }
    for arguments in [
        &["database", "reindex"][..],
        &["database", "vacuum"],
        &["domain", "rename"],
        &["db-scan", "list-id2entry"],
        &["cert-generate"],
    ] {
        let output = site.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("not implemented"), "{arguments:?}");
    }
}

#[tokio::test]
async fn a_reload_serves_the_new_certificate_and_says_ok_even_when_it_cannot() {
    let server = Site::new().start();
    let (answer, _) = server.site.scripting(&["reload"]);
    assert_eq!(answer, json!({"status": "ok"}));

    std::fs::write(server.site.path("key.pem"), "not a key").unwrap();
    assert_eq!(server.site.scripting(&["reload"]), (json!({"status": "ok"}), 0));
    // A new client makes a new connection, and so a new handshake.
    assert_eq!(server.site.scripting(&["healthcheck"]).1, 0);

    Authority::new().issue(server.site.folder.path(), "idm.example.com");
    server.signal(Signal::HUP);
    assert!(eventually(|| server.log().matches("have been read again").count() == 2), "{}", server.log());
    let fresh = reqwest::Client::builder()
        .tls_certs_only([reqwest::Certificate::from_pem(server.site.authority.pem.as_bytes()).unwrap()])
        .resolve("idm.example.com", ([127, 0, 0, 1], server.site.port).into())
        .no_proxy()
        .build()
        .unwrap();
    assert!(fresh.get(server.url("/status")).send().await.is_err(), "another authority signs it now");
}
