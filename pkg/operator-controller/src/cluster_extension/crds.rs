//! Refuses a bundle whose CRDs would break what is stored on the cluster, by what their schemas say and, where it is asked for,
//! by the stored objects themselves ([`stored`]).

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::DynamicObject;
use kube::discovery::ApiResource;
use kube::{Api, Resource as _, ResourceExt as _};
use olm_api::{
    ClusterExtension, CrdStoredObjects, CrdUpgradeSafety, CrdUpgradeSafetyEnforcement, CrdUpgradeWaiver,
};
use olm_bundle::crd_safety::{self, Rules, Waiver};
use olm_bundle::crd_schema;
use olm_runtime::Feature;
use serde_json::Value;

use super::Context;
use super::call::call;
use super::failure::Failure;
use super::stored;

/// Longest text of all findings in a message, in bytes. What stands around it fits into the rest of 1 KiB.
const TEXT_LIMIT: usize = 700;
/// Longest name of an extension in a message, in bytes; longer ones are most unusual.
pub(super) const NAME_LIMIT: usize = 64;
/// Longest text of the waivers that match nothing, in bytes.
const IDLE_LIMIT: usize = 100;

/// Compares every CRD among `objects` with the one on the cluster. Findings that are not waived are a [`Failure`]
/// that names them, as far as they fit; the log has them all.
pub(crate) async fn check(
    context: &Context,
    extension: &ClusterExtension,
    objects: &[Value],
) -> Result<(), Failure> {
    let safety = settings(extension);
    let compares = safety.is_none_or(|safety| safety.enforcement != CrdUpgradeSafetyEnforcement::None);
    let looks = safety.is_some_and(|safety| safety.stored_objects == Some(CrdStoredObjects::Check));
    if !compares && !looks {
        return Ok(());
    }
    let given = safety
        .and_then(|safety| safety.waivers.as_deref())
        .unwrap_or_default();
    let rules = if context.features.enabled(Feature::UpstreamCrdUpgradeSafety) {
        Rules::Upstream
    } else {
        Rules::Ours
    };
    // Read as it is: a typed copy would lose the fields this build does not know, and report them as removed.
    let kind = ApiResource::erase::<CustomResourceDefinition>(&());
    let api: Api<DynamicObject> = Api::all_with(context.shared.client.clone(), &kind);
    let mut plans = Vec::new();
    let mut findings = Vec::new();
    let mut met = vec![false; given.len()];
    for new in objects.iter().filter(|object| is_crd(object)) {
        let Some(name) = new.pointer("/metadata/name").and_then(Value::as_str) else {
            continue;
        };
        let what = format!("reading CustomResourceDefinition \"{name}\"");
        let Some(old) = call(what, api.get_opt(name)).await? else {
            continue;
        };
        let old = serde_json::to_value(&old).map_err(|_| Failure::Interrupted("reading a CRD"))?;
        if looks {
            plans.push((name.to_owned(), crd_schema::plan(&old, new)));
        }
        if !compares {
            continue;
        }
        let found = crd_safety::check(&old, new, rules);
        let own: Vec<usize> = (0..given.len())
            .filter(|at| given.get(*at).is_some_and(|waiver| waiver.crd == name))
            .collect();
        let waivers: Vec<Waiver> = own.iter().filter_map(|at| given.get(*at)).map(waiver).collect();
        let (left, used) = crd_safety::waive(found, &waivers);
        for (at, used) in own.into_iter().zip(used) {
            if let Some(met) = met.get_mut(at) {
                *met |= used;
            }
        }
        findings.extend(
            left.iter()
                .map(|finding| format!("validating upgrade for CRD \"{name}\": {finding}")),
        );
    }
    let idle: Vec<String> = given
        .iter()
        .zip(met)
        .filter(|(_, met)| !met)
        .map(|(waiver, _)| shown(waiver))
        .collect();
    if findings.is_empty() {
        if compares {
            tell_idle(context, extension, &idle);
        }
        return stored::check(context, extension, plans).await;
    }
    for finding in &findings {
        tracing::warn!(
            ClusterExtension = extension.name_any(),
            finding,
            "unsafe change of a CRD"
        );
    }
    Err(Failure::CrdSafety(message(
        &extension.name_any(),
        &findings,
        &idle,
    )))
}

fn settings(extension: &ClusterExtension) -> Option<&CrdUpgradeSafety> {
    let install = extension.spec.install.as_ref()?;
    Some(&install.preflight.as_ref()?.crd_upgrade_safety)
}

fn waiver(given: &CrdUpgradeWaiver) -> Waiver {
    Waiver {
        rule: given.rule.as_str().to_owned(),
        path: given.path.clone().unwrap_or_default(),
    }
}

/// A waiver as a message names it.
fn shown(waiver: &CrdUpgradeWaiver) -> String {
    let path = waiver.path.as_deref().unwrap_or_default();
    let place = if path.is_empty() {
        String::new()
    } else {
        format!(" at {path}")
    };
    format!("{} of {}{place}", waiver.rule.as_str(), waiver.crd)
}

/// A waiver that is good for nothing is most likely misspelt, or forgotten.
fn tell_idle(context: &Context, extension: &ClusterExtension, idle: &[String]) {
    if idle.is_empty() {
        return;
    }
    let note = format!(
        "waivers that match no change of a CRD, and can go: {}",
        idle.join("; ")
    );
    context
        .events
        .warning(extension.object_ref(&()), "WaiverUnused", "Reconcile", &note);
}

/// The findings, one a line, as many as fit; then what is not shown and what can be done.
fn message(extension: &str, findings: &[String], idle: &[String]) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut bytes = 0;
    for finding in findings {
        let line = cut(finding, TEXT_LIMIT);
        if bytes > 0 && bytes + line.len() >= TEXT_LIMIT {
            break;
        }
        bytes += line.len() + 1;
        lines.push(line.to_owned());
    }
    let left = findings.len() - lines.len();
    if left > 0 {
        lines.push(format!(
            "(and {left} more: `kubectl olm crd-safety --extension {}` names all)",
            cut(extension, NAME_LIMIT)
        ));
    }
    if !idle.is_empty() {
        let idle = idle.join("; ");
        lines.push(format!(
            "(waivers that match nothing: {})",
            cut(&idle, IDLE_LIMIT)
        ));
    }
    lines.join("\n")
}

/// At most the first `bytes` of a text, whole characters.
pub(super) fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}

fn is_crd(object: &Value) -> bool {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    text("kind") == "CustomResourceDefinition" && text("apiVersion").starts_with("apiextensions.k8s.io/")
}

#[cfg(test)]
mod tests {
    use super::message;

    #[test]
    fn messages_are_short_and_whole_lines() {
        let one = vec!["validating upgrade for CRD \"a\": scope: x".to_owned()];
        assert_eq!(message("e", &one, &[]), one[0]);
        let many: Vec<String> = (0..500)
            .map(|n| format!("finding {n} {}", "ä".repeat(40)))
            .collect();
        let text = message(&"e".repeat(253), &many, &["type of a at ^.b".to_owned()]);
        assert!(text.len() < 1024 - 64, "{}", text.len());
        assert!(text.contains("more: `kubectl olm crd-safety --extension eee"));
        assert!(text.ends_with("(waivers that match nothing: type of a at ^.b)"));
        assert!(message("e", &["ä".repeat(5000)], &[]).len() < 1024);
    }
}
