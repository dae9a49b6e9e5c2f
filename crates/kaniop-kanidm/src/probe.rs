//! Questions to a server that need no token: which certificate it shows, and whether it has the requests that the operator is made of. They change
//! nothing.

use reqwest::{Method, StatusCode};

use crate::client::Client;
use crate::error::Error;
use crate::http::{Call, Endpoint, Http};
use crate::requests::Operation;
use crate::trust::certificates;

/// Whether the node shows this certificate (`tls.crt`, leaf first) to whoever connects now. One that is not accepted is another one.
///
/// # Errors
/// Whatever a request can meet, but for [`Error::Certificate`].
pub async fn shows(endpoint: &Endpoint, tls_crt: &[u8]) -> Result<bool, Error> {
    let call = Call::new(Operation::Other, Method::GET, ["status"]);
    match Http::once(endpoint)?.ask(call).await {
        Ok((_, answer)) => {
            let wanted = certificates("tls.crt", tls_crt)?;
            Ok(wanted.first().is_some_and(|wanted| answer.certificate.as_deref() == Some(wanted.as_ref())))
        }
        Err(Error::Certificate { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

impl Client {
    /// Whether the server has the requests by which entries are made. Releases before that is sure are asked: without a token, so whatever the
    /// answer, nothing is made.
    ///
    /// # Errors
    /// Whatever a request can meet.
    pub async fn takes_entries(endpoint: &Endpoint) -> Result<bool, Error> {
        let call = Call::new(Operation::Other, Method::POST, ["scim", "v1", "Entry"]);
        let (status, _) = Http::new(endpoint)?.ask(call).await?;
        if status.is_server_error() {
            let why = "it was asked whether it takes entries".to_owned();
            return Err(Error::Busy { status: status.as_u16(), why, opid: None });
        }
        Ok(!matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED))
    }
}
