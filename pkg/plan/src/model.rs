//! The plan as data.

use std::collections::BTreeSet;

use olm_api::{ClusterObjectSet, keys};
use olm_bundle::crd_safety::Finding;
use olm_bundle::permissions::{Holder, PolicyRule, RequiredRule, RuleScope};
use olm_text::list;
use olm_text::object::{ObjectId, group_version};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum number of subjects that the text of a right names.
const SUBJECTS: usize = 5;

/// Plan of a change of an extension's bundle or configuration: all its effects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Plan {
    /// Name of the extension; none for a comparison of two bundles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension: Option<String>,
    /// Install namespace.
    pub namespace: String,
    /// Bundle of the newest revision; none before the first installation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<BundleIdentity>,
    /// Bundle that the change leads to.
    pub to: BundleIdentity,
    /// Catalog of the bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalog: Option<CatalogIdentity>,
    /// Digest of the change, `sha256:` and hex; see [`Change::digest`](crate::Change::digest).
    pub digest: String,
    /// Numbers of objects.
    pub counts: Counts,
    /// Objects that do not exist before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub created: Vec<ObjectRef>,
    /// Objects on both sides that differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<ObjectChange>,
    /// Objects that do not exist after.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deleted: Vec<ObjectRef>,
    /// Verdicts on the CRDs on both sides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub crds: Vec<CrdVerdict>,
    /// Rights that the change adds and removes.
    pub rights: Rights,
    /// Images of the workloads.
    pub images: Images,
    /// Workloads whose pods restart.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub restarts: Vec<Restart>,
    /// Other extensions that the change affects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependents: Vec<Dependent>,
    /// Consequences that no later change undoes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub irreversible: Vec<Irreversible>,
    /// Reasons why operator-controller or the API server would refuse the change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<String>,
    /// Checks that could not be made, each with its reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unchecked: Vec<String>,
}

/// Verdict on a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The bundle and its objects stay.
    Nothing,
    /// The change can be made.
    Change,
    /// The change would be refused.
    Refused,
}

impl Plan {
    /// Returns the verdict.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        if !self.refusals.is_empty() {
            return Outcome::Refused;
        }
        let same_bundle = self.from.as_ref().is_some_and(|from| from.same_bundle(&self.to));
        if same_bundle && self.created.is_empty() && self.changed.is_empty() && self.deleted.is_empty() {
            Outcome::Nothing
        } else {
            Outcome::Change
        }
    }
}

/// Identity of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BundleIdentity {
    /// Package.
    pub package: String,
    /// Name of the bundle.
    pub name: String,
    /// Version.
    pub version: String,
    /// Release, if the version has a separate one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// Reference of the bundle's image by digest; none for a directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Name of the revision that holds the bundle; none for the bundle that a change leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

impl BundleIdentity {
    /// Returns the identity that the annotations of a revision record.
    #[must_use]
    pub fn recorded(revision: &ClusterObjectSet) -> Self {
        let annotations = revision.metadata.annotations.as_ref();
        let annotation = |key: &str| annotations.and_then(|all| all.get(key)).cloned();
        Self {
            package: annotation(keys::PACKAGE_NAME_ANNOTATION).unwrap_or_default(),
            name: annotation(keys::BUNDLE_NAME_ANNOTATION).unwrap_or_default(),
            version: annotation(keys::BUNDLE_VERSION_ANNOTATION).unwrap_or_default(),
            release: annotation(keys::BUNDLE_RELEASE_ANNOTATION),
            image: annotation(keys::RESOLVED_IMAGE_ANNOTATION),
            revision: revision.metadata.name.clone(),
        }
    }

    /// Returns true if both identify the same bundle, in any revision.
    fn same_bundle(&self, other: &Self) -> bool {
        (
            &self.package,
            &self.name,
            &self.version,
            &self.release,
            &self.image,
        ) == (
            &other.package,
            &other.name,
            &other.version,
            &other.release,
            &other.image,
        )
    }
}

/// Catalog of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CatalogIdentity {
    /// Name of the catalog.
    pub name: String,
    /// Resolved image reference of the catalog's content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// Numbers of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Counts {
    /// Created objects.
    pub created: usize,
    /// Changed objects.
    pub changed: usize,
    /// Deleted objects.
    pub deleted: usize,
    /// Objects that stay, except for the marks of the new revision.
    pub unchanged: usize,
    /// Changed fields of all objects, also those that the plan does not name.
    pub fields: usize,
}

/// Reference to an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectRef {
    /// API version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectRef {
    /// Returns the reference to `object`.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let id = ObjectId::of(object);
        Self {
            api_version: olm_text::object::text(object, "/apiVersion").to_owned(),
            kind: id.kind.to_owned(),
            namespace: id.namespace.to_owned(),
            name: id.name.to_owned(),
        }
    }

    /// Returns true if both refer to one object, maybe in different versions of its API.
    pub(crate) fn same_object(&self, other: &Self) -> bool {
        let key = |object: &Self| {
            let group = group_version(&object.api_version).0.to_owned();
            (
                group,
                object.kind.clone(),
                object.namespace.clone(),
                object.name.clone(),
            )
        };
        key(self) == key(other)
    }
}

impl std::fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.kind)?;
        if self.namespace.is_empty() {
            write!(f, " {}", self.name)
        } else {
            write!(f, " {}/{}", self.namespace, self.name)
        }
    }
}

impl FieldChange {
    /// Returns true for a description in the schema of a CRD, whose change has no effect.
    #[must_use]
    pub fn is_description(&self) -> bool {
        is_description(&self.path)
    }
}

