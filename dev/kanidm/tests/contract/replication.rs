//! Replication between real processes, set up as one has to: start without peers, exchange certificates, restart.

use std::time::Duration;

use serde_json::json;

use crate::node::{Node, Way, joined, pair, peer};
use crate::support::eventually;

#[tokio::test]
async fn a_pair_joins_one_domain_and_writes_cross_both_ways() {
    let (primary, secondary) = pair();
    let token = primary.server.session("idm_admin").await;
    primary.create(&token, "anna").await;
    secondary.gets(&token, "anna").await;
    secondary.create(&token, "bert").await;
    primary.gets(&token, "bert").await;

    let primary = primary.after(|_| {});
    secondary.create(&token, "carl").await;
    primary.gets(&token, "carl").await;
}

#[tokio::test]
async fn in_a_star_of_three_writes_reach_all_through_the_primary() {
    let (primary, first, second) = (Node::new(), Node::new(), Node::new());
    let leaves = [first.as_peer(&Way::Mutual(false)), second.as_peer(&Way::Mutual(false))];
    let hub = primary.as_peer(&Way::Mutual(true));
    let first = first.with_peers(std::slice::from_ref(&hub));
    let second = second.with_peers(&[hub]);
    let primary = primary.with_peers(&leaves);
    joined(&[&primary, &first, &second]);

    let token = primary.server.session("idm_admin").await;
    primary.create(&token, "anna").await;
    for node in [&first, &second] {
        node.gets(&token, "anna").await;
    }
    first.create(&token, "bert").await;
    second.gets(&token, "bert").await;
}

#[tokio::test]
async fn who_may_pull_and_does_not_supply_only_receives() {
    let (source, sink) = (Node::new(), Node::new());
    let consumer = sink.as_peer(&Way::AllowPull);
    let sink = sink.with_peers(&[source.as_peer(&Way::Pull)]);
    let source = source.with_peers(&[consumer]);

    // Without automatic refresh it stays in its own domain until it is told otherwise.
    sink.says_again("a refresh is required");
    assert_ne!(source.domain(), sink.domain());
    let certificate = sink.certificate();
    let before = server_uuid(&sink, "before.json.gz");
    assert_eq!(sink.ask("RefreshReplicationConsumer"), json!("Success"));
    assert_eq!(source.domain(), sink.domain());
    assert_eq!(sink.certificate(), certificate, "the certificate survives a refresh");
    assert_ne!(server_uuid(&sink, "after.json.gz"), before, "the server UUID does not");

    let token = source.server.session("idm_admin").await;
    source.create(&token, "anna").await;
    sink.gets(&token, "anna").await;
    sink.create(&token, "bert").await;
    sink.says_again("Incremental Replication Success");
    assert!(!source.has(&token, "bert").await);
    assert_eq!(source.ask("RefreshReplicationConsumer"), json!("Error"), "it has no supplier");
}

fn server_uuid(node: &Node, name: &str) -> serde_json::Value {
    let target = node.server.site.path(name);
    node.server.site.run(&["scripting", "backup", &target.display().to_string()]);
    crate::backup::read(&target).unwrap()["db_s_uuid"].clone()
}

#[test]
fn a_peer_with_another_certificate_than_the_pinned_one_is_refused_on_either_side() {
    let (primary, secondary, stranger) = (Node::new(), Node::new(), Node::new());
    // The primary knows the secondary by a stranger's certificate.
    let wrong = peer(secondary.port, &stranger.certificate(), &Way::Mutual(false));
    let secondary = secondary.with_peers(&[primary.as_peer(&Way::Mutual(true))]);
    let right = secondary.as_peer(&Way::Mutual(false));
    let primary = primary.with_peers(&[wrong]);
    primary.says_again("UnknownIssuer");
    secondary.says_again("the incremental replication failed");
    assert_ne!(primary.domain(), secondary.domain());

    // The secondary knows the primary by it.
    let primary = primary.with_peers(&[right]);
    let right = primary.as_peer(&Way::Mutual(true));
    let secondary = secondary.with_peers(&[peer(primary.port, &stranger.certificate(), &Way::Mutual(true))]);
    secondary.says_again("UnknownIssuer");
    assert_ne!(primary.domain(), secondary.domain());

    let secondary = secondary.with_peers(&[right]);
    joined(&[&primary, &secondary]);
}

