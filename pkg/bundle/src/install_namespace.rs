//! Namespace that a bundle suggests for its installation.
//!
//! The annotations are those of OLM Classic's console; the name that stands in for them is upstream's: `<package>-system`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use olm_text::dns::{LABEL_MAX, is_label};
use olm_text::{head, quoted};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{Bundle, RenderError, yaml};

/// Annotation of a CSV with a Namespace as JSON.
const TEMPLATE: &str = "operatorframework.io/suggested-namespace-template";
/// Annotation of a CSV with the name of a namespace.
const NAME: &str = "operatorframework.io/suggested-namespace";
/// End of the name that is made of the package's.
const SUFFIX: &str = "-system";
/// Number of characters of the hash in the name.
const HASH_LENGTH: usize = 8;
/// Maximum length of a foreign name in a message, in bytes.
const SHOWN: usize = 253;

/// A namespace that is installed with the bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstallNamespace {
    /// Name, a DNS label.
    pub name: String,
    /// Labels, such as the levels of Kubernetes' pod security.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
}

impl InstallNamespace {
    /// Returns the object.
    pub(crate) fn object(&self) -> Value {
        let mut metadata = json!({"name": self.name});
        for (key, entries) in [("labels", &self.labels), ("annotations", &self.annotations)] {
            if !entries.is_empty() {
                metadata[key] = json!(entries);
            }
        }
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    }
}

/// Metadata of the template.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
}

/// Returns the namespace to install `bundle` into: `chosen`, else the one of the bundle's template, else the one that the bundle
/// names, else one made of the package's name. Labels and annotations are the template's.
///
/// # Errors
/// The template is no Namespace, or the suggested name is no DNS label.
pub fn install_namespace(bundle: &Bundle, chosen: Option<&str>) -> Result<InstallNamespace, RenderError> {
    let annotation = |key| bundle.annotation(key).filter(|text| !text.is_empty());
    let metadata = match annotation(TEMPLATE) {
        Some(text) => template(text).map_err(|error| {
            RenderError::InstallNamespace(format!("annotation {TEMPLATE} is no Namespace as JSON: {error}"))
        })?,
        None => Metadata::default(),
    };
    let suggested = chosen
        .map(str::to_owned)
        .or(metadata.name)
        .filter(|name| !name.is_empty());
    let name = match suggested.or_else(|| annotation(NAME).map(str::to_owned)) {
        Some(name) if is_label(&name) => name,
        Some(name) => {
            return Err(RenderError::InstallNamespace(format!(
                "the suggested name {} is no DNS label",
                quoted(&name, SHOWN)
            )));
        }
        None => of_package(&bundle.package),
    };
    Ok(InstallNamespace {
        name,
        labels: metadata.labels.unwrap_or_default(),
        annotations: metadata.annotations.unwrap_or_default(),
    })
}

/// Reads the metadata of the template, as JSON or, since real templates have commas after the last entry, as YAML. Objects must be
/// objects: serde would also take lists for them.
fn template(text: &str) -> Result<Metadata, serde_json::Error> {
    let namespace: Value =
        serde_json::from_str(text).or_else(|error| yaml::document(text.as_bytes()).map_err(|_| error))?;
    let mut namespace: Map<String, Value> = serde_json::from_value(namespace)?;
    let metadata = namespace.remove("metadata").unwrap_or_default();
    let metadata: Option<Map<String, Value>> = serde_json::from_value(metadata)?;
    serde_json::from_value(Value::Object(metadata.unwrap_or_default()))
}

/// Returns the namespace of a package whose bundle suggests none. A package name that is no DNS label, or too long, is changed to
/// one and gets a hash of the original, so that two packages never share a namespace because their names became equal.
fn of_package(package: &str) -> String {
    let plain = format!("{package}{SUFFIX}");
    if is_label(package) && is_label(&plain) {
        return plain;
    }
    let mut base = String::new();
    for letter in package.chars() {
        // Go maps each letter to one, where Unicode's full mapping has several.
        match letter.to_lowercase().next() {
            Some(lower) if lower.is_ascii_lowercase() || lower.is_ascii_digit() => base.push(lower),
            _ if base.ends_with('-') => {}
            _ => base.push('-'),
        }
    }
    let room = LABEL_MAX - SUFFIX.len() - HASH_LENGTH - 1;
    let base = head(base.trim_matches('-'), room).trim_matches('-');
    let hash = hash(package);
    let separator = if base.is_empty() { "" } else { "-" };
    format!("{base}{separator}{hash}{SUFFIX}")
}

