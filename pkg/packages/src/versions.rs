//! Versions of a package.

use std::cmp::Ordering;

use olm_fbc::lifecycle::Date;
use olm_fbc::{PackageContent, schema};
use olm_resolve::SupportAnswer;
use olm_text::name::CatalogName;
use olm_version::VersionRelease;
use serde::Serialize;

use crate::support;

/// Bundle in a list of versions.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionRow<'a> {
    /// The catalog.
    pub catalog: &'a CatalogName,
    /// The bundle's name.
    pub bundle: &'a str,
    /// Its version; none if it has none that can be parsed.
    pub version: Option<String>,
    /// Its image, as written.
    pub image: &'a str,
    /// The channels that list the bundle.
    pub channels: Vec<String>,
    /// Deprecation message; may be empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// Support of the version.
    #[serde(skip_serializing_if = "SupportAnswer::is_no_data")]
    pub support: SupportAnswer,
    #[serde(skip)]
    order: Option<VersionRelease>,
}

impl<'a> VersionRow<'a> {
    /// Returns the bundles of a package, in the order of the catalog; `today` decides about support.
    pub fn of(
        catalog: &'a CatalogName,
        content: &'a PackageContent,
        today: Date,
    ) -> impl Iterator<Item = Self> {
        content.bundles.iter().map(move |bundle| {
            let order = bundle.version_release(false).ok();
            Self {
                catalog,
                bundle: &bundle.name,
                version: order.as_ref().map(ToString::to_string),
                image: &bundle.image,
                channels: content.channels_of(&bundle.name),
                deprecated: content.deprecation(schema::BUNDLE, &bundle.name),
                support: support::of_bundle(content, order.as_ref(), today),
                order,
            }
        })
    }

    /// Compares rows: the highest version precedes, then the first name of a bundle, then of a catalog.
    pub fn precedence(&self, other: &Self) -> Ordering {
        let by_version = match (&self.order, &other.order) {
            (Some(mine), Some(theirs)) => theirs.cmp_precedence(mine),
            (mine, theirs) => theirs.is_some().cmp(&mine.is_some()),
        };
        by_version
            .then_with(|| self.bundle.cmp(other.bundle))
            .then_with(|| self.catalog.cmp(other.catalog))
    }
}
