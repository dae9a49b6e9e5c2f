//! Pictures: reading them from an upload, and showing them.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Multipart, Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use kanidm_proto::internal::{ImageType, ImageValue};
use kanidmd_lib::prelude::*;
use kanidmd_lib::valueset::image::ImageValueThings;

use super::error::Failure;
use super::{Routes, Shared};
use crate::config::Role;
use crate::server::Running;

/// The routes that show pictures; they belong to the user interface, so not every role has them.
pub fn routes(role: Role) -> Routes {
    if role == Role::WriteReplicaNoUi {
        return Router::new();
    }
    Router::new().route("/ui/images/domain", get(domain_image)).route("/ui/images/oauth2/{name}", get(client_image))
}

/// Takes the picture out of an upload and checks it.
///
/// # Errors
/// When there is none, or it is too large, or not what its name says.
pub async fn receive(mut upload: Multipart) -> Result<ImageValue, Failure> {
    let refuse = |reason: String| Failure::BadRequest(reason);
    while let Some(field) = upload.next_field().await.map_err(|e| refuse(e.to_string()))? {
        let Some(filename) = field.file_name().map(str::to_owned).filter(|_| field.name() == Some("image")) else {
            continue;
        };
        let declared = field.content_type().unwrap_or_default().to_owned();
        let filetype = ImageType::try_from_content_type(&declared)
            .map_err(|_| refuse(format!("{declared:?} is not a type of picture that is accepted")))?;
        let contents = field.bytes().await.map_err(|e| refuse(e.to_string()))?.to_vec();
        // The engine's check of PNG files panics on fewer bytes than their signature has.
        if contents.len() < 8 {
            return Err(refuse("the picture is too short to be one".to_owned()));
        }
        let image = ImageValue { filename, filetype, contents };
        image.validate_image().map_err(|e| refuse(format!("the picture is refused: {e:?}")))?;
        return Ok(image);
    }
    Err(refuse("the upload has no field called image with a file name".to_owned()))
}

async fn domain_image(State(running): Shared) -> Response {
    show(running.engine.idms().domain_read().image().cloned())
}

async fn client_image(State(running): Shared, Path(name): Path<String>) -> Response {
    show(find(&running, name).await.ok().flatten())
}

async fn find(running: &Arc<Running>, name: String) -> Result<Option<ImageValue>, OperationError> {
    running
        .engine
        .read(|r, _| {
            let filter = kanidmd_lib::filter!(f_and(vec![
                f_eq(Attribute::Class, EntryClass::OAuth2ResourceServer.into()),
                f_id(&name),
            ]));
            let entries = r.qs_read.internal_search(filter)?;
            Ok(entries.first().and_then(|entry| entry.get_ava_single_image(Attribute::Image)))
        })
        .await
}

fn show(image: Option<ImageValue>) -> Response {
    match image {
        Some(image) => {
            let kind = image.filetype.as_content_type_str();
            ([(CONTENT_TYPE, kind)], image.contents).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
