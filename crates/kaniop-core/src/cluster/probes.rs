//! How the kubelet judges a server: has it started, does it serve, does it live. Three questions, so three probes.

use k8s_openapi::api::core::v1::{ExecAction, HTTPGetAction, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::names;

/// Started: the admin socket answers, which the server opens after its migrations. Those may take long, and a server that is killed in one
/// begins it again: half an hour. The socket logs each question, so only this probe, which ends with the start, asks there.
pub(super) fn startup() -> Probe {
    Probe {
        exec: Some(ExecAction {
            command: Some(vec![names::HELPER_BINARY.to_owned(), "node".to_owned(), "ready".to_owned()]),
        }),
        period_seconds: Some(2),
        timeout_seconds: Some(5),
        failure_threshold: Some(900),
        ..Probe::default()
    }
}

/// Serves: taken out of the Service within a quarter of a minute.
pub(super) fn readiness() -> Probe {
    Probe {
        http_get: Some(status()),
        period_seconds: Some(5),
        timeout_seconds: Some(5),
        failure_threshold: Some(3),
        ..Probe::default()
    }
}

/// Lives: five minutes without any answer. Restarting a server that is only busy makes it busier, so this is the last resort.
pub(super) fn liveness() -> Probe {
    Probe {
        http_get: Some(status()),
        period_seconds: Some(30),
        timeout_seconds: Some(10),
        failure_threshold: Some(10),
        ..Probe::default()
    }
}

fn status() -> HTTPGetAction {
    HTTPGetAction {
        path: Some("/status".to_owned()),
        port: IntOrString::Int(names::HTTPS_PORT),
        scheme: Some("HTTPS".to_owned()),
        ..HTTPGetAction::default()
    }
}
