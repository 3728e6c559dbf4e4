//! Validation rules that occur more than once, or are long. The messages are part of the interface.

use kube::core::{Message, Rule};

/// Pattern of a namespace's name, which has at most 63 characters.
pub const DNS1123_LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
const DNS1123_SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// Pattern of a version range. The pattern admits some invalid ranges (`|`, `1.*]`) and refuses some valid ones (hyphen ranges):
/// clients depend on exactly this language, so it stays.
pub const VERSION_RANGE: &str = concat!(
    r"^(\s*(=||!=|>|<|>=|=>|<=|=<|~|~>|\^)\s*",
    r"(v?(0|[1-9]\d*|[x|X|\*])(\.(0|[1-9]\d*|x|X|\*]))?(\.(0|[1-9]\d*|x|X|\*))?",
    r"(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?)\s*)",
    r"((?:\s+|,\s*|\s*\|\|\s*)(=||!=|>|<|>=|=>|<=|=<|~|~>|\^)\s*",
    r"(v?(0|[1-9]\d*|x|X|\*])(\.(0|[1-9]\d*|x|X|\*))?(\.(0|[1-9]\d*|x|X|\*]))?",
    r"(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?)\s*)*$",
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
