//! Upgradeability of the cluster to its next minor, as far as installed extensions decide it.
//!
//! A bundle blocks the upgrade if its last supported minor is not above the cluster's, or if its limit is invalid.
//! Reasons and sentences are those of OpenShift's cluster-olm-operator; the version that lifts the block is
//! appended.

mod limit;
mod minor;
pub mod removed;

pub use limit::{LimitError, limit, limit_of_value};
pub use minor::{Minor, reached_version};
use olm_text::name::BundleName;
use olm_version::VersionRelease;
use std::fmt::Write as _;

/// Maximum number of blocked extensions that a message explains, beyond their names.
const MAX_EXPLAINED: usize = 20;
/// Name of the cluster-olm-operator condition that is merged into the `ClusterOperator`'s `Upgradeable`.
const CONDITION_PREFIX: &str = "InstalledOLMOperators";

/// A bundle that is installed or rolling out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// Name of the ClusterExtension.
    pub extension: String,
    /// Name of the bundle.
    pub bundle: BundleName,
    /// Properties of the bundle as a JSON list, if any.
    pub properties: Option<String>,
    /// Bundles that it can be upgraded to, best first, if catalogs were readable.
    pub successors: Vec<Successor>,
}

/// An upgrade target of an installed bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Successor {
    /// Version of the bundle, with its release.
    pub version: VersionRelease,
    /// Minimum number of upgrades to reach it.
    pub steps: usize,
    /// Last supported OpenShift minor, if declared.
    pub limit: Option<Minor>,
    /// Lowest minor of Kubernetes that it supports, if its catalog says it.
    pub min_kube: Option<Minor>,
}

/// A bundle that blocks the upgrade of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// Name of the ClusterExtension.
    pub extension: String,
    /// Name of the bundle.
    pub bundle: BundleName,
    /// Last supported OpenShift minor.
    pub limit: Minor,
    /// The reachable successor that lifts the block with the fewest upgrades; the highest version of several.
    pub lifted_by: Option<Successor>,
}

/// Upgradeability of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgradeability {
    /// The target minor.
    pub next: Minor,
    /// Blocking bundles, by extension.
    pub blockers: Vec<Blocker>,
    /// Invalid limits and bundles that cannot be read, which block as well: (extension, error), by extension.
    pub errors: Vec<(String, String)>,
}

/// Checks an upgrade of a cluster from `current` to its next minor.
#[must_use]
pub fn evaluate(current: Minor, installed: &[Installed]) -> Upgradeability {
    let mut upgradeability = Upgradeability {
        next: current.next(),
        blockers: Vec::new(),
        errors: Vec::new(),
    };
    let current = current.normalized();
    for Installed {
        extension,
        bundle,
        properties,
        successors,
    } in installed
    {
        match properties.as_deref().map_or(Ok(None), limit) {
            Ok(Some(limit)) if limit <= current => upgradeability.blockers.push(Blocker {
                extension: extension.clone(),
                bundle: bundle.clone(),
                limit,
                lifted_by: lifted_by(current, successors),
            }),
            Ok(_) => {}
            Err(error) => {
                let noun = if matches!(error, LimitError::Properties(_)) {
                    "error"
                } else {
                    "error(s)"
                };
                let text =
                    format!("{noun} with cluster extension {extension}: error in bundle {bundle}: {error}");
                upgradeability.errors.push((extension.clone(), text));
            }
        }
    }
    upgradeability
        .blockers
        .sort_by(|a, b| a.extension.cmp(&b.extension));
    upgradeability.errors.sort();
    upgradeability
}

fn lifted_by(current: Minor, successors: &[Successor]) -> Option<Successor> {
    let kubernetes = current.kubernetes_of_openshift();
    // A bundle that needs a newer Kubernetes cannot be installed before the upgrade.
    let runs = |successor: &Successor| {
        let needed = successor.min_kube.zip(kubernetes);
        needed.is_none_or(|(needed, kubernetes)| needed <= kubernetes)
    };
    let lifts = |successor: &&Successor| {
        successor.steps > 0 && successor.limit.is_none_or(|limit| limit > current) && runs(successor)
    };
    // `min_by_key` returns the first of equals, which is the best.
    successors
        .iter()
        .filter(lifts)
        .min_by_key(|successor| successor.steps)
        .cloned()
}

