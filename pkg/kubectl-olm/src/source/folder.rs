//! Catalog in a directory. Files and their order are the same as for catalogd.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use olm_catalog_files::{WalkLimits, walk};
use olm_fbc::{Limits, decode};
use olm_text::name::PackageName;

use super::error::SourceError;
use super::query::{AddMeta, Query};

/// Passes every meta below `root` that `query` needs to `add`.
pub(super) async fn fold<T: Send + 'static>(
    root: PathBuf,
    query: &Query,
    state: T,
    add: AddMeta<T>,
) -> Result<T, SourceError> {
    let place = root.display().to_string();
    let package = query.package().cloned();
    let work = move || walk_files(&root, package.as_ref(), state, add);
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| SourceError::Interrupted { place })?
}

fn walk_files<T>(
    root: &Path,
    package: Option<&PackageName>,
    mut state: T,
    add: AddMeta<T>,
) -> Result<T, SourceError> {
    let files = walk(root, &WalkLimits::default()).map_err(|source| SourceError::Walk {
        path: root.to_owned(),
        source: Box::new(source),
    })?;
    for (path, name) in files {
        let file = File::open(&path).map_err(|source| SourceError::Read { path, source })?;
        state = each(BufReader::new(file), &name, package, state, add)?;
    }
    Ok(state)
}

/// Passes every meta of a file to `add`, those of other packages than `package` left out where that saves time.
pub(super) fn each<T>(
    reader: impl Read,
    place: &str,
    package: Option<&PackageName>,
    mut state: T,
    add: AddMeta<T>,
) -> Result<T, SourceError> {
    let mut metas = decode(reader, &Limits::default());
    if let Some(package) = package {
        metas = metas.of_package(package.as_str());
    }
    for meta in metas {
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