/// Returns the first characters of the hash of a text in Kubernetes' way: 32-bit FNV-1a over the text with its Go type, as decimal
/// digits in the alphabet of generated names, which forms no words.
fn hash(text: &str) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let (offset, prime) = (0x811c_9dc5_u32, 0x0100_0193_u32);
    let sum = format!("(string){text}")
        .bytes()
        .fold(offset, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(prime));
    let mut digits = String::new();
    // Writing into a String cannot fail.
    let _ = write!(digits, "{sum}");
    digits
        .bytes()
        .take(HASH_LENGTH)
        .filter_map(|digit| ALPHABET.get(usize::from(digit) % ALPHABET.len()))
        .map(|letter| char::from(*letter))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::model::Csv;

    /// Written by `hack/namespace-oracle`.
    const VECTORS: &str = include_str!("../../../test/testdata/install-namespaces.jsonl");

    #[derive(Deserialize)]
    struct Vector {
        package: String,
        namespace: String,
    }

    #[test]
    fn names_made_of_packages_are_those_of_the_oracle() {
        let mut seen = 0;
        for line in VECTORS.lines() {
            let vector: Vector = serde_json::from_str(line).unwrap();
            assert_eq!(of_package(&vector.package), vector.namespace, "{line}");
            seen += 1;
        }
        assert!(seen > 200);
    }

    proptest! {
        #[test]
        fn every_package_gets_a_label(package in ".*", other in ".*") {
            prop_assert!(is_label(&of_package(&package)));
            // The hash tells apart what becomes equal; it has 26 bits, so random pairs do not meet.
            prop_assert_eq!(of_package(&package) == of_package(&other), package == other);
        }
    }

    fn suggested(annotations: &[(&str, &str)]) -> Result<InstallNamespace, String> {
        let annotations = annotations
            .iter()
            .map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
        let bundle = Bundle {
            package: "gauge".to_owned(),
            csv: Csv {
                annotations: annotations.collect(),
                ..Csv::default()
            },
            crds: Vec::new(),
            other_manifests: Vec::new(),
        };
        install_namespace(&bundle, None).map_err(|error| error.to_string())
    }

    #[test]
    fn the_template_comes_before_the_name_and_the_package() {
        let name = |annotations: &[(&str, &str)]| suggested(annotations).unwrap().name;
        assert_eq!(name(&[]), "gauge-system");
        assert_eq!(name(&[(NAME, ""), (TEMPLATE, "")]), "gauge-system");
        assert_eq!(name(&[(NAME, "meters")]), "meters");
        let template = r#"{"kind": "Namespace", "metadata": {"name": "levels", "creationTimestamp": null,
            "labels": {"pod-security.kubernetes.io/enforce": "privileged"}, "annotations": {"a": "b"}}, "spec": {}}"#;
        let found = suggested(&[(TEMPLATE, template), (NAME, "meters")]).unwrap();
        assert_eq!(
            found.object(),
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "levels",
                "labels": {"pod-security.kubernetes.io/enforce": "privileged"}, "annotations": {"a": "b"}}})
        );
        let nameless = suggested(&[
            (TEMPLATE, r#"{"metadata": {"labels": {"a": "b"}}}"#),
            (NAME, "meters"),
        ])
        .unwrap();
        assert_eq!((nameless.name.as_str(), nameless.labels.len()), ("meters", 1));
        assert_eq!(name(&[(TEMPLATE, "{}")]), "gauge-system");
        let comma = r#"{"metadata": {"name": "levels", "annotations": {},},}"#;
        assert_eq!(name(&[(TEMPLATE, comma)]), "levels");
    }

    #[test]
    fn unusable_suggestions_are_refused() {
        for (key, text) in [
            (TEMPLATE, "[]"),
            (TEMPLATE, "levels"),
            (TEMPLATE, r#"{"metadata": ["levels"]}"#),
            (TEMPLATE, r#"{"metadata": {"labels": {"a": 1}}}"#),
            (TEMPLATE, r#"{"metadata": {"name": "Levels"}}"#),
            (NAME, "../kube-system"),
            (NAME, "a.b"),
        ] {
            let refused = suggested(&[(key, text)]).unwrap_err();
            assert!(refused.contains("spec.namespace"), "{text}: {refused}");
        }
    }
}
