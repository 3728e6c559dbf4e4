//! Validation of bundles: defects that prevent installation.

mod api_services;

use std::collections::{BTreeMap, BTreeSet};

use olm_text::dns::subdomain_faults;
use olm_text::object::{metadata_name, text};

use crate::config::{WATCH_NAMESPACES, chooses_several};
use crate::model::{InstallMode, Webhook, WebhookType};
use crate::{Bundle, Certificates, RenderError, RenderOptions};

/// Scope of a kind's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Namespaced,
    Cluster,
}

/// Returns the scope of a kind that a bundle may contain; `None` for all others. The group of a kind does not count, as
/// upstream.
pub(crate) fn scope_of(kind: &str) -> Option<Scope> {
    match kind {
        "Secret"
        | "ServiceAccount"
        | "Service"
        | "Role"
        | "RoleBinding"
        | "PrometheusRule"
        | "ServiceMonitor"
        | "PodMonitor"
        | "PodDisruptionBudget"
        | "ConfigMap"
        | "NetworkPolicy"
        | "VerticalPodAutoscaler"
        | "ClusterServiceVersion" => Some(Scope::Namespaced),
        "CustomResourceDefinition"
        | "ClusterRole"
        | "ClusterRoleBinding"
        | "PriorityClass"
        | "ConsoleYAMLSample"
        | "ConsoleQuickStart"
        | "ConsoleCLIDownload"
        | "ConsoleLink"
        | "ConsolePlugin" => Some(Scope::Cluster),
        _ => None,
    }
}

/// Refuses a bundle that cannot be installed with these options; runs before all other checks.
pub(crate) fn supported(bundle: &Bundle, options: &RenderOptions) -> Result<(), RenderError> {
    let refuse = |text: &str| Err(RenderError::Unsupported(text.to_owned()));
    if options.certificates == Certificates::None {
        if bundle.has_api_services() {
            return refuse("apiServiceDefintions are not supported");
        }
        if bundle.has_webhooks() {
            return refuse("webhookDefinitions are not supported");
        }
    }
    if !options.single_own_namespace && !bundle.supports(InstallMode::AllNamespaces) {
        return refuse("bundle does not support AllNamespaces install mode");
    }
    let usable = [
        InstallMode::AllNamespaces,
        InstallMode::SingleNamespace,
        InstallMode::OwnNamespace,
    ];
    let several = options.config.as_ref().is_some_and(chooses_several);
    let chosen = several && bundle.supports(InstallMode::MultiNamespace);
    if !chosen && !usable.into_iter().any(|mode| bundle.supports(mode)) {
        return refuse(
            "bundle must support at least one of [AllNamespaces SingleNamespace OwnNamespace] install modes",
        );
    }
    Ok(())
}

/// Checks the bundle for contradictions. The error lists all of them, one per line.
pub(crate) fn consistent(bundle: &Bundle) -> Result<(), RenderError> {
    let findings = contradictions(bundle);
    if findings.is_empty() {
        Ok(())
    } else {
        Err(RenderError::Invalid(findings.join("\n")))
    }
}

/// Returns the defects for which `bundle` is refused with any options; empty for a valid bundle.
pub fn findings(bundle: &Bundle) -> Vec<String> {
    let mut options = RenderOptions::new("");
    options.certificates = Certificates::CertManager;
    // A bundle for several namespaces lacks only the list of namespaces.
    options.config = Some(serde_json::json!({ WATCH_NAMESPACES: [] }));
    let mut out: Vec<String> = supported(bundle, &options)
        .err()
        .map(|error| error.to_string())
        .into_iter()
        .collect();
    out.extend(contradictions(bundle));
    out
}

fn contradictions(bundle: &Bundle) -> Vec<String> {
    [
        deployment_names,
        crd_names,
        owned_crds,
        package_name,
        conversion_modes,
        webhook_deployments,
        webhook_duplicates,
        webhook_names,
        conversion_duplicates,
        conversion_owned,
        webhook_rules,
        api_services::findings,
        kinds,
    ]
    .iter()
    .flat_map(|check| check(bundle))
    .collect()
}

