//! Checks of a plan that read the cluster.

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt as _;
use olm_api::rollback::{CatalogContent, Rollback, RolloutAttempt, read};
use olm_api::{
    ClusterExtension, ClusterObjectSet, CrdStoredObjects, CrdUpgradeSafety, CrdUpgradeSafetyEnforcement, keys,
};
use olm_applier::stored::{Limits, survey};
use olm_bundle::crd_safety::{Finding, Rules, ServedVerdict, Waiver, check, waive};
use olm_bundle::crd_schema::{self, Plan as SchemaPlan};
use olm_plan::{
    BundleIdentity, CatalogIdentity, Change, CrdVerdict, StoredObjects, names_digest, spec_digest,
};
use olm_text::object::ObjectId;
use serde_json::Value;

use super::bundles::refusals;
use crate::commands::common::progress;
use crate::commands::served;
use crate::failure::Failure;
use crate::gates::Gates;
use crate::source::{Cluster, SourceError};

/// Survey of stored objects that the user asks for.
#[derive(Clone, Copy)]
pub(crate) struct StoredSurvey {
    /// True if stored objects are validated even if the spec does not ask for it.
    pub(crate) wanted: bool,
    /// Limit of time for the objects of one version.
    pub(crate) time: Duration,
}

/// Compares the wanted CRDs with those of the cluster, by the rules of the gates and of the extension's spec.
pub(crate) async fn crds(
    cluster: &Cluster,
    gates: &Gates,
    asked: StoredSurvey,
    extension: &ClusterExtension,
    change: &mut Change,
) -> Result<(), Failure> {
    compare(cluster, gates, asked, extension, change, false).await
}

/// Compares the CRDs of a former revision with those of the cluster: findings that concern only objects hold if a stored object
/// would be harmed or cannot be checked, as operator-controller decides them.
pub(crate) async fn former_crds(
    cluster: &Cluster,
    gates: &Gates,
    asked: StoredSurvey,
    extension: &ClusterExtension,
    change: &mut Change,
) -> Result<(), Failure> {
    compare(cluster, gates, asked, extension, change, true).await
}

async fn compare(
    cluster: &Cluster,
    gates: &Gates,
    asked: StoredSurvey,
    extension: &ClusterExtension,
    change: &mut Change,
    back: bool,
) -> Result<(), Failure> {
    let safety = settings(extension);
    let enforced = safety.is_none_or(|safety| safety.enforcement != CrdUpgradeSafetyEnforcement::None);
    let checked = safety.is_some_and(|safety| safety.stored_objects == Some(CrdStoredObjects::Check));
    let rules = gates.crd_rules();
    let wanted = change
        .to
        .objects
        .iter()
        .filter(|object| ObjectId::of(object).is_crd());
    let mut verdicts = Vec::new();
    let mut by_gate = false;
    for new in wanted {
        let name = ObjectId::of(new).name;
        let Some(old) = cluster.crd(name).await? else {
            continue;
        };
        // The controller searches no users of removed versions either if it compares no CRDs.
        let served = if enforced {
            served::verdict(Some(cluster), &old, new, rules).await?
        } else {
            ServedVerdict::default()
        };
        let mut findings = check(&old, new, rules);
        findings.extend(served.findings);
        by_gate |= enforced && gate_decides(&old, new, rules, &findings);
        let waivers: Vec<Waiver> = safety
            .and_then(|safety| safety.waivers.as_deref())
            .unwrap_or_default()
            .iter()
            .filter(|waiver| waiver.crd == name)
            .map(|waiver| Waiver {
                rule: waiver.rule.as_str().to_owned(),
                path: waiver.path.clone().unwrap_or_default(),
            })
            .collect();
        let (mut findings, _) = waive(findings, &waivers);
        let mut warnings = served.warnings;
        let decide = back && enforced && findings.iter().any(Finding::is_decided_by_objects);
        let stored = if asked.wanted || checked || decide {
            let mut plan = crd_schema::plan(&old, new);
            if decide {
                plan = plan.refusing_loss();
            }
            stored(cluster, asked.time, plan, &mut change.unchecked).await?
        } else {
            Surveyed::default()
        };
        if decide && stored.decided && stored.objects.is_some_and(|objects| objects.broken == 0) {
            let harmless = findings.extract_if(.., |finding| finding.is_decided_by_objects());
            warnings.extend(harmless.map(|finding| format!("{finding}; no stored object is harmed")));
        }
        verdicts.push(CrdVerdict {
            crd: name.to_owned(),
            findings,
            warnings,
            stored_objects: stored.objects,
        });
    }
    if enforced {
        change.refusals.extend(refusals(&verdicts));
    }
    for verdict in verdicts.iter().filter(|_| checked) {
        if let Some(stored) = verdict.stored_objects.filter(|stored| stored.broken > 0) {
            change.refusals.push(format!(
                "CRD {:?}: {} stored objects would be invalid; `kubectl olm crd-safety --stored-objects` names the first 100",
                verdict.crd, stored.broken
            ));
        }
    }
    change.crds = verdicts;
    if by_gate {
        assume(gates.assumption(), change);
    }
    Ok(())
}

