//! Content negotiation by `Accept-Encoding`.

use axum::http::{HeaderMap, header};

use crate::storage::Encoding;

/// Returns the best stored encoding that a client accepts. At equal weight zstd precedes gzip, like upstream; `*` is
/// ignored; identity is always acceptable.
pub(super) fn accepted(headers: &HeaderMap) -> Encoding {
    let (mut gzip, mut zstd) = (0.0_f32, 0.0_f32);
    for value in headers.get_all(header::ACCEPT_ENCODING) {
        for item in value.to_str().unwrap_or_default().split(',') {
            let mut parts = item.split(';').map(str::trim);
            let coding = parts.next().unwrap_or_default().to_ascii_lowercase();
            let weight = parts
                .find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")))
                .map_or(1.0, |weight| weight.parse().unwrap_or(0.0));
            match coding.as_str() {
                "gzip" => gzip = weight,
                "zstd" => zstd = weight,
                _ => {}
            }
        }
    }
    if zstd > 0.0 && zstd >= gzip {
        Encoding::Zstd
    } else if gzip > 0.0 {
        Encoding::Gzip
    } else {
        Encoding::Identity
    }
}

/// Returns the token for `Content-Encoding`, if there is one.
pub(super) fn token(encoding: Encoding) -> Option<&'static str> {
    match encoding {
        Encoding::Identity => None,
        Encoding::Gzip => Some("gzip"),
        Encoding::Zstd => Some("zstd"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_decide() {
        for (header, encoding) in [
            ("", Encoding::Identity),
            ("*", Encoding::Identity),
            ("gzip", Encoding::Gzip),
            ("gzip, deflate, br, zstd", Encoding::Zstd),
            ("gzip;q=0.8, zstd;q=0.5", Encoding::Gzip),
            ("gzip;q=0", Encoding::Identity),
            ("GZIP; q=1", Encoding::Gzip),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, header.parse().unwrap());
            assert_eq!(accepted(&headers), encoding, "{header}");
        }
    }
}
