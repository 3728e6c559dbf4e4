//! A version or bundle that is hoped for, and that none of the catalogs asked has.

use std::fmt;

use olm_resolve::{CatalogInput, near_names, near_versions};
use olm_version::VersionRelease;

use crate::installed::{found, matching};

/// A version or bundle of the package that none of the catalogs asked has.
#[derive(Debug)]
pub(crate) struct Absent {
    /// The version or bundle as it was typed.
    pub(crate) want: String,
    /// The catalogs that were asked.
    pub(crate) asked: Vec<String>,
    /// The nearest versions or bundles that one of them has.
    pub(crate) nearest: Vec<String>,
}

impl Absent {
    /// The absence of `want`; none when a catalog has it, or no catalog has anything.
    pub(crate) fn new(want: &str, catalogs: &[CatalogInput]) -> Option<Self> {
        let contents = || found(catalogs).map(|(_, content)| content);
        contents().next()?;
        if !matching(want, contents()).is_empty() {
            return None;
        }
        let bundles = || contents().flat_map(|content| &content.bundles);
        let nearest = if let Some(version) = version(want) {
            let present: Vec<_> = bundles()
                .filter_map(|bundle| bundle.version_release(false).ok())
                .collect();
            let near = near_versions(&version, &present);
            near.iter().map(ToString::to_string).collect()
        } else {
            let near = near_names(want, bundles().map(|bundle| bundle.name.as_str()));
            near.into_iter().map(ToOwned::to_owned).collect()
        };
        Some(Self {
            want: want.to_owned(),
            asked: catalogs.iter().map(|catalog| catalog.name.clone()).collect(),
            nearest,
        })
    }
}

/// The version that `want` may mean, with missing numbers as zeros.
fn version(want: &str) -> Option<VersionRelease> {
    let bare = want.strip_prefix('v').unwrap_or(want);
    let mut endings = ["", ".0", ".0.0"].iter();
    endings.find_map(|ending| VersionRelease::parse_legacy(&format!("{bare}{ending}")).ok())
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asked = self.asked.join(", ");
        write!(
            f,
            "{} of this package is in none of the catalogs asked: {asked}",
            self.want
        )?;
        if self.nearest.is_empty() {
            write!(f, "; `versions PACKAGE` lists what there is")
        } else {
            write!(f, "; the nearest are: {}", self.nearest.join(", "))
        }
    }
}
