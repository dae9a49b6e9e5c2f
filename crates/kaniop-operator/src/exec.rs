//! The one place that starts a process in a pod: the node helper, asked through the API server. What it prints may hold passwords, so it goes
//! into the type that is asked for and nowhere else, least of all into an error or a log line.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kaniop_core::cluster::names::{HELPER_BINARY, SERVER_CONTAINER};
use kaniop_kanidm::node::Answer;
use kube::api::{Api, AttachParams, AttachedProcess};
use kube::client::UpgradeConnectionError;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::context::Context;
use crate::error::Error;

/// The helper itself waits 20 s for one answer of the socket, and is asked for two at most.
const DEADLINE: Duration = Duration::from_secs(55);
/// Most that is read of what the helper prints, in bytes.
const LARGEST: u64 = 1 << 20;
/// Most that is read of its complaints, in bytes.
const LARGEST_COMPLAINT: u64 = 2048;

/// Asks the node helper in a pod: `kaniop node <arguments>`.
///
/// # Errors
/// [`Error::NotLeader`]; [`Error::Pod`] when the process cannot be started, for whatever reason, refuses, does not end in time, or does not
/// answer as agreed.
pub async fn helper<T: DeserializeOwned>(
    ctx: &Context,
    namespace: &str,
    pod: &str,
    arguments: &[&str],
) -> Result<T, Error> {
    ctx.guard.check()?;
    let api: Api<Pod> = Api::namespaced(ctx.client.clone(), namespace);
    let command: Vec<_> = [HELPER_BINARY, "node"].iter().chain(arguments).copied().collect();
    let parameters = AttachParams::default().container(SERVER_CONTAINER).stdin(false).stdout(true).stderr(true);
    let asked = async { Ok::<_, kube::Error>(collect(api.exec(pod, command, &parameters).await?).await) };
    let told = match tokio::time::timeout(DEADLINE, asked).await {
        Ok(told) => told.unwrap_or_else(|error| Err(not_started(&error))),
        Err(_) => Err(format!("the node helper did not end within {} s", DEADLINE.as_secs())),
    };
    told.and_then(|told| decode(&told)).map_err(|what| Error::Pod { pod: pod.to_owned(), what })
}

/// The API server's own words get lost where it refuses to switch protocols, so the usual causes are named instead.
fn not_started(error: &kube::Error) -> String {
    let code = match error {
        kube::Error::UpgradeConnection(UpgradeConnectionError::ProtocolSwitch(code)) => code.as_u16(),
        kube::Error::Api(status) => status.code,
        _ => 0,
    };
    let hint = match code {
        403 => " (a policy or the operator's role does not let it run a process in the pod)",
        500..=599 => " (the API server does not reach the kubelet, or the pod is not running any more)",
        _ => "",
    };
    format!("the node helper could not be started in it: {error}{hint}")
}

/// What a process left behind.
struct Told {
    stdout: Vec<u8>,
    stderr: String,
    /// What the API server said of its end, if that was not a success.
    end: Option<String>,
}

async fn collect(mut process: AttachedProcess) -> Result<Told, String> {
    let (stdout, stderr, status) = (process.stdout(), process.stderr(), process.take_status());
    let (stdout, stderr) = tokio::join!(read(stdout, LARGEST), read(stderr, LARGEST_COMPLAINT));
    let stdout = stdout.ok_or_else(|| format!("the node helper printed more than {LARGEST} bytes"))?;
    let end = match status {
        Some(status) => status.await.filter(|status| status.status.as_deref() != Some("Success")),
        None => None,
    };
    Ok(Told {
        stdout,
        stderr: String::from_utf8_lossy(&stderr.unwrap_or_default()).trim().to_owned(),
        end: end.and_then(|status| status.message),
    })
}

/// Everything up to the end of the stream, or nothing if it is longer than that.
async fn read(stream: Option<impl AsyncRead + Unpin>, longest: u64) -> Option<Vec<u8>> {
    let mut read = Vec::new();
    // A stream that breaks off ends what can be read; whether that suffices shows when it is decoded.
    let _ = stream?.take(longest + 1).read_to_end(&mut read).await;
    (read.len() as u64 <= longest).then_some(read)
}

/// An answer is positive evidence, whatever is said of the process's end; without one there is none.
fn decode<T: DeserializeOwned>(told: &Told) -> Result<T, String> {
    match serde_json::from_slice(&told.stdout) {
        Ok(Answer::Ok(answer)) => Ok(answer),
        Ok(Answer::Error(why)) => Err(why),
        Err(_) => {
            let mut why = "the node helper did not answer as agreed".to_owned();
            for detail in
                [Some(told.stderr.as_str()), told.end.as_deref()].into_iter().flatten().filter(|text| !text.is_empty())
            {
                why = format!("{why}: {detail}");
            }
            Err(why)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(stdout: &str, stderr: &str, end: Option<&str>) -> Told {
        Told { stdout: stdout.as_bytes().to_vec(), stderr: stderr.to_owned(), end: end.map(str::to_owned) }
    }

    #[test]
    fn an_answer_counts_whatever_became_of_the_process() {
        assert_eq!(decode::<u8>(&told(r#"{"ok":7}"#, "noise", Some("broken pipe"))), Ok(7));
    }

    #[test]
    fn an_error_is_told_in_the_helpers_words() {
        assert_eq!(decode::<u8>(&told(r#"{"error":"no socket"}"#, "", Some("code 1"))), Err("no socket".to_owned()));
    }

    #[test]
    fn half_an_answer_is_none_and_never_quoted() {
        let why = decode::<String>(&told(r#"{"ok":"s3cret"#, "killed", Some("exit code 137"))).unwrap_err();
        assert_eq!(why, "the node helper did not answer as agreed: killed: exit code 137");
    }

    #[tokio::test]
    async fn more_than_the_limit_is_not_read() {
        let mut stream = tokio::io::repeat(b'a').take(11);
        assert_eq!(read(Some(&mut stream), 10).await, None);
        assert_eq!(read(Some(&b"abc"[..]), 3).await, Some(b"abc".to_vec()));
    }
}
