//! Icon of a package.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXLOWER;
use olm_fbc::{Meta, image_type};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

/// Icon of a package: an image of a type that browsers show, by its content and not by its claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icon {
    /// Media type: `image/png`, `image/jpeg`, `image/gif`, `image/webp` or `image/svg+xml`.
    pub media_type: &'static str,
    /// The image's bytes.
    pub bytes: Vec<u8>,
    /// SHA-256 of the bytes, in hexadecimal digits.
    pub digest: String,
}

#[derive(Deserialize)]
struct Package {
    icon: Written,
}

#[derive(Deserialize)]
struct Written {
    base64data: String,
}

impl Icon {
    /// Largest image that is read, in bytes.
    pub const LIMIT: usize = 512 * 1024;

    /// Returns the icon of an `olm.package`; none if it has none, or one that is too large or no image.
    pub fn of(package: &Meta) -> Option<Self> {
        let package: Package = serde_json::from_slice(&package.blob).ok()?;
        // Go's decoder, and so OLM, skips line breaks.
        let text = package.icon.base64data.replace(['\r', '\n'], "");
        if text.len() / 4 * 3 > Self::LIMIT {
            return None;
        }
        let bytes = STANDARD.decode(text).ok()?;
        let media_type = image_type(&bytes)?;
        Some(Self {
            media_type,
            digest: HEXLOWER.encode(&Sha256::digest(&bytes)),
            bytes,
        })
    }

    /// Returns true for an SVG picture, which is a document: a browser that opens it runs its scripts.
    pub fn is_svg(&self) -> bool {
        self.media_type == "image/svg+xml"
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn line_breaks_in_an_icon_are_skipped() {
        let icon = |data: &str| {
            let package = json!({"schema": "olm.package", "name": "p", "icon": {"base64data": data}});
            Icon::of(&Meta {
                schema: "olm.package".to_owned(),
                package: String::new(),
                name: "p".to_owned(),
                blob: package.to_string().into_bytes(),
            })
        };
        let plain = icon("R0lGODlhAQABAAAAACwAAAAAAQABAAAC").unwrap();
        assert_eq!(plain.media_type, "image/gif");
        assert_eq!(icon("R0lGODlhAQAB\r\nAAAAACwAAAAA\nAQABAAAC\n"), Some(plain));
        assert_eq!(icon("R0lG ODlh"), None);
    }
}
