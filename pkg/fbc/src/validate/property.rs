//! Validation of the properties of bundles, by the shape of their values.

use super::finding::Rule;
use super::raw::{RawBundle, RawPackageProperty, RawProperty};
use super::report::{Place, Report};
use crate::Meta;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use olm_version::{SkipRange, VersionRelease, go_quote};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Facts about the properties of a bundle that later rules need.
#[derive(Debug, Default)]
pub(super) struct Properties {
    pub(super) version: Option<VersionRelease>,
    /// The bundle holds its objects itself and needs no image.
    pub(super) has_objects: bool,
}

/// Rule, message and hint of a finding.
type Fault = (Rule, String, &'static str);

pub(super) fn check(raw: &RawBundle<'_>, meta: &Meta, place: Place, report: &mut Report) -> Properties {
    let mut properties = Properties::default();
    let mut faults: Vec<Fault> = Vec::new();
    let (mut packages, mut summaries) = (0_usize, 0_usize);
    for property in &raw.properties {
        match property.type_.as_str() {
            "olm.package" => {
                packages += 1;
                match package(property, &meta.package) {
                    Ok(version) => {
                        properties.version.get_or_insert(version);
                    }
                    Err(found) => faults.extend(found),
                }
            }
            "olm.csv.metadata" => {
                summaries += 1;
                faults.extend(csv_metadata(property));
            }
            "olm.bundle.object" => {
                properties.has_objects = true;
                faults.extend(bundle_object(property));
            }
            type_ => faults.extend(other(property, type_)),
        }
    }
    if packages == 0 {
        let text = "it has no olm.package property".to_owned();
        let hint = "add one olm.package property with packageName and version";
        faults.push((Rule::PackagePropertyMissing, text, hint));
    } else if packages > 1 {
        let text = format!("it has {packages} olm.package properties");
        faults.push((
            Rule::PackagePropertyMultiple,
            text,
            "keep one olm.package property",
        ));
    }
    if summaries > 1 {
        let text = format!("it has {summaries} olm.csv.metadata properties");
        faults.push((
            Rule::CsvMetadataInvalid,
            text,
            "keep one olm.csv.metadata property",
        ));
    }
    for (rule, text, hint) in faults {
        let message = format!("bundle {}: {text}", go_quote(&meta.name));
        report.add(place, &meta.package, rule, message, hint);
    }
    properties
}

/// Parses the value of `property`; the error is its description.
fn value<'a, T: Deserialize<'a>>(property: &RawProperty<'a>) -> Result<T, String> {
    let type_ = property.type_.as_str();
    let value = property
        .value
        .ok_or_else(|| format!("the property {} has no value", go_quote(type_)))?;
    serde_json::from_str(value.get())
        .map_err(|error| format!("the property {} is malformed: {error}", go_quote(type_)))
}

fn package(property: &RawProperty<'_>, package: &str) -> Result<VersionRelease, Vec<Fault>> {
    let raw: RawPackageProperty<'_> = value(property).map_err(|text| {
        let hint = "write packageName and version as strings";
        vec![(Rule::PropertyInvalid, text, hint)]
    })?;
    let mut faults = Vec::new();
    if raw.package_name.as_str() != package {
        let named = go_quote(raw.package_name.as_str());
        let text = format!(
            "its olm.package property names the package {named}, not {}",
            go_quote(package)
        );
        let hint = "let package and packageName name the same package";
        faults.push((Rule::PackagePropertyMismatch, text, hint));
    }
    let version = if raw.release.is_empty() {
        VersionRelease::parse_legacy(raw.version.as_str())
    } else {
        VersionRelease::parse(raw.version.as_str(), raw.release.as_str())
    };
    match version {
        Ok(version) if faults.is_empty() => Ok(version),
        Ok(_) => Err(faults),
        Err(error) => {
            let text = format!(
                "its version {} does not read: {error}",
                go_quote(raw.version.as_str())
            );
            let hint = "write a semantic version without a leading v, such as 1.2.3";
            faults.push((Rule::VersionInvalid, text, hint));
            Err(faults)
        }
    }
}

