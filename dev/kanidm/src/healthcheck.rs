//! `scripting healthcheck`: whether any HTTP answer comes at all.
//!
//! As in the real server it reads neither status nor body, and verifies the certificate only when asked to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use crate::config::Settings;

const PATIENCE: Duration = Duration::from_secs(5);

/// Asks for `/status`.
///
/// # Errors
/// In words, when no HTTP answer came.
pub fn run(settings: &Settings, verify: bool, at_origin: bool) -> Result<(), String> {
    let url = if at_origin {
        let origin = settings.origin.as_deref().ok_or("origin is not configured")?;
        format!("{}/status", origin.trim_end_matches('/'))
    } else {
        let address = settings.bindaddress.first().copied();
        let address = address.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 8443)));
        format!("https://{}/status", reachable(address))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    runtime.block_on(get(&url, verify))
}

/// A listener on all addresses is asked on the loopback one.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

async fn get(url: &str, verify: bool) -> Result<(), String> {
    let client = reqwest::Client::builder()
        .tls_danger_accept_invalid_certs(!verify)
        .no_proxy()
        .timeout(PATIENCE)
        .build()
        .map_err(|e| e.to_string())?;
    match client.get(url).send().await {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{url}: {error}")),
    }
}
