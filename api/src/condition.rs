//! Condition types and reasons of all three kinds.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// Condition types by kind.
pub mod types {
    use crate::texts::texts;

    texts! {
        /// Conditions of a ClusterExtension.
        Extension {
            /// A bundle is installed.
            Installed,
            /// The controller moves towards the spec.
            Progressing,
            /// The installed bundle's objects pass their probes; mirrored from the revision.
            Available,
            /// Summary of the three types below.
            Deprecated,
            /// The package is deprecated.
            PackageDeprecated,
            /// A selected channel is deprecated.
            ChannelDeprecated,
            /// The installed bundle is deprecated.
            BundleDeprecated,
            /// A successor exists that the spec holds back.
            UpgradeAvailable,
            /// A selected catalog was left out, or its former content is used; present only while that holds.
            CatalogsDegraded,
            /// Objects of some kinds are not watched; present only while that holds. Mirrored from the revision.
            WatchFailing,
            /// The spec is fulfilled and the objects are available. For tools; see `docs/status.md`.
            Ready,
            /// The controller works or retries; present only while it does. For tools.
            Reconciling,
            /// The controller waits for a change by others; present only while it does. For tools.
            Stalled,
        }
    }
    texts! {
        /// Conditions of a ClusterCatalog.
        Catalog {
            /// Content is served over HTTP.
            Serving,
            /// The controller moves towards the spec.
            Progressing,
            /// The spec is fulfilled and the content is available. For tools; see `docs/status.md`.
            Ready,
            /// The controller works or retries; present only while it does. For tools.
            Reconciling,
            /// The controller waits for a change by others; present only while it does. For tools.
            Stalled,
        }
    }
    texts! {
        /// Conditions of a ClusterObjectSet.
        ObjectSet {
            /// The objects exist and pass their probes.
            Available,
            /// The revision rolls out.
            Progressing,
            /// The revision has rolled out once; never goes back.
            Succeeded,
            /// Objects of some kinds are not watched; present only while that holds.
            WatchFailing,
            /// The spec is fulfilled and the objects are available. For tools; see `docs/status.md`.
            Ready,
            /// The controller works or retries; present only while it does. For tools.
            Reconciling,
            /// The controller waits for a change by others; present only while it does. For tools.
            Stalled,
        }
    }
}

/// Condition reasons by kind.
pub mod reasons {
    use crate::texts::texts;

    texts! {
        /// Reasons on a ClusterExtension.
        Extension {
            /// The operation succeeded.
            Succeeded,
            /// The installation failed, and no revision is rolling out.
            Failed,
            /// A bundle is not installed yet.
            Absent,
            /// A revision rolls out.
            RollingOut,
            /// A transient error; the operation is retried.
            Retrying,
            /// An error that only a change can fix.
            Blocked,
            /// `spec.config` does not fit the bundle.
            InvalidConfiguration,
            /// The package, channel or bundle is deprecated.
            Deprecated,
            /// The package, channel or bundle is not deprecated.
            NotDeprecated,
            /// Catalog content is not available.
            DeprecationStatusUnknown,
            /// The rollout took too long.
            ProgressDeadlineExceeded,
            /// The range of versions holds a successor back.
            HeldByVersion,
            /// The choice of channels holds a successor back.
            HeldByChannels,
            /// Range and channels together hold a successor back.
            HeldByVersionAndChannels,
            /// The spec holds no successor back.
            UpToDate,
            /// The resolution failed, so held-back successors are unknown.
            ResolutionFailed,
            /// The former content of a catalog is used instead of the present one.
            FormerContent,
            /// A catalog that cannot be read was left out.
            LeftOut,
            /// The controller may not list or watch the objects.
            Forbidden,
            /// The conversion webhook of the objects' kind fails.
            ConversionFailed,
            /// The API server does not serve the objects' kind.
            NotServed,
            /// The API server does not list the objects.
            Unavailable,
        }
    }
    texts! {
        /// Reasons on a ClusterCatalog.
        Catalog {
            /// The operation succeeded.
            Succeeded,
            /// A transient error; the operation is retried.
            Retrying,
            /// An error that only a change can fix.
            Blocked,
            /// Content is served.
            Available,
            /// Content is not served.
            Unavailable,
            /// Content is not served because the user disabled it.
            UserSpecifiedUnavailable,
        }
    }
    texts! {
        /// Reasons on a ClusterObjectSet.
        ObjectSet {
            /// The operation succeeded.
            Succeeded,
            /// The revision rolls out.
            RollingOut,
            /// A transient error; the operation is retried.
            Retrying,
            /// An error that only a change can fix.
            Blocked,
            /// The revision is archived.
            Archived,
            /// The rollout took too long.
            ProgressDeadlineExceeded,
            /// Every probe passes.
            ProbesSucceeded,
            /// A probe fails.
            ProbeFailure,
            /// The objects could not be read.
            Reconciling,
            /// The controller may not list or watch the objects.
            Forbidden,
            /// The conversion webhook of the objects' kind fails.
            ConversionFailed,
            /// The API server does not serve the objects' kind.
            NotServed,
            /// The API server does not list the objects.
            Unavailable,
        }
    }
}

/// Returns the condition of this type.
#[must_use]
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

#[cfg(test)]
mod tests {
    use super::{reasons, types};

    #[test]
    fn the_text_is_the_name() {
        assert_eq!(types::Extension::PackageDeprecated.as_str(), "PackageDeprecated");
        assert_eq!(
            reasons::Catalog::UserSpecifiedUnavailable.to_string(),
            "UserSpecifiedUnavailable"
        );
        assert_eq!(types::Extension::ALL.len(), 13);
        assert_eq!(reasons::Extension::ALL.len(), 22);
    }
}
