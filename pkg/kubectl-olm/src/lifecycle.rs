//! Support of versions in the output of commands. The days are those of UTC on the clock of this machine.

use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::tz::TimeZone;
use olm_fbc::lifecycle::Date;
use olm_packages::support::{needs_attention, of_bundle};
use olm_resolve::{CatalogInput, SupportAnswer};
use olm_text::name::CatalogName;
use olm_version::BundleVersion;

use crate::installed::found;
use crate::style::Paint;

/// Returns the day of the clock, in UTC.
pub(crate) fn today() -> Date {
    TimeZone::UTC.to_datetime(Timestamp::now()).date()
}

/// Returns the support of an installed version in its catalog. If the catalog is unknown or does not have the package, the
/// first catalog with lifecycles of the package counts.
pub(crate) fn of_installed(
    catalogs: &[CatalogInput],
    catalog: Option<&CatalogName>,
    version: &BundleVersion,
    today: Date,
) -> SupportAnswer {
    let own = found(catalogs).find(|(name, _)| Some(*name) == catalog);
    let other = || found(catalogs).find(|(_, content)| !content.lifecycles.is_empty());
    own.or_else(other).map_or(SupportAnswer::NoData, |(_, content)| {
        of_bundle(content, version.parsed().ok(), today)
    })
}

/// Returns the colour of a version with this support.
pub(crate) fn paint(answer: &SupportAnswer) -> Paint {
    if needs_attention(answer) {
        Paint::Warn
    } else {
        Paint::Plain
    }
}
