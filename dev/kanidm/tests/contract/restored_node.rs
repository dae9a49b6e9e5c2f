//! Restoring a node that has a living peer: the trap, and a way out.

use serde_json::json;

use crate::node::{Node, pair};
use crate::support::Site;

/// Empties the node and restores the backup, as an offline job would.
fn restore(site: &Site, backup: &str) {
    for name in ["kanidm.db", "kanidm.db-wal", "kanidm.db-shm"] {
        let _ = std::fs::remove_file(site.path(name));
    }
    let output = site.run(&["database", "restore", &site.path(backup).display().to_string()]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
}

fn verify(site: &Site) -> bool {
    let output = site.run(&["database", "verify"]);
    output.status.code() == Some(0) && String::from_utf8_lossy(&output.stderr).contains("Verification passed!")
}

#[tokio::test]
async fn a_naive_restore_beside_a_living_peer_diverges_silently_until_the_peer_is_refreshed() {
    let (primary, secondary) = pair();
    let token = primary.server.session("idm_admin").await;
    primary.create(&token, "kept").await;
    secondary.gets(&token, "kept").await;
    let backup = primary.server.site.path("backup.json.gz").display().to_string();
    primary.server.site.run(&["scripting", "backup", &backup]);
    primary.create(&token, "lost").await;
    secondary.gets(&token, "lost").await;
    let certificate = primary.certificate();

    let primary = primary.after(|site| restore(site, "backup.json.gz"));
    assert_eq!(primary.certificate(), certificate, "the backup brings its certificate along");
    primary.create(&token, "later").await;
    secondary.gets(&token, "later").await;
    let heard = [primary.server.log().len(), secondary.server.log().len()];
    secondary.create(&token, "latest").await;
    primary.gets(&token, "latest").await;
    for (node, heard) in [&primary, &secondary].into_iter().zip(heard) {
        node.says_again("Incremental Replication Success");
        let log = node.server.log().split_off(heard);
        assert!(!log.contains("ERROR"), "{log}");
    }
    assert!(secondary.has(&token, "lost").await && !primary.has(&token, "lost").await, "diverged for good");
    let (primary, secondary) = (primary.after(|site| assert!(verify(site))), secondary.after(|s| assert!(verify(s))));

    assert_eq!(secondary.ask("RefreshReplicationConsumer"), json!("Success"));
    secondary.loses(&token, "lost").await;
    both_ways(&primary, &secondary, &token).await;
}

async fn both_ways(primary: &Node, secondary: &Node, token: &str) {
    primary.create(token, "north").await;
    secondary.gets(token, "north").await;
    secondary.create(token, "south").await;
    primary.gets(token, "south").await;
}

#[tokio::test]
async fn one_edit_of_a_lost_entry_on_the_peer_makes_the_restored_database_unreadable() {
    let (primary, secondary) = pair();
    let token = primary.server.session("idm_admin").await;
    let backup = primary.server.site.path("backup.json.gz").display().to_string();
    primary.server.site.run(&["scripting", "backup", &backup]);
    primary.create(&token, "lost").await;
    secondary.gets(&token, "lost").await;
    let primary = primary.after(|site| restore(site, "backup.json.gz"));
    primary.create(&token, "later").await;
    secondary.gets(&token, "later").await;

    let change = json!({"attrs": {"displayname": ["changed"]}});
    secondary.server.must(reqwest::Method::PATCH, "/v1/person/lost", &token, change).await;
    secondary.create(&token, "marker").await;
    primary.gets(&token, "marker").await;

    let (_, _, site) = primary.server.stop();
    assert_eq!(site.run(&["server"]).status.code(), Some(1), "it does not open any more");
    let output = site.run(&["database", "verify"]);
    assert_eq!(output.status.code(), Some(0), "and verify does not tell");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("Verification passed!"));
    // Restoring over it does not work either.
    let output = site.run(&["database", "restore", &backup]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(site.run(&["server"]).status.code(), Some(1));
}
