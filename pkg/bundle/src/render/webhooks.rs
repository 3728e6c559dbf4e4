//! Webhook configurations, and conversion of CRDs.

use std::collections::BTreeMap;

use olm_text::object::metadata_name;
use serde_json::{Map, Value, json};

use super::certificates::{self, Target};
use super::{Context, names};
use crate::RenderError;
use crate::model::{Webhook, WebhookType, service_port};

/// Returns the CRDs in order, with their conversion webhooks.
pub(super) fn crds(context: &Context<'_>) -> Result<Vec<Value>, RenderError> {
    let mut by_crd: BTreeMap<&str, &Webhook> = BTreeMap::new();
    for webhook in webhooks(context, WebhookType::Conversion) {
        for crd in &webhook.conversion_crds {
            by_crd.insert(crd, webhook);
        }
    }
    let mut out = Vec::with_capacity(context.bundle.crds.len());
    for crd in &context.bundle.crds {
        let mut crd = crd.clone();
        let name = metadata_name(&crd).to_owned();
        if let Some(webhook) = by_crd.get(name.as_str()) {
            convert(context, &name, &mut crd, webhook)?;
        }
        out.push(crd);
    }
    Ok(out)
}

fn convert(context: &Context<'_>, name: &str, crd: &mut Value, webhook: &Webhook) -> Result<(), RenderError> {
    if crd.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true)) {
        return Err(RenderError::Invalid(format!(
            "custom resource definition '{name}' must have .spec.preserveUnknownFields set to false to let API \
             Server call webhook to do the conversion"
        )));
    }
    let mut service = service_reference(context, webhook);
    let path = webhook.path.clone().unwrap_or_else(|| "/".to_owned());
    service.insert("path".to_owned(), path.into());
    let conversion = json!({
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"service": service},
            "conversionReviewVersions": webhook.admission_review_versions,
        },
    });
    if let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("conversion".to_owned(), conversion);
    }
    certificates::inject(context, &webhook.deployment, crd, Target::Crd)
}

fn webhooks<'a>(context: &Context<'a>, kind: WebhookType) -> impl Iterator<Item = &'a Webhook> {
    context
        .bundle
        .csv
        .webhooks
        .iter()
        .filter(move |webhook| webhook.kind == Some(kind))
}

fn service_reference(context: &Context<'_>, webhook: &Webhook) -> Map<String, Value> {
    let mut service = Map::new();
    service.insert("namespace".to_owned(), context.namespace.into());
    service.insert("name".to_owned(), names::service_name(&webhook.deployment).into());
    service.insert("port".to_owned(), service_port(webhook.container_port).into());
    service
}

/// Renders one configuration object for each admission webhook of `kind`.
pub(super) fn configurations(context: &Context<'_>, kind: WebhookType) -> Result<Vec<Value>, RenderError> {
    let object_kind = match kind {
        WebhookType::Validating => "ValidatingWebhookConfiguration",
        WebhookType::Mutating | WebhookType::Conversion => "MutatingWebhookConfiguration",
    };
    let mut out = Vec::new();
    for webhook in webhooks(context, kind) {
        let name = webhook
            .generate_name
            .strip_suffix('-')
            .unwrap_or(&webhook.generate_name);
        let mut entry = webhook.copied.clone();
        if kind == WebhookType::Validating {
            entry.remove("reinvocationPolicy");
        }
        let mut service = service_reference(context, webhook);
        if let Some(path) = &webhook.path {
            service.insert("path".to_owned(), path.clone().into());
        }
        entry.insert("name".to_owned(), name.into());
        entry.insert("clientConfig".to_owned(), json!({"service": service}));
        entry.insert(
            "admissionReviewVersions".to_owned(),
            json!(webhook.admission_review_versions),
        );
        entry.entry("sideEffects").or_insert(Value::Null);
        if !webhook.rules.is_empty() {
            let rules = webhook.rules.iter().map(|rule| rule.value.clone()).collect();
            entry.insert("rules".to_owned(), rules);
        }
        if !context.all_namespaces() {
            let values = &context.targets;
            let expression =
                json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": values});
            entry.insert(
                "namespaceSelector".to_owned(),
                json!({"matchExpressions": [expression]}),
            );
        }
        let mut object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": object_kind,
                                "metadata": {"name": name, "namespace": context.namespace}, "webhooks": [entry]});
        certificates::inject(context, &webhook.deployment, &mut object, Target::Configuration)?;
        out.push(object);
    }
    Ok(out)
}