fn csv_metadata(property: &RawProperty<'_>) -> Option<Fault> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only whether it reads matters")]
    struct Summary<'a> {
        #[serde(borrow)]
        annotations: Option<BTreeMap<Cow<'a, str>, Cow<'a, str>>>,
        #[serde(borrow)]
        labels: Option<BTreeMap<Cow<'a, str>, Cow<'a, str>>>,
        #[serde(borrow)]
        display_name: Option<Cow<'a, str>>,
        #[serde(borrow)]
        description: Option<Cow<'a, str>>,
        install_modes: Option<Vec<Mode>>,
        keywords: Option<Vec<String>>,
        maintainers: Option<Vec<IgnoredAny>>,
        links: Option<Vec<IgnoredAny>>,
    }
    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only whether it reads matters")]
    struct Mode {
        #[serde(rename = "type")]
        type_: String,
        supported: bool,
    }
    let hint = "write it as opm render does from the bundle's ClusterServiceVersion";
    value::<Summary<'_>>(property)
        .err()
        .map(|text| (Rule::CsvMetadataInvalid, text, hint))
}

fn bundle_object(property: &RawProperty<'_>) -> Option<Fault> {
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(borrow)]
        data: Option<Cow<'a, str>>,
    }
    #[derive(Deserialize)]
    struct Kind {
        #[serde(default)]
        kind: String,
    }
    let fault = |text| {
        Some((
            Rule::BundleObjectInvalid,
            text,
            "set data to the object's JSON or YAML in base64",
        ))
    };
    let data = match value::<Object<'_>>(property) {
        Ok(object) => object.data.unwrap_or_default(),
        Err(text) => return fault(text),
    };
    if data.is_empty() {
        return fault("an olm.bundle.object has no data".to_owned());
    }
    let bytes = match STANDARD.decode(data.as_bytes()) {
        Ok(bytes) => bytes,
        Err(error) => return fault(format!("an olm.bundle.object is not base64: {error}")),
    };
    // YAML is allowed, too, and validated when it is unpacked.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    match serde_json::from_slice::<Kind>(&bytes) {
        Ok(object) if object.kind.is_empty() => fault("an olm.bundle.object has no kind".to_owned()),
        Ok(_) => None,
        Err(error) => fault(format!("an olm.bundle.object is malformed JSON: {error}")),
    }
}

/// Validates properties by their shape only, and those of unknown types.
fn other(property: &RawProperty<'_>, type_: &str) -> Option<Fault> {
    let fault = |text, hint| Some((Rule::PropertyInvalid, text, hint));
    let required: &[&str] = match type_ {
        "" => return fault("a property has no type".to_owned(), "set type"),
        "olm.gvk" | "olm.gvk.required" => &["group", "kind", "version"],
        "olm.package.required" => &["packageName", "versionRange"],
        _ if property.value.is_none() => {
            let text = format!("the property {} has no value", go_quote(type_));
            return fault(text, "set value");
        }
        _ => return None,
    };
    let fields: BTreeMap<String, String> = match value(property) {
        Ok(fields) => fields,
        Err(text) => return fault(text, "write an object of strings"),
    };
    let empty = |key: &&&str| fields.get(**key).is_none_or(String::is_empty);
    if let Some(missing) = required.iter().find(empty) {
        let text = format!("the property {} has no {missing}", go_quote(type_));
        return fault(text, "set every field of the property");
    }
    let range = fields
        .get("versionRange")
        .filter(|_| type_ == "olm.package.required")?;
    let error = range.parse::<SkipRange>().err()?;
    let text = format!(
        "the versionRange {} of an olm.package.required does not read: {error}",
        go_quote(range)
    );
    fault(
        text,
        "write comparators with whole versions, such as >=1.0.0 <2.0.0",
    )
}
