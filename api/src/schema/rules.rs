//! Validation rules that occur more than once, or are long. The messages are part of the interface.

use kube::core::{Message, Rule};

/// Pattern of a namespace's name, which has at most 63 characters.
pub const DNS1123_LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
const DNS1123_SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// Components of a version after the first one, with pre-release and build metadata.
macro_rules! after_major {
    () => {
        concat!(
            r"(\.(\d+|[xX]|\*\]?))?(\.(\d+|[xX]|\*\]?))?",
            r"(-[0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*)?(\+[0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*)?",
        )
    };
}

/// A version, a hyphen range, or an operator with a version. `$major` is the pattern of the first component.
macro_rules! comparator {
    ($major:literal) => {
        concat!(
            "(v?",
            $major,
            after_major!(),
            r"(\s+-\s+v?(\d+|[xX]|\*)",
            after_major!(),
            r")?|(=|!=|>|<|>=|=>|<=|=<|~|~>|\^)\s*v?",
            $major,
            after_major!(),
            ")",
        )
    };
}

/// Pattern of a version range.
///
/// The pattern admits every range that the controller parses (the grammar of Masterminds/semver v3), and every text that
/// upstream's pattern admits. Some of the latter do not parse (`|`, `1.*]`, `1.2.3-01`); the status names the mistake.
pub const VERSION_RANGE: &str = concat!(
    r"^\s*",
    comparator!(r"(\d+|[xX|]|\*\]?)"),
    r"\s*((\s|,|\|\|)\s*",
    comparator!(r"(\d+|[xX]|\*\]?)"),
    r"\s*)*$",
);

/// The message for a version range that does not look like that.
pub const VERSION_RANGE_REFUSED: &str = "invalid version expression";

/// Most characters of a version range.
pub const VERSION_RANGE_LENGTH: usize = 64;

/// The whole version of a bundle, with fewer components allowed, and anything after it.
const LOOSE_SEMVER: &str = concat!(
    r"^([0-9]+)(\.[0-9]+)?(\.[0-9]+)?(-([-0-9A-Za-z]+(\.[-0-9A-Za-z]+)*))?",
    r"(\+([-0-9A-Za-z]+(-\.[-0-9A-Za-z]+)*))?",
);

const RELEASE: &str = concat!(
    r"^$|^(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)",
    r"(\.(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*$",
);

/// `self` matches `regex`; the regex is written plainly and escaped here.
fn matches(regex: &str) -> Rule {
    Rule::new(format!("self.matches(\"{}\")", regex.replace('\\', "\\\\")))
}

pub(crate) fn dns1123_label(message: &str) -> Rule {
    matches(DNS1123_LABEL).message(message)
}

/// A subdomain, refused with the sentence that names `field`.
pub(crate) fn dns1123_subdomain(field: &str) -> Rule {
    matches(DNS1123_SUBDOMAIN).message(Message::Message(format!(
        "{field} must be a valid DNS1123 subdomain. It must contain only lowercase alphanumeric characters, \
         hyphens (-) or periods (.), start and end with an alphanumeric character, and be no longer than 253 \
         characters"
    )))
}

/// A subdomain, as an item of `spec.source.catalog.channels`.
pub(crate) fn channel() -> Rule {
    matches(DNS1123_SUBDOMAIN).message("channels entries must be valid DNS1123 subdomains")
}

pub(crate) fn version_range() -> Rule {
    matches(VERSION_RANGE).message(VERSION_RANGE_REFUSED)
}

pub(crate) fn loose_semver() -> Rule {
    matches(LOOSE_SEMVER).message("version must be well-formed semver")
}

pub(crate) fn release() -> Rule {
    matches(RELEASE).message(
        "release must be empty or consist of dot-separated identifiers (numeric without leading zeros, or \
         alphanumeric)",
    )
}

/// Five fields of a cron expression; the controller parses them and names mistakes in the status.
pub(crate) fn cron() -> Rule {
    matches(r"^[0-9A-Za-z*,/#?-]+( +[0-9A-Za-z*,/#?-]+){4}$").message(
        "schedule must be a cron expression of five fields: minute, hour, day of the month, month, day of the week",
    )
}

/// A duration of whole hours, minutes and seconds, at most a week.
pub(crate) fn duration(field: &str) -> Rule {
    Rule::new(
        "self.matches('^([0-9]{1,4}h)?([0-9]{1,5}m)?([0-9]{1,6}s)?$') && duration(self) <= duration('168h')",
    )
    .message(Message::Message(format!(
        "{field} must be a duration of hours, minutes and seconds, such as 10m or 1h30m, and at most 168h"
    )))
}

pub(crate) fn immutable(field: &str) -> Rule {
    Rule::new("self == oldSelf").message(Message::Message(format!("{field} is immutable")))
}

/// A list that may be filled once.
pub(crate) fn set_once(field: &str) -> Rule {
    Rule::new("self == oldSelf || oldSelf.size() == 0")
        .message(Message::Message(format!("{field} is immutable")))
}

/// A member of a union that `type` chooses.
pub(crate) fn member_of_type(member: &str, type_: &str) -> Rule {
    Rule::new(format!(
        "self.type == '{type_}' ?has(self.{member}) : !has(self.{member})"
    ))
    .message(Message::Message(format!(
        "{member} is required when type is {type_}, and forbidden otherwise"
    )))
}

pub(crate) fn catalog_source_union() -> Rule {
    Rule::new("has(self.type) && self.type == 'Image' ? has(self.image) : !has(self.image)")
        .message("image is required when source type is Image, and forbidden otherwise")
}

pub(crate) fn phase_name() -> Rule {
    Rule::new("!format.dns1123Label().validate(self).hasValue()").message(
        "the value must consist of only lowercase alphanumeric characters and hyphens, and must start and end \
         with an alphanumeric character.",
    )
}

pub(crate) fn field_path() -> Rule {
    Rule::new(r"self.matches('^[a-zA-Z0-9]+(?:\\.[a-zA-Z0-9]+)*$')").message(
        "must contain a valid field path. valid fields contain upper or lower-case alphanumeric characters \
         separated by the \".\" character.",
    )
}
