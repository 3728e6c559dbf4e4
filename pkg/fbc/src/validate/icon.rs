//! Validation of icons: content, media type and size.

use super::finding::Rule;
use super::raw::RawIcon;
use super::report::{Place, Report};
use crate::media_type::image_type;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use olm_version::go_quote;

/// Size above which an icon gives a warning, in bytes. Lists of packages carry every icon.
const WARN_BYTES: usize = 256 * 1024;

/// Media types of images that browsers support.
const MEDIA_TYPES: [&str; 6] = [
    "image/svg+xml",
    "image/png",
    "image/jpeg",
    "image/jpg",
    "image/gif",
    "image/webp",
];

pub(super) fn check(icon: &RawIcon<'_>, package: &str, place: Place, report: &mut Report) {
    let mut add = |rule, message: String, hint: &str| report.add(place, package, rule, message, hint);
    let of = format!("the icon of package {}", go_quote(package));
    let media_type = icon.mediatype.as_str();
    let known = MEDIA_TYPES.contains(&media_type);
    if !known {
        let message = format!("{of} has the media type {}", go_quote(media_type));
        add(
            Rule::IconMediaType,
            message,
            "set mediatype to image/svg+xml, image/png, image/jpeg, image/gif or image/webp",
        );
    }
    if icon.base64data.is_empty() {
        let hint = "set base64data, or leave the icon out";
        return add(Rule::IconEmpty, format!("{of} has no data"), hint);
    }
    let bytes = match STANDARD.decode(icon.base64data.as_str()) {
        Ok(bytes) => bytes,
        Err(error) => {
            let hint = "encode the icon's bytes as standard base64 with padding, on one line";
            return add(Rule::IconEncoding, format!("{of} is not base64: {error}"), hint);
        }
    };
    if bytes.len() > WARN_BYTES {
        let message = format!("{of} has {} bytes, more than {WARN_BYTES}", bytes.len());
        add(Rule::IconSize, message, "make the icon smaller, or use SVG");
    }
    if let Some(actual) = image_type(&bytes).filter(|actual| known && !same(actual, media_type)) {
        let message = format!("{of} is {actual}, but says {}", go_quote(media_type));
        add(
            Rule::IconMediaTypeMismatch,
            message,
            "set mediatype to what the icon is",
        );
    }
}

fn same(actual: &str, media_type: &str) -> bool {
    actual == media_type || (actual == "image/jpeg" && media_type == "image/jpg")
}
