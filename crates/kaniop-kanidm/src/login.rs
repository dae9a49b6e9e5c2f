//! Login by password: three requests that the server ties together by a session id. One attempt; it never tries again, because each wrong
//! password locks the account for longer.

use reqwest::Method;
use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::error::Error;
use crate::http::{Answer, Call, Http};
use crate::requests::Operation;

/// The header in which the server hands out the session id and takes it back.
const SESSION: &str = "x-kanidm-auth-session-id";

/// What the server says after a step.
#[derive(Deserialize)]
struct Progress {
    state: State,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// The ways to log in.
    Choose(Vec<Json>),
    /// Which credentials may follow.
    Continue(Vec<Json>),
    /// No.
    Denied(String),
    /// The session's token.
    Success(SecretString),
}

/// Logs in and returns the session's token.
pub(crate) async fn login(http: &Http, account: &str, password: &SecretString) -> Result<SecretString, Error> {
    let denied = |why: String| Error::LoginDenied { account: account.to_owned(), why };
    let refused = |error| match error {
        Error::Unauthenticated | Error::NotFound => denied("there is no such account, or it cannot log in".to_owned()),
        error => error,
    };
    let init = json!({ "init2": { "username": account, "issue": "token", "privileged": true } });
    let first = step(http, None, init).await.map_err(refused)?;
    let session = first.headers.get(SESSION).cloned();
    match progress(&first)? {
        State::Choose(ways) if ways.iter().any(|way| way == "password") => {}
        State::Choose(ways) => return Err(denied(format!("it needs {} instead of a password", Json::Array(ways)))),
        State::Denied(why) => return Err(denied(why)),
        _ => return Err(first.undecodable("a choice of ways to log in", &"another state")),
    }
    let second = step(http, session.clone(), json!({ "begin": "password" })).await.map_err(refused)?;
    match progress(&second)? {
        State::Continue(_) => {}
        State::Denied(why) => return Err(denied(why)),
        _ => return Err(second.undecodable("a request for the password", &"another state")),
    }
    let third = step(http, session, json!({ "cred": { "password": password.expose_secret() } })).await;
    let third = third.map_err(|error| match error {
        Error::Unauthenticated => denied("wrong password".to_owned()),
        error => error,
    })?;
    match progress(&third)? {
        State::Success(token) => Ok(token),
        State::Denied(why) => Err(denied(why)),
        State::Continue(more) => Err(denied(format!("it asks for {} besides the password", Json::Array(more)))),
        State::Choose(_) => Err(third.undecodable("the end of a login", &"another state")),
    }
}

async fn step(http: &Http, session: Option<HeaderValue>, step: Json) -> Result<Answer, Error> {
    let mut call = Call::new(Operation::Login, Method::POST, ["v1", "auth"]).body(json!({ "step": step }));
    if let Some(session) = session {
        call = call.header(SESSION, session);
    }
    http.send(call).await
}

fn progress(answer: &Answer) -> Result<State, Error> {
    // The parser's own text could quote a token.
    let progress: Result<Progress, _> = answer.decode("a step of a login");
    progress.map(|progress| progress.state).map_err(|_| answer.undecodable("a step of a login", &"unknown form"))
}
