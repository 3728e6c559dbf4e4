//! Lifecycles of a package's minor versions: phases of support with their dates, and platforms.
//!
//! The schema, [`SCHEMA`], comes from OpenShift. It says nothing about what can be installed, so an object that cannot be
//! read never makes a package fail: [`Lifecycles::add`] leaves out what it cannot read, and names it in
//! [`Lifecycles::ignored`].
//!
//! | field | read as |
//! |---|---|
//! | `versions` | one entry for each minor version; `null` is an empty list |
//! | `versions[].name` | `<major>.<minor>` without leading zeros; another name leaves out the entry |
//! | `versions[].phases[].name` | text for people, cut at [`MAX_NAME`] bytes |
//! | `startDate`, `endDate` | `YYYY-MM-DD`, the first and the last day of the phase; another text leaves out the entry |
//! | `versions[].platformCompatibility` | platforms with minor versions; what cannot be read leaves out the platforms alone |
//!
//! A missing `startDate` or `endDate` leaves the phase open at that end, and a phase without both says nothing. A phase
//! must not end before it starts. Gaps and overlaps are permitted. One defect leaves out the whole version, since the
//! other dates could give the wrong end of support.
//!
//! Several entries for one version, in one object or in several, must be equal. If they differ, none of them counts, so
//! that no order of objects decides.

mod date;
mod fault;
mod read;

pub use fault::{IgnoredLifecycle, LifecycleFault};
pub use jiff::civil::Date;

use olm_version::MinorVersion;
use serde::Serialize;
use std::collections::BTreeMap;

/// Schema of the lifecycles of a package.
pub const SCHEMA: &str = "io.openshift.operators.lifecycles.v1alpha1";
/// Maximum size of one object, in bytes. The largest known one has 10 KiB.
pub const MAX_BYTES: usize = 256 * 1024;
/// Maximum number of minor versions of a package.
pub const MAX_VERSIONS: usize = 256;
/// Maximum number of phases of a version.
pub const MAX_PHASES: usize = 32;
/// Maximum number of platforms of a version.
pub const MAX_PLATFORMS: usize = 8;
/// Maximum number of minor versions of a platform.
pub const MAX_PLATFORM_VERSIONS: usize = 64;
/// Maximum length of the name of a phase or a platform, in bytes. Longer names are cut.
pub const MAX_NAME: usize = 128;
/// Maximum number of defects that are kept.
pub const MAX_IGNORED: usize = 16;

/// Lifecycles of the minor versions of one package, within the limits of this module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lifecycles {
    /// Lifecycle of each version; `None` if its entries contradict each other.
    versions: BTreeMap<MinorVersion, Option<Lifecycle>>,
    ignored: Vec<IgnoredLifecycle>,
}

/// Lifecycle of one minor version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lifecycle {
    /// Phases with at least one date, in order of their first and last days.
    pub phases: Vec<Phase>,
    /// Platforms that the version supports; empty if the catalog does not say.
    pub platforms: Vec<Platform>,
}

/// Phase of support.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Phase {
    /// Name for people, such as `Full support`.
    pub name: String,
    /// First day of the phase; `None` if the phase has no beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_date: Option<Date>,
    /// Last day of the phase; `None` if the phase has no end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_date: Option<Date>,
}

/// Platform with the minor versions that a bundle supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Platform {
    /// Name of the platform, such as `openshift`.
    pub name: String,
    /// Minor versions of the platform, in the order written.
    pub versions: Vec<MinorVersion>,
}

impl Lifecycles {
    /// Adds an object of schema [`SCHEMA`]; never fails. Defects are in [`Lifecycles::ignored`].
    pub fn add(&mut self, blob: &[u8]) {
        let versions = match read::versions(blob) {
            Ok(versions) => versions,
            Err(fault) => return self.ignore(IgnoredLifecycle::Object(fault)),
        };
        for entry in versions {
            match read::version(&entry) {
                Ok((version, lifecycle, platforms)) => {
                    if let Err(fault) = platforms {
                        self.ignore(IgnoredLifecycle::Platforms(version.to_string(), fault));
                    }
                    self.insert(version, lifecycle);
                }
                Err((name, fault)) => self.ignore(IgnoredLifecycle::Version(name, fault)),
            }
        }
    }

    fn insert(&mut self, version: MinorVersion, lifecycle: Lifecycle) {
        let full = self.versions.len() >= MAX_VERSIONS;
        let fault = match self.versions.get_mut(&version) {
            Some(None) => return,
            Some(Some(known)) if *known == lifecycle => return,
            Some(known) => {
                *known = None;
                LifecycleFault::Contradiction
            }
            None if full => LifecycleFault::TooMany {
                what: "versions of the package",
                limit: MAX_VERSIONS,
            },
            None => {
                self.versions.insert(version, Some(lifecycle));
                return;
            }
        };
        self.ignore(IgnoredLifecycle::Version(version.to_string(), fault));
    }

    fn ignore(&mut self, ignored: IgnoredLifecycle) {
        if self.ignored.len() < MAX_IGNORED {
            self.ignored.push(ignored);
        }
    }

    /// Returns true if the catalog has no lifecycles of the package, not even unreadable ones.
    pub fn is_empty(&self) -> bool {
        self.versions.is_empty() && self.ignored.is_empty()
    }

    /// Returns the lifecycle of a version.
    pub fn of(&self, version: MinorVersion) -> Option<&Lifecycle> {
        self.versions.get(&version)?.as_ref()
    }

    /// Returns the versions with their lifecycles, lowest version first.
    pub fn versions(&self) -> impl DoubleEndedIterator<Item = (MinorVersion, &Lifecycle)> {
        let known = self.versions.iter();
        known.filter_map(|(version, lifecycle)| Some((*version, lifecycle.as_ref()?)))
    }

    /// Returns what cannot be read, in the order found; at most [`MAX_IGNORED`] defects.
    pub fn ignored(&self) -> &[IgnoredLifecycle] {
        &self.ignored
    }

    /// Returns the defect for which the lifecycle of `version` is missing, if there is one.
    pub fn defect(&self, version: MinorVersion) -> Option<&IgnoredLifecycle> {
        if self.of(version).is_some() {
            return None;
        }
        let name = version.to_string();
        let own =
            |ignored: &&IgnoredLifecycle| matches!(ignored, IgnoredLifecycle::Version(of, _) if *of == name);
        let object = |ignored: &&IgnoredLifecycle| matches!(ignored, IgnoredLifecycle::Object(_));
        let mut all = self.ignored.iter();
        all.clone().find(own).or_else(|| all.find(object))
    }
}

#[cfg(test)]
mod tests;
