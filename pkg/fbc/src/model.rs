//! Typed schemas that resolution uses. Unused fields are dropped: a package may hold a thousand bundles, each with a
//! megabyte of descriptions.

use crate::error::MAX_SHOWN;
use olm_text::cut;
use olm_version::{ParseError, VersionRelease};
use serde::{Deserialize, Serialize};

/// Schemas with a meaning in resolution.
pub mod schema {
    /// A package.
    pub const PACKAGE: &str = "olm.package";
    /// A channel of a package.
    pub const CHANNEL: &str = "olm.channel";
    /// A bundle of a package.
    pub const BUNDLE: &str = "olm.bundle";
    /// Schema of the deprecations of a package.
    pub const DEPRECATIONS: &str = "olm.deprecations";
}

/// Object of schema `olm.package`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Package {
    /// The package's name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// Channel that older clients default to; resolution ignores it.
    #[serde(default, deserialize_with = "or_default")]
    pub default_channel: String,
    /// Description for people.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
}

/// Object of schema `olm.channel`: bundles and the upgrade edges between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// The channel's name, unique in the package.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// Bundles of the channel, each with the edges that lead to it.
    #[serde(default, deserialize_with = "or_default")]
    pub entries: Vec<Entry>,
}

/// Bundle in a channel, with the edges that lead to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The bundle's name; the bundle itself may be missing from the catalog.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// Replaced bundle; it may be missing from the channel.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub replaces: String,
    /// Further replaced bundles.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub skips: Vec<String>,
    /// Replaced versions, as written; see `olm_version::SkipRange`.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub skip_range: String,
}

/// Object of schema `olm.bundle`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "WrittenBundle")]
pub struct Bundle {
    /// The bundle's name, unique in the package.
    pub name: String,
    /// Image with the manifests.
    pub image: String,
    /// Properties, without those that hold whole manifests.
    pub properties: Vec<Property>,
    /// Lowest version of Kubernetes that the bundle supports, as written in its property `olm.csv.metadata`; at most
    /// [`MIN_KUBE_VERSION_MAX`](Self::MIN_KUBE_VERSION_MAX) bytes. `None` if the catalog does not say it.
    #[serde(skip)]
    pub min_kube_version: Option<Box<str>>,
}

/// A bundle as catalogs write it.
#[derive(Deserialize)]
struct WrittenBundle {
    #[serde(default, deserialize_with = "or_default")]
    name: String,
    #[serde(default, deserialize_with = "or_default")]
    image: String,
    #[serde(default, deserialize_with = "kept_properties")]
    properties: KeptProperties,
}

impl From<WrittenBundle> for Bundle {
    fn from(written: WrittenBundle) -> Self {
        Self {
            name: written.name,
            image: written.image,
            properties: written.properties.kept,
            min_kube_version: written.properties.min_kube_version,
        }
    }
}

/// Property of a bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Property {
    /// Type of the property, such as `olm.package`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Value of the property.
    #[serde(default)]
    pub value: serde_json::Value,
}

/// Object of schema `olm.deprecations`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deprecations {
    /// Deprecations, in the order written.
    #[serde(default, deserialize_with = "or_default")]
    pub entries: Vec<DeprecationEntry>,
}

/// Deprecation of a package, channel or bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeprecationEntry {
    /// The deprecated package, channel or bundle.
    #[serde(default, deserialize_with = "or_default")]
    pub reference: Reference,
    /// Message for users.
    #[serde(default, deserialize_with = "or_default")]
    pub message: String,
}

/// Reference to a package, channel or bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// Schema of the referenced object; see [`schema`].
    #[serde(default, deserialize_with = "or_default")]
    pub schema: String,
    /// Name of the referenced object; empty for the package itself.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
}

/// Reason why a bundle has no usable version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// The bundle has no `olm.package` property.
    #[error("no package property found in bundle {}", olm_version::go_quote(bundle))]
    NoProperty {
        /// The bundle.
        bundle: String,
    },
    /// The `olm.package` property does not consist of a package name and a version.
    #[error("error unmarshalling package property: {reason}")]
    Shape {
        /// Reason why the property does not decode.
        reason: String,
    },
    /// The version or release cannot be parsed.
    #[error(transparent)]
    Parse(#[from] ParseError),
}

#[derive(Deserialize)]
struct PackageValue {
    #[serde(default, deserialize_with = "or_default")]
    version: String,
    release: Option<String>,
}

impl Bundle {
    /// Property with the version of a bundle.
    pub const PACKAGE_PROPERTY: &'static str = "olm.package";
    /// Longest `minKubeVersion` that is read, in bytes; a longer text is no version.
    pub const MIN_KUBE_VERSION_MAX: usize = 64;

