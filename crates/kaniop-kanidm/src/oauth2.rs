//! What an OAuth2 client has beside attributes that can be set as they should be: its secret, which the server draws, and its picture. When they
//! should change is decided elsewhere. The server knows these routes by the name of the client, not by its UUID.

use reqwest::Method;
use reqwest::multipart::{Form, Part};
use secrecy::SecretString;
use serde_json::json;

use crate::client::Client;
use crate::error::Error;
use crate::http::Call;
use crate::requests::Operation;

/// The largest picture that servers take, in bytes. They refuse more than 1,024 × 1,024 pixels as well.
pub const LARGEST_IMAGE: usize = 256 << 10;

/// The content types that servers take for pictures.
const IMAGE_TYPES: [&str; 5] = ["image/png", "image/jpeg", "image/gif", "image/svg+xml", "image/webp"];

/// A picture of an OAuth2 client. Whether its bytes are what its type says is for the server to check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    file_name: String,
    content_type: &'static str,
    contents: Vec<u8>,
}

impl Image {
    /// A picture with a file name and one of the content types that servers take; parameters of the type do not matter.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] when no server would take it.
    pub fn new(file_name: &str, content_type: &str, contents: Vec<u8>) -> Result<Self, Error> {
        let invalid = |why: String| Error::InvalidValue { attribute: Some("image".to_owned()), why };
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        let known = IMAGE_TYPES.into_iter().find(|known| known.eq_ignore_ascii_case(essence));
        let Some(content_type) = known else {
            return Err(invalid(format!("{content_type:?} is none of {}", IMAGE_TYPES.join(", "))));
        };
        if contents.len() > LARGEST_IMAGE {
            return Err(invalid(format!(
                "it has {} bytes, more than the {LARGEST_IMAGE} that servers take",
                contents.len()
            )));
        }
        Ok(Self { file_name: file_name.to_owned(), content_type, contents })
    }
}

impl Client {
    /// The secret of an OAuth2 client; `None` for a public client, and for one that is not there.
    ///
    /// # Errors
    /// Whatever a request can meet.
    pub async fn oauth2_secret(&self, client: &str) -> Result<Option<SecretString>, Error> {
        let call = Call::new(Operation::Other, Method::GET, ["v1", "oauth2", client, "_basic_secret"]);
        self.send(call).await?.decode_secret("the secret of an OAuth2 client")
    }

    /// Makes the server draw a new secret for an OAuth2 client; the old one is void at once. A public client has none and gets none.
    ///
    /// # Errors
    /// Whatever a request can meet.
    pub async fn reset_oauth2_secret(&self, client: &str) -> Result<(), Error> {
        let call = Call::new(Operation::Write, Method::PATCH, ["v1", "oauth2", client])
            .body(json!({ "attrs": { "oauth2_rs_basic_secret": [] } }));
        self.send(call).await.map(drop)
    }

    /// Gives an OAuth2 client a picture, in place of the one that it had.
    ///
    /// # Errors
    /// Whatever a request can meet.
    pub async fn set_oauth2_image(&self, client: &str, image: Image) -> Result<(), Error> {
        let Image { file_name, content_type, contents } = image;
        let part = Part::bytes(contents).file_name(file_name).mime_str(content_type);
        let part = part.map_err(|error| Error::Endpoint(format!("{content_type:?} is no content type: {error}")))?;
        let call = Call::new(Operation::Write, Method::POST, ["v1", "oauth2", client, "_image"])
            .form(Form::new().part("image", part));
        self.send(call).await.map(drop)
    }

    /// Takes the picture of an OAuth2 client away; one that has none is left as it is.
    ///
    /// # Errors
    /// Whatever a request can meet.
    pub async fn delete_oauth2_image(&self, client: &str) -> Result<(), Error> {
        self.send(Call::new(Operation::Write, Method::DELETE, ["v1", "oauth2", client, "_image"])).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_server_could_take_is_an_image() {
        let of = |content_type: &str, size| Image::new("logo", content_type, vec![0; size]);
        assert_eq!(of("image/svg+xml; charset=utf-8", 9).unwrap().content_type, "image/svg+xml");
        assert_eq!(of("IMAGE/PNG", LARGEST_IMAGE).unwrap().content_type, "image/png");
        for refused in [of("text/html", 9), of("", 9), of("image/png", LARGEST_IMAGE + 1)] {
            let error = refused.unwrap_err();
            assert!(
                matches!(&error, Error::InvalidValue { attribute: Some(name), .. } if name == "image"),
                "{error:?}"
            );
        }
    }
}
