//! Which failure becomes which status and body.

use axum::Json;
use axum::http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use kanidm_proto::internal::{OperationError, PluginError};
use serde_json::json;

/// Why a request failed.
#[derive(Debug)]
pub enum Failure {
    /// The engine's own error; its JSON form is the body.
    Operation(OperationError),
    /// A value that must be unique is taken.
    Conflict(Vec<String>),
    /// The request cannot be understood.
    BadRequest(String),
    /// The body is JSON of the wrong shape.
    Unprocessable(String),
    /// The real server can do it, this one cannot.
    NotImplemented(&'static str),
}

/// What a handler answers.
pub type Answer<T> = Result<Json<T>, Failure>;

impl From<OperationError> for Failure {
    fn from(error: OperationError) -> Self {
        Self::Operation(match error {
            // Later servers refuse built-in UUIDs before anything else.
            OperationError::Plugin(PluginError::Base(text)) if text.contains("protected range") => {
                OperationError::AccessDenied
            }
            other => other,
        })
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match self {
            Self::Operation(error) => operation(&error),
            Self::Conflict(attributes) => {
                let body = json!({"error": "Attribute uniqueness error", "conflicting_attributes": attributes});
                (StatusCode::CONFLICT, Json(body)).into_response()
            }
            Self::Unprocessable(reason) => {
                let reason = format!("Failed to deserialize the JSON body into the target type: {reason}");
                (StatusCode::UNPROCESSABLE_ENTITY, reason).into_response()
            }
            Self::BadRequest(reason) => (StatusCode::BAD_REQUEST, reason).into_response(),
            Self::NotImplemented(what) => {
                let reason = format!("{what} is not implemented in this development server");
                (StatusCode::NOT_IMPLEMENTED, reason).into_response()
            }
        }
    }
}

/// The body is JSON, and yet its type says plain text: the real server's way.
fn operation(error: &OperationError) -> Response {
    let body = serde_json::to_string(error).unwrap_or_default();
    let status = status(error);
    let mut response = (status, [(CONTENT_TYPE, "text/plain; charset=utf-8")], body).into_response();
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

fn status(error: &OperationError) -> StatusCode {
    match error {
        OperationError::NotAuthenticated | OperationError::SessionExpired => StatusCode::UNAUTHORIZED,
        OperationError::AccessDenied
        | OperationError::SystemProtectedObject
        | OperationError::SystemProtectedAttribute => StatusCode::FORBIDDEN,
        OperationError::NoMatchingEntries => StatusCode::NOT_FOUND,
        OperationError::PasswordQuality(_)
        | OperationError::EmptyRequest
        | OperationError::SchemaViolation(_)
        | OperationError::VL0001ValueSshPublicKeyString
        | OperationError::InvalidAttribute(_)
        | OperationError::InvalidAttributeName(_) => StatusCode::BAD_REQUEST,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