fn repeated<T: Copy + Ord>(names: impl Iterator<Item = T>) -> BTreeSet<T> {
    let mut seen = BTreeSet::new();
    names.filter(|name| !seen.insert(*name)).collect()
}

fn deployment_names(bundle: &Bundle) -> Vec<String> {
    let names = || {
        bundle
            .csv
            .deployments
            .iter()
            .map(|deployment| deployment.name.as_str())
    };
    let twice = repeated(names())
        .into_iter()
        .map(|name| format!("cluster service version contains duplicate strategy deployment spec '{name}'"));
    let invalid = names().collect::<BTreeSet<_>>().into_iter().filter_map(|name| {
        let messages = subdomain_messages(name).join(", ");
        (!messages.is_empty())
            .then(|| format!("invalid cluster service version strategy deployment name '{name}': {messages}"))
    });
    twice.chain(invalid).collect()
}

/// Returns Kubernetes' messages about a name that is not a DNS-1123 subdomain, sorted.
fn subdomain_messages(name: &str) -> Vec<String> {
    let mut messages = subdomain_faults(name);
    messages.sort();
    messages
}

fn crd_names(bundle: &Bundle) -> Vec<String> {
    repeated(bundle.crds.iter().map(metadata_name))
        .into_iter()
        .map(|name| format!("bundle contains duplicate custom resource definition '{name}'"))
        .collect()
}

fn owned_crds(bundle: &Bundle) -> Vec<String> {
    let present: BTreeSet<&str> = bundle.crds.iter().map(metadata_name).collect();
    let missing: BTreeSet<&str> = bundle
        .csv
        .owned_crds
        .iter()
        .map(String::as_str)
        .filter(|name| !present.contains(name))
        .collect();
    missing
        .into_iter()
        .map(|name| {
            format!(
                "cluster service definition references owned custom resource definition '{name}' not found in bundle"
            )
        })
        .collect()
}

fn package_name(bundle: &Bundle) -> Vec<String> {
    if bundle.package.is_empty() {
        vec!["package name is empty".to_owned()]
    } else {
        Vec::new()
    }
}

fn conversions(bundle: &Bundle) -> impl Iterator<Item = &Webhook> {
    bundle
        .csv
        .webhooks
        .iter()
        .filter(|webhook| webhook.kind == Some(WebhookType::Conversion))
}

fn conversion_modes(bundle: &Bundle) -> Vec<String> {
    let modes = bundle.install_modes();
    if modes == [InstallMode::AllNamespaces] {
        return Vec::new();
    }
    let modes = modes
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" ");
    conversions(bundle)
        .map(|webhook| {
            format!(
                "bundle contains conversion webhook \"{}\" and supports install modes [{modes}] - conversion \
                 webhooks are only supported for bundles that only support AllNamespaces install mode",
                webhook.generate_name
            )
        })
        .collect()
}

fn webhook_deployments(bundle: &Bundle) -> Vec<String> {
    let deployments: BTreeSet<&str> = bundle
        .csv
        .deployments
        .iter()
        .map(|spec| spec.name.as_str())
        .collect();
    let mut dangling: Vec<(&str, &str, &str)> = bundle
        .csv
        .webhooks
        .iter()
        .map(|webhook| (webhook.deployment.as_str(), typed_name(webhook)))
        .filter(|(deployment, _)| !deployments.contains(deployment))
        .map(|(deployment, (kind, name))| (deployment, kind, name))
        .collect();
    dangling.sort_unstable();
    dangling
        .into_iter()
        .map(|(deployment, kind, name)| {
            format!(
                "webhook of type '{kind}' with name '{name}' references non-existent deployment '{deployment}'"
            )
        })
        .collect()
}

