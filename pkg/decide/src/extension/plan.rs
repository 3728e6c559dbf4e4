//! The plan of a new revision, and its form in the status.

use olm_api::{ApprovalCause, BundleMetadata, PendingObjects, PendingPlan};
use olm_bundle::crd_safety::Rules;
use olm_image::CanonicalRef;
use olm_plan::{BundleIdentity, CatalogIdentity, Change, ObjectRef, Plan, Side, compare_crds};
use olm_text::cut;
use olm_text::object::{ObjectId, group_version};
use serde_json::Value;

use super::history::{BundleRef, Revision};

/// Maximum number of findings in the status.
const FINDINGS: usize = 10;
/// Maximum length of a finding in bytes.
const FINDING_LIMIT: usize = 300;

/// Objects that a new revision brings, with their origin.
pub struct Wanted<'a> {
    /// Name of the extension.
    pub extension: &'a str,
    /// Install namespace.
    pub namespace: &'a str,
    /// `spec.config.inline`.
    pub config: Option<Value>,
    /// The bundle.
    pub bundle: &'a BundleRef,
    /// Image of the bundle, by digest.
    pub image: &'a CanonicalRef,
    /// The rendered objects.
    pub objects: Vec<Value>,
    /// Rules for changes of CRDs, those of the check before a rollout.
    pub crd_rules: Rules,
}

/// Objects of the newest revision, as far as they can be read.
pub struct Previous<'a> {
    /// The revision.
    pub revision: &'a Revision,
    /// The objects.
    pub objects: Vec<Value>,
    /// Secrets of the revision that are gone; the plan counts their objects as created.
    pub missing: Vec<String>,
}

/// Returns the plan for `wanted` after `previous`.
pub fn plan(wanted: Wanted<'_>, previous: Option<Previous<'_>>) -> Plan {
    let mut unchecked = Vec::new();
    let from = previous.map(|previous| {
        unchecked = previous.missing;
        Side {
            bundle: identity(
                &previous.revision.bundle,
                previous.revision.image.as_ref(),
                Some(&previous.revision.name),
            ),
            objects: previous.objects,
        }
    });
    let before = from
        .as_ref()
        .map(|side| side.objects.as_slice())
        .unwrap_or_default();
    let crds = compare_crds(before, &wanted.objects, wanted.crd_rules);
    let change = Change {
        extension: Some(wanted.extension.to_owned()),
        namespace: wanted.namespace.to_owned(),
        config: wanted.config,
        from,
        to: Side {
            bundle: identity(wanted.bundle, Some(wanted.image), None),
            objects: wanted.objects,
        },
        catalog: wanted.bundle.catalog.as_ref().map(|name| CatalogIdentity {
            name: name.to_string(),
            digest: None,
        }),
        crds,
        dependents: Vec::new(),
        refusals: Vec::new(),
        unchecked,
    };
    change.plan()
}

fn identity(bundle: &BundleRef, image: Option<&CanonicalRef>, revision: Option<&str>) -> BundleIdentity {
    BundleIdentity {
        package: bundle.package.to_string(),
        name: bundle.name.to_string(),
        version: bundle.version.to_string(),
        release: bundle.version.release().map(str::to_owned),
        image: image.map(ToString::to_string),
        revision: revision.map(str::to_owned),
    }
}

/// Returns true if the plan changes or deletes existing CRDs, or if it cannot tell: an object that could not be compared counts as
/// created, and may be a CRD that changes.
pub fn changes_crds(plan: &Plan) -> bool {
    let changed = plan.changed.iter().map(|change| &change.object);
    !plan.unchecked.is_empty() || changed.chain(&plan.deleted).any(is_crd)
}

fn is_crd(object: &ObjectRef) -> bool {
    let (group, version) = group_version(&object.api_version);
    let id = ObjectId {
        group,
        version,
        kind: &object.kind,
        namespace: &object.namespace,
        name: &object.name,
    };
    id.is_crd()
}

/// Returns true if the bundle's roles and bindings grant rights that they did not grant before, or grant rights to new subjects.
pub fn gains_rights(plan: &Plan) -> bool {
    !plan.rights.bundle.gained.is_empty()
}

/// Returns true if no object changes.
pub fn changes_nothing(plan: &Plan) -> bool {
    plan.created.is_empty() && plan.changed.is_empty() && plan.deleted.is_empty()
}

/// Returns the plan in the form of the status.
pub fn pending(plan: &Plan, bundle: &BundleRef, causes: &[ApprovalCause]) -> PendingPlan {
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    PendingPlan {
        digest: plan.digest.clone(),
        bundle: BundleMetadata {
            name: bundle.name.to_string(),
            version: bundle.version.to_string(),
            release: bundle.version.release().map(str::to_owned),
        },
        catalog: bundle.catalog.as_ref().map(ToString::to_string),
        objects: PendingObjects {
            created: count(plan.counts.created),
            changed: count(plan.counts.changed),
            deleted: count(plan.counts.deleted),
        },
        required_by: (!causes.is_empty()).then(|| causes.to_vec()),
        findings: Some(findings(plan)).filter(|findings| !findings.is_empty()),
    }
}

