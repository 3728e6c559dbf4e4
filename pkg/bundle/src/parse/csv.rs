//! Parsing of a `ClusterServiceVersion` manifest to a [`Csv`].

use serde_json::{Map, Value, json};

use super::decode::Object;
use crate::model::{
    ApiService, Csv, Permission, Rule, StrategyDeployment, Webhook, WebhookRule, WebhookType,
};
use crate::shape::{CSV, DEPLOYMENT_SPEC, shapes};

/// Reads the fields that rendering uses. Drops unknown fields. A known field of a wrong type is an error, in the words
/// of upstream's converter.
pub(super) fn csv(value: &Value) -> Result<Csv, String> {
    // Unused fields must have the right types, too.
    shapes().normalize(CSV, value)?;
    let root = Object::of(value)?;
    let metadata = root.object("metadata")?;
    let spec = root.object("spec")?;
    let strategy = spec.object("install")?.object("spec")?;
    Ok(Csv {
        name: metadata.text("name")?,
        annotations: metadata.text_map("annotations")?,
        version: version(spec)?,
        min_kube_version: spec
            .optional_text("minKubeVersion")?
            .map(|version| version.trim().to_owned())
            .filter(|version| !version.is_empty()),
        install_modes: spec.each("installModes", |mode| {
            let mode = Object::of(mode)?;
            Ok((mode.text("type")?, mode.flag("supported")?))
        })?,
        owned_crds: spec
            .object("customresourcedefinitions")?
            .each("owned", |crd| Object::of(crd)?.text("name"))?,
        api_services: spec.object("apiservicedefinitions")?.each("owned", api_service)?,
        deployments: strategy.each("deployments", deployment)?,
        permissions: strategy.each("permissions", permission)?,
        cluster_permissions: strategy.each("clusterPermissions", permission)?,
        webhooks: spec.each("webhookdefinitions", webhook)?,
    })
}

/// Reads a semantic version and fixes a leading `v`, leading zeros and missing parts. An absent version is empty.
fn version(spec: Object<'_>) -> Result<String, String> {
    let Some(text) = spec.optional_text("version")? else {
        return Ok(String::new());
    };
    let text = text.trim();
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(without_leading_zeros).collect();
    if parts.len() < 3 && parts.last().is_some_and(|part| part.contains(['+', '-'])) {
        return Err("Short version cannot contain PreRelease/Build meta data".to_owned());
    }
    parts.resize(3, "0".to_owned());
    let version = parts.join(".");
    olm_version::parse_version(&version).map_err(|error| error.to_string())?;
    Ok(version)
}

fn without_leading_zeros(part: &str) -> String {
    let bare = part.trim_start_matches('0');
    if part.len() < 2 || bare.starts_with(|c: char| c.is_ascii_digit()) {
        return if part.len() < 2 {
            part.to_owned()
        } else {
            bare.to_owned()
        };
    }
    format!("0{bare}")
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

fn api_service(value: &Value) -> Result<ApiService, String> {
    let service = Object::of(value)?;
    Ok(ApiService {
        group: service.text("group")?,
        version: service.text("version")?,
        deployment: service.text("deploymentName")?,
        container_port: service.integer("containerPort")?,
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::csv;

    #[test]
    fn versions_are_read_tolerantly() {
        let version = |text: &str| {
            csv(&json!({"kind": "ClusterServiceVersion", "spec": {"version": text}})).map(|csv| csv.version)
        };
        for (text, expected) in [
            ("1.2.3", "1.2.3"),
            ("v1.2.3-rc.1+b", "1.2.3-rc.1+b"),
            ("1.2", "1.2.0"),
            ("01.002.0", "1.2.0"),
            ("7", "7.0.0"),
        ] {
            assert_eq!(version(text).as_deref(), Ok(expected), "{text}");
        }
        assert!(version("one").is_err() && version("1.2-rc").is_err());
        assert_eq!(csv(&json!({"spec": {}})).unwrap().version, "");
    }

    #[test]
    fn fields_have_their_types() {
        let error = |spec| csv(&json!({"spec": spec})).unwrap_err();
        assert_eq!(error(json!({"description": 5})), "cannot convert int64 to string");
        assert_eq!(
            error(json!({"keywords": "one"})),
            "cannot restore slice from string"
        );
        assert_eq!(
            error(json!({"provider": []})),
            "cannot restore struct from: slice"
        );
        assert_eq!(
            error(json!({"webhookdefinitions": [{"timeoutSeconds": "5"}]})),
            "unrecognized type: int32"
        );
        let deployment = json!({"spec": {"progressDeadlineSeconds": "x"}});
        assert_eq!(
            error(json!({"install": {"spec": {"deployments": [deployment]}}})),
            "unrecognized type: int32"
        );
        csv(&json!({"spec": {"nobody": {"knows": "this"}, "icon": [{"base64data": "", "mediatype": "x"}]}}))
            .unwrap();
    }
}