/// Returns the type and the name of a webhook definition, the sort key of findings.
fn typed_name(webhook: &Webhook) -> (&str, &str) {
    (&webhook.type_name, &webhook.generate_name)
}

fn webhook_duplicates(bundle: &Bundle) -> Vec<String> {
    repeated(bundle.csv.webhooks.iter().map(typed_name))
        .into_iter()
        .map(|(kind, name)| format!("duplicate webhook '{name}' of type '{kind}'"))
        .collect()
}

fn webhook_names(bundle: &Bundle) -> Vec<String> {
    let names: BTreeSet<_> = bundle.csv.webhooks.iter().map(typed_name).collect();
    let invalid = |(kind, name)| {
        let messages = subdomain_messages(name).join(",");
        (!messages.is_empty())
            .then(|| format!("webhook of type '{kind}' has invalid name '{name}': {messages}"))
    };
    names.into_iter().filter_map(invalid).collect()
}

fn conversion_duplicates(bundle: &Bundle) -> Vec<String> {
    let mut by_crd: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for webhook in conversions(bundle) {
        for crd in &webhook.conversion_crds {
            by_crd.entry(crd).or_default().push(&webhook.generate_name);
        }
    }
    by_crd
        .into_iter()
        .filter(|(_, names)| names.len() > 1)
        .map(|(crd, mut names)| {
            names.sort_unstable();
            format!(
                "conversion webhooks [{}] reference same custom resource definition '{crd}'",
                names.join(",")
            )
        })
        .collect()
}

fn conversion_owned(bundle: &Bundle) -> Vec<String> {
    let owned: BTreeSet<&str> = bundle.csv.owned_crds.iter().map(String::as_str).collect();
    let mut foreign: Vec<(&str, &str)> = conversions(bundle)
        .flat_map(|webhook| {
            let crds = webhook.conversion_crds.iter();
            crds.map(|crd| (webhook.generate_name.as_str(), crd.as_str()))
        })
        .filter(|(_, crd)| !owned.contains(crd))
        .collect();
    foreign.sort_unstable();
    foreign
        .into_iter()
        .map(|(name, crd)| {
            format!(
                "conversion webhook '{name}' references custom resource definition '{crd}' not owned bundle"
            )
        })
        .collect()
}

/// Finds rules that would let a bundle intercept OLM itself or admission as a whole.
fn webhook_rules(bundle: &Bundle) -> Vec<String> {
    let mut out = Vec::new();
    let admission = |webhook: &&Webhook| webhook.kind != Some(WebhookType::Conversion);
    for webhook in bundle.csv.webhooks.iter().filter(admission) {
        let head = format!(
            "webhook \"{}\" contains forbidden rule: admission webhook rules",
            webhook.generate_name
        );
        for rule in &webhook.rules {
            for group in &rule.api_groups {
                match group.as_str() {
                    "*" | "olm.operatorframework.io" => {
                        out.push(format!("{head} cannot reference API group \"{group}\""));
                    }
                    "admissionregistration.k8s.io" => {
                        for resource in rule.resources.iter().filter(|resource| is_forbidden(resource)) {
                            out.push(format!(
                                "{head} cannot reference resource \"{resource}\" for API group \"{group}\""
                            ));
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    out
}

fn is_forbidden(resource: &str) -> bool {
    matches!(
        resource.to_ascii_lowercase().as_str(),
        "*" | "mutatingwebhookconfiguration"
            | "mutatingwebhookconfigurations"
            | "validatingwebhookconfiguration"
            | "validatingwebhookconfigurations"
    )
}

fn kinds(bundle: &Bundle) -> Vec<String> {
    let unsupported = |object: &serde_json::Value| {
        let kind = text(object, "/kind");
        scope_of(kind).is_none().then(|| {
            format!(
                "unsupported resource \"{}\" with kind \"{kind}\"",
                metadata_name(object)
            )
        })
    };
    bundle.other_manifests.iter().filter_map(unsupported).collect()
}
