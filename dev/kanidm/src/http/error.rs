//! Which failure becomes which status and body.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use kanidm_proto::internal::OperationError;
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
    /// The real server can do it, this one cannot.
    NotImplemented(&'static str),
}

/// What a handler answers.
pub type Answer<T> = Result<Json<T>, Failure>;

impl From<OperationError> for Failure {
    fn from(error: OperationError) -> Self {
        Self::Operation(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match self {
            Self::Operation(error) => (status(&error), Json(error)).into_response(),
            Self::Conflict(attributes) => {
                let body = json!({"error": "attributeuniqueness", "conflicting_attributes": attributes});
                (StatusCode::CONFLICT, Json(body)).into_response()
            }
            Self::BadRequest(reason) => (StatusCode::BAD_REQUEST, reason).into_response(),
            Self::NotImplemented(what) => {
                let reason = format!("{what} is not implemented in this development server");
                (StatusCode::NOT_IMPLEMENTED, reason).into_response()
            }
        }
    }
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
        | OperationError::InvalidAttribute(_)
        | OperationError::InvalidAttributeName(_) => StatusCode::BAD_REQUEST,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
