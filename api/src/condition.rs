//! Conditions: types and reasons of all three kinds, statuses, and lookups.

pub mod external;
pub mod untyped;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::texts::texts;
use crate::{
    ClusterCatalog, ClusterCatalogStatus, ClusterExtension, ClusterExtensionStatus, ClusterObjectSet,
    ClusterObjectSetStatus,
};

texts! {
    /// Status of a condition.
    Status {
        /// The condition holds.
        True,
        /// The condition does not hold.
        False,
        /// It is not known if the condition holds.
        Unknown,
    }
}

impl Status {
    /// Reads a status. A text that Kubernetes does not define counts as [`Status::Unknown`].
    #[must_use]
    pub fn read(text: &str) -> Self {
        let found = Self::ALL.iter().find(|status| status.as_str() == text);
        found.copied().unwrap_or(Self::Unknown)
    }
}

impl From<bool> for Status {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

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
            /// Support of the installed version has ended; present only if the catalog has lifecycles of the package.
            EndOfSupport,
            /// A selected catalog was left out, or its former content is used; present only while that holds.
            CatalogsDegraded,
            /// The extension has the content of a former revision; present only while that holds.
            RolledBack,
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
            /// `spec.rollout` requires an approval of the pending plan.
            AwaitingApproval,
            /// The windows of `spec.rollout` are closed.
            AwaitingWindow,
            /// The installed operator holds its upgrade by its condition `Upgradeable`.
            HeldByOperator,
            /// `spec.rollout.paused` is true.
            Paused,
            /// The revision is available, and must stay so for `spec.rollout.soak`.
            Soaking,
            /// The revision did not stay available for `spec.rollout.soak`.
            SoakFailed,
            /// A failed upgrade was rolled back.
            RolledBack,
            /// `spec.rollout.rollBackTo` names a former revision.
            RollBackRequested,
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
            /// A phase of support covers the installed version.
            Supported,
            /// Support of the installed version ends within 90 days.
            EndingSoon,
            /// A phase of support of the installed version begins later.
            BetweenPhases,
            /// Support of the installed version has ended.
            Ended,
            /// The catalog has no usable lifecycle of the installed version.
            SupportUnknown,
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
            /// `spec.paused` is true.
            Paused,
            /// The objects are available, and must stay so for `spec.soak`.
            Soaking,
            /// The objects did not stay available for `spec.soak`.
            SoakFailed,
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
pub fn find(conditions: &[Condition], type_: impl AsRef<str>) -> Option<&Condition> {
    conditions
        .iter()
        .find(|condition| condition.type_ == type_.as_ref())
}

/// Returns the condition of this type if it is true.
#[must_use]
pub fn find_true(conditions: &[Condition], type_: impl AsRef<str>) -> Option<&Condition> {
    find(conditions, type_).filter(|condition| condition.status == Status::True)
}

/// Returns true if the condition of this type exists and is true.
#[must_use]
pub fn is_true(conditions: &[Condition], type_: impl AsRef<str>) -> bool {
    find_true(conditions, type_).is_some()
}

/// Gives the kinds and their statuses a method that lists the conditions.
macro_rules! lists_conditions {
    ($($kind:ty, $status:ty;)+) => {$(
        impl $status {
            /// Returns the conditions; empty if none is reported.
            #[must_use]
            pub fn conditions(&self) -> &[Condition] {
                self.conditions.as_deref().unwrap_or_default()
            }
        }

        impl $kind {
            /// Returns the conditions of the status; empty if none is reported.
            #[must_use]
            pub fn conditions(&self) -> &[Condition] {
                self.status.as_ref().map_or(&[], <$status>::conditions)
            }
        }
    )+};
}

lists_conditions! {
    ClusterCatalog, ClusterCatalogStatus;
    ClusterExtension, ClusterExtensionStatus;
    ClusterObjectSet, ClusterObjectSetStatus;
}

#[cfg(test)]
mod tests {
    use super::{ClusterCatalogStatus, Condition, Status, find_true, is_true, reasons, types};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    #[test]
    fn the_text_is_the_name() {
        assert_eq!(types::Extension::PackageDeprecated.as_str(), "PackageDeprecated");
        assert_eq!(
            reasons::Catalog::UserSpecifiedUnavailable.to_string(),
            "UserSpecifiedUnavailable"
        );
        assert_eq!(types::Extension::ALL.len(), 15);
        assert_eq!(reasons::Extension::ALL.len(), 35);
    }

    #[test]
    fn statuses_are_read_as_they_are_written() {
        for status in Status::ALL {
            assert_eq!(Status::read(status.as_str()), *status);
        }
        assert_eq!(Status::read("true"), Status::Unknown);
        assert_eq!(
            (Status::from(true), Status::from(false)),
            (Status::True, Status::False)
        );
    }

    #[test]
    fn only_true_conditions_hold() {
        let condition = |type_: types::Catalog, status: Status| Condition {
            type_: type_.into(),
            status: status.into(),
            reason: reasons::Catalog::Available.into(),
            message: String::new(),
            observed_generation: None,
            last_transition_time: Time("2026-01-02T03:04:05Z".parse().unwrap()),
        };
        let status = ClusterCatalogStatus {
            conditions: Some(vec![
                condition(types::Catalog::Progressing, Status::Unknown),
                condition(types::Catalog::Serving, Status::True),
            ]),
            ..ClusterCatalogStatus::default()
        };
        let conditions = status.conditions();
        assert!(is_true(conditions, types::Catalog::Serving));
        assert!(!is_true(conditions, types::Catalog::Progressing), "unknown");
        assert!(!is_true(conditions, types::Catalog::Ready), "absent");
        let found = find_true(conditions, "Serving").unwrap();
        assert!(found.type_ == types::Catalog::Serving && found.reason == reasons::Catalog::Available);
    }
}
