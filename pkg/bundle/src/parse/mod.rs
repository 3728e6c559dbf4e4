//! Files of a bundle image → [`Bundle`].

use std::collections::BTreeMap;

use crate::{Bundle, ParseError};

/// Reads a bundle from its files, keyed by slash-separated paths such as `manifests/x.yaml` and
/// `metadata/annotations.yaml`. All other folders are ignored.
pub fn parse(files: &BTreeMap<String, Vec<u8>>) -> Result<Bundle, ParseError> {
    let path = "metadata/annotations.yaml";
    files.get(path).ok_or(ParseError::MissingFile { path: path.to_owned() })?;
    Err(ParseError::NoCsv)
}
