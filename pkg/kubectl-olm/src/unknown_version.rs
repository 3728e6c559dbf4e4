//! A wanted version or bundle that no catalog has.

use std::fmt;

use olm_resolve::{CatalogInput, near_names, near_versions};
use olm_text::name::CatalogName;
use olm_version::VersionRelease;

use crate::installed::{found, matching};

/// A version or bundle of the package that no catalog has.
#[derive(Debug)]
pub(crate) struct UnknownVersion {
    /// The version or bundle as given.
    pub(crate) want: String,
    /// Names of the searched catalogs.
    pub(crate) catalogs: Vec<CatalogName>,
    /// The nearest versions or bundles of the catalogs.
    pub(crate) nearest: Vec<String>,
}

impl UnknownVersion {
    /// Returns `want` with its nearest versions; none if a catalog has `want`, or if no catalog has the package.
    pub(crate) fn new(want: &str, catalogs: &[CatalogInput], release_support: bool) -> Option<Self> {
        let contents = || found(catalogs).map(|(_, content)| content);
        contents().next()?;
        if !matching(want, contents(), release_support).is_empty() {
            return None;
        }
        let bundles = || contents().flat_map(|content| &content.bundles);
        let nearest = if let Some(version) = version(want) {
            let present: Vec<_> = bundles()
                .filter_map(|bundle| bundle.version_release(release_support).ok())
                .collect();
            let near = near_versions(&version, &present);
            near.iter().map(ToString::to_string).collect()
        } else {
            let near = near_names(want, bundles().map(|bundle| bundle.name.as_str()));
            near.into_iter().map(ToOwned::to_owned).collect()
        };
        Some(Self {
            want: want.to_owned(),
            catalogs: catalogs.iter().map(|catalog| catalog.name.clone()).collect(),
            nearest,
        })
    }
}

/// Parses `want` as a version; missing numbers are zeros.
fn version(want: &str) -> Option<VersionRelease> {
    let bare = want.strip_prefix('v').unwrap_or(want);
    let mut endings = ["", ".0", ".0.0"].iter();
    endings.find_map(|ending| VersionRelease::parse_legacy(&format!("{bare}{ending}")).ok())
}

impl fmt::Display for UnknownVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let catalogs = self.catalogs.join(", ");
        write!(
            f,
            "{} of this package is in none of the catalogs: {catalogs}",
            self.want
        )?;
        if self.nearest.is_empty() {
            write!(f, "; `versions PACKAGE` lists the available versions")
        } else {
            write!(f, "; nearest: {}", self.nearest.join(", "))
        }
    }
}
