//! Schemas for the validation: more fields than resolution needs, and lenient, so that one defect does not hide others.
//! Large values are borrowed and not kept.

use super::finding::Rule;
use super::report::{Place, Report};
use crate::Meta;
use crate::model::or_default;
use olm_version::go_quote;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// String, borrowed if it has no escapes; empty if absent or `null`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] Option<Cow<'a, str>>);

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.as_str().is_empty()
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawPackage<'a> {
    #[serde(default, borrow)]
    pub(super) default_channel: Text<'a>,
    #[serde(default, borrow)]
    pub(super) icon: Option<RawIcon<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RawIcon<'a> {
    #[serde(default, borrow)]
    pub(super) base64data: Text<'a>,
    #[serde(default, borrow)]
    pub(super) mediatype: Text<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RawChannel<'a> {
    #[serde(default, borrow, deserialize_with = "or_default")]
    pub(super) entries: Vec<RawEntry<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawEntry<'a> {
    #[serde(default, borrow)]
    pub(super) name: Text<'a>,
    #[serde(default, borrow)]
    pub(super) replaces: Text<'a>,
    #[serde(default, borrow, deserialize_with = "or_default")]
    pub(super) skips: Vec<Text<'a>>,
    #[serde(default, borrow)]
    pub(super) skip_range: Text<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawBundle<'a> {
    #[serde(default, borrow)]
    pub(super) image: Text<'a>,
    #[serde(default, borrow, deserialize_with = "or_default")]
    pub(super) properties: Vec<RawProperty<'a>>,
    #[serde(default, borrow, deserialize_with = "or_default")]
    pub(super) related_images: Vec<RawImage<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RawProperty<'a> {
    #[serde(rename = "type", default, borrow)]
    pub(super) type_: Text<'a>,
    #[serde(default, borrow)]
    pub(super) value: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RawImage<'a> {
    #[serde(default, borrow)]
    pub(super) name: Text<'a>,
    #[serde(default, borrow)]
    pub(super) image: Text<'a>,
}

/// The value of an `olm.package` property.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawPackageProperty<'a> {
    #[serde(default, borrow)]
    pub(super) package_name: Text<'a>,
    #[serde(default, borrow)]
    pub(super) version: Text<'a>,
    #[serde(default, borrow)]
    pub(super) release: Text<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RawDeprecations<'a> {
    #[serde(default, borrow, deserialize_with = "or_default")]
    pub(super) entries: Vec<RawDeprecation<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RawDeprecation<'a> {
    #[serde(default, borrow)]
    pub(super) reference: Option<RawReference<'a>>,
    #[serde(default, borrow)]
    pub(super) message: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct RawReference<'a> {
    #[serde(default, borrow)]
    pub(super) schema: Text<'a>,
    #[serde(default, borrow)]
    pub(super) name: Text<'a>,
}

/// Parses the blob of `meta`; reports a finding if it does not match its schema.
pub(super) fn shape<'a, T: Deserialize<'a>>(
    meta: &'a Meta,
    package: &str,
    place: Place,
    report: &mut Report,
) -> Option<T> {
    match serde_json::from_slice(&meta.blob) {
        Ok(raw) => Some(raw),
        Err(error) => {
            let message = format!("{} {} is malformed: {error}", meta.schema, go_quote(&meta.name));
            let hint = "compare the field with the schema's documentation";
            report.add(place, package, Rule::Shape, message, hint);
            None
        }
    }
}