impl Upgradeability {
    /// Adds extensions whose bundle cannot be read, each with the cause. They block the upgrade: their limits are unknown.
    #[must_use]
    pub fn with_unread(mut self, unread: impl IntoIterator<Item = (String, String)>) -> Self {
        let errors = unread.into_iter().map(|(extension, cause)| {
            let text = format!("error returning the last deployed release for {extension}: {cause}");
            (extension, text)
        });
        self.errors.extend(errors);
        self.errors.sort();
        self
    }

    /// Returns true if no bundle blocks.
    #[must_use]
    pub fn upgradeable(&self) -> bool {
        self.blockers.is_empty() && self.errors.is_empty()
    }

    /// Returns the reason of the block, if any.
    #[must_use]
    pub fn reason(&self) -> Option<&'static str> {
        if !self.blockers.is_empty() {
            Some("IncompatibleOperatorsInstalled")
        } else if self.errors.is_empty() {
            None
        } else {
            Some("FailureGettingExtensionMetadata")
        }
    }

    /// Returns the message about the block and its remedies; empty if no bundle blocks.
    #[must_use]
    pub fn message(&self) -> String {
        let errors: Vec<&str> = self.errors.iter().map(|(_, text)| text.as_str()).collect();
        if self.blockers.is_empty() {
            return errors.join("\n");
        }
        let mut named: Vec<String> = self
            .blockers
            .iter()
            .map(|blocker| {
                format!(
                    "bundle \"{}\" for ClusterExtension \"{}\"",
                    blocker.bundle, blocker.extension
                )
            })
            .collect();
        named.sort();
        let mut text = format!(
            "Found ClusterExtensions that require upgrades prior to upgrading cluster to version {}: {}.",
            self.next,
            named.join(",")
        );
        if !errors.is_empty() {
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "\n Additionally the following errors were encountered while getting extension metadata: {}",
                errors.join("\n")
            );
        }
        for blocker in self.blockers.iter().take(MAX_EXPLAINED) {
            let _ = write!(text, "\n{}.", blocker.remedy());
        }
        text
    }

    /// Returns reason and message of the `ClusterOperator`'s condition `Upgradeable`.
    #[must_use]
    pub fn upgradeable_condition(&self) -> (String, String) {
        match self.reason() {
            Some(reason) => (
                format!("{CONDITION_PREFIX}_{reason}"),
                format!("{CONDITION_PREFIX}Upgradeable: {}", self.message()),
            ),
            None => ("AsExpected".to_owned(), "All is well".to_owned()),
        }
    }

    /// Returns the message about the block by `extension`, if any.
    #[must_use]
    pub fn blocked_by(&self, extension: &str) -> Option<String> {
        let of = |blocker: &&Blocker| blocker.extension == extension;
        let blocked = self.blockers.iter().find(of).map(Blocker::remedy);
        blocked.or_else(|| {
            let found = self.errors.iter().find(|(name, _)| name == extension);
            found.map(|(_, text)| text.clone())
        })
    }
}

