//! Backups that a server makes, against what proves them.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use kaniop_core::backup::{Artefact, Expected, Verdict};
use kaniop_kanidm::backup::{looks_compressed, prove};
use kaniop_kanidm::node::Socket;

use crate::server::{Authority, HOST, Server, Until, binary};

/// Made by the server's program beside the server, as the node helper does it.
fn back_up(server: &Server, name: &str) -> Artefact {
    let target = server.folder.join("unfinished");
    let mut command = Command::new(binary());
    command.args(["scripting", "backup"]).arg(&target).env("KANIDM_CONFIG", server.folder.join("server.toml"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    let ending = if looks_compressed(&target).unwrap() { "json.gz" } else { "json" };
    let path = server.folder.join(format!("{name}.{ending}"));
    fs::rename(&target, &path).unwrap();
    prove(&path, None).unwrap()
}

fn path(server: &Server, artefact: &Artefact) -> PathBuf {
    server.folder.join(&artefact.file_name)
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_backup_beside_a_live_server_is_proven_and_tells_of_that_server() {
    let authority = Authority::new();
    let server = Server::start(authority.issue(HOST, Until::Ages)).await;
    let mut socket = Socket::connect(&server.socket()).await.unwrap();
    let domain = socket.domain().await.unwrap().uuid;
    let first = back_up(&server, "first");
    assert_eq!((first.verdict, &first.detail), (Verdict::Proven, &None), "{first:?}");
    let evidence = first.evidence.clone().unwrap();
    assert_eq!(evidence.domain, domain);
    assert!(evidence.entries > 80 && evidence.content_bytes > 10_000, "{evidence:?}");
    for (domain, series, verdict) in [
        (domain, &*evidence.series, Verdict::Proven),
        (evidence.server, &*evidence.series, Verdict::ForeignDomain),
        (domain, "0.1", Verdict::OtherSeries),
    ] {
        let expected = Expected { domain: Some(domain), series: Some(series.to_owned()) };
        assert_eq!(first.judged(&expected), verdict);
    }

    // What a restore compares: the same server, the same keys; another time of the newest change.
    drop(socket.recover_account("idm_admin").await.unwrap());
    let second = back_up(&server, "second").evidence.unwrap();
    assert_eq!((second.series, second.server, second.domain), (evidence.series, evidence.server, evidence.domain));
    assert_eq!((second.keys, second.entries), (evidence.keys, evidence.entries));
    assert!(second.newest_change > evidence.newest_change);
    assert_ne!(second.sha256, evidence.sha256);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_servers_backup_that_was_cut_off_or_damaged_is_not_proven() {
    let authority = Authority::new();
    let server = Server::start(authority.issue(HOST, Until::Ages)).await;
    let whole = back_up(&server, "whole");
    let content = fs::read(path(&server, &whole)).unwrap();
    let cut = path(&server, &whole);
    for part in 1..20 {
        fs::write(&cut, &content[..content.len() * part / 20]).unwrap();
        assert_eq!(prove(&cut, None).unwrap().verdict, Verdict::Truncated, "{part}/20");
    }
    if whole.file_name.ends_with(".gz") {
        for place in (16..content.len()).step_by(content.len() / 20) {
            let mut damaged = content.clone();
            damaged[place] ^= 0x10;
            fs::write(&cut, &damaged).unwrap();
            assert_ne!(prove(&cut, None).unwrap().verdict, Verdict::Proven, "byte {place}");
        }
    }
}
