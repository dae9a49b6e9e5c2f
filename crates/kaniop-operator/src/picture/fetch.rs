//! One fetch: requests to one host, and the last answer read as far as a picture may be long.

use std::fmt;

use kaniop_core::picture::content::{ContentError, Kind, LARGEST, kind_of};
use kaniop_core::picture::source::Source;
use reqwest::header::{
    ACCEPT, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, LOCATION,
};
use reqwest::{Client, Response, StatusCode, redirect, retry};
use sha2::{Digest, Sha256};

use super::error::{Error, RedirectProblem, root_cause};
use super::names::{Checked, resolve};
use super::rules::Rules;

/// How many redirects are followed.
const REDIRECTS: usize = 3;
/// The longest validator that is kept, in bytes: it goes into a status.
const LONGEST_VALIDATOR: usize = 256;
/// The kinds that [`kind_of`] knows, for hosts that choose by what they are asked for.
const ACCEPTED: HeaderValue = HeaderValue::from_static("image/png, image/svg+xml, image/webp, image/jpeg, image/gif");

/// What a host calls a state of a picture, for asking whether it still has the same. Whatever they are, they are another's words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    /// `ETag`.
    pub etag: Option<String>,
    /// `Last-Modified`.
    pub last_modified: Option<String>,
}

/// What a fetch found.
#[derive(Clone, PartialEq, Eq)]
pub enum Fetched {
    /// The host says that the picture is the one of the validators.
    Unchanged,
    /// A picture that a server takes; perhaps the same as before, if the host does not tell.
    Image {
        /// The file, at most [`LARGEST`] bytes.
        bytes: Vec<u8>,
        /// What it is by its own bytes.
        kind: Kind,
        /// SHA-256 of the file, in hexadecimal digits.
        sha256: String,
        /// For the next fetch from the same URL.
        validators: Validators,
    },
}

impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unchanged => f.write_str("Unchanged"),
            Self::Image { bytes, kind, sha256, validators } => f
                .debug_struct("Image")
                .field("bytes", &bytes.len())
                .field("kind", kind)
                .field("sha256", sha256)
                .field("validators", validators)
                .finish(),
        }
    }
}

/// Fetches the picture at `url`, once. `known` are the validators that an earlier fetch from this same URL gave, if its picture is
/// still in place; without them, or if the host knows nothing of validators, the picture is fetched anew.
///
/// # Errors
/// Why there is no picture that the server takes; [`Error::class`] says whether trying again may help.
pub async fn fetch(url: &str, known: Option<&Validators>, rules: &Rules) -> Result<Fetched, Error> {
    let source = Source::parse(url)?;
    let host = source.host().to_owned();
    let late = |_| Error::TimedOut { host, limit: rules.whole };
    tokio::time::timeout(rules.whole, attempt(source, known, rules)).await.map_err(late)?
}

async fn attempt(mut source: Source, known: Option<&Validators>, rules: &Rules) -> Result<Fetched, Error> {
    let host = source.host().to_owned();
    let client = client(resolve(&host, rules).await?, rules)?;
    let conditions = known.map(conditions).unwrap_or_default();
    for _ in 0..=REDIRECTS {
        let request = client.get(source.url().clone()).header(ACCEPT, ACCEPTED).headers(conditions.clone());
        let response = request.send().await.map_err(|error| lost(&host, &error))?;
        match response.status() {
            StatusCode::OK => return picture(&host, response).await,
            StatusCode::NOT_MODIFIED if !conditions.is_empty() => return Ok(Fetched::Unchanged),
            StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT => {
                source = sent_on(&source, &response).map_err(|why| Error::Redirect { host: host.clone(), why })?;
            }
            status => return Err(Error::Status { host, status: status.as_u16() }),
        }
    }
    Err(Error::Redirect { host, why: RedirectProblem::TooMany(REDIRECTS) })
}

/// A client for this fetch and no other: it knows one host.
fn client(names: Checked, rules: &Rules) -> Result<Client, Error> {
    Client::builder()
        .tls_backend_preconfigured(rules.tls.clone())
        .https_only(true)
        .http1_only()
        .dns_resolver(names)
        .user_agent(concat!("kaniop/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .no_proxy()
        .referer(false)
        // Leaves time for the host's other addresses when one does not answer.
        .connect_timeout(rules.whole / 2)
        .build()
        .map_err(|error| Error::Setup(root_cause(&error)))
}

fn conditions(known: &Validators) -> HeaderMap {
    // They come back from a status, which others can write.
    let usable = |value: &Option<String>| value.as_ref().and_then(|text| HeaderValue::from_str(text).ok());
    let etag = usable(&known.etag).map(|value| (IF_NONE_MATCH, value));
    let date = usable(&known.last_modified).map(|value| (IF_MODIFIED_SINCE, value));
    etag.into_iter().chain(date).collect()
}

fn sent_on(source: &Source, response: &Response) -> Result<Source, RedirectProblem> {
    let location = text(response, &LOCATION).ok_or(RedirectProblem::Nowhere)?;
    Ok(source.sent_on(location)?)
}

async fn picture(host: &str, response: Response) -> Result<Fetched, Error> {
    let unusable = |why| Error::Content { host: host.to_owned(), why };
    let kept = |name| text(&response, name).filter(|value| value.len() <= LONGEST_VALIDATOR).map(str::to_owned);
    let validators = Validators { etag: kept(&ETAG), last_modified: kept(&LAST_MODIFIED) };
    let bytes = read(host, response).await?;
    let kind = kind_of(&bytes).map_err(unusable)?;
    let sha256 = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Fetched::Image { bytes, kind, sha256, validators })
}

/// The body, if it is not too long: a host may send more than it says, and without end.
async fn read(host: &str, mut response: Response) -> Result<Vec<u8>, Error> {
    let too_large = || Error::Content { host: host.to_owned(), why: ContentError::TooLarge };
    if response.content_length().is_some_and(|length| length > LARGEST as u64) {
        return Err(too_large());
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| lost(host, &error))? {
        if body.len() + chunk.len() > LARGEST {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// A header of one line in ASCII.
fn text<'a>(response: &'a Response, name: &HeaderName) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

fn lost(host: &str, error: &reqwest::Error) -> Error {
    let (host, why) = (host.to_owned(), root_cause(error));
    if error.is_connect() { Error::Unreachable { host, why } } else { Error::Interrupted { host, why } }
}
