//! Icon as a file of its own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use olm_packages::Icon;

/// Image file of an icon, for `<img>` only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IconFile {
    /// File name: the digest of the icon, with the ending of its type.
    pub name: String,
    /// Media type, one of those of [`Icon`].
    pub media_type: &'static str,
    /// The file's bytes.
    pub bytes: Vec<u8>,
}

impl IconFile {
    /// Returns the file of an icon. An SVG picture of strangers is embedded as an image into one of ours: as a document of its
    /// own it could run scripts, as an image in a document it cannot.
    pub fn new(icon: &Icon) -> Self {
        Self {
            name: icon_name(icon),
            media_type: icon.media_type,
            bytes: if icon.is_svg() {
                framed(&icon.bytes)
            } else {
                icon.bytes.clone()
            },
        }
    }
}

/// Returns the name of an icon's file.
pub fn icon_name(icon: &Icon) -> String {
    let ending = match icon.media_type {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        _ => "svg",
    };
    format!("{}.{ending}", icon.digest)
}

fn framed(svg: &[u8]) -> Vec<u8> {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 64 64\" width=\"64\" height=\"64\"><image width=\"64\" \
         height=\"64\" href=\"data:image/svg+xml;base64,{}\"/></svg>\n",
        STANDARD.encode(svg)
    )
    .into_bytes()
}
