//! Minor versions of a cluster, without patch and pre-release.

use std::fmt;

use serde_json::Value;

/// The last minor of OpenShift 4. Its successor is 5.1, since 4.23 and 5.0 are the same release.
const LAST_OF_OPENSHIFT_4: Minor = Minor { major: 4, minor: 23 };
/// OpenShift 4.N is based on Kubernetes 1.(N + 13).
const KUBERNETES_OFFSET: u64 = 13;

/// `<major>.<minor>` of a cluster.
///
/// `olm_version::MinorVersion` is the one of a catalog, which has exactly two numbers. A cluster reports whole versions, and some
/// providers add to the minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Minor {
    /// The major version.
    pub major: u64,
    /// The minor version.
    pub minor: u64,
}

impl Minor {
    /// Reads the beginning of a version such as `4.18.3-rc.1` or `v1.36.3`.
    #[must_use]
    pub fn of_version(text: &str) -> Option<Self> {
        let mut parts = text.trim().trim_start_matches('v').splitn(3, ['.', '-', '+']);
        // Some providers write `33+` for the minor.
        Some(Self {
            major: parts.next()?.parse().ok()?,
            minor: parts.next()?.parse().ok()?,
        })
    }

    /// Returns the next minor.
    #[must_use]
    pub fn next(self) -> Self {
        if self == LAST_OF_OPENSHIFT_4 {
            return Self { major: 5, minor: 1 };
        }
        Self {
            minor: self.minor.saturating_add(1),
            ..self
        }
    }

    /// Returns the version to compare with a bundle's limit: 4.23 counts as 5.0.
    pub(super) fn normalized(self) -> Self {
        if self == LAST_OF_OPENSHIFT_4 {
            return Self { major: 5, minor: 0 };
        }
        self
    }

    /// Returns true for a version of Kubernetes, false for one of OpenShift.
    #[must_use]
    pub fn is_kubernetes(self) -> bool {
        self.major == 1
    }

    /// Returns the OpenShift minor that is based on this Kubernetes minor; `None` before OpenShift 4.0.
    #[must_use]
    pub fn openshift_of_kubernetes(self) -> Option<Self> {
        let minor = self
            .minor
            .checked_sub(KUBERNETES_OFFSET)
            .filter(|_| self.is_kubernetes())?;
        Some(match minor.checked_sub(LAST_OF_OPENSHIFT_4.minor) {
            Some(minor) if minor > 0 => Self { major: 5, minor },
            _ => Self { major: 4, minor },
        })
    }

    /// Returns the Kubernetes minor that this OpenShift minor is based on.
    #[must_use]
    pub fn kubernetes_of_openshift(self) -> Option<Self> {
        let minor = match self.major {
            4 => self.minor,
            5 => self.minor.checked_add(LAST_OF_OPENSHIFT_4.minor)?,
            _ => return None,
        };
        Some(Self {
            major: 1,
            minor: minor.checked_add(KUBERNETES_OFFSET)?,
        })
    }
}

impl fmt::Display for Minor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Returns the version that OpenShift has reached according to its `ClusterVersion`: that of the last completed update, else
/// the desired version.
#[must_use]
pub fn reached_version(cluster_version: &Value) -> Option<&str> {
    let history = cluster_version
        .pointer("/status/history")
        .and_then(Value::as_array);
    let completed = history
        .into_iter()
        .flatten()
        .find(|entry| entry["state"] == "Completed");
    completed
        .map(|entry| &entry["version"])
        .or_else(|| cluster_version.pointer("/status/desired/version"))
        .and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn minor(text: &str) -> Minor {
        Minor::of_version(text).unwrap()
    }

    #[test]
    fn only_major_and_minor_count() {
        assert_eq!(minor("4.18.3-rc.1"), Minor { major: 4, minor: 18 });
        assert_eq!(minor("v1.36.3"), minor("1.36"));
        assert_eq!(minor("1.33+"), minor("1.33"));
        assert_eq!(Minor::of_version("4"), None);
        assert_eq!(Minor::of_version("x.y"), None);
        assert_eq!(minor("4.18").next().to_string(), "4.19");
        assert_eq!(minor("4.23").next().to_string(), "5.1");
        assert_eq!(minor("5.0").next().to_string(), "5.1");
    }

    #[test]
    fn releases_of_both_kinds_correspond() {
        for (kubernetes, openshift) in [
            ("1.25", "4.12"),
            ("1.33", "4.20"),
            ("1.36", "4.23"),
            ("1.37", "5.1"),
        ] {
            assert_eq!(
                minor(kubernetes).openshift_of_kubernetes(),
                Some(minor(openshift))
            );
            assert_eq!(
                minor(openshift).kubernetes_of_openshift(),
                Some(minor(kubernetes))
            );
        }
        assert_eq!(minor("5.0").kubernetes_of_openshift(), Some(minor("1.36")));
        assert_eq!(minor("4.18").openshift_of_kubernetes(), None);
    }

    #[test]
    fn the_version_that_was_reached_counts() {
        let version = json!({"status": {
            "desired": {"version": "4.19.0"},
            "history": [{"state": "Partial", "version": "4.19.0"}, {"state": "Completed", "version": "4.18.7"}],
        }});
        assert_eq!(reached_version(&version), Some("4.18.7"));
        let new = json!({"status": {"desired": {"version": "4.19.0"}, "history": []}});
        assert_eq!(reached_version(&new), Some("4.19.0"));
        assert_eq!(reached_version(&json!({})), None);
    }
}
