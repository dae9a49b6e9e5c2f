//! `server.toml`, the environment, and starts that are refused.

use crate::support::{BINARY, Site};

/// Runs `server`, which must fail at start, and gives what it said on standard error.
fn refused(site: &Site, variables: &[(&str, &str)]) -> String {
    let output = site.command(&["server"]).envs(variables.iter().copied()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_configuration_that_makes_no_server_is_refused_with_its_reason() {
    for (more, reason) in [
        ("nonsense = 1", "unknown field `nonsense`"),
        ("role = \"write_replica\"", "unknown variant `write_replica`"),
        ("[replication]\nsurprise = 1", "surprise"),
        (
            "[replication.\"repl://10.0.0.1:8444\"]\ntype = \"allow-pull\"\nconsumer_cert = \"MII\"",
            "not by an IP address",
        ),
        (
            "[replication.\"repl://peer.example.com:8444\"]\ntype = \"allow-pull\"\nconsumer_cert = \"MII\"",
            "the certificate of \"repl://peer.example.com:8444\" is not",
        ),
        (
            "[replication.\"repl://peer.example.com:8444\"]\ntype = \"allow-pull\"\npartner_cert = \"MII\"",
            "unknown field `partner_cert`",
        ),
        ("ldapbindaddress = \"127.0.0.1:3636\"", "LDAP (ldapbindaddress) is not implemented"),
        ("[online_backup]\nversions = 3", "missing field `schedule`"),
        ("[online_backup]\nschedule = \"* * *\"", "it has 3 fields, not 5 or 7"),
        ("[http_client_address_info]\nproxy-v2 = [\"10.0.0.0/8\"]", "the proxy protocol (proxy-v2) is not implemented"),
    ] {
        let site = Site::new();
        site.configure(more);
        let said = refused(&site, &[]);
        assert!(said.contains(reason), "{more}: {said}");
    }
}

#[test]
fn a_syntax_error_quotes_the_whole_file_as_the_real_server_does() {
    let site = Site::new();
    site.configure("nonsense = 1\n# the last line");
    assert!(refused(&site, &[]).contains("# the last line"));
}

#[test]
fn the_environment_beats_the_file() {
    for (variable, value, reason) in [
        ("KANIDM_ORIGIN", "https://elsewhere.example.org", "must be the domain"),
        ("KANIDM_BINDADDRESS", "nowhere", "KANIDM_BINDADDRESS"),
        ("KANIDM_ROLE", "WriteReplica", "write_replica_no_ui"),
        ("KANIDM_LOG_LEVEL", "loud", "info, debug or trace"),
        ("KANIDM_TLS_CHAIN", "/nowhere/chain.pem", "/nowhere/chain.pem"),
        ("KANIDM_ONLINE_BACKUP_SCHEDULE", "sometimes", "not a schedule"),
    ] {
        let said = refused(&Site::new(), &[(variable, value)]);
        assert!(said.contains(reason), "{variable}={value}: {said}");
    }
}

#[test]
fn unknown_keys_are_tolerated_in_the_backup_table_only() {
    let site = Site::new();
    site.configure("[online_backup]\nschedule = \"@daily\"\nwhatever = true");
    site.start();
}

#[test]
fn an_empty_path_of_the_configuration_is_a_usage_error() {
    let output = std::process::Command::new(BINARY).arg("server").env("KANIDM_CONFIG", "").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_server_can_live_on_the_environment_alone() {
    let site = Site::new();
    std::fs::remove_file(site.path("server.toml")).unwrap();
    std::fs::write(site.path("server.toml"), "version = \"2\"").unwrap();
    let value = |name: &str| site.path(name).display().to_string();
    let variables = [
        ("KANIDM_DOMAIN", "idm.example.com".to_owned()),
        ("KANIDM_ORIGIN", "https://idm.example.com".to_owned()),
        ("KANIDM_DB_PATH", value("kanidm.db")),
        ("KANIDM_TLS_CHAIN", value("chain.pem")),
        ("KANIDM_TLS_KEY", value("key.pem")),
        ("KANIDM_ADMIN_BIND_PATH", value("kanidmd.sock")),
        ("KANIDM_BINDADDRESS", format!("127.0.0.1:{}", site.port)),
    ];
    site.start_with(|command| {
        command.envs(variables);
    });
}

#[test]
fn a_port_that_is_taken_ends_the_second_server() {
    let server = Site::new().start();
    let second = Site { port: server.site.port, ..Site::new() };
    second.configure("");
    assert!(refused(&second, &[]).contains("cannot listen on"));
}

#[test]
fn configtest_migrates_the_database_and_exits_0_on_most_failures() {
    let site = Site::new();
    assert_eq!(site.run(&["configtest"]).status.code(), Some(0));
    assert!(site.path("kanidm.db").exists(), "it is not a dry run");

    let output = site.command(&["configtest"]).env("KANIDM_ORIGIN", "https://example.org").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains("UNCLEAN SHUTDOWN"));

    std::fs::remove_file(site.path("key.pem")).unwrap();
    assert_eq!(site.run(&["configtest"]).status.code(), Some(1));
}
