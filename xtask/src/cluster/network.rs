//! The cluster's own network namespace: it keeps the cluster apart from the machine's network, in
//! both directions. Nothing outside of the namespace is changed.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use anyhow::{Context, Result};

use super::layout::{NETNS, NETNS_FILE, NODE_DEVICE, NODE_IP};
use crate::command::{output, succeeds};
use crate::tools;

/// Makes the namespace and the node's address in it. Doing it again changes nothing.
///
/// # Errors
/// When the kernel refuses one of the steps; the step's own message is in it.
pub(crate) fn ensure() -> Result<()> {
    if !Path::new(NETNS_FILE).exists() {
        output(ip().args(["netns", "add", NETNS])).context("make the network namespace")?;
    }
    let (device, peer) = NODE_DEVICE;
    in_namespace(&["link", "set", "lo", "up"])?;
    // A pair of virtual devices with both ends inside: kernels without the dummy device have these.
    if !succeeds(ip().args(["-n", NETNS, "link", "show", device])) {
        in_namespace(&["link", "add", device, "type", "veth", "peer", "name", peer])?;
    }
    in_namespace(&["link", "set", peer, "up"])?;
    in_namespace(&["address", "replace", &format!("{NODE_IP}/24"), "dev", device])?;
    in_namespace(&["link", "set", device, "up"])?;
    // The API server looks for a default route to tell its own address.
    in_namespace(&["route", "replace", "default", "dev", device])?;
    let settings = ["net.ipv4.ip_forward=1", "net.ipv4.conf.all.route_localnet=1"];
    output(enter("sysctl").args(["-q", "-w"]).args(settings)).context("let the namespace forward packets")?;
    Ok(())
}

/// Whether traffic between pods on the bridge passes iptables, which services rely on; loads the
/// kernel module for it where that is possible.
pub(crate) fn bridge_filter() -> bool {
    let switch = "net.bridge.bridge-nf-call-iptables=1";
    let turn_on = || succeeds(enter("sysctl").args(["-q", "-w", switch]));
    turn_on() || (succeeds(&mut command("modprobe", &["br_netfilter"])) && turn_on())
}

/// Removes the namespace and all devices in it.
///
/// # Errors
/// When it exists and cannot be removed.
pub(crate) fn remove() -> Result<()> {
    if Path::new(NETNS_FILE).exists() {
        output(ip().args(["netns", "delete", NETNS])).context("remove the network namespace")?;
    }
    Ok(())
}

/// Tells this namespace from an earlier one of the same name; `None` when there is none.
pub(crate) fn identity() -> io::Result<Option<u64>> {
    match fs::metadata(NETNS_FILE) {
        Ok(file) => Ok(Some(file.ino())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// A command that runs `program` inside of the namespace.
pub(crate) fn enter(program: &str) -> Command {
    command("nsenter", &[&format!("--net={NETNS_FILE}"), "--", program])
}

fn in_namespace(arguments: &[&str]) -> Result<String> {
    output(ip().args(["-n", NETNS]).args(arguments)).context("set up the network namespace")
}

fn ip() -> Command {
    command("ip", &[])
}

fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", tools::search_path());
    command
}
