//! Media types of images by their content.

/// Returns the media type that the first bytes indicate, if they do.
pub fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => {
            let head = bytes.get(..bytes.len().min(4096)).unwrap_or_default();
            head.windows(4)
                .any(|window| window == b"<svg")
                .then_some("image/svg+xml")
        }
    }
}
