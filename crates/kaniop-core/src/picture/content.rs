//! Whether some bytes are a picture that the server takes, and of which kind: by themselves, never by a file name or a `Content-Type`.
//!
//! Pixels are not decoded: the server does that, and has the last word.

use std::fmt;

use imagesize::ImageType;

use super::svg::{self, SvgError};

/// The most bytes that the server takes.
pub const LARGEST: usize = 256 << 10;
/// The most pixels that the server takes, in width and in height.
pub const WIDEST: usize = 1024;

/// The kinds of pictures that the server takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// PNG.
    Png,
    /// JPEG.
    Jpg,
    /// GIF.
    Gif,
    /// SVG.
    Svg,
    /// WebP.
    Webp,
}

impl Kind {
    /// The `Content-Type`.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Svg => "image/svg+xml",
            Self::Webp => "image/webp",
        }
    }

    /// What a file of this kind is called after the dot.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpg => "jpg",
            Self::Gif => "gif",
            Self::Svg => "svg",
            Self::Webp => "webp",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Png => "PNG",
            Self::Jpg => "JPEG",
            Self::Gif => "GIF",
            Self::Svg => "SVG",
            Self::Webp => "WebP",
        })
    }
}

/// Why some bytes are not a picture that the server takes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// Nothing at all.
    #[error("the picture is empty")]
    Empty,
    /// Too many bytes.
    #[error("the picture has more than {} KiB, the most that a server takes: make it smaller", LARGEST >> 10)]
    TooLarge,
    /// Too many pixels.
    #[error(
        "the picture has {width} x {height} pixels, and a server takes at most {WIDEST} x {WIDEST}: make it smaller"
    )]
    TooWide {
        /// In pixels.
        width: usize,
        /// In pixels.
        height: usize,
    },
    /// None of the kinds.
    #[error("it is neither PNG, JPEG, GIF, WebP nor SVG; its content counts, not its name")]
    Unknown,
    /// It begins like one of the kinds, and no more.
    #[error("it begins like a {0}, but its width and height cannot be read: the file is damaged")]
    Damaged(
        /// What it begins like.
        Kind,
    ),
    /// A text that is not an SVG that may be shown.
    #[error("as an SVG, it {0}")]
    Svg(#[from] SvgError),
}

/// Which kind of picture this is.
///
/// # Errors
/// Why it is none that the server takes, for people.
pub fn kind_of(bytes: &[u8]) -> Result<Kind, ContentError> {
    match bytes.len() {
        0 => return Err(ContentError::Empty),
        length if length > LARGEST => return Err(ContentError::TooLarge),
        _ => {}
    }
    let kind = match imagesize::image_type(bytes) {
        Ok(ImageType::Png) => Kind::Png,
        Ok(ImageType::Jpeg) => Kind::Jpg,
        Ok(ImageType::Gif) => Kind::Gif,
        Ok(ImageType::Webp) => Kind::Webp,
        _ => return text(bytes),
    };
    let size = imagesize::blob_size(bytes).map_err(|_| ContentError::Damaged(kind))?;
    match (size.width, size.height) {
        (0, _) | (_, 0) => Err(ContentError::Damaged(kind)),
        (width, height) if width.max(height) > WIDEST => Err(ContentError::TooWide { width, height }),
        _ => Ok(kind),
    }
}

fn text(bytes: &[u8]) -> Result<Kind, ContentError> {
    let text = str::from_utf8(bytes).map_err(|_| ContentError::Unknown)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !text.trim_start().starts_with('<') {
        return Err(ContentError::Unknown);
    }
    svg::check(text)?;
    Ok(Kind::Svg)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SVG: &str = r#"<svg xmlns="http://www.w3.org/2000/svg"/>"#;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let start: [&[u8]; 4] =
            [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", &width.to_be_bytes(), &height.to_be_bytes(), &[8; 40]];
        start.concat()
    }

    fn gif(width: u16, height: u16) -> Vec<u8> {
        [b"GIF89a".as_slice(), &width.to_le_bytes(), &height.to_le_bytes(), &[0; 8]].concat()
    }

    fn jpg(width: u16, height: u16) -> Vec<u8> {
        let before = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xc0\0\x11\x08";
        [before.as_slice(), &height.to_be_bytes(), &width.to_be_bytes(), &[3; 12]].concat()
    }

    /// Extended WebP, whose size is stored less one.
    fn webp(width: u32, height: u32) -> Vec<u8> {
        let [width, height] = [width - 1, height - 1].map(u32::to_le_bytes);
        let start: [&[u8]; 4] = [b"RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0", &width[..3], &height[..3], &[0; 8]];
        start.concat()
    }

    #[test]
    fn kinds_are_known_by_their_bytes() {
        for (bytes, kind) in [
            (png(1024, 1), Kind::Png),
            (jpg(1, 1024), Kind::Jpg),
            (gif(1024, 1024), Kind::Gif),
            (webp(1024, 64), Kind::Webp),
            (SVG.into(), Kind::Svg),
            (format!("\u{feff}<?xml version=\"1.0\"?>\n<!-- made by hand -->\n{SVG}").into(), Kind::Svg),
            (format!("  \n{SVG}").into(), Kind::Svg),
        ] {
            assert_eq!(kind_of(&bytes), Ok(kind));
        }
    }

    #[test]
    fn what_a_server_would_refuse_is_refused_with_the_way_out() {
        for (bytes, said) in [
            (Vec::new(), "empty"),
            (vec![b'<'; LARGEST + 1], "more than 256 KiB"),
            (png(1025, 1), "1025 x 1 pixels"),
            (png(1, u32::MAX), "1 x 4294967295 pixels"),
            (jpg(1, 1025), "1 x 1025 pixels"),
            (gif(65535, 1), "65535 x 1 pixels"),
            (webp(1, 1025), "1 x 1025 pixels"),
            (png(0, 1), "begins like a PNG"),
            (gif(1, 0), "begins like a GIF"),
            (png(1, 1).drain(..20).collect(), "begins like a PNG"),
            (jpg(1, 1).drain(..24).collect(), "begins like a JPEG"),
            (webp(1, 1).drain(..25).collect(), "begins like a WebP"),
            (b"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0".to_vec(), "neither PNG"),
            (b"{\"error\": \"not found\"}".to_vec(), "neither PNG"),
            (vec![0; 64], "neither PNG"),
            (vec![0xff; 64], "neither PNG"),
            (b"<!DOCTYPE html><html><body>Sign in</body></html>".to_vec(), "outermost element is not <svg>"),
        ] {
            let error = kind_of(&bytes).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    proptest! {
        #[test]
        fn damaged_pictures_are_judged_without_a_crash(
            whole in prop_oneof![Just(png(9, 9)), Just(jpg(9, 9)), Just(gif(9, 9)), Just(webp(9, 9)), Just(SVG.into())],
            damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..8),
            length in any::<proptest::sample::Index>(),
        ) {
            let mut bytes: Vec<u8> = whole;
            for (at, byte) in damage {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(length.index(bytes.len() + 1));
            if let Err(error) = kind_of(&bytes) {
                prop_assert!(error.to_string().len() < 200, "{}", error);
            }
        }
    }
}