impl Blocker {
    /// Returns the remedy as one sentence without a full stop.
    #[must_use]
    pub fn remedy(&self) -> String {
        let Self {
            extension,
            bundle,
            limit,
            lifted_by,
        } = self;
        let head =
            format!("ClusterExtension \"{extension}\": bundle \"{bundle}\" runs up to OpenShift {limit}");
        match lifted_by {
            Some(Successor {
                version, steps: 1, ..
            }) => {
                format!("{head}; an upgrade to version {version} lifts the block")
            }
            Some(Successor { version, steps, .. }) => {
                format!("{head}; version {version}, {steps} upgrades away, lifts the block")
            }
            None => format!("{head}; no version that is known to be reachable lifts the block"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minor(text: &str) -> Minor {
        Minor::of_version(text).unwrap()
    }

    fn installed(extension: &str, limit: &str) -> Installed {
        Installed {
            extension: extension.to_owned(),
            bundle: format!("{extension}.v1").into(),
            properties: Some(format!(
                r#"[{{"type":"olm.maxOpenShiftVersion","value":{limit}}}]"#
            )),
            successors: Vec::new(),
        }
    }

    fn blocks(current: &str, limit: &str) -> bool {
        !evaluate(minor(current), &[installed("a", limit)]).upgradeable()
    }

    #[test]
    fn bundles_that_do_not_support_the_next_minor_block() {
        assert!(blocks("4.18.9", "4.18"));
        assert!(blocks("4.18", "\"4.17\""));
        assert!(!blocks("4.18.0-rc.1", "4.19"));
        assert!(!blocks("4.9", "4.20"), "4.20 is not 4.2");
        assert!(blocks("4.23", "5.0"), "4.23 is 5.0");
        assert!(!blocks("4.23", "5.1"));
        assert!(blocks("4.18", "\"odd\""), "an invalid limit blocks");
        assert!(evaluate(minor("4.18"), &[Installed::default()]).upgradeable());
    }

    #[test]
    fn all_are_named_in_upstreams_words() {
        let mut b = installed("b", "4.18");
        let successor = |version: &str, steps, limit: Option<&str>| Successor {
            version: VersionRelease::parse_legacy(version).unwrap(),
            steps,
            limit: limit.map(minor),
            min_kube: None,
        };
        b.successors = vec![
            Successor {
                min_kube: Some(minor("1.32")),
                ..successor("4.0.0", 1, None)
            },
            Successor {
                min_kube: Some(minor("1.31")),
                ..successor("3.1.0", 2, None)
            },
            successor("3.0.0", 2, None),
            successor("2.2.0", 1, Some("4.18")),
            successor("2.1.0", 1, Some("4.19")),
            // The installed version itself lifts nothing.
            successor("1.0.0", 0, None),
        ];
        let upgradeability = evaluate(minor("4.18"), &[b, installed("c", "4"), installed("a", "4.17")]);
        assert_eq!(upgradeability.reason(), Some("IncompatibleOperatorsInstalled"));
        assert_eq!(
            upgradeability.message(),
            "Found ClusterExtensions that require upgrades prior to upgrading cluster to version 4.19: \
             bundle \"a.v1\" for ClusterExtension \"a\",bundle \"b.v1\" for ClusterExtension \"b\".\
             \n Additionally the following errors were encountered while getting extension metadata: \
             error(s) with cluster extension c: error in bundle c.v1: error converting to semver for version 4: \
             invalid semver format \"4\": expected <major>.<minor>\
             \nClusterExtension \"a\": bundle \"a.v1\" runs up to OpenShift 4.17; no version that is known to be reachable lifts the block.\
             \nClusterExtension \"b\": bundle \"b.v1\" runs up to OpenShift 4.18; an upgrade to version 2.1.0 lifts the block."
        );
        assert!(upgradeability.blocked_by("c").unwrap().contains("error(s) with"));
        assert_eq!(upgradeability.blocked_by("d"), None);
        let (reason, message) = upgradeability.upgradeable_condition();
        assert_eq!(reason, "InstalledOLMOperators_IncompatibleOperatorsInstalled");
        assert!(message.starts_with("InstalledOLMOperatorsUpgradeable: Found ClusterExtensions"));
    }

    #[test]
    fn errors_alone_are_the_message() {
        let mut odd = installed("a", "4.17");
        odd.properties = Some("{".to_owned());
        let upgradeability = evaluate(minor("4.18"), &[odd]);
        assert_eq!(upgradeability.reason(), Some("FailureGettingExtensionMetadata"));
        let message = upgradeability.message();
        let head = "error with cluster extension a: error in bundle a.v1: could not convert olm.properties: \
                    failed to unmarshal properties annotation: ";
        assert!(message.starts_with(head), "{message}");
        let unread = ["b", "a"].map(|name| (name.to_owned(), "it is cut off".to_owned()));
        let unread = evaluate(minor("4.18"), &[]).with_unread(unread);
        assert_eq!(unread.reason(), Some("FailureGettingExtensionMetadata"));
        assert_eq!(
            unread.message(),
            "error returning the last deployed release for a: it is cut off\n\
             error returning the last deployed release for b: it is cut off"
        );
        assert!(unread.blocked_by("b").is_some() && unread.blocked_by("c").is_none());
        let fine = evaluate(minor("4.18"), &[]);
        assert_eq!(
            fine.upgradeable_condition(),
            ("AsExpected".to_owned(), "All is well".to_owned())
        );
    }
}
