//! Names of objects: rules of the API server, and escaping in URLs.
//!
//! Invariants: an untrusted text becomes part of a URL only as a [`Segment`], so it can neither leave its path segment
//! nor begin a query. [`check`] refuses only names that every API server refuses.

use std::ops::Deref;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use olm_text::dns::{is_label, is_subdomain};
use olm_text::object::{ObjectId, text};
use olm_text::{cut, printable, quoted};

/// Unreserved characters of a path segment (RFC 3986).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// Maximum length of an escaped segment, in bytes. A longer name does not fit into a request, so no object has one.
const LONGEST: usize = 16 * 1024;
/// Maximum length of the value of a label (Kubernetes).
pub const LABEL_VALUE_MAX: usize = 63;
/// Maximum length of a name in a message, in bytes.
const SHOWN: usize = 100;

const SUBDOMAIN: &str = "must be a lowercase RFC 1123 subdomain: lower case alphanumeric characters, '-' or '.', beginning and ending \
                         with an alphanumeric character, at most 253 characters";
const LABEL: &str = "must be a lowercase RFC 1123 label: lower case alphanumeric characters or '-', beginning and ending with an \
                     alphanumeric character, at most 63 characters";

/// Reason why the API server refuses a name, in Kubernetes' words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} {} {why}", quoted(.name, SHOWN))]
pub struct InvalidName {
    /// Field that holds the name.
    what: &'static str,
    name: String,
    why: &'static str,
}

/// Returns true if the name of an object fits into the value of a label. The API server refuses a selector with a longer value.
#[must_use]
pub fn fits_label(name: &str) -> bool {
    name.len() <= LABEL_VALUE_MAX
}

/// A name as a segment of a URL's path, escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment(String);

impl Segment {
    /// Escapes `name`.
    ///
    /// # Errors
    /// [`InvalidName`] if `name` cannot be one segment: the API server splits paths after unescaping them.
    pub fn new(name: &str) -> Result<Self, InvalidName> {
        Self::of("name", name)
    }

    fn of(what: &'static str, name: &str) -> Result<Self, InvalidName> {
        let why = match name {
            "" => Some("must not be empty"),
            "." => Some("may not be '.'"),
            ".." => Some("may not be '..'"),
            _ if name.contains('/') => Some("may not contain '/'"),
            _ if name.contains('%') => Some("may not contain '%'"),
            _ => None,
        };
        let escaped = utf8_percent_encode(name, ESCAPED).to_string();
        let why = why.or_else(|| (escaped.len() > LONGEST).then_some("is too long for a request"));
        match why {
            None => Ok(Self(escaped)),
            Some(why) => Err(invalid(what, name, why)),
        }
    }
}

impl Deref for Segment {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Rule for the names of a kind.
#[derive(Clone, Copy)]
enum Rule {
    Segment,
    Subdomain,
    Label,
}

/// Returns the rule that the API server certainly applies to a kind; unknown kinds permit any segment.
fn rule_of(group: &str, kind: &str) -> Rule {
    match (group, kind) {
        ("", "Namespace" | "Service") => Rule::Label,
        ("", "ConfigMap" | "Secret" | "ServiceAccount" | "PersistentVolume" | "PersistentVolumeClaim")
        | ("apps", "Deployment")
        | ("policy", "PodDisruptionBudget")
        | ("networking.k8s.io", "NetworkPolicy" | "Ingress")
        | ("scheduling.k8s.io", "PriorityClass")
        | ("storage.k8s.io", "StorageClass")
        | ("apiextensions.k8s.io", "CustomResourceDefinition")
        | ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration")
        // Custom resources.
        | ("monitoring.coreos.com" | "cert-manager.io" | "console.openshift.io" | "autoscaling.k8s.io", _) => Rule::Subdomain,
        // Roles and bindings among them.
        _ => Rule::Segment,
    }
}

/// Checks group, version, namespace and name of `object`. An object without an `apiVersion` is left to the API server.
///
/// # Errors
/// [`InvalidName`] if no API server can hold the object under its name.
pub fn check(object: &Value) -> Result<(), InvalidName> {
    let id = ObjectId::of(object);
    if !text(object, "/apiVersion").is_empty() {
        check_api(id.group, id.version)?;
    }
    check_place(id.group, id.kind, id.namespace, id.name)
}

/// Maximum number of names in the message of [`InvalidNames`].
const LISTED: usize = 5;

/// Objects that no API server can hold under their names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the API server accepts no object under these names: {0}; other objects are needed, such as those of another bundle"
)]
pub struct InvalidNames(String);