#[test]
fn a_node_without_peers_lets_nobody_in() {
    let (closed, knocking) = (Node::new(), Node::new());
    let knocking = knocking.with_peers(&[closed.as_peer(&Way::Mutual(true))]);
    knocking.says_again("the incremental replication failed");
    closed.says_again("no peer may");
    assert_ne!(closed.domain(), knocking.domain());
}

#[tokio::test]
async fn a_wiped_secondary_returns_once_its_new_certificate_is_known() {
    let (primary, secondary) = pair();
    let token = primary.server.session("idm_admin").await;
    primary.create(&token, "anna").await;
    secondary.gets(&token, "anna").await;
    let (old, port) = (secondary.certificate(), secondary.port);
    drop(secondary);

    let secondary = Node::at(port, "localhost").with_peers(&[primary.as_peer(&Way::Mutual(true))]);
    assert_ne!(secondary.certificate(), old, "a wiped node makes a new certificate");
    primary.says_again("UnknownIssuer");
    assert_ne!(primary.domain(), secondary.domain());

    let primary = primary.with_peers(&[secondary.as_peer(&Way::Mutual(false))]);
    joined(&[&primary, &secondary]);
    secondary.gets(&token, "anna").await;
}

#[test]
fn a_changed_origin_needs_a_renewal_and_the_renewal_says_error_although_it_works() {
    let (primary, secondary) = (Node::called("elsewhere.example.com"), Node::new());
    let old = primary.certificate();
    let secondary = secondary.with_peers(&[primary.as_peer(&Way::Mutual(true))]);
    // Restarted with the origin `localhost`.
    let primary = primary.with_peers(&[secondary.as_peer(&Way::Mutual(false))]);
    assert_eq!(primary.certificate(), old, "a changed origin changes no certificate");
    secondary.says_again("not valid for name");

    let primary = primary.with_variable("KANIDM_DEV_RENEWAL_DELAY", "4");
    assert_eq!(primary.ask("RenewReplicationCertificate"), json!("Error"));
    assert_eq!(primary.ask("ShowReplicationCertificate"), json!("Error"), "nobody is answered until it has settled");
    assert!(eventually(|| primary.ask("ShowReplicationCertificate") != json!("Error")));
    assert_ne!(primary.certificate(), old);
    // The name in it is the old one, the key is not.
    secondary.says_again("BadSignature");

    let secondary = secondary.with_peers(&[primary.as_peer(&Way::Mutual(true))]);
    joined(&[&primary, &secondary]);
}

#[test]
fn a_renewal_takes_as_long_as_the_real_servers_unless_told_otherwise() {
    let node = Node::new();
    let old = node.certificate();
    let begun = std::time::Instant::now();
    assert_eq!(node.ask("RenewReplicationCertificate"), json!("Error"));
    assert!(begun.elapsed() >= Duration::from_secs(14), "the Error comes after 15 seconds: {:?}", begun.elapsed());
    // A restart ends the wait: the new certificate is in the database.
    let node = node.after(|_| {});
    assert_ne!(node.certificate(), old);
}

#[tokio::test]
async fn nodes_of_different_releases_do_not_replicate() {
    let (primary, secondary) = pair();
    let token = primary.server.session("idm_admin").await;
    let secondary = secondary.with_variable("KANIDM_DEV_VERSION", "1.8.0");
    secondary.create(&token, "bert").await;
    primary.create(&token, "anna").await;
    primary.says_again("ReplDomainLevelUnsatisfiable");
    secondary.says_again("ReplDomainLevelUnsatisfiable");
    assert!(!primary.has(&token, "bert").await && !secondary.has(&token, "anna").await);

    let primary = primary.with_variable("KANIDM_DEV_VERSION", "1.8.0");
    primary.gets(&token, "bert").await;
    secondary.gets(&token, "anna").await;
}

#[test]
fn an_empty_node_takes_nothing_from_another_release() {
    let (primary, newcomer) = (Node::new(), Node::new().with_variable("KANIDM_DEV_VERSION", "1.8.0"));
    let known = newcomer.as_peer(&Way::Mutual(false));
    let newcomer = newcomer.with_peers(&[primary.as_peer(&Way::Mutual(true))]);
    let primary = primary.with_peers(&[known]);
    newcomer.says_again("ReplDomainLevelUnsatisfiable");
    assert_ne!(primary.domain(), newcomer.domain());
}
