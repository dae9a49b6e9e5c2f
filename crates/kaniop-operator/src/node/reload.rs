//! Has the server read certificate and key again, once they are the ones that the operator means: the kubelet brings a Secret's new content into a pod a
//! while after it changed, and a reload before that would only cost.

use std::fs;
use std::path::Path;

use kaniop_core::cluster::tls::{CERTIFICATE, KEY, hash};
use kaniop_kanidm::node::{ReloadReport, Socket};

/// Tells the server, if the files in this folder have the hash. What it makes of them shows to whoever connects to it, not here.
pub(super) async fn reload(socket: &Path, folder: &Path, expected: &str) -> Result<ReloadReport, String> {
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
    };
    let files = hash(&read(CERTIFICATE)?, &read(KEY)?);
    if files != expected {
        return Ok(ReloadReport { files, told: false });
    }
    let mut socket = Socket::connect(socket).await.map_err(|error| error.to_string())?;
    socket.reload().await.map_err(|error| error.to_string())?;
    Ok(ReloadReport { files, told: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    use super::super::tests::server;

    #[tokio::test]
    async fn the_server_is_told_only_when_the_files_are_those_that_are_meant() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sock");
        let told = |expected: String| {
            let (path, folder) = (path.clone(), folder.path().to_owned());
            async move { reload(&path, &folder, &expected).await }
        };
        assert!(told(String::new()).await.unwrap_err().contains("tls.crt cannot be read"));
        fs::write(folder.path().join(CERTIFICATE), "certificate").unwrap();
        fs::write(folder.path().join(KEY), "key").unwrap();
        let now = hash(b"certificate", b"key");
        // There is no server: it would fail if it were spoken to.
        assert_eq!(told("another".to_owned()).await, Ok(ReloadReport { files: now.clone(), told: false }));
        // What it answers says nothing.
        for answer in ["Success", "Error"] {
            let _ = fs::remove_file(&path);
            let server = server(&path, vec![json!(answer)]);
            assert_eq!(told(now.clone()).await, Ok(ReloadReport { files: now.clone(), told: true }));
            assert_eq!(server.await.unwrap(), [json!("Reload")]);
        }
    }
}
