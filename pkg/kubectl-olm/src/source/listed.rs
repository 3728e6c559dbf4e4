//! List of the packages of a catalog, with descriptions.

use std::collections::{BTreeMap, BTreeSet};

use olm_fbc::{Meta, PackageBuilder, schema};
use olm_text::name::PackageName;
use serde::{Deserialize, Serialize};

use super::catalog::Catalog;
use super::error::SourceError;
use super::query::Query;

/// Property of a bundle with its description.
const DESCRIPTION: &str = "olm.csv.metadata";

/// Package in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PackageListing {
    /// The package.
    pub(crate) name: PackageName,
    /// The channel that older clients default to.
    pub(crate) default_channel: String,
    /// Description for people.
    pub(crate) description: String,
    /// Display name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) display_name: String,
    /// Keywords of its bundles.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) keywords: BTreeSet<String>,
    /// Provider.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) provider: String,
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
    value: serde_json::Value,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Description {
    display_name: String,
    keywords: Vec<String>,
    provider: Provider,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Provider {
    name: String,
}

impl Catalog {
    /// Returns the packages by name, except packages without an `olm.package` blob.
    ///
    /// # Errors
    /// The catalog cannot be read.
    pub(crate) async fn packages(&self) -> Result<Vec<PackageListing>, SourceError> {
        let found = self
            .fold(
                &Query::Descriptions,
                BTreeMap::<PackageName, PackageEntry>::new(),
                |found, meta| {
                    match meta.schema.as_str() {
                        schema::PACKAGE => {
                            let mut builder = PackageBuilder::new(&meta.name);
                            builder.add(&meta)?;
                            if let Some(package) = builder.finish().package {
                                let entry = found.entry(meta.name.into()).or_default();
                                entry.is_package = true;
                                entry.listed.default_channel = package.default_channel;
                                entry.listed.description = package.description;
                            }
                        }
                        schema::BUNDLE => found
                            .entry(meta.package.as_str().into())
                            .or_default()
                            .describe(&meta),
                        _ => {}
                    }
                    Ok(())
                },
            )
            .await?;
        let packages = found.into_iter().filter(|(_, found)| found.is_package);
        Ok(packages
            .map(|(name, found)| PackageListing { name, ..found.listed })
            .collect())
    }

    /// Returns the names of the packages.
    ///
    /// # Errors
    /// The catalog cannot be read.
    pub(crate) async fn package_names(&self) -> Result<BTreeSet<PackageName>, SourceError> {
        self.fold(&Query::Packages, BTreeSet::new(), |names, meta| {
            if meta.schema == schema::PACKAGE {
                names.insert(meta.name.into());
            }
            Ok(())
        })
        .await
    }
}

/// Package during a read of its catalog.
#[derive(Default)]
struct PackageEntry {
    listed: PackageListing,
    is_package: bool,
    /// The bundle of the display name and provider: the last by name.
    described_by: String,
}

impl PackageEntry {
    /// Adds the description of a bundle; ignores a bundle that cannot be parsed.
    fn describe(&mut self, meta: &Meta) {
        let Ok(bundle) = serde_json::from_slice::<Bundle>(&meta.blob) else {
            return;
        };
        let description = bundle
            .properties
            .into_iter()
            .find(|property| property.type_ == DESCRIPTION);
        let description =
            description.and_then(|property| serde_json::from_value::<Description>(property.value).ok());
        let Some(description) = description else { return };
        self.listed.keywords.extend(description.keywords);
        if meta.name >= self.described_by {
            self.described_by.clone_from(&meta.name);
            self.listed.display_name = description.display_name;
            self.listed.provider = description.provider.name;
        }
    }
}
