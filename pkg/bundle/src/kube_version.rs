//! The lowest version of Kubernetes that a bundle supports, `spec.minKubeVersion` of its CSV.

use std::cmp::Ordering;

use thiserror::Error;

/// Version of Kubernetes without pre-release and build, which distributions use for their own patches: `v1.33.5-eks-1a2b` is 1.33.5.
type Release = (u64, u64, u64);

/// Reason why a bundle does not fit a version of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KubeVersionError {
    /// The cluster is too old.
    #[error(
        "the bundle needs Kubernetes {needed} or newer (minKubeVersion of its CSV), and the cluster has {cluster}"
    )]
    TooOld {
        /// `spec.minKubeVersion`.
        needed: String,
        /// Version of the cluster.
        cluster: String,
    },
    /// The CSV has another text than a version.
    #[error("minKubeVersion {} of the bundle's CSV is no version", olm_text::quoted(.0, 64))]
    Invalid(String),
}

/// Checks a bundle's `minKubeVersion` against the version of the cluster, as its API server gives it (`gitVersion`).
///
/// # Errors
/// The cluster is older, or the field is no version. A cluster whose version cannot be read fits every bundle.
pub fn supports(min_kube_version: &str, cluster: &str) -> Result<(), KubeVersionError> {
    let needed =
        release(min_kube_version).ok_or_else(|| KubeVersionError::Invalid(min_kube_version.to_owned()))?;
    match release(cluster).map(|cluster| cluster.cmp(&needed)) {
        Some(Ordering::Less) => Err(KubeVersionError::TooOld {
            needed: min_kube_version.to_owned(),
            cluster: cluster.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Returns true if the text is a version, as `minKubeVersion` must be.
pub fn is_version(text: &str) -> bool {
    release(text).is_some()
}

/// Reads the numbers of a version; a missing minor or patch is 0.
fn release(version: &str) -> Option<Release> {
    let version = version.trim();
    let version = version.strip_prefix('v').unwrap_or(version);
    let numbers = version.split(['-', '+']).next()?;
    let mut parts = numbers.split('.').map(|part| part.parse::<u64>().ok());
    let release = (
        parts.next()??,
        parts.next().unwrap_or(Some(0))?,
        parts.next().unwrap_or(Some(0))?,
    );
    parts.next().is_none().then_some(release)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_of_distributions_are_releases() {
        for (needed, cluster) in [
            ("1.33.5", "v1.33.5-eks-1a2b"),
            ("1.19.0-0", "v1.19.0"),
            ("v1.20", "v1.36.3"),
            ("1", "v1.36.3"),
            ("1.36.3", "v1.36.3+k3s1"),
            ("1.36.3", "unknown"),
        ] {
            assert_eq!(supports(needed, cluster), Ok(()), "{needed} {cluster}");
        }
    }

    #[test]
    fn an_older_cluster_and_a_text_are_refused() {
        for (needed, cluster) in [
            ("1.33.5", "v1.33.4"),
            ("1.34.0-0", "v1.33.9"),
            ("2.0.0", "v1.99.9"),
        ] {
            let error = supports(needed, cluster).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "the bundle needs Kubernetes {needed} or newer (minKubeVersion of its CSV), and the cluster has {cluster}"
                )
            );
        }
        for text in ["latest", "1.x", "1.2.3.4", "-1", "99999999999999999999"] {
            assert_eq!(
                supports(text, "v1.36.3"),
                Err(KubeVersionError::Invalid(text.to_owned()))
            );
        }
    }
}
