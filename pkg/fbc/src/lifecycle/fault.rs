//! Defects of lifecycles.

use olm_version::go_quote;

use super::MAX_BYTES;

/// Part of the lifecycles that is left out, with the defect. `Display` is one clause without a full stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IgnoredLifecycle {
    /// A whole object.
    #[error("an object with lifecycles is ignored: {0}")]
    Object(LifecycleFault),
    /// The version with this name, which may be foreign text.
    #[error("the lifecycle of version {name} is ignored: {1}", name = go_quote(.0))]
    Version(String, LifecycleFault),
    /// The platforms of the version with this name.
    #[error("the platforms of version {name} are ignored: {1}", name = go_quote(.0))]
    Platforms(String, LifecycleFault),
}

/// Defect of a lifecycle. Foreign text in it is cut.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LifecycleFault {
    /// The object is too large.
    #[error("it has {bytes} bytes, more than {MAX_BYTES}")]
    TooLarge {
        /// Size of the object.
        bytes: usize,
    },
    /// The object is no JSON that can be read.
    #[error("it is malformed: {reason}")]
    Malformed {
        /// Reason of the decoder.
        reason: String,
    },
    /// A field has another type.
    #[error("{field} is no {expected}")]
    Shape {
        /// The field.
        field: &'static str,
        /// The expected type.
        expected: &'static str,
    },
    /// A version is not `<major>.<minor>`.
    #[error("{} is no version <major>.<minor>", go_quote(text))]
    Minor {
        /// The version as written.
        text: String,
    },
    /// A date is not `YYYY-MM-DD`.
    #[error(
        "{field} {} of phase {} is no date YYYY-MM-DD",
        go_quote(text),
        go_quote(phase)
    )]
    Date {
        /// `startDate` or `endDate`.
        field: &'static str,
        /// The date as written.
        text: String,
        /// Name of the phase.
        phase: String,
    },
    /// A phase ends before it starts.
    #[error("phase {} ends before it starts", go_quote(phase))]
    Order {
        /// Name of the phase.
        phase: String,
    },
    /// A list is too long.
    #[error("there are more than {limit} {what}")]
    TooMany {
        /// Content of the list.
        what: &'static str,
        /// Maximum length.
        limit: usize,
    },
    /// Several entries for one version differ.
    #[error("the catalog has entries for it that contradict each other")]
    Contradiction,
}