/// Returns the gravest effects of the plan: irreversible ones, unsafe CRDs, gained rights, restarts.
fn findings(plan: &Plan) -> Vec<String> {
    let lost = plan
        .irreversible
        .iter()
        .map(|effect| format!("irreversible: {}: {}", effect.object, effect.reason));
    let crds = plan.crds.iter().flat_map(|verdict| {
        let unsafe_changes = verdict
            .findings
            .iter()
            .map(|finding| format!("unsafe change of CRD {}: {finding}", verdict.crd));
        unsafe_changes.chain(
            verdict
                .warnings
                .iter()
                .map(|warning| format!("CRD {}: {warning}", verdict.crd)),
        )
    });
    let unread = plan.unchecked.iter().map(|text| format!("not compared: {text}"));
    let rights = plan
        .rights
        .bundle
        .gained
        .iter()
        .map(|right| format!("gains the right: {right}"));
    let restarts = plan.restarts.iter().map(|restart| {
        let how = if restart.interrupted {
            "restarts with an interruption"
        } else {
            "restarts"
        };
        format!("{how}: {}", restart.object)
    });
    let all: Vec<String> = lost
        .chain(crds)
        .chain(unread)
        .chain(rights)
        .chain(restarts)
        .collect();
    let more = plan.rights.bundle.more_gained;
    let total = all.len().saturating_add(more);
    let named = if total > FINDINGS { FINDINGS - 1 } else { FINDINGS };
    let mut shown: Vec<String> = all
        .iter()
        .take(named)
        .map(|text| cut(text, FINDING_LIMIT).into_owned())
        .collect();
    if total > shown.len() {
        shown.push(format!("and {} more", total - shown.len()));
    }
    shown
}

#[cfg(test)]
mod tests {
    use olm_plan::{Irreversible, ObjectRef, Restart, Right};
    use serde_json::json;

    use super::super::history::History;
    use super::*;

    fn bundle() -> BundleRef {
        BundleRef {
            name: "a.v1.1.0".into(),
            version: "1.1.0".into(),
            package: "a".into(),
            image: olm_text::name::ImageText::from("registry.example/a:1".to_owned()).into(),
            catalog: Some("community".into()),
        }
    }

    const CRD: &str = "CustomResourceDefinition";

    fn object(kind: &str, name: &str) -> ObjectRef {
        let group = if kind == CRD {
            "apiextensions.k8s.io"
        } else {
            "apps"
        };
        ObjectRef {
            api_version: format!("{group}/v1"),
            kind: kind.to_owned(),
            name: name.to_owned(),
            ..ObjectRef::default()
        }
    }

    #[test]
    fn the_gravest_effects_come_first_and_the_rest_is_counted() {
        let mut plan = Plan {
            digest: "sha256:aa".to_owned(),
            irreversible: vec![Irreversible {
                object: object(CRD, "as.example.com"),
                reason: "all its objects are deleted".to_owned(),
            }],
            restarts: vec![Restart {
                object: object("Deployment", "a"),
                interrupted: true,
            }],
            ..Plan::default()
        };
        plan.deleted.push(object(CRD, "as.example.com"));
        plan.counts.deleted = 1;
        let pending = pending(&plan, &bundle(), &[ApprovalCause::Manual]);
        assert_eq!(
            pending.findings.unwrap(),
            [
                "irreversible: CustomResourceDefinition as.example.com: all its objects are deleted",
                "restarts with an interruption: Deployment a",
            ]
        );
        assert_eq!(
            (pending.objects.deleted, pending.bundle.version.as_str()),
            (1, "1.1.0")
        );
        assert!(changes_crds(&plan) && !gains_rights(&plan) && !changes_nothing(&plan));

        plan.rights.bundle.gained = vec![Right::default(); 12];
        plan.rights.bundle.more_gained = 5;
        let shown = findings(&plan);
        assert_eq!(shown.len(), FINDINGS);
        assert_eq!(shown.last().unwrap(), "and 10 more");
        plan.irreversible[0].reason = "x".repeat(1000);
        assert!(findings(&plan).iter().all(|text| text.len() <= FINDING_LIMIT));
    }