/// Checks every object as [`check`] does.
///
/// # Errors
/// [`InvalidNames`] names the first objects that no API server can hold.
pub fn check_all<'a>(objects: impl Iterator<Item = &'a Value>) -> Result<(), InvalidNames> {
    let mut faults: Vec<String> = objects
        .filter_map(|object| {
            let kind = text(object, "/kind");
            let fault = check(object).err()?;
            Some(format!("{}: {fault}", printable(&cut(kind, SHOWN))))
        })
        .collect();
    if faults.is_empty() {
        return Ok(());
    }
    let more = faults.len().saturating_sub(LISTED);
    faults.truncate(LISTED);
    if more > 0 {
        faults.push(format!("and {more} more"));
    }
    Err(InvalidNames(faults.join("; ")))
}

/// Checks names like [`check`]; `namespace` is empty for cluster-scoped objects, and an empty version is refused.
///
/// # Errors
/// [`InvalidName`] if no API server can hold the object under its name.
pub fn check_parts(
    group: &str,
    version: &str,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<(), InvalidName> {
    check_api(group, version)?;
    check_place(group, kind, namespace, name)
}

fn check_api(group: &str, version: &str) -> Result<(), InvalidName> {
    if !group.is_empty() && !is_subdomain(group) {
        return Err(invalid("the group of apiVersion", group, SUBDOMAIN));
    }
    if !is_label(version) {
        return Err(invalid("the version of apiVersion", version, LABEL));
    }
    Ok(())
}

fn check_place(group: &str, kind: &str, namespace: &str, name: &str) -> Result<(), InvalidName> {
    if !namespace.is_empty() && !is_label(namespace) {
        return Err(invalid("metadata.namespace", namespace, LABEL));
    }
    Segment::of("metadata.name", name)?;
    match rule_of(group, kind) {
        Rule::Label if !is_label(name) => Err(invalid("metadata.name", name, LABEL)),
        Rule::Subdomain if !is_subdomain(name) => Err(invalid("metadata.name", name, SUBDOMAIN)),
        _ => Ok(()),
    }
}

fn invalid(what: &'static str, name: &str, why: &'static str) -> InvalidName {
    InvalidName {
        what,
        name: name.to_owned(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_segment_cannot_leave_its_position() {
        let escaped = |name: &str| Segment::new(name).map(|segment| segment.to_string());
        assert_eq!(escaped("plain-1.2_3"), Ok("plain-1.2_3".to_owned()));
        assert_eq!(
            escaped("a?dryRun=All&x="),
            Ok("a%3FdryRun%3DAll%26x%3D".to_owned())
        );
        assert_eq!(
            escaped("system:a#b ä\0"),
            Ok("system%3Aa%23b%20%C3%A4%00".to_owned())
        );
        for name in ["", ".", "..", "a/b", "../x", "a%2Fb"] {
            assert!(Segment::new(name).is_err(), "{name}");
        }
        assert!(Segment::new(&"ä".repeat(6000)).is_err());
        let said = Segment::new("a/\x1b[31m").unwrap_err().to_string();
        assert_eq!(said, "name \"a/\\u{1b}[31m\" may not contain '/'");
    }

    #[test]
    fn each_kind_has_its_rule() {
        let good = |api_version: &str, kind: &str, namespace: &str, name: &str| {
            let metadata = json!({"name": name, "namespace": namespace});
            check(&json!({"apiVersion": api_version, "kind": kind, "metadata": metadata})).is_ok()
        };
        assert!(good("v1", "ConfigMap", "n", "a.b"));
        for name in [
            "A",
            "a_b",
            "a?x",
            "a\x1b[31m\n\0b",
            "",
            "a..b",
            "-a",
            &"a".repeat(254),
        ] {
            assert!(!good("v1", "ConfigMap", "n", name), "{name}");
        }
        let rbac = "rbac.authorization.k8s.io/v1";
        assert!(good(rbac, "ClusterRole", "", "System:a?x_Y"));
        assert!(!good(rbac, "ClusterRole", "", "a/b"));
        assert!(good("v1", "Service", "n", &"a".repeat(63)));
        assert!(!good("v1", "Service", "n", "a.b"));
        assert!(good("example.com/v1", "Thing", "", "Any_Thing"));
        assert!(!good("example.com/v1", "Thing", "N", "a"));
        assert!(!good("example.com/v1?x=", "Thing", "n", "a"));
        assert!(!good("../v1", "Thing", "n", "a"));
        assert!(good("", "Thing", "n", "a") && !good("", "Thing", "n", "a/b"));
        assert!(
            check_parts("", "", "Thing", "n", "a").is_err(),
            "a URL needs a version"
        );
    }
}