/// Returns true for a description in the schema of a CRD, whose change has no effect. False for a field that is named `description`,
/// and for one inside a default or another value.
pub(crate) fn is_description(path: &str) -> bool {
    let Some((_, path)) = path.split_once("/schema/openAPIV3Schema/") else {
        return false;
    };
    let mut segments = path.split('/');
    while let Some(key) = segments.next() {
        match key {
            "description" => return segments.next().is_none(),
            "items" | "additionalProperties" | "not" | "externalDocs" => {}
            // A name or a position follows.
            "properties" | "allOf" | "anyOf" | "oneOf" => {
                segments.next();
            }
            _ => return false,
        }
    }
    false
}

/// An object that changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectChange {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// Changed fields.
    pub fields: Vec<FieldChange>,
    /// Number of further changed fields, which the plan does not name.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A field that changes. Values are JSON text, cut if they are long; `(hidden)` for data of Secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FieldChange {
    /// JSON pointer; an element of a list of named objects is `name=<name>`.
    pub path: String,
    /// Value before the change; none if the field is added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Value after the change; none if the field is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Verdict on the upgrade of a CRD.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CrdVerdict {
    /// Name of the CRD.
    pub crd: String,
    /// Unsafe changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Changes that may be unsafe.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Comparison of the stored objects with the new schemas; none if it was not made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_objects: Option<StoredObjects>,
}

/// Comparison of stored objects with new schemas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StoredObjects {
    /// Number of objects that were read.
    pub objects: u64,
    /// Number of objects that would be invalid.
    pub broken: u64,
    /// False if the reading stopped before the last object.
    pub complete: bool,
}

/// Rights that a change adds and removes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rights {
    /// Rights that the bundle's roles and bindings grant to their subjects.
    pub bundle: RightsChange,
    /// Rights that a service account needs to install and remove the bundle.
    pub installer: RightsChange,
}

/// Rights gained and lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RightsChange {
    /// Added rights.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gained: Vec<Right>,
    /// Removed rights.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Right>,
    /// Number of further added rules, which the plan does not name.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_gained: usize,
    /// Number of further removed rules, which the plan does not name.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_lost: usize,
}

/// A rule, its scope and who holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Right {
    /// Namespace of the rule; none for the whole cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The rule.
    #[serde(flatten)]
    pub rule: PolicyRule,
    /// Holders of the right; none for the bundle's service account if no other account is concerned, and for rights of the installer.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub subjects: BTreeSet<Holder>,
}

impl From<RequiredRule> for Right {
    fn from(required: RequiredRule) -> Self {
        Self {
            namespace: match required.scope {
                RuleScope::Cluster => None,
                RuleScope::Namespace(namespace) => Some(namespace),
            },
            rule: required.rule,
            subjects: BTreeSet::new(),
        }
    }
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rule = &self.rule;
        let join = |set: &BTreeSet<String>| set.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        write!(f, "{} ", join(&rule.verbs))?;
        if rule.non_resource_urls.is_empty() {
            let groups = join(&rule.api_groups);
            let core = groups.is_empty();
            write!(
                f,
                "{}{}{}",
                join(&rule.resources),
                if core { "" } else { " of " },
                groups
            )?;
        } else {
            f.write_str(&join(&rule.non_resource_urls))?;
        }
        if !rule.resource_names.is_empty() {
            write!(f, " named {}", join(&rule.resource_names))?;
        }
        match &self.namespace {
            None => f.write_str(", in the whole cluster")?,
            Some(namespace) => write!(f, ", in namespace {namespace}")?,
        }
        if self.subjects.is_empty() {
            return Ok(());
        }
        let subjects: Vec<String> = self.subjects.iter().map(ToString::to_string).collect();
        write!(f, ", for {}", list(&subjects, SUBJECTS))
    }
}

/// Images of the workloads, also those in environment variables `RELATED_IMAGE_*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Images {
    /// Images that only the new objects use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// Images that only the old objects use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// Number of images on both sides.
    pub kept: usize,
}

/// A workload whose pods restart because their template changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Restart {
    /// The workload.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// True if all pods stop before the new ones start.
    pub interrupted: bool,
}

/// Another extension that the change affects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Dependent {
    /// Name of the extension.
    pub extension: String,
    /// Sentence that says what the extension would lack.
    pub reason: String,
}

/// A consequence that no later change undoes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Irreversible {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// Sentence that says what is lost.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_that_is_named_description_has_an_effect() {
        let is =
            |below: &str| is_description(&format!("/spec/versions/name=v1/schema/openAPIV3Schema/{below}"));
        for text in [
            "description",
            "properties/spec/description",
            "properties/description/description",
            "properties/properties/description",
            "properties/default/items/anyOf/0/description",
            "additionalProperties/not/externalDocs/description",
        ] {
            assert!(is(text), "{text}");
        }
        for field in [
            "properties/description",
            "properties/spec/properties/description",
            "properties/description/type",
            "properties/spec/default/description",
            "properties/spec/example/description",
            "properties/spec/enum/0/description",
        ] {
            assert!(!is(field), "{field}");
        }
        assert!(!is_description("/spec/description"));
    }

    #[test]
    fn a_number_of_further_fields_is_written_unless_it_is_zero() {
        let written = |more| {
            let change = ObjectChange {
                more,
                ..ObjectChange::default()
            };
            serde_json::to_value(change).unwrap().get("more").cloned()
        };
        assert_eq!((written(0), written(1)), (None, Some(json!(1))));
    }
}
