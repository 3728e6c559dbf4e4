//! Condition types and reasons of all three kinds, closed sets with their exact texts.

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
            /// Roll-up of the three below.
            Deprecated,
            /// The package is deprecated.
            PackageDeprecated,
            /// A selected channel is deprecated.
            ChannelDeprecated,
            /// The installed bundle is deprecated.
            BundleDeprecated,
            /// A successor exists that the spec holds back.
            UpgradeAvailable,
            /// A selected catalog was left out, or its former content stands in; only there while it holds.
            CatalogsDegraded,
            /// Objects of some kinds are not watched; present only while that holds. Mirrored from the revision.
            WatchFailing,
            /// The spec is fulfilled and the objects are available. For tools; see `docs/status.md`.
            Ready,
            /// The controller works or retries; present only while it does. For tools.
            Reconciling,
            /// Only a change from outside helps; present only while that holds. For tools.
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
            /// Only a change from outside helps; present only while that holds. For tools.
            Stalled,
        }
    }
    texts! {
        /// Conditions of a ClusterObjectSet.
        ObjectSet {
            /// All objects exist and pass their probes.
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
            /// Only a change from outside helps; present only while that holds. For tools.
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
            /// Done.
            Succeeded,
            /// The installation failed, and no revision is rolling out.
            Failed,
            /// Nothing is installed yet.
            Absent,
            /// A revision rolls out.
            RollingOut,
            /// An error that may pass; tried again.
            Retrying,
            /// An error that only a change can cure.
            Blocked,
            /// `spec.config` does not fit the bundle.
            InvalidConfiguration,
            /// The package, channel or bundle is deprecated.
            Deprecated,
            /// The package, channel or bundle is not deprecated.
            NotDeprecated,
            /// No catalog content is available to decide.
            DeprecationStatusUnknown,
            /// The roll-out took too long.
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
            /// The former content of a catalog stands in for the present one.
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
            /// Done.
            Succeeded,
            /// An error that may pass; tried again.
            Retrying,
            /// An error that only a change can cure.
            Blocked,
            /// Content is served.
            Available,
            /// Content is not served.
            Unavailable,
            /// Content is not served because the user wants it so.
            UserSpecifiedUnavailable,
        }
    }
    texts! {
        /// Reasons on a ClusterObjectSet.
        ObjectSet {
            /// Done.
            Succeeded,
            /// The revision rolls out.
            RollingOut,
            /// An error that may pass; tried again.
            Retrying,
            /// An error that only a change can cure.
            Blocked,
            /// The revision is archived.
            Archived,
            /// The roll-out took too long.
            ProgressDeadlineExceeded,
            /// Every probe passes.
            ProbesSucceeded,
            /// A probe fails.
            ProbeFailure,
            /// An error got in the way of looking.
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
