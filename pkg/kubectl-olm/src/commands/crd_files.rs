//! CRDs in files and bundle directories.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use olm_text::object::ObjectId;
use olm_yaml::Limits;
use serde_json::Value;

use crate::failure::Failure;
use crate::source::SourceError;
use crate::verdicts::rendered;

/// Maximum size of a file, in bytes.
const FILE_LIMIT: usize = 32 << 20;
/// Maximum number of files of a directory.
const FILES: usize = 2000;
/// Maximum depth of directories.
const DEPTH: usize = 3;

/// Returns CRDs by their names: those in a file, in all files of a directory and the directories below it, or those that an
/// installation of a bundle directory applies. A bundle's ClusterServiceVersion sets the conversion webhooks of its CRDs.
///
/// # Errors
/// A file cannot be read, or the bundle would be refused.
pub(super) fn read(path: &Path) -> Result<BTreeMap<String, Value>, Failure> {
    if ["manifests", "metadata"]
        .iter()
        .all(|name| path.join(name).is_dir())
    {
        return of_bundle(path);
    }
    let mut files = Vec::new();
    list(path, 0, &mut files)?;
    let mut crds = BTreeMap::new();
    for file in files {
        let text = contents(&file)?;
        // Most files of a directory are other manifests.
        if memchr::memmem::find(&text, b"CustomResourceDefinition").is_none() {
            continue;
        }
        let documents = olm_yaml::documents(&text, &Limits::default())
            .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", file.display())))?;
        crds.extend(by_name(documents));
    }
    Ok(crds)
}

/// Returns the CRDs among `objects` by their names.
pub(super) fn by_name(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let crds = objects.into_iter().filter(|object| ObjectId::of(object).is_crd());
    crds.filter_map(|crd| Some((crd.pointer("/metadata/name")?.as_str()?.to_owned(), crd)))
        .collect()
}

fn of_bundle(path: &Path) -> Result<BTreeMap<String, Value>, Failure> {
    let files = olm_bundle_files::read(path).map_err(|source| SourceError::Bundle {
        path: path.to_owned(),
        source,
    })?;
    let objects = rendered(&files).map_err(|reason| {
        Failure::NegativeAnswer(format!(
            "the bundle in {} would be refused: {reason}",
            path.display()
        ))
    })?;
    Ok(by_name(objects))
}

fn list(path: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), SourceError> {
    let failed = |source| unreadable(path, source);
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        let below = entry.path();
        let is_manifest = below
            .extension()
            .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known));
        if kind.is_dir() && depth < DEPTH {
            list(&below, depth + 1, files)?;
        } else if kind.is_file() && is_manifest && files.len() < FILES {
            files.push(below);
        }
    }
    Ok(())
}

fn contents(path: &Path) -> Result<Vec<u8>, Failure> {
    let file = File::open(path).map_err(|source| unreadable(path, source))?;
    let mut text = Vec::new();
    let room = u64::try_from(FILE_LIMIT).unwrap_or(u64::MAX).saturating_add(1);
    file.take(room)
        .read_to_end(&mut text)
        .map_err(|source| unreadable(path, source))?;
    if text.len() > FILE_LIMIT {
        return Err(Failure::Usage(format!(
            "{} exceeds the limit of {FILE_LIMIT} bytes",
            path.display()
        )));
    }
    Ok(text)
}

fn unreadable(path: &Path, source: std::io::Error) -> SourceError {
    SourceError::Read {
        path: path.to_owned(),
        source,
    }
}
