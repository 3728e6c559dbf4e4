//! Reads of small files.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

/// Reads a small file; a larger one is an error.
pub(crate) fn read_capped_blocking(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "the file is too large",
        ));
    }
    Ok(bytes)
}

/// Runs [`read_capped_blocking`] on a blocking thread.
pub(crate) async fn read_capped(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || read_capped_blocking(&path, limit))
        .await
        .map_err(io::Error::other)?
}
