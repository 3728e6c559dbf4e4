//! Notices about content that is accepted, like upstream does, but is probably a mistake.

use std::collections::BTreeMap;

use olm_yaml::RepeatedKey;
use serde::Serialize;
use serde_json::Value;

use super::{ANNOTATIONS, CSV_KIND, PROPERTIES, check_sizes, manifests};
use crate::yaml;

/// Remark on a bundle's file for its author.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Notice {
    /// The file.
    pub file: String,
    /// Description of the probable mistake and its effect.
    pub message: String,
}

/// Finds content that [`parse`](crate::parse) ignores silently. Skips unreadable files, which `parse` reports.
pub fn lint(files: &BTreeMap<String, Vec<u8>>) -> Vec<Notice> {
    let mut out = Vec::new();
    if check_sizes(files).is_err() {
        return out;
    }
    let metadata = [ANNOTATIONS, PROPERTIES]
        .into_iter()
        .filter_map(|path| files.get_key_value(path));
    let mut csvs: Vec<&str> = Vec::new();
    for (path, bytes) in metadata.chain(manifests(files)) {
        let mut notice = |message: String| {
            out.push(Notice {
                file: path.clone(),
                message,
            });
        };
        for RepeatedKey { line, key } in yaml::repeated_keys(bytes) {
            notice(format!(
                "line {line}: duplicate key \"{key}\" in one mapping; the last value is used"
            ));
        }
        for document in yaml::documents(bytes, yaml::MAX_MEMORY).unwrap_or_default() {
            match document.get("kind").and_then(Value::as_str) {
                Some(CSV_KIND) => csvs.push(path),
                Some("CustomResourceDefinition")
                    if document.get("apiVersion").and_then(Value::as_str)
                        == Some("apiextensions.k8s.io/v1beta1") =>
                {
                    notice(
                        "CustomResourceDefinition of apiextensions.k8s.io/v1beta1, which no supported cluster serves; its schema is dropped"
                            .to_owned(),
                    );
                }
                _ => {}
            }
        }
    }
    if let [ignored @ .., last] = csvs.as_slice() {
        out.extend(ignored.iter().map(|path| Notice {
            file: (*path).to_owned(),
            message: format!("unused ClusterServiceVersion: only the last one, in \"{last}\", is used"),
        }));
    }
    if files.contains_key("metadata/dependencies.yaml") {
        out.push(Notice {
            file: "metadata/dependencies.yaml".to_owned(),
            message: "this file is ignored: dependencies come from the catalog".to_owned(),
        });
    }
    out.sort();
    out
}