    /// Returns the bundle's version and release. With `release_support`, a `release` in the property counts, even an
    /// empty one. Otherwise, or without it, build metadata that parses as a release is the release.
    ///
    /// # Errors
    /// [`VersionError`] if the version is missing or cannot be parsed.
    pub fn version_release(&self, release_support: bool) -> Result<VersionRelease, VersionError> {
        let property = self
            .properties
            .iter()
            .find(|property| property.type_ == Self::PACKAGE_PROPERTY)
            .ok_or_else(|| VersionError::NoProperty {
                bundle: self.name.clone(),
            })?;
        let value = PackageValue::deserialize(&property.value).map_err(|error| VersionError::Shape {
            reason: cut(&error.to_string(), MAX_SHOWN).into_owned(),
        })?;
        Ok(match value.release.filter(|_| release_support) {
            Some(release) => VersionRelease::parse(&value.version, &release)?,
            None => VersionRelease::parse_legacy(&value.version)?,
        })
    }
}

/// Deserializes `null` as the empty value, like Go's decoder.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Property with a whole manifest, which is never read.
const OBJECT_PROPERTY: &str = "olm.bundle.object";
/// Property with most of the CSV, of which only `minKubeVersion` is read.
const CSV_PROPERTY: &str = "olm.csv.metadata";

/// Properties of a bundle that stay in memory, and `minKubeVersion` of the one that does not.
#[derive(Default)]
struct KeptProperties {
    kept: Vec<Property>,
    min_kube_version: Option<Box<str>>,
}

/// Returns `minKubeVersion` of a value of [`CSV_PROPERTY`]; `None` for any other form of value.
fn min_kube_version(value: &str) -> Option<Box<str>> {
    #[derive(Deserialize)]
    struct Metadata<'a> {
        #[serde(rename = "minKubeVersion", default, borrow)]
        version: Option<std::borrow::Cow<'a, str>>,
    }
    // The value can be large, and few have the field. A list would be read as the fields of the struct.
    if !value.trim_start().starts_with('{') || !value.contains("\"minKubeVersion\"") {
        return None;
    }
    let version = serde_json::from_str::<Metadata<'_>>(value).ok()?.version?;
    let fits = !version.is_empty() && version.len() <= Bundle::MIN_KUBE_VERSION_MAX;
    fits.then(|| version.as_ref().into())
}

fn kept_properties<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<KeptProperties, D::Error> {
    #[derive(Deserialize)]
    struct Raw<'a> {
        #[serde(rename = "type", default, borrow)]
        type_: std::borrow::Cow<'a, str>,
        #[serde(default, borrow)]
        value: Option<&'a serde_json::value::RawValue>,
    }
    let raw = Option::<Vec<Raw<'de>>>::deserialize(deserializer)?.unwrap_or_default();
    let csv = raw.iter().find(|raw| raw.type_ == CSV_PROPERTY);
    let min_kube_version = csv
        .and_then(|csv| csv.value)
        .and_then(|value| min_kube_version(value.get()));
    let kept = raw
        .into_iter()
        .filter(|raw| ![OBJECT_PROPERTY, CSV_PROPERTY].contains(&raw.type_.as_ref()))
        .map(|raw| {
            let value = raw.value.map_or(Ok(serde_json::Value::Null), |value| {
                serde_json::from_str(value.get())
            });
            Ok(Property {
                type_: raw.type_.into_owned(),
                value: value.map_err(serde::de::Error::custom)?,
            })
        })
        .collect::<Result<_, _>>()?;
    Ok(KeptProperties {
        kept,
        min_kube_version,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Bundle;

    #[test]
    fn of_the_csv_only_the_lowest_version_of_kubernetes_is_kept() {
        let read = |value: &Value| -> Bundle {
            let metadata = json!({"type": "olm.csv.metadata", "value": value});
            let text = json!({"name": "a.v1", "properties": [{"type": "color", "value": "red"}, metadata]});
            serde_json::from_str(&text.to_string()).unwrap()
        };
        let known = read(&json!({"description": "long", "minKubeVersion": "1.30.0"}));
        assert_eq!(known.min_kube_version.as_deref(), Some("1.30.0"));
        assert_eq!(known.properties.len(), 1);
        for unknown in [
            json!({}),
            json!({"minKubeVersion": ""}),
            json!({"minKubeVersion": null}),
            json!({"minKubeVersion": 1.3}),
            json!({"minKubeVersion": "1".repeat(65)}),
            json!({"annotations": {"minKubeVersion": "1.30.0"}}),
            json!(["minKubeVersion"]),
            json!("minKubeVersion"),
            json!(null),
        ] {
            assert_eq!(read(&unknown).min_kube_version, None, "{unknown}");
        }
    }
}
