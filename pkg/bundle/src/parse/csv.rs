//! A `ClusterServiceVersion` manifest → [`Csv`].

use serde_json::{Map, Value, json};

use super::decode::Object;
use crate::model::{Csv, Permission, Rule, StrategyDeployment, Webhook, WebhookRule, WebhookType};
use crate::shape::{CSV, DEPLOYMENT_SPEC, shapes};

/// Reads the fields that matter. Fields nobody knows are dropped, a known field of a wrong type is an
/// error, in the words of upstream's converter.
pub(super) fn csv(value: &Value) -> Result<Csv, String> {
    // Fields that nothing here reads must have the right types too.
    shapes().normalize(CSV, value)?;
    let root = Object::of(value)?;
    let metadata = root.object("metadata")?;
    let spec = root.object("spec")?;
    let strategy = spec.object("install")?.object("spec")?;
    Ok(Csv {
        name: metadata.text("name")?,
        annotations: metadata.text_map("annotations")?,
        version: version(spec)?,
        install_modes: spec.each("installModes", |mode| {
            let mode = Object::of(mode)?;
            Ok((mode.text("type")?, mode.flag("supported")?))
        })?,
        owned_crds: spec
            .object("customresourcedefinitions")?
            .each("owned", |crd| Object::of(crd)?.text("name"))?,
        owns_api_services: spec
            .object("apiservicedefinitions")?
            .list("owned")?
            .is_some_and(|owned| !owned.is_empty()),
        deployments: strategy.each("deployments", deployment)?,
        permissions: strategy.each("permissions", permission)?,
        cluster_permissions: strategy.each("clusterPermissions", permission)?,
        webhooks: spec.each("webhookdefinitions", webhook)?,
    })
}

/// A leading `v` is tolerated and dropped; anything but a semantic version is refused.
fn version(spec: Object<'_>) -> Result<String, String> {
    let text = spec.text("version")?;
    let bare = text.strip_prefix('v').unwrap_or(&text);
    if bare.is_empty() {
        return Ok(String::new());
    }
    olm_version::VersionRelease::parse_legacy(bare).map_err(|error| error.to_string())?;
    Ok(bare.to_owned())
}

fn deployment(value: &Value) -> Result<StrategyDeployment, String> {
    let deployment = Object::of(value)?;
    Ok(StrategyDeployment {
        name: deployment.text("name")?,
        labels: deployment.text_map("label")?,
        spec: shapes().normalize(DEPLOYMENT_SPEC, deployment.get("spec").unwrap_or(&Value::Null))?,
    })
}

fn permission(value: &Value) -> Result<Permission, String> {
    let permission = Object::of(value)?;
    let rules = permission
        .list("rules")?
        .map(|rules| rules.iter().map(rule).collect::<Result<_, _>>());
    Ok(Permission {
        service_account: permission.text("serviceAccountName")?,
        rules: rules.transpose()?,
    })
}

fn rule(value: &Value) -> Result<Rule, String> {
    let rule = Object::of(value)?;
    Ok(Rule {
        verbs: rule.texts("verbs")?,
        api_groups: rule.texts("apiGroups")?.unwrap_or_default(),
        resources: rule.texts("resources")?.unwrap_or_default(),
        resource_names: rule.texts("resourceNames")?.unwrap_or_default(),
        non_resource_urls: rule.texts("nonResourceURLs")?.unwrap_or_default(),
    })
}

fn webhook(value: &Value) -> Result<Webhook, String> {
    let webhook = Object::of(value)?;
    let type_name = webhook.text("type")?;
    let kind = [
        WebhookType::Conversion,
        WebhookType::Mutating,
        WebhookType::Validating,
    ]
    .into_iter()
    .find(|kind| kind.as_str() == type_name);
    let mut copied = Map::new();
    for field in [
        "failurePolicy",
        "matchPolicy",
        "sideEffects",
        "reinvocationPolicy",
    ] {
        if let Some(text) = webhook.optional_text(field)? {
            copied.insert(field.to_owned(), text.into());
        }
    }
    if webhook.get("timeoutSeconds").is_some() {
        copied.insert(
            "timeoutSeconds".to_owned(),
            webhook.integer("timeoutSeconds")?.into(),
        );
    }
    if let Some(selector) = webhook.get("objectSelector") {
        copied.insert(
            "objectSelector".to_owned(),
            shapes().normalize(LABEL_SELECTOR, selector)?,
        );
    }
    let target_port = match webhook.get("targetPort") {
        Some(port @ (Value::Number(_) | Value::String(_))) => Some(port.clone()),
        Some(_) => return Err("IntOrString must be a number or a string".to_owned()),
        None => None,
    };
    Ok(Webhook {
        kind,
        type_name,
        generate_name: webhook.text("generateName")?,
        deployment: webhook.text("deploymentName")?,
        container_port: webhook.integer("containerPort")?,
        target_port,
        path: webhook.optional_text("webhookPath")?,
        conversion_crds: webhook.texts("conversionCRDs")?.unwrap_or_default(),
        admission_review_versions: webhook.texts("admissionReviewVersions")?,
        rules: webhook.each("rules", webhook_rule)?,
        copied,
    })
}

const LABEL_SELECTOR: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";

fn webhook_rule(value: &Value) -> Result<WebhookRule, String> {
    let rule = Object::of(value)?;
    let mut out = Map::new();
    for field in ["apiGroups", "apiVersions", "operations", "resources"] {
        if let Some(items) = rule.texts(field)?.filter(|items| !items.is_empty()) {
            out.insert(field.to_owned(), json!(items));
        }
    }
    if let Some(scope) = rule.optional_text("scope")? {
        out.insert("scope".to_owned(), scope.into());
    }
    Ok(WebhookRule {
        api_groups: rule.texts("apiGroups")?.unwrap_or_default(),
        resources: rule.texts("resources")?.unwrap_or_default(),
        value: Value::Object(out),
    })
}
