//! Catalog in a directory. Files and their order are the same as for catalogd.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use olm_catalog_files::{WalkLimits, walk};
use olm_fbc::{Limits, decode};

use super::error::SourceError;
use super::query::AddMeta;

/// Passes every meta below `root` to `add`.
pub(super) async fn fold<T: Send + 'static>(
    root: PathBuf,
    state: T,
    add: AddMeta<T>,
) -> Result<T, SourceError> {
    let place = root.display().to_string();
    let work = move || walk_files(&root, state, add);
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| SourceError::Interrupted { place })?
}

fn walk_files<T>(root: &Path, mut state: T, add: AddMeta<T>) -> Result<T, SourceError> {
    let files = walk(root, &WalkLimits::default()).map_err(|source| SourceError::Walk {
        path: root.to_owned(),
        source: Box::new(source),
    })?;
    for (path, name) in files {
        let file = File::open(&path).map_err(|source| SourceError::Read { path, source })?;
        state = each(BufReader::new(file), &name, state, add)?;
    }
    Ok(state)
}

/// Passes every meta of a file to `add`.
pub(super) fn each<T>(
    reader: impl Read,
    place: &str,
    mut state: T,
    add: AddMeta<T>,
) -> Result<T, SourceError> {
    for meta in decode(reader, &Limits::default()) {
        let meta = meta.map_err(|source| SourceError::Decode {
            place: place.to_owned(),
            source: Box::new(source),
        })?;
        add(&mut state, meta).map_err(|source| SourceError::Content {
            place: place.to_owned(),
            source: Box::new(source),
        })?;
    }
    Ok(state)
}
