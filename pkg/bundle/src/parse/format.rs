//! Format of an image's content.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ANNOTATIONS;
use crate::{ParseError, yaml};

/// Annotation and image label that name the format of a bundle.
pub const FORMAT_LABEL: &str = "operators.operatorframework.io.bundle.mediatype.v1";
/// The only format that can be installed.
const REGISTRY: &str = "registry+v1";
/// File that every Helm chart has.
const CHART: &str = "Chart.yaml";

/// Checks that content of the format `declared` can be installed. An absent declaration means `registry+v1`, like
/// upstream.
///
/// # Errors
/// [`ParseError::Format`], which names the format.
pub fn check_format(declared: &str) -> Result<(), ParseError> {
    let declared = declared.trim();
    if declared.is_empty() || declared == REGISTRY {
        return Ok(());
    }
    Err(ParseError::Format {
        found: declared.chars().take(64).collect(),
        // With a version (`plain+v0`) or without.
        what: match declared.split('+').next() {
            Some("helm") => ", a Helm chart",
            Some("plain") => ", plain manifests",
            Some("registry") => ", another version of registry+v1",
            _ => ", which is unknown",
        },
    })
}

/// Checks the format of a bundle's files by their annotations, or by files of another format.
pub(super) fn check(files: &BTreeMap<String, Vec<u8>>) -> Result<(), ParseError> {
    let Some(bytes) = files.get(ANNOTATIONS) else {
        return check_format(if files.contains_key(CHART) { "helm" } else { "" });
    };
    // The reader of the annotations reports a file that cannot be parsed.
    let declared = yaml::document(bytes).ok().and_then(|value| {
        let annotation = value.get("annotations")?.get(FORMAT_LABEL)?;
        annotation.as_str().map(ToOwned::to_owned).or_else(|| {
            matches!(annotation, Value::Number(_) | Value::Bool(_)).then(|| annotation.to_string())
        })
    });
    check_format(declared.as_deref().unwrap_or_default())
}
