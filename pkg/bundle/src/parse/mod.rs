//! Parsing of the files of a bundle image to a [`Bundle`].

mod crd;
mod csv;
mod decode;
mod flatten;
mod format;
mod lint;
mod properties;

use std::collections::BTreeMap;

use serde_json::Value;

pub use format::{FORMAT_LABEL, check_format};
pub use lint::{Notice, lint};

use self::flatten::FlattenError;
use crate::model::{Csv, StrategyDeployment};
use crate::{Bundle, ParseError, yaml};

/// Maximum bytes in one file; the largest real manifest has 2.5 MB.
const MAX_FILE_BYTES: usize = 16 << 20;
/// Maximum bytes in all files that are read.
const MAX_TOTAL_BYTES: usize = 48 << 20;
/// Maximum number of files in `manifests`.
const MAX_FILES: usize = 4096;
/// Maximum number of objects in all manifests.
const MAX_OBJECTS: usize = 10_000;

/// Maximum number of containers in all deployments: each gets a copy of the user's configuration.
const MAX_CONTAINERS: usize = 500;
/// Maximum bytes of annotations in all deployments: each gets a copy of the CSV's annotations.
const MAX_COPIED_ANNOTATIONS: usize = 64 << 20;

const ANNOTATIONS: &str = "metadata/annotations.yaml";
const PROPERTIES: &str = "metadata/properties.yaml";
const MANIFESTS: &str = "manifests/";
pub(crate) const CSV_KIND: &str = "ClusterServiceVersion";
const PACKAGE_ANNOTATION: &str = "operators.operatorframework.io.bundle.package.v1";

/// Reads a bundle from its files, keyed by slash-separated paths such as `manifests/x.yaml` and
/// `metadata/annotations.yaml`. All other folders are ignored.
///
/// # Errors
/// All errors, in the order in which upstream finds them; more than one as [`ParseError::Multiple`]. A bundle that
/// exceeds a limit is not read further.
pub fn parse(files: &BTreeMap<String, Vec<u8>>) -> Result<Bundle, ParseError> {
    check_sizes(files)?;
    // A bundle in another format has nothing to validate.
    format::check(files)?;
    let mut wrong = Vec::new();
    let annotations = files.get(ANNOTATIONS).ok_or_else(|| ParseError::MissingFile {
        path: ANNOTATIONS.to_owned(),
    });
    let package = annotations
        .and_then(|bytes| package(bytes))
        .map_err(|error| wrong.push(error))
        .unwrap_or_default();
    let mut found = Manifests::default();
    found.read(files, &mut wrong)?;
    // Other errors come first: an unreadable file may have contained the object.
    if found.csv.is_none() && wrong.is_empty() {
        wrong.push(ParseError::NoCsv);
    }
    let mut csv = found.csv.unwrap_or_default();
    if let Err(error) = properties::merge(&mut csv, PROPERTIES, files.get(PROPERTIES).map(Vec::as_slice)) {
        wrong.push(error);
    }
    check_copies(&csv)?;
    match wrong.pop() {
        None => Ok(Bundle {
            package,
            csv,
            crds: found.crds,
            other_manifests: found.other,
        }),
        Some(only) if wrong.is_empty() => Err(only),
        Some(last) => {
            wrong.push(last);
            Err(ParseError::Multiple(wrong))
        }
    }
}

/// Content of `manifests` by kind.
#[derive(Default)]
struct Manifests {
    csv: Option<Csv>,
    crds: Vec<Value>,
    other: Vec<Value>,
}

