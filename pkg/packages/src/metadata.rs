//! Description of a bundle: its property `olm.csv.metadata`.

use olm_fbc::Meta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Property of a bundle with its description.
const DESCRIPTION: &str = "olm.csv.metadata";

/// Description of a bundle for people. A field of another type than expected is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Display name.
    #[serde(deserialize_with = "lenient")]
    pub display_name: String,
    /// Description, in Markdown.
    #[serde(deserialize_with = "lenient")]
    pub description: String,
    /// Keywords.
    #[serde(deserialize_with = "lenient")]
    pub keywords: Vec<String>,
    /// Provider.
    #[serde(deserialize_with = "lenient")]
    pub provider: Provider,
    /// Links to pages of the project.
    #[serde(deserialize_with = "lenient")]
    pub links: Vec<Link>,
    /// Maintainers.
    #[serde(deserialize_with = "lenient")]
    pub maintainers: Vec<Maintainer>,
    /// Maturity, such as `stable`.
    #[serde(deserialize_with = "lenient")]
    pub maturity: String,
}

/// Provider of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Provider {
    /// Name.
    #[serde(deserialize_with = "lenient")]
    pub name: String,
}

/// Link to a page of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Link {
    /// Text.
    #[serde(deserialize_with = "lenient")]
    pub name: String,
    /// Address as written, of any scheme.
    #[serde(deserialize_with = "lenient")]
    pub url: String,
}

/// Maintainer of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Maintainer {
    /// Name.
    #[serde(deserialize_with = "lenient")]
    pub name: String,
    /// Email address as written.
    #[serde(deserialize_with = "lenient")]
    pub email: String,
}

#[derive(Deserialize)]
struct Bundle {
    #[serde(default)]
    properties: Vec<Property>,
}

#[derive(Deserialize)]
struct Property {
    #[serde(rename = "type", default)]
    type_: String,
    #[serde(default)]
    value: Value,
}

impl Metadata {
    /// Reads the description of a bundle; none if it has none that can be parsed.
    pub fn of(bundle: &Meta) -> Option<Self> {
        let bundle: Bundle = serde_json::from_slice(&bundle.blob).ok()?;
        let mut properties = bundle.properties.into_iter();
        let property = properties.find(|property| property.type_ == DESCRIPTION)?;
        Self::deserialize(property.value).ok()
    }
}

/// Deserializes a value of another type than expected as the empty value.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(deserializer: D) -> Result<T, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_other_types_are_empty() {
        let metadata = json!({"displayName": "Kite", "keywords": "sky", "provider": null, "links": [{"name": 1, "url": "u"}]});
        let blob = json!({"schema": "olm.bundle", "name": "kite.v1", "package": "kite",
            "properties": [{"type": DESCRIPTION, "value": metadata}]});
        let meta = olm_fbc::decode(blob.to_string().as_bytes(), &olm_fbc::Limits::default())
            .next()
            .unwrap()
            .unwrap();
        let read = Metadata::of(&meta).unwrap();
        assert_eq!((read.display_name.as_str(), read.keywords.len()), ("Kite", 0));
        let link = Link {
            url: "u".to_owned(),
            ..Link::default()
        };
        assert_eq!(read.links, [link]);
    }
}
