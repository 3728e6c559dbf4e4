//! A catalog in a directory. Its files and their order are those that catalogd reads.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use olm_catalog_files::{WalkLimits, walk};
use olm_fbc::{ContentError, Limits, Meta, decode};

use super::error::SourceError;

/// Hands every meta below `root` to `take`.
pub(super) async fn fold<T: Send + 'static>(
    root: PathBuf,
    state: T,
    take: fn(&mut T, Meta) -> Result<(), ContentError>,
) -> Result<T, SourceError> {
    let place = root.display().to_string();
    let work = move || walk_and_take(&root, state, take);
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| SourceError::Interrupted { place })?
}

fn walk_and_take<T>(
    root: &Path,
    mut state: T,
    take: fn(&mut T, Meta) -> Result<(), ContentError>,
) -> Result<T, SourceError> {
    let files = walk(root, &WalkLimits::default()).map_err(|source| SourceError::Walk {
        path: root.to_owned(),
        source: Box::new(source),
    })?;
    for (path, name) in files {
        let file = File::open(&path).map_err(|source| SourceError::Read { path, source })?;
        state = each(BufReader::new(file), &name, state, take)?;
    }
    Ok(state)
}

/// Hands every meta of one file to `take`.
pub(super) fn each<T>(
    reader: impl Read,
    place: &str,
    mut state: T,
    take: fn(&mut T, Meta) -> Result<(), ContentError>,
) -> Result<T, SourceError> {
    for meta in decode(reader, &Limits::default()) {
        let meta = meta.map_err(|source| SourceError::Decode {
            place: place.to_owned(),
            source: Box::new(source),
        })?;
        take(&mut state, meta).map_err(|source| SourceError::Content {
            place: place.to_owned(),
            source: Box::new(source),
        })?;
    }
    Ok(state)
}