    #[test]
    fn findings_on_crds_are_those_of_the_check_before_the_rollout() {
        let crd = |maximum: Value| {
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": CRD, "metadata": {"name": "as.example.com"},
            "spec": {"scope": "Namespaced", "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"size": maximum}}}}]}})
        };
        let revision = json!({"metadata": {"name": "a-1"},
            "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent"}});
        let history = History::read(&[serde_json::from_value(revision).unwrap()]);
        let image = format!("registry.example/a@sha256:{}", "a".repeat(64));
        let (bundle, image) = (bundle(), image.parse().unwrap());
        let found = |crd_rules| {
            let wanted = Wanted {
                extension: "a",
                namespace: "a",
                config: None,
                bundle: &bundle,
                image: &image,
                objects: vec![crd(json!({"type": "string"}))],
                crd_rules,
            };
            let previous = Previous {
                revision: history.newest().unwrap(),
                objects: vec![crd(json!({"type": "string", "pattern": "^a"}))],
                missing: Vec::new(),
            };
            findings(&plan(wanted, Some(previous)))
        };
        assert_eq!(found(Rules::Ours), [""; 0]);
        let upstream = found(Rules::Upstream);
        assert!(
            upstream.len() == 1
                && upstream[0].starts_with("unsafe change of CRD as.example.com: v1: ^.size: "),
            "{upstream:?}"
        );
    }

    #[test]
    fn only_crds_that_exist_are_changed() {
        let changed = |kind: &str| {
            let mut plan = Plan::default();
            plan.created.push(object(CRD, "new.example.com"));
            plan.deleted.push(object(kind, "a"));
            changes_crds(&plan)
        };
        assert!(changed(CRD) && !changed("Deployment"));
    }

    /// Returns an image of the bundle.
    fn image() -> String {
        format!("registry.example/a@sha256:{}", "a".repeat(64))
    }

    /// Returns the plan of `objects` after revision a-1, which has no objects but those that are `missing`.
    fn planned(objects: Vec<Value>, missing: Vec<String>) -> Plan {
        let revision = json!({"metadata": {"name": "a-1"},
            "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent"}});
        let history = History::read(&[serde_json::from_value(revision).unwrap()]);
        let wanted = Wanted {
            extension: "a",
            namespace: "a",
            config: None,
            bundle: &bundle(),
            image: &image().parse().unwrap(),
            objects,
            crd_rules: Rules::Ours,
        };
        let previous = Previous {
            revision: history.newest().unwrap(),
            objects: Vec::new(),
            missing,
        };
        plan(wanted, Some(previous))
    }

    #[test]
    fn objects_of_lost_secrets_may_be_crds_that_change() {
        let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": CRD, "metadata": {"name": "as.example.com"}});
        let planned = |missing: Vec<String>| planned(vec![crd.clone()], missing);
        let read = planned(Vec::new());
        let lost = planned(vec![
            "object \"a\" of revision \"a-1\": Secret n/a is gone".to_owned(),
        ]);
        assert!(!changes_crds(&read) && changes_crds(&lost));
        assert_eq!(read.digest, lost.digest, "an approval outlasts the loss");
    }

    #[test]
    fn kinds_of_other_groups_are_no_crds() {
        let mut other = object(CRD, "a");
        other.api_version = "example.com/v1".to_owned();
        let plan = Plan {
            deleted: vec![other],
            ..Plan::default()
        };
        assert!(!changes_crds(&plan));
    }

    #[test]
    fn a_plan_without_effects_has_no_findings() {
        let plan = Plan::default();
        assert!(changes_nothing(&plan) && !changes_crds(&plan));
        let pending = pending(&plan, &bundle(), &[]);
        assert_eq!((pending.findings, pending.required_by), (None, None));
    }

    #[test]
    fn nothing_is_counted_if_all_findings_fit() {
        let mut plan = Plan::default();
        plan.rights.bundle.gained = vec![Right::default(); FINDINGS];
        let shown = findings(&plan);
        assert_eq!(shown.len(), FINDINGS);
        assert!(
            shown.iter().all(|text| text.starts_with("gains the right")),
            "{shown:?}"
        );
        plan.rights.bundle.gained.push(Right::default());
        assert_eq!(findings(&plan).last().unwrap(), "and 2 more");
    }

    #[test]
    fn a_plan_names_both_bundles() {
        let plan = planned(Vec::new(), Vec::new());
        assert_eq!(
            (
                plan.to.package.as_str(),
                plan.to.name.as_str(),
                plan.to.version.as_str()
            ),
            ("a", "a.v1.1.0", "1.1.0")
        );
        assert_eq!(plan.to.image, Some(image()));
        assert_eq!(plan.from.unwrap().revision.as_deref(), Some("a-1"));
    }

    #[test]
    fn a_change_of_a_crd_is_one_of_a_crd_that_exists() {
        let changed = |kind: &str| {
            let mut plan = Plan::default();
            plan.created.push(object(CRD, "new.example.com"));
            plan.changed.push(olm_plan::ObjectChange {
                object: object(kind, "a"),
                ..olm_plan::ObjectChange::default()
            });
            changes_crds(&plan)
        };
        assert!(changed(CRD) && !changed("Deployment"));
    }
}