/// Returns true if `rules`, which a feature gate chooses, decide about a change with these findings.
pub(crate) fn gate_decides(old: &Value, new: &Value, rules: Rules, findings: &[Finding]) -> bool {
    let other = match rules {
        Rules::Ours => Rules::Upstream,
        Rules::Upstream => Rules::Ours,
    };
    check(old, new, other) != findings
}

/// Notes once that gates are assumed.
pub(super) fn assume(assumption: Option<String>, change: &mut Change) {
    let unsaid = assumption.filter(|assumption| !change.unchecked.contains(assumption));
    change.unchecked.extend(unsaid);
}

fn settings(extension: &ClusterExtension) -> Option<&CrdUpgradeSafety> {
    let install = extension.spec.install.as_ref()?;
    Some(&install.preflight.as_ref()?.crd_upgrade_safety)
}

/// Result of the surveys of a CRD's versions.
#[derive(Default)]
struct Surveyed {
    /// Numbers of objects; none if no schema changes.
    objects: Option<StoredObjects>,
    /// True if every object was checked in full.
    decided: bool,
}

/// Validates the stored objects of a CRD by its new schemas.
async fn stored(
    cluster: &Cluster,
    time: Duration,
    plan: SchemaPlan,
    unchecked: &mut Vec<String>,
) -> Result<Surveyed, Failure> {
    let limits = Limits {
        time,
        ..Limits::default()
    };
    let mut decided = plan.notes.is_empty();
    unchecked.extend(plan.notes);
    let mut total: Option<StoredObjects> = None;
    for target in plan.targets {
        progress(&format!(
            "checking {}.{} in version {}",
            plan.plural, plan.group, target.version
        ));
        let target = Arc::new(target);
        let found = survey(
            cluster.client(),
            &plan.group,
            &plan.plural,
            Arc::clone(&target),
            &limits,
        );
        let found = found.await.map_err(SourceError::from)?;
        let sum = total.get_or_insert(StoredObjects {
            complete: true,
            ..StoredObjects::default()
        });
        sum.objects = sum.objects.max(found.objects);
        sum.broken = sum.broken.max(found.broken);
        sum.complete &= !found.stopped;
        decided &= found.undecided(&target).next().is_none();
    }
    Ok(Surveyed {
        objects: total,
        decided,
    })
}

/// Returns the reason why operator-controller does not roll the bundle out while a rollback holds.
pub(super) fn rollback(
    extension: &ClusterExtension,
    newest: &ClusterObjectSet,
    next: &BundleIdentity,
    namespaces: Option<&[String]>,
    catalog: Option<&CatalogIdentity>,
) -> Option<String> {
    let requested = extension
        .spec
        .rollout
        .as_ref()
        .and_then(|rollout| rollout.roll_back_to);
    if let Some(to) = requested {
        return Some(format!(
            "spec.rollout.rollBackTo holds the extension at the content of revision {to}; remove the field first: kubectl olm \
             rollback {} --end",
            extension.name_any()
        ));
    }
    let record: Rollback = read(newest.annotations().get(keys::ROLLBACK_ANNOTATION)?)?;
    let failed = record.failure?.attempt;
    let catalog = catalog.and_then(|catalog| {
        Some(CatalogContent {
            name: catalog.name.clone(),
            digest: catalog.digest.clone()?,
        })
    });
    let attempt = RolloutAttempt {
        spec: spec_digest(&extension.spec),
        bundle: next.name.clone(),
        version: next.version.clone(),
        image: next.image.clone(),
        namespaces: namespaces.map(names_digest),
        catalog,
    };
    failed.is_same_as(&attempt).then(|| {
        format!(
            "version {} failed and was rolled back (revision {}); it is not tried again before its catalog, its image, the \
             selected namespaces or the spec change",
            failed.version, record.from
        )
    })
}

/// Refuses a bundle that needs a newer Kubernetes than the cluster has, unless an annotation of the extension says otherwise.
pub(super) async fn kube_version(
    cluster: &Cluster,
    extension: &ClusterExtension,
    needed: &str,
    change: &mut Change,
) -> Result<(), Failure> {
    let ignored = extension
        .annotations()
        .get(keys::IGNORE_MIN_KUBE_VERSION_ANNOTATION);
    if ignored.is_some_and(|ignored| ignored == "true") {
        return Ok(());
    }
    let version = cluster.kube_version().await?;
    let refused = olm_bundle::kube_version::supports(needed, &version).err();
    change.refusals.extend(refused.map(|error| error.to_string()));
    Ok(())
}

