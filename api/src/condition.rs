//! Condition types and reasons of all three kinds, closed sets with their exact texts.

/// A closed set of strings: the enum and its texts in one place.
macro_rules! texts {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The text on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.as_str().to_owned()
            }
        }
    };
}

/// Condition types by kind.
pub mod types {
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
            /// At rest with everything as the spec wants it, and available. For tools; see `docs/status.md`.
            Ready,
            /// Something is being done or tried; only there while it holds. For tools.
            Reconciling,
            /// Only a change from outside helps; only there while it holds. For tools.
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
            /// At rest with everything as the spec wants it, and available. For tools; see `docs/status.md`.
            Ready,
            /// Something is being done or tried; only there while it holds. For tools.
            Reconciling,
            /// Only a change from outside helps; only there while it holds. For tools.
            Stalled,
        }
    }
    texts! {
        /// Conditions of a ClusterObjectSet.
        ObjectSet {
            /// All objects are there and pass their probes.
            Available,
            /// The revision rolls out.
            Progressing,
            /// The revision has rolled out once; never goes back.
            Succeeded,
            /// At rest with everything as the spec wants it, and available. For tools; see `docs/status.md`.
            Ready,
            /// Something is being done or tried; only there while it holds. For tools.
            Reconciling,
            /// Only a change from outside helps; only there while it holds. For tools.
            Stalled,
        }
    }
}

/// Condition reasons by kind.
pub mod reasons {
    texts! {
        /// Reasons on a ClusterExtension.
        Extension {
            /// Done.
            Succeeded,
            /// Not done, and no revision is on its way.
            Failed,
            /// Nothing there yet.
            Absent,
            /// A revision rolls out.
            RollingOut,
            /// An error that may pass; tried again.
            Retrying,
            /// An error that only a change can cure.
            Blocked,
            /// `spec.config` does not fit the bundle.
            InvalidConfiguration,
            /// Something named is deprecated.
            Deprecated,
            /// Nothing named is deprecated.
            NotDeprecated,
            /// No catalog data to tell from.
            DeprecationStatusUnknown,
            /// The roll-out took too long.
            ProgressDeadlineExceeded,
            /// The range of versions holds a successor back.
            HeldByVersion,
            /// The choice of channels holds a successor back.
            HeldByChannels,
            /// Range and channels together hold a successor back.
            HeldByVersionAndChannels,
            /// No successor is held back.
            UpToDate,
            /// Nothing could be resolved, so nobody knows.
            ResolutionFailed,
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
        }
    }
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
        assert_eq!(types::Extension::ALL.len(), 11);
        assert_eq!(reasons::Extension::ALL.len(), 16);
    }
}
