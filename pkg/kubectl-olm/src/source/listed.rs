//! The packages of a catalog as a list, described for people.

use std::collections::{BTreeMap, BTreeSet};

use olm_fbc::{Meta, PackageBuilder, schema};
use serde::{Deserialize, Serialize};

use super::catalog::Catalog;
use super::error::SourceError;
use super::query::Query;

/// The property of a bundle that describes it.
const DESCRIPTION: &str = "olm.csv.metadata";

/// A package as it is listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    /// The package.
    pub(crate) name: String,
    /// The channel that older clients default to.
    pub(crate) default_channel: String,
    /// Description for people.
    pub(crate) description: String,
    /// The name for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) display_name: String,
    /// The words that its bundles are to be found by.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) keywords: BTreeSet<String>,
    /// The maker.
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
    /// Its packages, by name. A package that exists by its bundles alone is not listed.
    ///
    /// # Errors
    /// The catalog cannot be read.
    pub(crate) async fn packages(&self) -> Result<Vec<Listed>, SourceError> {
        let found = self
            .fold(
                &Query::Descriptions,
                BTreeMap::<String, Found>::new(),
                |found, meta| {
                    match meta.schema.as_str() {
                        schema::PACKAGE => {
                            let mut builder = PackageBuilder::new(&meta.name);
                            builder.add(&meta)?;
                            if let Some(package) = builder.finish().package {
                                let entry = found.entry(meta.name).or_default();
                                entry.is_package = true;
                                entry.listed.default_channel = package.default_channel;
                                entry.listed.description = package.description;
                            }
                        }
                        schema::BUNDLE => found.entry(meta.package.clone()).or_default().describe(&meta),
                        _ => {}
                    }
                    Ok(())
                },
            )
            .await?;
        let packages = found.into_iter().filter(|(_, found)| found.is_package);
        Ok(packages
            .map(|(name, found)| Listed { name, ..found.listed })
            .collect())
    }

    /// The names of its packages.
    ///
    /// # Errors
    /// The catalog cannot be read.
    pub(crate) async fn package_names(&self) -> Result<BTreeSet<String>, SourceError> {
        self.fold(&Query::Packages, BTreeSet::new(), |names, meta| {
            if meta.schema == schema::PACKAGE {
                names.insert(meta.name);
            }
            Ok(())
        })
        .await
    }
}

/// A package while its catalog is read.
#[derive(Default)]
struct Found {
    listed: Listed,
    is_package: bool,
    /// The bundle that the names for people are of: the last by name.
    of: String,
}

impl Found {
    /// Adds what a bundle says. One that does not read describes nothing.
    fn describe(&mut self, meta: &Meta) {
        let Ok(bundle) = serde_json::from_slice::<Bundle>(&meta.blob) else {
            return;
        };
        let says = bundle
            .properties
            .into_iter()
            .find(|property| property.type_ == DESCRIPTION);
        let says = says.and_then(|property| serde_json::from_value::<Description>(property.value).ok());
        let Some(says) = says else { return };
        self.listed.keywords.extend(says.keywords);
        if meta.name >= self.of {
            self.of.clone_from(&meta.name);
            self.listed.display_name = says.display_name;
            self.listed.provider = says.provider.name;
        }
    }
}