/// Notes that the rights of the extension's service account are not checked: this takes rights that few users have.
pub(crate) fn account(extension: &ClusterExtension, change: &mut Change) {
    let account = extension.spec.service_account.as_ref();
    if let Some(name) = account
        .and_then(|account| account.name.as_deref())
        .filter(|name| !name.is_empty())
    {
        change.unchecked.push(format!(
            "the rights of service account {}/{name}: operator-controller checks them before it writes anything",
            extension.spec.namespace.as_deref().unwrap_or_default()
        ));
    }
}

#[cfg(test)]
mod tests {
    use olm_api::rollback::RolloutFailure;
    use serde_json::json;

    use super::*;
    use crate::source::stand_in::cluster;

    fn crd(size: &Value) -> Value {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "kites.example.com"},
            "spec": {"group": "example.com", "names": {"plural": "kites", "kind": "Kite"}, "scope": "Namespaced",
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"size": size}}}}]}})
    }

    #[test]
    fn a_failed_version_waits_for_a_known_input_to_change() {
        let extension: ClusterExtension = serde_json::from_value(json!({"metadata": {"name": "kite"},
            "spec": {"namespace": "n", "source": {"sourceType": "Catalog"}}}))
        .unwrap();
        let record = Rollback {
            failure: Some(RolloutFailure {
                attempt: RolloutAttempt {
                    spec: spec_digest(&extension.spec),
                    bundle: "kite.v2".to_owned(),
                    version: "2.0.0".to_owned(),
                    catalog: Some(CatalogContent {
                        name: "sky".to_owned(),
                        digest: "r.example/sky@sha256:aa".to_owned(),
                    }),
                    ..RolloutAttempt::default()
                },
                message: String::new(),
            }),
            ..Rollback::default()
        };
        let mut newest = ClusterObjectSet::default();
        let annotations = newest.metadata.annotations.get_or_insert_default();
        annotations.insert(keys::ROLLBACK_ANNOTATION.to_owned(), json!(record).to_string());
        let held = |name: &str, digest: Option<&str>, image: Option<&str>| {
            let next = BundleIdentity {
                name: "kite.v2".to_owned(),
                version: "2.0.0".to_owned(),
                image: image.map(ToOwned::to_owned),
                ..BundleIdentity::default()
            };
            let catalog = CatalogIdentity {
                name: name.to_owned(),
                digest: digest.map(ToOwned::to_owned),
            };
            rollback(&extension, &newest, &next, None, Some(&catalog)).is_some()
        };
        assert!(held(
            "sky",
            Some("r.example/sky@sha256:aa"),
            Some("r.example/kite@sha256:cc")
        ));
        assert!(held("sky", None, None), "what is unknown counts as unchanged");
        assert!(!held("sky", Some("r.example/sky@sha256:bb"), None));
        assert!(
            !held("sea", Some("r.example/sky@sha256:aa"), None),
            "another catalog"
        );
    }

    #[tokio::test]
    async fn crds_are_compared_by_the_rules_of_the_controller() {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/kites.example.com";
        let before = crd(&json!({"type": "string", "pattern": "^a"}));
        let cluster = cluster(&[(path, 200, before)]).await;
        let extension = |enforcement: &str| -> ClusterExtension {
            serde_json::from_value(json!({"metadata": {"name": "kite"}, "spec": {"namespace": "n",
                "source": {"sourceType": "Catalog", "catalog": {"packageName": "kite"}},
                "install": {"preflight": {"crdUpgradeSafety": {"enforcement": enforcement}}}}}))
            .unwrap()
        };
        let upstream = json!({"spec": {"template": {"spec": {"containers": [{"name": "manager",
            "args": ["--feature-gates=UpstreamCRDUpgradeSafety=true"]}]}}}});
        let assumed = Gates::assumed("it is gone".to_owned());
        for (gates, enforcement, refusals, unchecked) in [
            (Gates::of_deployment(&upstream), "Strict", 1, 0),
            (Gates::of_deployment(&upstream), "None", 0, 0),
            (Gates::shipped(), "Strict", 0, 0),
            (assumed.clone(), "Strict", 0, 1),
            (assumed, "None", 0, 0),
        ] {
            let mut change = Change::default();
            change.to.objects = vec![crd(&json!({"type": "string"}))];
            let survey = StoredSurvey {
                wanted: false,
                time: Duration::from_secs(1),
            };
            let compared = crds(&cluster, &gates, survey, &extension(enforcement), &mut change).await;
            assert!(compared.is_ok());
            assert_eq!(
                change.refusals.len(),
                refusals,
                "{enforcement}: {:?}",
                change.refusals
            );
            assert_eq!(
                change.unchecked.len(),
                unchecked,
                "{enforcement}: {:?}",
                change.unchecked
            );
        }
    }
}
