//! Bearer token for catalogd.

use std::{io::Read as _, path::Path};

use olm_text::name::CatalogName;
use reqwest::header::HeaderValue;

use crate::error::ClientError;

/// Maximum size of a token, in bytes.
const MAX_BYTES: u64 = 16 * 1024;

/// Returns the value of `Authorization` with the token in a file, marked as sensitive.
pub(crate) async fn read(path: &Path, catalog: &CatalogName) -> Result<HeaderValue, ClientError> {
    let (path, catalog) = (path.to_owned(), catalog.clone());
    let display_path = path.display().to_string();
    let read = move || {
        let mut text = String::new();
        std::fs::File::open(path)?
            .take(MAX_BYTES)
            .read_to_string(&mut text)?;
        Ok::<_, std::io::Error>(text)
    };
    let cause = match tokio::task::spawn_blocking(read).await {
        Ok(Ok(text)) => match HeaderValue::from_str(&format!("Bearer {}", text.trim())) {
            Ok(mut value) if !text.trim().is_empty() => {
                value.set_sensitive(true);
                return Ok(value);
            }
            _ => "it has no token".to_owned(),
        },
        Ok(Err(error)) => error.to_string(),
        Err(_) => "reading was interrupted".to_owned(),
    };
    Err(ClientError::Token {
        catalog,
        path: display_path,
        cause,
    })
}