impl Manifests {
    /// Reads every file and adds errors to `wrong`. Stops only if there are too many objects.
    fn read(
        &mut self,
        files: &BTreeMap<String, Vec<u8>>,
        wrong: &mut Vec<ParseError>,
    ) -> Result<(), ParseError> {
        let mut subdirectory = "";
        let mut memory = 0;
        for (path, bytes) in manifests(files) {
            if let Some(at) = path.get(MANIFESTS.len()..).and_then(|name| name.find('/')) {
                let folder = path.get(..MANIFESTS.len() + at).unwrap_or(path);
                if folder != subdirectory {
                    wrong.push(ParseError::Subdirectory {
                        path: folder.to_owned(),
                    });
                }
                subdirectory = folder;
                continue;
            }
            let left = yaml::MAX_MEMORY.saturating_sub(memory);
            let objects = objects(path, bytes, left).unwrap_or_else(|error| {
                wrong.push(error);
                Vec::new()
            });
            for object in objects {
                memory = memory.saturating_add(olm_yaml::memory(&object));
                if let Err(detail) = self.add(object) {
                    wrong.push(ParseError::Manifest {
                        path: path.clone(),
                        detail,
                    });
                }
                let count = self.crds.len() + self.other.len();
                if count > MAX_OBJECTS {
                    return Err(too_large("the number of objects", count, MAX_OBJECTS));
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, object: Value) -> Result<(), String> {
        match object.get("kind").and_then(Value::as_str) {
            Some(CSV_KIND) => self.csv = Some(csv::csv(&object)?),
            Some("CustomResourceDefinition") => self.crds.push(crd::normalize(&object)?),
            _ => self.other.push(object),
        }
        Ok(())
    }
}

/// Refuses a CSV whose copied parts (configuration, annotations) would become too large.
fn check_copies(csv: &Csv) -> Result<(), ParseError> {
    let containers = |deployment: &StrategyDeployment| {
        let list = deployment
            .spec
            .pointer("/template/spec/containers")
            .and_then(Value::as_array);
        list.map_or(0, Vec::len)
    };
    let containers: usize = csv.deployments.iter().map(containers).sum();
    if containers > MAX_CONTAINERS {
        return Err(too_large("the number of containers", containers, MAX_CONTAINERS));
    }
    let annotations: usize = csv
        .annotations
        .iter()
        .map(|(key, text)| key.len() + text.len())
        .sum();
    let copied = annotations.saturating_mul(csv.deployments.len());
    if copied > MAX_COPIED_ANNOTATIONS {
        return Err(too_large(
            "the size of all deployments' annotations",
            copied,
            MAX_COPIED_ANNOTATIONS,
        ));
    }
    Ok(())
}

fn manifests(files: &BTreeMap<String, Vec<u8>>) -> impl Iterator<Item = (&String, &Vec<u8>)> {
    files
        .range(MANIFESTS.to_owned()..)
        .take_while(|(path, _)| path.starts_with(MANIFESTS))
}

fn too_large(what: &str, actual: usize, limit: usize) -> ParseError {
    ParseError::TooLarge {
        what: what.to_owned(),
        actual,
        limit,
    }
}

fn check_sizes(files: &BTreeMap<String, Vec<u8>>) -> Result<(), ParseError> {
    let mut total = 0_usize;
    let mut count = 0_usize;
    let metadata = [ANNOTATIONS, PROPERTIES]
        .into_iter()
        .filter_map(|path| files.get_key_value(path));
    for (path, bytes) in manifests(files).chain(metadata) {
        count += 1;
        total = total.saturating_add(bytes.len());
        if bytes.len() > MAX_FILE_BYTES {
            return Err(too_large(
                &format!("file \"{path}\" (bytes)"),
                bytes.len(),
                MAX_FILE_BYTES,
            ));
        }
    }
    if count > MAX_FILES {
        return Err(too_large("the number of files", count, MAX_FILES));
    }
    if total > MAX_TOTAL_BYTES {
        return Err(too_large("the sum of all files (bytes)", total, MAX_TOTAL_BYTES));
    }
    Ok(())
}

fn package(bytes: &[u8]) -> Result<String, ParseError> {
    let wrong = |detail| ParseError::Metadata {
        path: ANNOTATIONS.to_owned(),
        detail,
    };
    let value =
        yaml::document(bytes).map_err(|error| wrong(format!("error converting YAML to JSON: {error}")))?;
    match value
        .pointer("/annotations")
        .and_then(|annotations| annotations.get(PACKAGE_ANNOTATION))
    {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        // An unquoted name such as `123` is still a name.
        Some(other @ (Value::Number(_) | Value::Bool(_))) => Ok(other.to_string()),
        Some(_) => Err(wrong(format!(
            "annotation \"{PACKAGE_ANNOTATION}\" is not a string"
        ))),
    }
}

/// Returns the unchanged objects of all manifests, lists flattened; an unreadable file has none.
pub(crate) fn manifest_objects(files: &BTreeMap<String, Vec<u8>>) -> impl Iterator<Item = Value> {
    manifests(files).flat_map(|(path, bytes)| objects(path, bytes, yaml::MAX_MEMORY).unwrap_or_default())
}

/// Returns the objects of one file, lists flattened.
fn objects(path: &str, bytes: &[u8], memory: usize) -> Result<Vec<Value>, ParseError> {
    let wrong = |detail: String| ParseError::Manifest {
        path: path.to_owned(),
        detail,
    };
    let documents = yaml::documents(bytes, memory).map_err(|error| {
        wrong(format!(
            "error parsing {path}: error converting YAML to JSON: {error}"
        ))
    })?;
    let mut out = Vec::with_capacity(documents.len());
    for document in documents {
        let unreadable = |error: FlattenError| wrong(error.text(path));
        flatten::objects(document, &mut out).map_err(unreadable)?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
